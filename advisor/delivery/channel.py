"""What a channel is, what it is given, and how a sending may go wrong."""

import errno
import hashlib
import json
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from advisor.core.redaction import HIDDEN, redact_message
from advisor.formats.user_files import at_home

_MOST_BYTES = 64_000
_OTHERS_MAY = 0o077


class SecretError(Exception):
    """A secret cannot be read; says where it should be and what to do."""


@dataclass(frozen=True, slots=True)
class Secrets:
    """Reads secrets, and remembers what it has read."""

    environ: Mapping[str, str] = field(repr=False)
    _values: set[str] = field(default_factory=set, repr=False, init=False)

    def read(self, reference: str) -> str:
        """The secret behind ``env:NAME`` or ``file:PATH``.

        Raises SecretError: it is not there, or others may read its file.
        """
        kind, _, name = reference.partition(":")
        if kind == "file":
            value = _of_file(str(at_home(name)))
        elif not (value := self.environ.get(name, "")):
            raise SecretError(
                f"the variable {name} is not set: export it, or name another one in the settings"
            )
        if not value.isprintable():
            raise SecretError(f"{reference} holds a line break or another control character: write one line")
        self._values.add(value)
        return value

    def hide(self, text: str) -> str:
        """A text without any secret that was read."""
        for value in sorted(self._values, key=len, reverse=True):
            text = text.replace(value, HIDDEN)
        return text


def _of_file(path: str) -> str:
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        with open(path, "rb", opener=lambda name, _: os.open(name, flags)) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise SecretError(f"{path!r} is no regular file, which a secret file must be")
            if status.st_mode & _OTHERS_MAY:
                raise SecretError(f"others may read or write the secret file {path!r}: chmod 600 {path}")
            if status.st_uid not in (os.geteuid(), 0):
                raise SecretError(
                    f"the secret file {path!r} belongs to another user: make a file of your own"
                )
            value = file.read(_MOST_BYTES).decode().strip()
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise SecretError(f"{path!r} is a symbolic link: name the file itself") from None
        raise SecretError(f"cannot read the secret file {path!r}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise SecretError(f"the secret file {path!r} is no UTF-8 text") from None
    if not value:
        raise SecretError(f"the secret file {path!r} is empty: write the secret into it")
    return value


JSON_TYPE = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A PNG inside the HTML of a mail."""

    cid: str
    png: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Html:
    """The HTML of a mail, which shows its pictures by ``cid:``."""

    text: str
    pictures: tuple[Picture, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """The whole answer as a file."""

    suffix: str
    """Such as ``.html``."""
    media_type: str
    """Such as ``text/html``; texts are UTF-8."""
    make: Callable[[], str] = field(repr=False)
    """Its text, made where a channel wants it: a page takes seconds."""

    @property
    def payload(self) -> bytes:
        """Its bytes, which end with a line."""
        return f"{self.make()}\n".encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """An answer, ready to be sent."""

    subject: str
    text: str
    html: Callable[[], Html] | None = None
    """Makes that of a mail; None for none."""
    files: tuple[File, ...] = ()
    """Other forms of the answer; text and JSON are made of the fields here."""
    blocks: tuple[Mapping[str, object], ...] = ()
    """Of Slack's Block Kit."""
    facts: Mapping[str, object] = field(default_factory=dict)
    """For programs, as plain JSON."""
    of_moment: frozenset[str] = frozenset()
    """Facts that differ each time; with any, the other facts alone tell two answers apart."""

    def file(self, suffix: str) -> File | None:
        """The answer as a file of this suffix, if it has one."""
        if suffix == ".txt":
            return File(suffix=suffix, media_type="text/plain", make=lambda: self.text)
        if suffix == ".json":
            return File(suffix=suffix, media_type=JSON_TYPE, make=lambda: json.dumps(self.facts, indent=2))
        return next((file for file in self.files if file.suffix == suffix), None)

    @property
    def sha256(self) -> str:
        """Of what it says; how that looks follows from it."""
        parts: list[object] = [self.subject, self.text, self.blocks, self.facts]
        if self.of_moment:
            parts = [{name: fact for name, fact in self.facts.items() if name not in self.of_moment}]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


_MOST_OF_ANOTHERS_WORDS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """A message with its address label; the same parcel is the same bytes, however often it is sent."""

    message: Message
    key: str
    """Of the answer; a channel gets each key once."""
    at: datetime
    """When the key was first claimed, in UTC: its date is that of all attempts."""

    def fill(self, name: str) -> str:
        """A name with date and key in the place of ``{date}`` and ``{key}``: the same for all attempts."""
        return name.replace("{date}", f"{self.at:%Y-%m-%d}").replace("{key}", self.key)


class Channel(Protocol):
    """A place that parcels go to."""

    @property
    def secrets(self) -> Secrets:
        """What it has read of them, to be kept out of messages."""

    @property
    def target(self) -> str:
        """Where it leads, without secrets."""

    @property
    def drops_repeats(self) -> bool:
        """Whether a parcel that comes twice is there once."""

    def preview(self, parcel: Parcel) -> str:
        """Exactly what `send` sends; secrets are not read, their names stand for them.

        Raises PermanentError: the message has not what the channel sends.
        """

    def send(self, parcel: Parcel, begin: Callable[[], None]) -> str | None:
        """Send it; None, or which recipients were refused.

        Args:
            begin: to be called right before the step that cannot be taken back; what it raises ends all.

        Raises:
            TemporaryError: nothing was sent, and later it may work.
            PermanentError: nothing was sent, and nothing will be.
            UncertainError: it may have been sent.
        """


class SendingError(Exception):
    """A sending went wrong; one line that says why and what to do, without secrets."""


class TemporaryError(SendingError):
    """Nothing was sent, and later it may work.

    Args:
        wait_s: how long the other side asks us to wait.
    """

    def __init__(self, message: str, wait_s: float | None = None) -> None:
        super().__init__(message)
        self.wait_s = wait_s


class PermanentError(SendingError):
    """Nothing was sent, and nothing will be until something is changed."""


class UncertainError(SendingError):
    """The connection ended after the answer was sent: it may have arrived."""


def quoted_words(words: str | bytes) -> str:
    """What a server said, as a part of our one line: without secrets, and not long."""
    text = words.decode(errors="replace") if isinstance(words, bytes) else words
    # Cut last: half a secret would not look like one.
    return " ".join(redact_message(text).split())[:_MOST_OF_ANOTHERS_WORDS].rstrip(".")
