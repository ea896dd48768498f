"""The batch that a YOLO script steps at once its warm-up is over.

YOLO begins with one batch a step and accumulates more over thousands of iterations, up to its nominal batch
size (``nbs``). What the first steps hold is then known to be less than what training holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any

_NOMINAL, _ACCUMULATED = "nbs", "accumulate"


def nominal_batch(frame: FrameType | None) -> int | None:
    """The nominal batch size of the script whose frames led here; None if it names none."""
    while frame is not None:
        found = _named(frame.f_locals)
        if found is not None:
            return found
        frame = frame.f_back
    return None


def _named(names: Mapping[str, Any]) -> int | None:
    # YOLOv5 to v7 have local variables, Ultralytics a trainer with its settings in `args`.
    scopes = [names, *_attributes(names.get("self"))]
    if not any(_count(scope.get(_ACCUMULATED)) for scope in scopes):
        return None  # `nbs` may as well be a number of batches
    return next((size for scope in scopes if (size := _count(scope.get(_NOMINAL)))), None)


def _attributes(owner: Any) -> Iterator[Mapping[str, Any]]:
    # Not getattr, which would run the script's code.
    for holder in (owner, getattr(owner, "__dict__", {}).get("args")):
        yield getattr(holder, "__dict__", {})


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


def at_nominal_batch(
    span: Mapping[str, Any], nominal: int | None, num_ranks: int
) -> tuple[dict[str, Any], list[str]]:
    """The iteration as it is after the warm-up, and a warning; as it was if it holds that much already.

    Forward and backward passes, what they load and what ranks send are counted as often as they will run.
    From the second of them on the gradients are in memory, too.
    """
    loading = span["loading"]
    if nominal is None or not loading or not loading["batch_sizes"] or not loading["fetches"]:
        return dict(span), []
    batch = loading["batch_sizes"][1]
    passes = max(1, loading["fetches"] // max(1, span["most_steps"]))
    wanted = max(1, round(nominal / (batch * num_ranks)))
    factor = wanted // passes
    if factor < 2:
        return dict(span), []
    begins = f"the script begins with {passes} batches of {batch:,} a step and warms up to {wanted}, its nominal"
    begins += f" batch size of {nominal:,}"
    if "iteration_s" in span:
        return dict(span), [f"{begins}: the measured iteration is of the first steps"]
    scaled = {
        **span,
        "operators": [_repeated(entry, factor) for entry in span["operators"]],
        "collectives": [{**entry, "count": entry["count"] * factor} for entry in span["collectives"]],
        "loading": {key: _times(loading[key], factor) if key in _PER_STEP else loading[key] for key in loading},
        "num_backward_passes": span["num_backward_passes"] * factor,
        "memory": _with_gradients(span["memory"]),
    }
    return scaled, [f"{begins}: the trace is of the latter, its passes counted {factor} times"]


_PER_STEP = ("fetches", "samples", "seconds")


def _repeated(entry: dict[str, Any], factor: int) -> dict[str, Any]:
    return entry if entry["phase"] == "optimizer" else {**entry, "count": entry["count"] * factor}


def _times(value: Any, factor: int) -> Any:
    return None if value is None else value * factor


def _with_gradients(memory: dict[str, int]) -> dict[str, int]:
    return {**memory, "peak_bytes": memory["peak_bytes"] + memory["gradient_bytes"]}
