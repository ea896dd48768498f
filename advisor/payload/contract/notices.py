"""What a child tells while it runs: warnings, and how far it is."""

from __future__ import annotations

from typing import TypedDict, Union

from .kinds import Name, StrEnum


class Phase(StrEnum):
    """What a run does at a time."""

    TORCH = "torch"
    SCRIPT = "script"
    EVALUATION = "evaluation"
    TRAINING = "training"
    MEASURING = "measuring"


class Warned(StrEnum):
    """What a child warns of: codes of ``core/findings.py``, which the parent has words for."""

    BATCHES_WARM_UP = "batches-warm-up"
    CALLS_DROPPED = "calls-dropped"
    CLOSURE_REPEATED = "closure-repeated"
    COMPILE_IGNORED = "compile-ignored"
    COMPILE_MEASURED = "compile-measured"
    DATA_PARALLEL_ALONE = "data-parallel-alone"
    DATA_SET_REPLACED = "data-set-replaced"
    ENDED_EARLY = "ended-early"
    EVALUATION_BETWEEN = "evaluation-between"
    EVALUATION_CUT = "evaluation-cut"
    EVALUATION_INSIDE = "evaluation-inside"
    EVALUATION_LEFT_OUT = "evaluation-left-out"
    EXPORT_FAILED = "export-failed"
    EXPORT_PUT_OFF = "export-put-off"
    FAKE_DATA_FED = "fake-data-fed"
    FAKE_DATA_UNUSED = "fake-data-unused"
    FILES_KEPT = "files-kept"
    FILES_THROWN_AWAY = "files-thrown-away"
    GRAPH_BREAKS = "graph-breaks"
    NO_SHAPE_RULE = "no-shape-rule"
    NO_STEP = "no-step"
    NOT_DOWNLOADED = "not-downloaded"
    OFFLOAD_UNCOUNTED = "offload-uncounted"
    OPTIMIZER_IDLE = "optimizer-idle"
    RECURRENT_MEMORY = "recurrent-memory"
    ROLLOUTS_LEFT_OUT = "rollouts-left-out"
    SIZES_ASSUMED = "sizes-assumed"
    STEPS_UNEQUAL = "steps-unequal"
    TORCH_UNTESTED = "torch-untested"
    TRACKER_SILENT = "tracker-silent"
    VARIABLES_WITHHELD = "variables-withheld"
    WORLD_OF_ONE = "world-of-one"
    WORLD_OF_SCRIPT = "world-of-script"
    WORLD_UNUSED = "world-unused"


Fact = Union[str, int, float, bool, list[str], None]


class Notice(TypedDict):
    """A warning: which, and the facts of its words."""

    code: Name
    facts: dict[str, object]


def notice(code: Warned, **facts: Fact) -> Notice:
    """A warning with these facts."""
    return {"code": code, "facts": dict(facts)}


class Counts(TypedDict, total=False):
    """How far a run is; what is not known is None or left out.

    ``step`` is the optimizer step that is under way or, in an evaluation, was made last, of ``num_steps``;
    ``done`` are evaluated batches, or micro-steps of this optimizer step, of ``total``.
    """

    step: int | None
    num_steps: int | None
    done: int | None
    total: int | None


class Event(Counts):
    """A line of progress."""

    phase: Phase
