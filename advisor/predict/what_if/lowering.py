"""Operators under autocast: what each runs in, its casts, and what made its operands; no torch."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from advisor.core.values import Flow, Op, Phase, Role, TensorSpec
from advisor.operators.family import base_name, names
from advisor.operators.registry import family_of
from advisor.operators.work import numel
from advisor.predict.distinct import shared
from advisor.predict.what_if.held import FACTORS, Shape, is_of, num_parameters, parameter_shapes

FULL = "float32"
_ITEM_BYTES = {FULL: 4, "float16": 2, "bfloat16": 2, "float64": 8, "int64": 8, "int32": 4}


def is_lowered(op: Op) -> bool:
    """Whether it runs in the lower precision whatever it is given."""
    return family_of(op).compute.tensor_cores


def asked_dtype(op: Op, lower: str) -> str | None:
    """The dtype that a forward operator asks for; None if it takes what it is given."""
    if is_lowered(op):
        return lower
    return FULL if base_name(op.name) in family_of(op).autocast.full else None


def plain_op(
    name: str, phase: Phase, source: TensorSpec, target: TensorSpec, num_bytes: int, *, count: int
) -> Op:
    """An operator of one operand without FLOPs."""
    return Op(
        name=name,
        phase=phase,
        inputs=(source,),
        outputs=(target,),
        attributes={},
        flops=0,
        bytes=num_bytes,
        count=count,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How calls of an operator run under autocast."""

    given: tuple[str, ...]
    """Dtypes of the operands, before casts."""
    runs_in: str | None
    """What they are cast to; None if they are taken as they are."""
    result: str
    """The result's dtype."""
    with_vectors: bool
    """Tensors of one dimension are of that dtype, too: biases of products, but neither statistics nor
    scales."""


def casts(op: Op, run: Run, counts: Sequence[int], has_gradient: Sequence[bool]) -> Iterator[Op]:
    """Casts of a forward operator's operands, so often each, and of their gradients on the way back."""
    operands = zip(op.inputs, run.given, counts, has_gradient, strict=True)
    for tensor, dtype, count, from_graph in operands:
        if not count:
            continue
        if (run.result if _is_retyped(tensor, run) else tensor.dtype) == dtype:
            continue
        if run.runs_in is not None:  # else the kernel itself reads both
            yield _cast(tensor, dtype, run.result, Phase.FORWARD, count)
        if from_graph:
            yield _cast(tensor, run.result, dtype, Phase.BACKWARD, count)


def retyped_op(op: Op, run: Run) -> Op:
    """The operator on operands as they are given, or on their casts."""
    operands = zip(op.inputs, run.given, strict=True)
    inputs = tuple(_retyped(tensor, run.runs_in or dtype, run) for tensor, dtype in operands)
    outputs = tuple(_retyped(tensor, run.result, run) for tensor in op.outputs)
    if (inputs, outputs) == (op.inputs, op.outputs):
        return op
    # Its traffic shrinks as the tensors do.
    share = total_bytes((*inputs, *outputs)) / max(total_bytes((*op.inputs, *op.outputs)), 1)
    return replace(
        op, inputs=inputs, outputs=outputs, bytes=round(op.bytes * share), measured_s=None, kernels=()
    )


def _is_retyped(tensor: TensorSpec, run: Run) -> bool:
    return tensor.dtype == FULL and (run.with_vectors or len(tensor.shape) > 1)


def _retyped(tensor: TensorSpec, dtype: str, run: Run) -> TensorSpec:
    if run.with_vectors and tensor.dtype == "uint8" and len(tensor.shape) == 1:
        # cuDNN's activations of all steps.
        return replace(tensor, shape=(tensor.shape[0] * _ITEM_BYTES[dtype] // _ITEM_BYTES[FULL],))
    is_other = dtype != tensor.dtype and _is_retyped(tensor, run)
    return replace(tensor, dtype=dtype) if is_other else tensor


def _cast(tensor: TensorSpec, source: str, target: str, phase: Phase, count: int) -> Op:
    num_bytes = numel(tensor) * (_ITEM_BYTES[source] + _ITEM_BYTES[target])
    before, after = (TensorSpec(shape=tensor.shape, dtype=dtype) for dtype in (source, target))
    return plain_op("aten::_to_copy", phase, before, after, num_bytes, count=count)


def result_of(op: Op, given: Sequence[str]) -> str:
    """The dtype of a result: normalisation keeps its input's, others promote to the widest.

    A vector that is added is the bias of a product that was taken apart, and cast with it. Operands that the
    script itself made of another dtype say nothing.
    """
    operands = [(t, dtype) for t, dtype in zip(op.inputs, given, strict=True) if t.dtype == FULL]
    if base_name(op.name) in ("add", "add_"):
        operands = [(t, dtype) for t, dtype in operands if len(t.shape) > 1] or operands
    if family_of(op).autocast.keeps_dtype:
        operands = operands[:1]
    dtypes = {dtype for _, dtype in operands} or {FULL}
    return FULL if FULL in dtypes else dtypes.pop()


def total_bytes(tensors: Sequence[TensorSpec]) -> int:
    """Of tensors together; those of other dtypes count one byte an element."""
    return sum(numel(tensor) * _ITEM_BYTES.get(tensor.dtype, 1) for tensor in tensors)


_SUMS = names("add add_")
# Where layers repeat, an operand may come from further below in the list.
_MOST_ROUNDS = 16


def lowered_by_flows(ops: Sequence[Op], lower: str, passes: int = 1) -> tuple[list[Op], list[Op]]:
    """The operators as autocast runs them, and its casts; calls of one operator may get several dtypes.

    Each pass of an iteration is under autocast by itself.
    """
    walk = _FlowWalk(lower=lower, passes=passes, makers={flow.id: op for op in ops for flow in op.flows})
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
class _FlowWalk:
    """Follows dtypes from operator to operator until none changes any more."""

    lower: str
    passes: int
    """In each of which parameters are cast."""
    makers: Mapping[int, Op]
    """The operator of each flow, by its id."""
    runs: dict[int, Run] = field(default_factory=dict)
    """The widest dtypes of all flows of an id."""

    def settle(self, flows: Sequence[tuple[Op, Flow]]) -> None:
        """All results begin in the lower precision and only ever widen, so that this ends."""
        for _ in range(_MOST_ROUNDS):
            before = dict(self.runs)
            for op, flow in flows:
                run = self._run(op, flow)
                before_it = self.runs.get(flow.id, run)
                given = tuple(map(_wider, before_it.given, run.given))
                self.runs[flow.id] = replace(run, given=given, result=_wider(before_it.result, run.result))
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


def _wider(one: str, other: str) -> str:
    return FULL if FULL in (one, other) else one


# A tensor's dtype is that of the last one of its shape, else of its size, that was not taken yet; where
# none is left, the one that most of its shape have, and float32 where they are even.

_FORWARD_OF = {"threshold": "relu"}
_Call = tuple[int, str | None, tuple[str, ...]]


def lowered_by_shapes(ops: Sequence[Op], lower: str) -> tuple[list[Op], list[Op]]:
    """The operators as autocast runs them, and its casts."""
    walk = _ShapeWalk(lower=lower, parameters=parameter_shapes(ops))
    return [walk.lowered(op) for op in shared(tuple(ops))], walk.casts


@dataclass(slots=True, kw_only=True)
class _ShapeWalk:
    """Follows the operators in the order they were recorded."""

    lower: str
    parameters: frozenset[Shape]
    """Shapes of parameters, sorted."""
    casts: list[Op] = field(default_factory=list)
    """Casts met so far, those that the backward pass repeats the other way round included."""
    waiting: dict[int, list[tuple[Shape, str]]] = field(default_factory=dict)
    """By number of elements, the shapes and dtypes of tensors that were not taken yet."""
    made_as: dict[Shape, Counter[str]] = field(default_factory=dict)
    """By shape, and by number of elements for what was given another one, how many were made in each
    dtype."""
    forward: dict[tuple[str, int], str] = field(default_factory=dict)
    """By name and number of elements, the dtype a forward operator ran in."""
    factors: dict[tuple[str, int], str] = field(default_factory=dict)
    """The same, of what a product's largest operand had."""
    made: dict[_Call, tuple[str, Op, tuple[Op, ...]]] = field(default_factory=dict)
    """What came of each operator, by how it runs and what it is given: its result's dtype, itself and its
    casts. Thousands of calls share a few."""

    def lowered(self, op: Op) -> Op:
        """The operator as autocast runs it."""
        if op.phase is Phase.OPTIMIZER:
            return op
        given, runs_in = self._given(op), self._precision(op)
        key = id(op), runs_in, given
        if key not in self.made:
            result = runs_in or result_of(op, given)
            run = Run(given=given, runs_in=runs_in, result=result, with_vectors=is_lowered(op))
            is_cast = op.phase is Phase.FORWARD and family_of(op).autocast.casts_operands
            of_op = casts(op, run, [op.count] * len(given), [True] * len(given)) if is_cast else ()
            self.made[key] = result, retyped_op(op, run), tuple(of_op)
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


def _key(op: Op) -> tuple[str, int]:
    """The name that an operator shares with its other pass, and its largest operand.

    A pool or a loss has a smaller gradient, beside what it was given.
    """
    name = base_name(op.name).removesuffix("_data").removesuffix("_backward").removesuffix("_forward")
    return _FORWARD_OF.get(name.strip("_"), name.strip("_")), max(map(numel, op.inputs))
