"""Operators that are followed: each call says what made its operands."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from advisor.core.values import Flow, Op, Phase, Role, TensorSpec
from advisor.predict.what_if.batch import made_op

OUTSIDE, WEIGHT, GRADIENT = Role.OUTSIDE, Role.PARAMETER, Role.GRADIENT


def tensor(*shape: int, dtype: str = "float32") -> TensorSpec:
    """A contiguous one."""
    steps = [1]
    for size in reversed(shape[1:]):
        steps.insert(0, steps[0] * size)
    return TensorSpec(shape=shape, dtype=dtype, stride=tuple(steps[: len(shape)]))


def flow(
    number: int,
    *sources: int,
    of: int | None = None,
    count: int = 1,
    is_of_view: bool = False,
    parameters: int | None = None,
) -> Flow:
    """Calls that read what these flows made, perhaps of the backward pass ``of`` another.

    Each reads parameters of its own, unless ``parameters`` says how many there are.
    """
    new = count * sources.count(WEIGHT) if parameters is None else parameters
    return Flow(
        id=number, count=count, sources=sources, new_parameters=new, forward=of, is_of_view=is_of_view
    )


def followed(
    name: str,
    inputs: Sequence[TensorSpec],
    outputs: Sequence[TensorSpec],
    *flows: Flow,
    phase: Phase = Phase.FORWARD,
    attributes: dict[str, Any] | None = None,
) -> Op:
    """An operator with as many calls as its flows have."""
    count = sum(one.count for one in flows)
    made = made_op(f"aten::{name}", phase, tuple(inputs), tuple(outputs), attributes or {}, count)
    return replace(made, flows=flows)


def backward(name: str, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec], *flows: Flow) -> Op:
    """The same of the backward pass."""
    return followed(name, inputs, outputs, *flows, phase=Phase.BACKWARD)
