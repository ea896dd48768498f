"""A limit on what quadratic searches take: far above what linear ones need, in time of the processor.

Other processes on a busy machine do not count, and what would take minutes is ended.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def at_most(cpu_s: float) -> Iterator[None]:
    """AssertionError from within once this process has worked so long."""

    def ring(number: int, frame: FrameType | None) -> None:
        raise AssertionError(f"not done after {cpu_s} s of the processor")

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, cpu_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
