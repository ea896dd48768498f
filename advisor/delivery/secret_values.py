"""Secrets of channels: read where a setting says, used at once, and kept out of every message."""

import errno
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field

from advisor.core.redaction import HIDDEN
from advisor.formats.user_files import at_home

_MOST_BYTES = 64_000
_OTHERS_MAY = 0o077


class SecretError(Exception):
    """A secret cannot be read; says where it should be and what to do."""


@dataclass(frozen=True, slots=True)
class Secrets:
    """Reads secrets, and remembers what it has read.

    Args:
        environ: the environment.
    """

    environ: Mapping[str, str] = field(repr=False)
    _values: set[str] = field(default_factory=set, repr=False, init=False)

    def read(self, reference: str) -> str:
        """The secret behind ``env:NAME`` or ``file:PATH``.

        Raises SecretError: it is not there, or others may read its file.
        """
        kind, _, name = reference.partition(":")
        value = self._of_environment(name) if kind == "env" else _of_file(str(at_home(name)))
        if not value.isprintable():
            raise SecretError(f"{reference} holds a line break or another control character: write one line")
        self._values.add(value)
        return value

    def hide(self, text: str) -> str:
        """A text without any secret that was read."""
        for value in sorted(self._values, key=len, reverse=True):
            text = text.replace(value, HIDDEN)
        return text

    def _of_environment(self, name: str) -> str:
        value = self.environ.get(name, "")
        if not value:
            raise SecretError(
                f"the variable {name} is not set: export it, or name another one in the settings"
            )
        return value


def _of_file(path: str) -> str:
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        with open(path, "rb", opener=lambda name, _: os.open(name, flags)) as file:
            status = os.fstat(file.fileno())
            _check(path, status)
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


def _check(path: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise SecretError(f"{path!r} is no regular file, which a secret file must be")
    if status.st_mode & _OTHERS_MAY:
        raise SecretError(f"others may read or write the secret file {path!r}: chmod 600 {path}")
    if status.st_uid not in (os.geteuid(), 0):
        raise SecretError(f"the secret file {path!r} belongs to another user: make a file of your own")
