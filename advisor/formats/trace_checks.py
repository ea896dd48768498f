"""Types and ranges of a trace that arithmetic relies on: JSON can hold anything."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import prod
from types import GenericAlias, UnionType
from typing import Literal, cast, get_args, get_origin, get_type_hints

from advisor.core.findings import Finding, Text, TraceWarning, about_traces  # noqa: F401 (its classes are what a trace warns of)
from advisor.core.values import (
    Checkpoints,
    Collective,
    Flow,
    Kernel,
    Op,
    Precision,
    Role,
    TensorSpec,
    Trace,
)

FactType = type | UnionType | GenericAlias

_MOST = 2**63 - 1
_MOST_S = 1e9
_MOST_LISTED = 1000


def known_warning(code: object) -> type[Finding] | None:
    """What a trace of ours can warn of; None for a newer advisor's codes."""
    return _KINDS.get(code) if isinstance(code, str) else None


def warning_of(kind: type[Finding], facts: object) -> Finding:
    """The warning with these facts.

    Raises:
        ValueError: they are not the facts of this warning.
    """
    types = _fact_types(kind)
    needed = {name for name in types if not hasattr(kind, name)}
    if not isinstance(facts, dict) or not needed <= facts.keys() <= types.keys():
        raise ValueError(f"the facts of {kind.code} are {reprlib.repr(facts)}")
    for name, fact in facts.items():
        if not _is(fact, types[name]):
            raise ValueError(f"{name} of {kind.code} is {reprlib.repr(fact)}")
    return kind(**facts)


def _fact_types(kind: type[Finding]) -> Mapping[str, FactType]:
    hints = get_type_hints(kind)
    return {name: hints[name] for name in kind.fact_names}


def check_warning(warning: object) -> None:
    """Refuse what is no warning of a trace.

    Raises:
        ValueError: says what it is.
    """
    if not isinstance(warning, Text | TraceWarning):
        raise ValueError(f"a warning is {reprlib.repr(warning)}")
    warning_of(type(warning), dict(warning.facts))


def _is(value: object, kind: FactType) -> bool:
    if get_origin(kind) is Literal:
        return value in get_args(kind)
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


_WARNINGS: tuple[type[Finding], ...] = (Text, *TraceWarning.__subclasses__())
_KINDS = {kind.code: kind for kind in _WARNINGS}


_MOST_IN_LAUNCH = 2**31 - 1
# Half of 64 bits: how often something fits is rounded up.
_MOST_BLOCKS = 2**62
# Of an iteration: some are listed one by one, and no file may fill our memory with them.
_MOST_CALLS = 10**7
# PyTorch's own limit.
_MOST_DIMENSIONS = 64
# What a call of an operator takes is a list of lists at most.
_MOST_DEPTH = 8


def check_trace(trace: Trace) -> None:
    """Refuse what no profile can hold.

    Raises:
        ValueError: names the field and its value.
    """
    if not trace.ops:
        raise ValueError("no operators")
    for op in {id(op): op for op in trace.ops}.values():
        check_op(op)
    check_count("the number of all calls", sum(op.count for op in trace.ops), most=_MOST_CALLS)
    _check_collectives(trace.collectives)
    for name, value in asdict(trace.memory).items():
        check_count(name, value, optional=True)
    for name in ("samples_per_epoch", "iterations_per_epoch", "num_workers"):
        check_count(name, getattr(trace, name), optional=True)
    for name in ("batch_size", "world_size"):
        check_count(name, getattr(trace, name), least=1, optional=True)
    check_count("accumulation", trace.accumulation, least=1)
    if (work := trace.work_elsewhere) is not None:
        for name, value in asdict(work).items():
            least = 0 if name == "flops" else 1
            check_count(f"{name} of another world", value, least=least, optional=name == "batch_size")
    _check_seconds("iteration_s", trace.iteration_s, positive=True)
    _check_seconds("data_loading_s", trace.data_loading_s)
    _check_seconds("loader_cpu_s_per_sample", trace.loader_cpu_s_per_sample)
    # A ratio, but what holds for seconds holds for it.
    _check_seconds("batch_variation", trace.batch_variation)
    for step in trace.steps:
        _check_seconds("work of a step", step.work, positive=True, optional=False)
        _check_seconds("calls of a step", step.calls, positive=True, optional=False)
    _check_words(trace)


def check_op(op: Op) -> None:
    """The same of one operator.

    Raises:
        ValueError: names the field and its value.
    """
    # It goes to the terminal.
    if not isinstance(op.name, str) or not op.name.isprintable():
        raise ValueError(f"the name of an operator is {reprlib.repr(op.name)}")
    check_count(f"flops of {op.name}", op.flops)
    check_count(f"bytes of {op.name}", op.bytes)
    check_count(f"count of {op.name}", op.count, least=1, most=_MOST_CALLS)
    _check_seconds(f"measured_s of {op.name}", op.measured_s)
    for tensor in (*op.inputs, *op.outputs):
        _check_tensor(tensor, op.name)
    for name, value in op.attributes.items():
        _check_attribute(f"{name} of {op.name}", value)
    for kernel in op.kernels:
        _check_kernel(kernel, f"a kernel of {op.name}")
    for flow in op.flows:
        _check_flow(flow, op)
    if op.flows and sum(flow.count for flow in op.flows) != op.count:
        raise ValueError(f"the flows of {op.name} are not of its {op.count:,} calls")


def check_precision(precision: Precision) -> None:
    """The same of the flags of precision.

    Raises:
        ValueError: names the flag and its value.
    """
    check_type("amp_dtype", precision.amp_dtype, str | None)
    check_type("tf32_matmul", precision.tf32_matmul, bool)
    check_type("tf32_cudnn", precision.tf32_cudnn, bool)


def check_count(
    name: str, value: object, *, least: int = 0, most: int = _MOST, optional: bool = False
) -> None:
    """The same of a number of things.

    Raises:
        ValueError: names it and its value.
    """
    if value is None and optional:
        return
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ValueError(f"{name} is {reprlib.repr(value)}")


def check_type(name: str, value: object, kind: type | UnionType) -> None:
    """The same of what only has to be of a kind.

    Raises:
        ValueError: names it and its value.
    """
    if not isinstance(value, kind):
        raise ValueError(f"{name} is {reprlib.repr(value)}")


def _check_words(trace: Trace) -> None:
    check_type("script", trace.script, str)
    check_type("backend", trace.backend, str)
    check_type("origin_gpu", trace.origin_gpu, str | None)
    check_type("is_sharded", trace.is_sharded, bool)
    check_type("awaits_reductions", trace.awaits_reductions, bool)
    check_type("has_sparse_gradients", trace.has_sparse_gradients, bool)
    check_type("compile_mode", trace.compile_mode, str | None)
    check_type("parallel_by", trace.parallel_by, str | None)
    _check_checkpoints(trace.checkpoints)
    check_precision(trace.precision)
    for text in trace.arguments:
        check_type("an argument", text, str)
    for warning in trace.warnings:
        check_warning(warning)
    for name, version in trace.versions.items():
        check_type(f"the version of {name}", version, str)


def _check_checkpoints(checkpoints: Checkpoints | None) -> None:
    places = () if checkpoints is None else (*checkpoints.saves, *checkpoints.loads)
    if len(places) > _MOST_LISTED:
        raise ValueError(f"checkpoints has {len(places):,} places")
    for place in places:
        # It goes to the terminal.
        if not isinstance(place, str) or not place.isprintable():
            raise ValueError(f"a place of checkpoints is {reprlib.repr(place)}")


def _check_tensor(tensor: TensorSpec, owner: str) -> None:
    for numbers in (tensor.shape, tensor.stride or ()):
        if len(numbers) > _MOST_DIMENSIONS:
            raise ValueError(f"a tensor of {owner} has {len(numbers):,} dimensions")
    if tensor.stride is not None and len(tensor.stride) != len(tensor.shape):
        strides, sizes = len(tensor.stride), len(tensor.shape)
        raise ValueError(f"a tensor of {owner} has {strides} strides and {sizes} dimensions")
    for size in tensor.shape:
        check_count(f"a size of {owner}", size)
    if prod(tensor.shape) > _MOST:
        raise ValueError(f"the shape of a tensor of {owner} is {reprlib.repr(tensor.shape)}")
    for step in tensor.stride or ():
        check_count(f"a stride of {owner}", step)
    check_type(f"the dtype of a tensor of {owner}", tensor.dtype, str)


def _check_attribute(name: str, value: object, depth: int = 0) -> None:
    if depth > _MOST_DEPTH:
        raise ValueError(f"{reprlib.repr(name)} is nested too deeply")
    if isinstance(value, tuple):
        for item in value:
            _check_attribute(name, item, depth + 1)
    else:
        check_type(name, value, bool | int | float | str | None)


def _check_kernel(kernel: Kernel, owner: str) -> None:
    for name, sizes, most in (
        ("grid", kernel.grid, _MOST_BLOCKS),
        ("block", kernel.block, _MOST_IN_LAUNCH),
    ):
        for size in sizes:
            check_count(f"{name} of {owner}", size, least=1, most=_MOST_IN_LAUNCH)
        if len(sizes) != 3 or prod(sizes) > most:
            raise ValueError(f"{name} of {owner} is {reprlib.repr(sizes)}")
    for name in ("registers_per_thread", "shared_bytes"):
        value = getattr(kernel, name)
        check_count(f"{name} of {owner}", value, most=_MOST_IN_LAUNCH, optional=True)
    check_type(f"the name of {owner}", kernel.name, str)
    _check_seconds(f"duration_s of {owner}", kernel.duration_s, optional=False)


def _check_flow(flow: Flow, op: Op) -> None:
    check_count(f"the id of a flow of {op.name}", flow.id, least=len(Role))
    check_count(f"count of a flow of {op.name}", flow.count, least=1, most=_MOST_CALLS)
    if len(flow.sources) != len(op.inputs):
        raise ValueError(f"a flow of {op.name} has {len(flow.sources)} sources of {len(op.inputs)} operands")
    for source in flow.sources:
        check_count(f"a source of {op.name}", source)
    check_count(f"new_parameters of {op.name}", flow.new_parameters, most=_MOST_CALLS)
    check_count(f"the forward call of {op.name}", flow.forward, optional=True)
    check_type(f"is_of_view of {op.name}", flow.is_of_view, bool)


def _check_collectives(collectives: Sequence[Collective]) -> None:
    for collective in collectives:
        _check_collective(collective)
    num_calls = sum(collective.count for collective in collectives)
    check_count("the number of all collectives", num_calls, most=_MOST_CALLS)


def _check_collective(collective: Collective) -> None:
    check_type("kind of a collective", collective.kind, str)
    check_count("num_bytes of a collective", collective.num_bytes, optional=True)
    check_count("world_size of a collective", collective.world_size, least=1, optional=True)
    check_count("count of a collective", collective.count, most=_MOST_CALLS)


def _check_seconds(name: str, value: object, *, optional: bool = True, positive: bool = False) -> None:
    if value is None and optional:
        return
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (is_number and 0 <= cast("float", value) <= _MOST_S) or (positive and not value):
        raise ValueError(f"{name} is {reprlib.repr(value)}")
