"""A file of this machine, and standard output."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from advisor.config.delivery_settings import FileChannel, StdoutChannel
from advisor.core.files import write_atomically
from advisor.delivery.channel import File, Parcel, PermanentError, Secrets, UncertainError


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalFile:
    """A file, replaced as a whole."""

    settings: FileChannel
    secrets: Secrets = field(repr=False)
    drops_repeats: bool = field(default=True, init=False)

    @property
    def target(self) -> str:
        """Its path, with what it has in braces."""
        return str(self.settings.path)

    def preview(self, parcel: Parcel) -> str:
        """Path and content."""
        return preview_of(parcel, self.target)

    def send(self, parcel: Parcel, begin: Callable[[], None]) -> None:
        """Write it."""
        path, file = Path(parcel.fill(self.target)), file_of(parcel, self.target)
        begin()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, file.payload)
        except OSError as error:
            raise PermanentError(f"cannot write {str(path)!r}: {error.strerror or error}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stdout:
    """Standard output; what was printed there is gone."""

    settings: StdoutChannel
    secrets: Secrets = field(repr=False)
    drops_repeats: bool = field(default=False, init=False)

    @property
    def target(self) -> str:
        """Its usual name."""
        return "standard output"

    def preview(self, parcel: Parcel) -> str:
        """What is printed."""
        return file_of(parcel, f"answer.{self.settings.format}").payload.decode()

    def send(self, parcel: Parcel, begin: Callable[[], None]) -> None:
        """Print it."""
        text = self.preview(parcel)
        begin()
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except OSError as error:
            raise UncertainError(f"standard output was closed: {error.strerror or error}") from None


def preview_of(parcel: Parcel, target: str) -> str:
    """Where the answer is written, and its content."""
    return f"{parcel.fill(target)}\n\n{file_of(parcel, target).payload.decode()}"


def file_of(parcel: Parcel, name: str) -> File:
    """The answer in the form that a name ends with. Raises PermanentError: it has no such form."""
    suffix = PurePath(name).suffix
    file = parcel.message.file(suffix)
    if file is None:
        raise PermanentError(f"this answer has no form {suffix!r}: name a file that ends in .txt or .json")
    return file
