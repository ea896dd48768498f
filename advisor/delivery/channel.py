"""What a channel is, what it is given, and how a sending may go wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from advisor.core.redaction import redact_message
from advisor.delivery.message import Message
from advisor.delivery.secret_values import Secrets

_MOST_OF_ANOTHERS_WORDS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """A message with its address label; the same parcel is the same bytes, however often it is sent.

    Attributes:
        key: of the answer; a channel gets each key once.
        at: when the key was first claimed, in UTC: its date is that of all attempts.
    """

    message: Message
    key: str
    at: datetime

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

        Raises:
            PermanentError: the message has not what the channel sends.
        """

    def send(self, parcel: Parcel, begin: Callable[[], None]) -> str | None:
        """Send it; None, or which recipients were refused.

        Args:
            parcel: what to send.
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
        message: one line.
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
