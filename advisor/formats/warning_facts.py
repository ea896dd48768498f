"""What a trace can warn of, and the types of the facts: scripts can forge them, files can be damaged."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from types import GenericAlias, UnionType
from typing import cast, get_args

from advisor.core.findings import Code, Fact, Finding

FactType = type | UnionType | GenericAlias

WARNING_FACTS: Mapping[Code, Mapping[str, FactType]] = {
    Code.TEXT: {"text": str},
    # Of the script, from the process that ran it.
    Code.BATCHES_WARM_UP: {
        "first_size": int,
        "nominal_size": int,
        "num_batches": int,
        "batch_size": int,
        "factor": int | None,
    },
    Code.CALLS_DROPPED: {"function": str},
    Code.CLOSURE_REPEATED: {"num_evaluations": int},
    Code.COMPILE_IGNORED: {},
    Code.COMPILE_MEASURED: {},
    Code.DATA_PARALLEL_ALONE: {},
    Code.DATA_SET_REPLACED: {"name": str, "error": str, "num_samples": int | None},
    Code.ENDED_EARLY: {"num_iterations": int},
    Code.EVALUATION_BETWEEN: {"num_passes": int},
    Code.EVALUATION_CUT: {"num_given": int, "num_batches": int | None},
    Code.EVALUATION_INSIDE: {"num_passes": int, "num_calls": int, "num_calls_of_all": int},
    Code.EVALUATION_LEFT_OUT: {"num_batches": int},
    Code.EXPORT_FAILED: {"error": str},
    Code.EXPORT_PUT_OFF: {"function": str},
    Code.FAKE_DATA_FED: {"num_loaders": int},
    Code.FAKE_DATA_UNUSED: {},
    Code.FILES_KEPT: {},
    Code.FILES_THROWN_AWAY: {"library": str},
    Code.GRAPH_BREAKS: {"num_breaks": int, "operators": list[str]},
    Code.NO_SHAPE_RULE: {"operator": str, "error": str},
    Code.NO_STEP: {"has_updates": bool},
    Code.NOT_DOWNLOADED: {"name": str},
    Code.OFFLOAD_UNCOUNTED: {"parts": list[str]},
    Code.OPTIMIZER_IDLE: {"optimizers": list[str], "num_steps": int},
    Code.RECURRENT_MEMORY: {},
    Code.ROLLOUTS_LEFT_OUT: {"num_passes": int},
    Code.SIZES_ASSUMED: {"assumptions": list[str]},
    Code.STEPS_UNEQUAL: {"most_steps": int},
    Code.TORCH_UNTESTED: {"version": str, "tested": str, "is_newer": bool},
    Code.TRACKER_SILENT: {"tracker": str},
    Code.VARIABLES_WITHHELD: {"names": list[str]},
    Code.WORLD_OF_ONE: {},
    Code.WORLD_OF_SCRIPT: {"num_ranks": int, "world_size": int},
    Code.WORLD_OF_SHARDS: {"num_ranks": int},
    Code.WORLD_UNUSED: {"world_size": int},
    # Of its data and its operators, from the process that profiles.
    Code.BATCH_SIZE_UNKNOWN: {},
    Code.BATCHES_DIFFER: {"smallest": int, "largest": int, "batch_size": int | None},
    Code.CREDENTIALS_IN_SIGHT: {"path": str},
    Code.DATA_WITHOUT_END: {"num_samples": int, "num_batches": int},
    Code.DATA_WITHOUT_LENGTH: {},
    Code.KERNELS_UNMARKED: {"num_kernels": int, "share_of_time": float},
    Code.NO_BATCH_LOADED: {},
    Code.NO_DATA_LOADER: {},
    Code.NO_FLOP_FORMULA: {"operator": str},
    Code.PROFILED_WITHOUT_GPU: {"reason": str},
    Code.SAMPLER_WITHOUT_LENGTH: {"num_iterations": int},
    Code.SEVERAL_LOADERS: {"num_batches": int | None, "others": list[int | None]},
    # Of a profiler's export.
    Code.EXCHANGE_LEFT_OUT: {"num_kernels": int, "time_s": float},
    Code.FLAGS_ASSUMED: {},
    Code.KERNELS_UNJOINED: {"share_of_kernels": float, "share_of_time": float},
    Code.NO_DTYPES: {},
    Code.NO_SHAPES: {},
    Code.STEP_TAKEN: {"step": str, "num_steps": int},
}
_MOST = 2**63 - 1
_MOST_S = 1e9
_MOST_LISTED = 1000


def known_code(name: object) -> Code | None:
    """What a trace of ours can warn of; None of a newer advisor's codes."""
    return _CODES.get(name) if isinstance(name, str) else None


def warning_of(code: Code, facts: object) -> Finding:
    """The warning with these facts.

    Raises:
        ValueError: they are not the facts of this code.
    """
    types = WARNING_FACTS[code]
    if not isinstance(facts, dict) or facts.keys() != types.keys():
        raise ValueError(f"the facts of {code.value} are {reprlib.repr(facts)}")
    for name, kind in types.items():
        if not _is(facts[name], kind):
            raise ValueError(f"{name} of {code.value} is {reprlib.repr(facts[name])}")
    return Finding(code, cast("dict[str, Fact]", facts))


def check_warning(warning: object) -> None:
    """Refuse what is no warning of a trace.

    Raises:
        ValueError: says what it is.
    """
    if not isinstance(warning, Finding) or warning.code not in WARNING_FACTS:
        raise ValueError(f"a warning is {reprlib.repr(warning)}")
    warning_of(warning.code, warning.facts)


def _is(value: object, kind: FactType) -> bool:
    if isinstance(kind, GenericAlias):
        (each,) = get_args(kind)
        return isinstance(value, list) and len(value) <= _MOST_LISTED and all(_is(one, each) for one in value)
    if isinstance(value, bool):
        return kind is bool
    if isinstance(value, int | float):
        if kind is float:
            return 0 <= value <= _MOST_S
        return isinstance(value, kind) and 0 <= value <= _MOST
    return isinstance(value, kind)


_CODES = {code.value: code for code in WARNING_FACTS}
