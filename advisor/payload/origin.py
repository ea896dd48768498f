"""Whose code raised the error that ended a script, as far as its traceback tells.

Blame needs evidence: a line of the script (or of a library) that raises. What torch raises may be the
script's fault or that of the GPU that is only pretended, and is not to be told apart from here.
"""

from __future__ import annotations

import opcode
import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from .protocol import Origin

_RAISES = ("RAISE_VARARGS", "RERAISE")
# Operators in C++ raise them at the line that calls.
_OF_OPERATORS = (RuntimeError, NotImplementedError)
_MOST_CAUSES = 10
_PAYLOAD = str(Path(__file__).parent)


def origin_of(error: BaseException) -> Origin:
    """``script``, or ``pretended`` where torch or a patch of ours raised it or what led to it.

    What the operating system answers is the script's, whoever asked: no GPU is in a folder that exists.
    """
    return "script" if all(_is_scripts_own(cause) for cause in _chain(error)) else "pretended"


def raises_itself(error: BaseException) -> bool:
    """Whether the line that it came from is a ``raise`` or an ``assert``."""
    steps = list(_steps(error))
    return bool(steps) and _opcode(steps[-1]) in _RAISES


def _chain(error: BaseException) -> Iterator[BaseException]:
    for _ in range(_MOST_CAUSES):
        yield error
        cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        if cause is None:
            return
        error = cause


def _is_scripts_own(error: BaseException) -> bool:
    steps = list(_steps(error))
    if not steps:
        return True
    if steps[-1].tb_frame.f_code.co_filename.startswith(_hidden()):
        return _is_systems(error, steps[-1])
    if _opcode(steps[-1]) in _RAISES:
        return True
    is_of_operator = isinstance(error, _OF_OPERATORS) and not isinstance(error, RecursionError)
    return not is_of_operator and "FakeTensor" not in str(error)


def _is_systems(error: BaseException, last: TracebackType) -> bool:
    """Whether torch or a patch only handed on what the operating system answered."""
    return isinstance(error, OSError) and error.errno is not None and _opcode(last) not in _RAISES


def _hidden() -> tuple[str, ...]:
    return _PAYLOAD, str(Path(str(sys.modules["torch"].__file__)).parent)


def _steps(error: BaseException) -> Iterator[TracebackType]:
    step = error.__traceback__
    while step is not None:
        yield step
        step = step.tb_next


def _opcode(step: TracebackType) -> str:
    return opcode.opname[step.tb_frame.f_code.co_code[step.tb_lasti]]
