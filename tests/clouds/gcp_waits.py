"""Google's library tries again after a while: here the while is over at once."""

import pytest


class Clock:
    """Time that passes by sleeping alone: retries cost none, and a busy machine none of the patience."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, wait_s: float) -> None:
        self.now_s += wait_s


def waiting_by(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock that all retries of this process wait by."""
    clock = Clock()
    for module in ("retry_base", "retry_unary"):
        monkeypatch.setattr(f"google.api_core.retry.{module}.time", clock)
    return clock
