"""CUDA streams and events: nothing runs, so all of them are always done.

The classes of a CPU-only build raise when constructed.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch

from ...replacing import replace

if TYPE_CHECKING:
    from advisor.payload.session import Session


class Event:
    """An event that has happened; elapsed time is that of the CPU."""

    def __init__(self, *_: object, **__: object) -> None:
        self._recorded_s = 0.0

    def record(self, stream: object = None) -> None:  # noqa: ARG002
        """Remember the time."""
        self._recorded_s = time.perf_counter()

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds to ``end``, never zero since scripts divide by it."""
        return max(1e-3, (end._recorded_s - self._recorded_s) * 1e3)

    def query(self) -> bool:
        """Whether the event has happened: yes."""
        return True

    def wait(self, stream: object = None) -> None:
        """Do nothing."""

    def synchronize(self) -> None:
        """Do nothing."""


class Stream:
    """A stream without work."""

    cuda_stream = 0
    device_index = 0
    stream_id = 0
    device_type = 1

    def __init__(self, *_: object, **__: object) -> None:
        self.device = torch.device("cuda", 0)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def wait_stream(self, stream: object) -> None:
        """Do nothing."""

    def wait_event(self, event: Any) -> None:
        """Do nothing."""

    def synchronize(self) -> None:
        """Do nothing."""

    def record_event(self, event: Event | None = None) -> Event:
        """An event at this point."""
        event = event or Event()
        event.record()
        return event

    def query(self) -> bool:
        """Whether all work is done: yes."""
        return True

    def is_capturing(self) -> bool:
        """Whether a CUDA graph is being captured: no."""
        return False


_MAIN = Stream()
_entered: list[Stream] = []


def is_on_main_stream() -> bool:
    """Whether work goes where that of the model goes, which waits for what is not asynchronous."""
    return not _entered or _entered[-1] is _MAIN


def _current_stream(device: object = None) -> Stream:  # noqa: ARG001
    return _entered[-1] if _entered else _MAIN


@contextlib.contextmanager
def _on(stream: Stream | None) -> Iterator[Stream | None]:
    """Work goes to the stream; to the same as before if it is None."""
    _entered.append(_current_stream() if stream is None else stream)
    try:
        yield stream
    finally:
        _entered.pop()


def install(session: Session) -> None:  # noqa: ARG001
    """Replace the classes and the functions that hand out streams."""
    replace(torch.cuda, Event=Event, Stream=Stream)
    replace(torch.cuda.streams, Event=Event, Stream=Stream)
    replace(
        torch.cuda,
        current_stream=_current_stream,
        default_stream=lambda device=None: _MAIN,  # noqa: ARG005
        set_stream=lambda stream: None,  # noqa: ARG005
        stream=_on,
    )
    replace(torch.Tensor, record_stream=lambda tensor, stream: None)  # noqa: ARG005
