"""What arithmetic relies on in a trace, beyond the types of its fields: JSON can hold anything."""

import reprlib
from collections.abc import Mapping
from math import prod
from typing import get_type_hints

from advisor.core.findings import Finding, Text, TraceWarning, about_traces  # noqa: F401 (its classes are what a trace warns of)
from advisor.core.values import Flow, Kernel, Op, TensorSpec, Trace
from advisor.formats.typed_json import WrongValueError, reader_of

_WARNINGS: tuple[type[Finding], ...] = (Text, *TraceWarning.__subclasses__())
_KINDS = {kind.code: kind for kind in _WARNINGS}
_MOST = 2**63 - 1
_MOST_CALLS = 10**7
_MOST_PLACES = 1000
_MOST_IN_BLOCK = 2**31 - 1
# Half of 64 bits: how often something fits is rounded up.
_MOST_BLOCKS = 2**62
# PyTorch's own limit.
_MOST_DIMENSIONS = 64


def known_warning(code: object) -> type[Finding] | None:
    """What a trace of ours can warn of; None for a newer advisor's codes."""
    return _KINDS.get(code) if isinstance(code, str) else None


def warning_of(kind: type[Finding], facts: object) -> Finding:
    """The warning with these facts. Raises ValueError: they are not the facts of this warning."""
    hints = _fact_types(kind)
    needed = {name for name in hints if not hasattr(kind, name)}
    if not isinstance(facts, dict) or not needed <= facts.keys() <= hints.keys():
        raise ValueError(f"the facts of {kind.code} are {reprlib.repr(facts)}")
    for name, fact in facts.items():
        try:
            reader_of(hints[name])(fact)
        except WrongValueError as wrong:
            raise wrong.of(name).of(kind.code) from None
    return kind(**facts)


def _fact_types(kind: type[Finding]) -> Mapping[str, object]:
    hints = get_type_hints(kind)
    return {name: hints[name] for name in kind.fact_names}


def check_trace(trace: Trace) -> None:
    """Refuse what no profile can hold. Raises ValueError: names the field and its value."""
    if not trace.ops:
        raise ValueError("no operators")
    for op in {id(op): op for op in trace.ops}.values():
        check_op(op)
    _check_total("calls", sum(op.count for op in trace.ops))
    _check_total("collectives", sum(collective.count for collective in trace.collectives))
    for warning in trace.warnings:
        warning_of(type(warning), dict(warning.facts))
    places = () if trace.checkpoints is None else (*trace.checkpoints.saves, *trace.checkpoints.loads)
    if len(places) > _MOST_PLACES:
        raise ValueError(f"checkpoints has {len(places):,} places")
    for place in places:
        _check_printable("a place of checkpoints", place)


def check_op(op: Op) -> None:
    """The same of one operator. Raises ValueError: names the field and its value."""
    _check_printable("the name of an operator", op.name)
    for tensor in (*op.inputs, *op.outputs):
        _check_tensor(tensor, op.name)
    for kernel in op.kernels:
        _check_kernel(kernel, op.name)
    for flow in op.flows:
        _check_flow(flow, op)
    if op.flows and sum(flow.count for flow in op.flows) != op.count:
        raise ValueError(f"the flows of {op.name} are not of its {op.count:,} calls")


def _check_total(what: str, number: int) -> None:
    if number > _MOST_CALLS:
        raise ValueError(f"the number of all {what} is {number}")


def _check_printable(what: str, text: str) -> None:
    # It goes to the terminal.
    if not text.isprintable():
        raise ValueError(f"{what} is {reprlib.repr(text)}")


def _check_tensor(tensor: TensorSpec, owner: str) -> None:
    for numbers in (tensor.shape, tensor.stride or ()):
        if len(numbers) > _MOST_DIMENSIONS:
            raise ValueError(f"a tensor of {owner} has {len(numbers):,} dimensions")
    if tensor.stride is not None and len(tensor.stride) != len(tensor.shape):
        strides, sizes = len(tensor.stride), len(tensor.shape)
        raise ValueError(f"a tensor of {owner} has {strides} strides and {sizes} dimensions")
    if prod(tensor.shape) > _MOST:
        raise ValueError(f"the shape of a tensor of {owner} is {reprlib.repr(tensor.shape)}")


def _check_kernel(kernel: Kernel, owner: str) -> None:
    sizes = {"grid": (kernel.grid, _MOST_BLOCKS), "block": (kernel.block, _MOST_IN_BLOCK)}
    for name, (size, most) in sizes.items():
        if prod(size) > most:
            raise ValueError(f"{name} of a kernel of {owner} is {reprlib.repr(size)}")


def _check_flow(flow: Flow, op: Op) -> None:
    if len(flow.sources) != len(op.inputs):
        raise ValueError(f"a flow of {op.name} has {len(flow.sources)} sources of {len(op.inputs)} operands")
