"""What was learned from a log, in a file of its own: the log need not be read again, nor shared."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from advisor.core.errors import InputError
from advisor.core.files import write_atomically
from advisor.formats.foreign_files import open_regular, read_plain
from advisor.formats.strict_json import read_json

# A fit of thousands of queues.
_MOST_BYTES = 2**22


@dataclass(frozen=True, slots=True, kw_only=True)
class FitKind:
    """One kind of such files.

    Attributes:
        format: what the file says that it is.
        version: of its fields.
        noun: what it is, for errors.
        log: what else may be read in its place, for errors.
        command: writes one.
    """

    format: str
    version: int
    noun: str
    log: str
    command: str

    @property
    def advice(self) -> str:
        """What to do about a file that is no good."""
        return f"Write it anew: {self.command}"


def write_fit_file(path: Path, kind: FitKind, body: Mapping[str, object]) -> None:
    """As JSON.

    Raises:
        InputError: the file cannot be written.
    """
    whole = {"format": kind.format, "version": kind.version, **body}
    try:
        write_atomically(path, f"{json.dumps(whole, indent=1)}\n".encode())
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {error.strerror}.") from error


def is_fit_file(path: Path) -> bool:
    """Whether it is JSON, which no log is; what is no file is none either.

    Raises:
        InputError: it cannot be read.
    """
    if not path.is_file():
        return False
    try:
        with open_regular(path) as file:
            return file.read(64).lstrip()[:1] == b"{"
    except OSError as error:
        raise InputError(f"cannot read {str(path)!r}: {error.strerror}.") from error


def read_fit_file(path: Path, kind: FitKind) -> dict[str, object]:
    """The body that `write_fit_file` wrote; its fields are the caller's to check.

    Raises:
        InputError: unreadable, of another kind or of a newer version.
    """
    try:
        body = read_json(read_plain(path, most_bytes=_MOST_BYTES))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {str(path)!r}: {error}. {kind.advice}.") from error
    if not isinstance(body, dict) or body.pop("format", None) != kind.format:
        raise InputError(f"{str(path)!r} is no fit of {kind.noun}, nor {kind.log}. {kind.advice}.")
    if (version := body.pop("version", None)) != kind.version:
        raise InputError(f"{str(path)!r} has version {version!r}, not {kind.version}. {kind.advice}.")
    return body
