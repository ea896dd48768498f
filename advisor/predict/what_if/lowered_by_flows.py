"""Operators under autocast where a trace tells what made their operands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from advisor.core.values import Flow, Op, Phase, Role
from advisor.operators.family import base_name, names
from advisor.operators.work import numel
from advisor.predict.what_if.lowering import (
    FULL,
    Run,
    asked_dtype,
    casts,
    is_lowered,
    result_of,
    retyped_op,
)
from advisor.predict.what_if.weights import num_parameters

_SUMS = names("add add_")
# Where layers repeat, an operand may come from further below in the list.
_MOST_ROUNDS = 16


def lowered_by_flows(ops: Sequence[Op], lower: str, passes: int = 1) -> tuple[list[Op], list[Op]]:
    """The operators as autocast runs them, and its casts; calls of one operator may get several dtypes.

    Args:
        ops: of an iteration.
        lower: the dtype of products.
        passes: of that iteration, each of which is under autocast by itself.
    """
    walk = _Walk(lower=lower, passes=passes, makers={flow.id: op for op in ops for flow in op.flows})
    walk.settle([(op, flow) for op in ops for flow in op.flows])
    lowered: list[Op] = []
    added: list[Op] = []
    for op in ops:
        if not op.flows:
            lowered.append(op)
        for one, own_casts in walk.lowered(op):
            lowered.append(one)
            added += own_casts
    return lowered, added


@dataclass(slots=True, kw_only=True)
class _Walk:
    """Follows dtypes from operator to operator until none changes any more.

    Attributes:
        passes: in each of which parameters are cast.
        makers: the operator of each flow, by its id.
        runs: the widest dtypes of all flows of an id.
    """

    lower: str
    passes: int
    makers: Mapping[int, Op]
    runs: dict[int, Run] = field(default_factory=dict)

    def settle(self, flows: Sequence[tuple[Op, Flow]]) -> None:
        """All results begin in the lower precision and only ever widen, so that this ends."""
        for _ in range(_MOST_ROUNDS):
            before = dict(self.runs)
            for op, flow in flows:
                run = self._run(op, flow)
                self.runs[flow.id] = _joined(self.runs.get(flow.id, run), run)
            if self.runs == before:
                return

    def lowered(self, op: Op) -> Iterator[tuple[Op, tuple[Op, ...]]]:
        """The operator and its casts, once for each way in which its calls run."""
        ways: dict[tuple[Run, tuple[Role | None, ...]], list[Flow]] = {}
        for flow in op.flows:
            roles = tuple(Role(source) if source < len(Role) else None for source in flow.sources)
            ways.setdefault((self._run(op, flow), roles), []).append(flow)
        for (run, roles), flows in ways.items():
            one = replace(op, count=sum(flow.count for flow in flows), flows=tuple(flows))
            yield retyped_op(one, run), tuple(self._casts(one, run, roles))

    def _casts(self, op: Op, run: Run, roles: Sequence[Role | None]) -> Iterator[Op]:
        """Autocast casts a parameter once in each pass, and all else for each call anew."""
        if op.phase is not Phase.FORWARD:
            return iter(())
        of_parameter = self.passes * num_parameters(op.flows)
        counts = [of_parameter if role is Role.PARAMETER else op.count for role in roles]
        return casts(op, run, counts, [role is not Role.OUTSIDE for role in roles])

    def _run(self, op: Op, flow: Flow) -> Run:
        forward = flow.forward
        if op.phase is Phase.BACKWARD and forward is not None and forward in self.makers:
            return self._backward(op, flow, forward)
        if Role.GRADIENT in flow.sources:  # each is cast before it is added to those of other passes
            return self._all_in(op, FULL)
        given = self._given(op, [self._made(source) for source in flow.sources])
        runs_in = self.lower if self._adds_bias(op, flow) else asked_dtype(op, self.lower)
        return self._of(op, given, runs_in)

    def _adds_bias(self, op: Op, flow: Flow) -> bool:
        """Whether a product that was taken apart adds its bias, which is cast with its operands."""
        is_sum = base_name(op.name) in _SUMS and len(op.inputs) == 2 and len(op.inputs[1].shape) == 1
        if not is_sum or flow.sources[1] != Role.PARAMETER or flow.sources[0] not in self.makers:
            return False
        return is_lowered(self.makers[flow.sources[0]])

    def _backward(self, op: Op, flow: Flow, forward: int) -> Run:
        """Gradients have the dtype of what they are of; what the forward call kept, that which it ran in."""
        of = self.runs.get(forward)
        if of is None:  # of a later call of the list
            return self._all_in(op, self.lower)
        if flow.is_of_view:
            return self._all_in(op, of.result)
        if base_name(op.name) in _SUMS and all(self._is_gradient(source) for source in flow.sources):
            return self._all_in(op, self._operand_dtype(op, forward, of))
        if of.runs_in is not None:
            return self._all_in(op, of.runs_in)
        given = self._given(op, [self._saved_or_gradient(source, forward, of) for source in flow.sources])
        return self._of(op, given, None)

    def _all_in(self, op: Op, dtype: str) -> Run:
        return self._of(op, self._given(op, [dtype] * len(op.inputs)), dtype)

    def _of(self, op: Op, given: tuple[str, ...], runs_in: str | None) -> Run:
        result = runs_in or result_of(op, given)
        with_vectors = is_lowered(op) or runs_in == self.lower
        return Run(given=given, runs_in=runs_in, result=result, with_vectors=with_vectors)

    def _saved_or_gradient(self, source: int, forward: int, of: Run) -> str:
        is_step_of_same = source in self.runs and any(
            flow.id == source and flow.forward == forward for flow in self.makers[source].flows
        )
        if self._is_gradient(source) and not is_step_of_same:
            return of.result
        return self._made(source)

    def _operand_dtype(self, op: Op, forward: int, of: Run) -> str:
        """Of the forward call's operand whose gradients are added up: the one of this size."""
        operands = zip(self.makers[forward].inputs, of.given, strict=True)
        size = numel(op.outputs[0])
        return next((dtype for tensor, dtype in operands if numel(tensor) == size), of.result)

    def _is_gradient(self, source: int) -> bool:
        maker = self.makers.get(source)
        return maker is not None and maker.phase is Phase.BACKWARD

    def _made(self, source: int) -> str:
        """The dtype of what a flow makes; parameters and what comes from outside are float32."""
        if source not in self.makers:
            return FULL
        run = self.runs.get(source)
        return self.lower if run is None else run.result

    def _given(self, op: Op, dtypes: Sequence[str]) -> tuple[str, ...]:
        """What is of another dtype than float32 was made so by the script; what is empty takes any."""
        pairs = zip(op.inputs, dtypes, strict=True)
        return tuple(
            tensor.dtype if tensor.dtype != FULL else dtype if numel(tensor) else self.lower
            for tensor, dtype in pairs
        )


def _joined(before: Run, now: Run) -> Run:
    given = tuple(_wider(one, other) for one, other in zip(before.given, now.given, strict=True))
    return replace(now, given=given, result=_wider(before.result, now.result))


def _wider(one: str, other: str) -> str:
    return FULL if FULL in (one, other) else one
