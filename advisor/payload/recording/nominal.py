"""The batch that a YOLO script steps at once its warm-up is over.

YOLO begins with one batch a step and accumulates more over thousands of iterations, up to its nominal batch
size (``nbs``). What the first steps hold is then known to be less than what training holds.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from types import CodeType, FrameType
from typing import TypeVar

from ..protocol import Iteration, Loading, Memory, Notice, Operator, OperatorFlow, Warned, notice

Number = TypeVar("Number", int, float)
_BATCH = "advisor::h2d_copy"
_NOMINAL, _ACCUMULATED = "nbs", "accumulate"


def nominal_batch(frame: FrameType | None) -> int | None:
    """The nominal batch size of the script whose frames led here; None if it names none."""
    while frame is not None:
        if _mentions_both(frame.f_code):
            nominal = _named(_variables(frame))
            if nominal is not None:
                return nominal
        frame = frame.f_back
    return None


def _mentions_both(code: CodeType) -> bool:
    names = {*code.co_names, *code.co_varnames, *code.co_cellvars, *code.co_freevars}
    return {_NOMINAL, _ACCUMULATED} <= names


def _variables(frame: FrameType) -> dict[str, object]:
    """The frame's variables by name, without keeping them alive."""
    variables = dict(frame.f_locals)
    # Until Python 3.13 a function's frame keeps what was read of it, a batch of the GPU's memory among it.
    if frame.f_code.co_flags & inspect.CO_OPTIMIZED and isinstance(frame.f_locals, dict):
        frame.f_locals.clear()
    return variables


def _named(names: Mapping[str, object]) -> int | None:
    # YOLOv5 to v7 have local variables, Ultralytics a trainer with its settings in `args`.
    scopes = [names, *_attributes(names.get("self"))]
    if not any(_count(scope.get(_ACCUMULATED)) for scope in scopes):
        return None  # `nbs` may as well be a number of batches
    return next((size for scope in scopes if (size := _count(scope.get(_NOMINAL)))), None)


def _attributes(owner: object) -> Iterator[Mapping[str, object]]:
    # Not getattr, which would run the script's code.
    for holder in (owner, getattr(owner, "__dict__", {}).get("args")):
        yield getattr(holder, "__dict__", {})


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


def at_nominal_batch(span: Iteration, nominal: int | None, num_ranks: int) -> tuple[Iteration, list[Notice]]:
    """The iteration as it is after the warm-up, and a warning; as it was if it holds that much already.

    Forward and backward passes, what they load and what ranks send are counted as often as they will run.
    From the second of them on the gradients are in memory, too.
    """
    loading = span["loading"]
    if nominal is None or not loading or not loading["batch_sizes"] or not loading["fetches"]:
        return span, []
    batch = loading["batch_sizes"][1]
    passes = max(1, loading["fetches"] // max(1, span["most_steps"]))
    wanted = max(1, round(nominal / (batch * num_ranks)))
    factor = wanted // passes
    if factor < 2:
        return span, []
    is_measured = "iteration_s" in span
    warning = notice(
        Warned.BATCHES_WARM_UP,
        first_size=passes * batch,
        nominal_size=nominal,
        num_batches=wanted,
        batch_size=batch,
        factor=None if is_measured else factor,
    )
    return span if is_measured else _grown(span, loading, factor), [warning]


def _grown(span: Iteration, loading: Loading, factor: int) -> Iteration:
    operators = _repeated(span["operators"], span["calls"], factor)
    return {
        **span,
        "operators": operators,
        "flows": [
            _followed(own, after["count"]) for own, after in zip(span["flows"], operators, strict=True)
        ],
        "collectives": [{**entry, "count": entry["count"] * factor} for entry in span["collectives"]],
        "loading": {
            **loading,
            "fetches": loading["fetches"] * factor,
            "samples": _times(loading["samples"], factor),
            "seconds": _times(loading["seconds"], factor),
            "cpu_seconds": _times(loading["cpu_seconds"], factor),
        },
        "num_backward_passes": span["num_backward_passes"] * factor,
        "memory": _with_gradients(span["memory"]),
    }


def _repeated(operators: list[Operator], numbers: list[list[int]], factor: int) -> list[Operator]:
    """Counts what runs in each pass, from the first batch on the GPU to the last gradient, so often."""
    pairs = list(zip(operators, numbers, strict=True))
    begin = min((n for entry, own in pairs if entry["name"] == _BATCH for n in own), default=0)
    end = max((n for entry, own in pairs if entry["phase"] == "backward" for n in own), default=begin)

    def more(entry: Operator, own: list[int]) -> int:
        is_passed = entry["phase"] != "optimizer"
        return (factor - 1) * sum(begin <= number <= end for number in own) if is_passed else 0

    return [{**entry, "count": entry["count"] + more(entry, own)} for entry, own in pairs]


def _followed(flows: list[OperatorFlow], count: int) -> list[OperatorFlow]:
    """The flows of so many calls; of calls of which some are not of a pass nobody knows which are more."""
    before = sum(flow["count"] for flow in flows)
    if not before or count % before:
        return []
    return [{**flow, "count": flow["count"] * (count // before)} for flow in flows]


def _times(value: Number | None, factor: int) -> Number | None:
    return None if value is None else value * factor


def _with_gradients(memory: Memory) -> Memory:
    gradient_bytes, pass_peak_bytes = memory["gradient_bytes"], memory["pass_peak_bytes"]
    return {
        **memory,
        "peak_bytes": memory["peak_bytes"] + gradient_bytes,
        "pass_peak_bytes": None if pass_peak_bytes is None else pass_peak_bytes + gradient_bytes,
    }
