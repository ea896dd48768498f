"""Where in the script something was asked for: the functions and instructions that wait for it."""

from __future__ import annotations

import inspect
import opcode
import sys
from types import FrameType
from typing import NamedTuple


class Caller(NamedTuple):
    """A function that waits for a batch, and at which instruction."""

    code: int
    instruction: int
    is_generator: bool


Place = tuple[Caller, ...]  # where the script asked for a batch, innermost caller first


def place_of_caller() -> Place:
    """The place that asked for the batch that our caller makes."""
    callers = []
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        is_generator = bool(frame.f_code.co_flags & inspect.CO_GENERATOR)
        callers.append(Caller(id(frame.f_code), frame.f_lasti, is_generator))
        frame = frame.f_back
    return tuple(callers)


def breaks_at_an_end(frame: FrameType) -> bool:
    """Whether what asks for a batch there is a generator that calls ``next``: it may not run out."""
    code = frame.f_code
    if not code.co_flags & inspect.CO_GENERATOR:
        return False
    return opcode.opname[code.co_code[frame.f_lasti]] not in ("FOR_ITER", "SEND", "YIELD_FROM")
