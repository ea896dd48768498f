"""Operators under autocast where nobody followed their operands.

A tensor's dtype is that of the last one of its shape, else of its size, that nobody has taken yet; where none
is left, the one that most of its shape have, and float32 where they are even.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from advisor.core.values import Op, Phase, TensorSpec
from advisor.operators.family import base_name
from advisor.operators.registry import family_of
from advisor.operators.work import numel
from advisor.predict.distinct import shared
from advisor.predict.what_if.held import parameter_shapes
from advisor.predict.what_if.lowering import (
    FULL,
    Run,
    asked_dtype,
    casts,
    is_lowered,
    result_of,
    retyped_op,
)
from advisor.predict.what_if.saved import Shape, is_of
from advisor.predict.what_if.saved_by_shapes import FACTORS

_FORWARD_OF = {"threshold": "relu"}
_Call = tuple[int, str | None, tuple[str, ...]]


def lowered_by_shapes(ops: Sequence[Op], lower: str) -> tuple[list[Op], list[Op]]:
    """The operators as autocast runs them, and its casts."""
    walk = _Walk(lower=lower, parameters=parameter_shapes(ops))
    return [walk.lowered(op) for op in shared(tuple(ops))], walk.casts


@dataclass(slots=True, kw_only=True)
class _Walk:
    """Follows the operators in the order they were recorded.

    Attributes:
        parameters: shapes of parameters, sorted.
        casts: casts met so far, those that the backward pass repeats the other way round included.
        waiting: by number of elements, the shapes and dtypes of tensors that nobody has taken yet.
        made_as: by shape, and by number of elements for what was given another one, how many were made in
            each dtype.
        made: what came of each operator, by how it runs and what it is given: its result's dtype, itself and
            its casts. Thousands of calls share a few.
        forward: by name and number of elements, the dtype a forward operator ran in.
        factors: the same, of what a product's largest operand had.
    """

    lower: str
    parameters: frozenset[Shape]
    casts: list[Op] = field(default_factory=list)
    waiting: dict[int, list[tuple[Shape, str]]] = field(default_factory=dict)
    made_as: dict[Shape, Counter[str]] = field(default_factory=dict)
    forward: dict[tuple[str, int], str] = field(default_factory=dict)
    factors: dict[tuple[str, int], str] = field(default_factory=dict)
    made: dict[_Call, tuple[str, Op, tuple[Op, ...]]] = field(default_factory=dict)

    def lowered(self, op: Op) -> Op:
        """The operator as autocast runs it."""
        if op.phase is Phase.OPTIMIZER:
            return op
        given, runs_in = self._given(op), self._precision(op)
        key = id(op), runs_in, given
        if key not in self.made:
            result = runs_in or result_of(op, given)
            run = Run(given=given, runs_in=runs_in, result=result, with_vectors=is_lowered(op))
            self.made[key] = result, retyped_op(op, run), _casts(op, run)
        result, lowered, own_casts = self.made[key]
        self.casts += own_casts
        if op.phase is Phase.FORWARD and op.inputs:
            self.forward[_key(op)] = result
            if base_name(op.name) in FACTORS:
                largest = max(range(len(given)), key=lambda i: numel(op.inputs[i]))
                self.factors[_key(op)] = given[largest]
        for tensor in lowered.outputs:
            self._put(tensor, op)
        return lowered

    def _precision(self, op: Op) -> str | None:
        """The dtype an operator asks for; None if it takes what it is given."""
        asked = asked_dtype(op, self.lower)
        if asked is None and op.phase is Phase.BACKWARD and op.inputs and base_name(op.name) not in FACTORS:
            return self.forward.get(_key(op))
        return asked

    def _given(self, op: Op) -> tuple[str, ...]:
        """Dtypes of the operands; a factor's gradient is multiplied by what the forward pass was given."""
        if base_name(op.name) == "h2d_copy":
            return tuple([tensor.dtype for tensor in op.inputs])
        given = tuple([self._take(tensor) for tensor in op.inputs])
        if op.phase is Phase.BACKWARD and base_name(op.name) in FACTORS and len(given) == 2:
            return given[0], self.factors.get(_key(op), given[1])
        return given

    def _take(self, tensor: TensorSpec) -> str:
        """The dtype of an operand, which is float32 for parameters and for what came from outside."""
        if tensor.dtype != FULL:
            return tensor.dtype
        size = numel(tensor)
        waiting = self.waiting.get(size, [])
        own = next((i for i in reversed(range(len(waiting))) if waiting[i][0] == tensor.shape), None)
        if own is not None:
            return waiting.pop(own)[1]
        if is_of(self.parameters, tensor):
            return FULL
        seen = self.made_as.get(tensor.shape)
        if waiting and (seen is None or FULL in seen):  # given another shape
            return waiting.pop()[1]
        seen = seen or self.made_as.get((size,), Counter())
        return FULL if seen[FULL] >= seen[self.lower] else self.lower

    def _put(self, tensor: TensorSpec, op: Op) -> None:
        is_gradient = op.phase is Phase.BACKWARD and is_of(self.parameters, tensor)
        if is_gradient or tensor.dtype not in (FULL, self.lower):
            return
        size = numel(tensor)
        self.waiting.setdefault(size, []).append((tensor.shape, tensor.dtype))
        # Of the backward pass it may be a guess, which would make more of them.
        if op.phase is Phase.FORWARD or tensor.dtype != FULL:
            for shape in {tensor.shape, (size,)}:
                self.made_as.setdefault(shape, Counter())[tensor.dtype] += op.count


def _casts(op: Op, run: Run) -> tuple[Op, ...]:
    if op.phase is not Phase.FORWARD or not family_of(op).autocast.casts_operands:
        return ()
    return tuple(casts(op, run, [op.count] * len(run.given), [True] * len(run.given)))


def _stem(op: Op) -> str:
    """The name that an operator shares with its other pass."""
    name = base_name(op.name).removesuffix("_data").removesuffix("_backward").removesuffix("_forward")
    return _FORWARD_OF.get(name.strip("_"), name.strip("_"))


def _key(op: Op) -> tuple[str, int]:
    """By the largest operand: a pool or a loss has a smaller gradient, beside what it was given."""
    return _stem(op), max(map(numel, op.inputs))
