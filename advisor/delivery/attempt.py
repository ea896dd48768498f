"""One attempt to send, which ends in time, and after which nothing is sent behind our back."""

from __future__ import annotations

import threading
from collections.abc import Callable

from advisor.core.deadlines import LateError, within
from advisor.core.errors import StoreError
from advisor.core.redaction import error_in_words
from advisor.core.units import format_duration
from advisor.delivery.channel import (
    Channel,
    Parcel,
    PermanentError,
    SendingError,
    TemporaryError,
    UncertainError,
)
from advisor.delivery.secret_values import SecretError
from advisor.store.outbox import LostClaimError


class _CalledOffError(Exception):
    pass


class _Gate:
    """What has begun cannot be called off; what was called off cannot begin any more."""

    def __init__(self, begin: Callable[[], None]) -> None:
        self._begin = begin
        self._lock = threading.Lock()
        self._has_begun = self._is_off = False

    def pass_(self) -> None:
        with self._lock:
            if self._is_off:
                raise _CalledOffError
            self._begin()
            self._has_begun = True

    def call_off(self) -> bool:
        """Whether it was too late for that."""
        with self._lock:
            self._is_off = True
            return self._has_begun


def attempt(channel: Channel, parcel: Parcel, begin: Callable[[], None], *, within_s: float) -> str | None:
    """Send once; None, or what did not reach everybody.

    Args:
        channel: where to.
        parcel: what.
        begin: is called right before the step that cannot be taken back.
        within_s: for all of it: a server that sends a byte a second keeps nobody.

    Raises:
        SendingError: of one of the three kinds, without secrets.
        LostClaimError: as `begin` says.
        StoreError: the same.
    """
    gate = _Gate(begin)
    try:
        return within(within_s, lambda: channel.send(parcel, gate.pass_))
    except LateError:
        words = f"no answer within {format_duration(within_s)}"
        raise (UncertainError(words) if gate.call_off() else TemporaryError(words)) from None
    except SecretError as error:
        raise PermanentError(channel.secrets.hide(str(error))) from None
    except (StoreError, LostClaimError):
        raise
    except SendingError as error:
        error.args = (channel.secrets.hide(str(error)),)
        raise
    except Exception as error:  # noqa: BLE001 - libraries may raise anything, and there are other channels
        words = channel.secrets.hide(error_in_words(error))
        raise (UncertainError(words) if gate.call_off() else PermanentError(words)) from None
    finally:
        gate.call_off()
