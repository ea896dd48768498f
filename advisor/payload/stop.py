"""Ending a script that wants to train for days, whatever it does to exceptions."""

from __future__ import annotations

import os
import threading

_MOST_RAISES = 20
_GRACE_S = 5.0


class StopProfiling(BaseException):
    """Ends the script; a BaseException so that ``except Exception`` lets it pass."""


class Stopper:
    """Raises once the result is safe, raises again if swallowed, and at last leaves the process."""

    def __init__(self, *, grace_s: float = _GRACE_S) -> None:
        self.stopping = False
        self._raises = 0
        self._grace_s = grace_s

    def stop(self) -> None:
        """Begin to end the script: call it only after the result was written."""
        self.stopping = True
        # A script may hang in `finally` or in a bare `except`: leave without asking.
        watchdog = threading.Timer(self._grace_s, os._exit, args=(0,))
        watchdog.daemon = True
        watchdog.start()
        self.check()

    def check(self) -> None:
        """Raise if the script should have ended; hooks of all kinds call this."""
        if not self.stopping:
            return
        self._raises += 1
        if self._raises > _MOST_RAISES:
            os._exit(0)
        raise StopProfiling
