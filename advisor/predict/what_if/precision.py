"""A trace as if the script computed in lower precision: ``torch.autocast``, or TF32."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from advisor.core.values import Flow, Op, Phase, Role, TensorSpec, Trace
from advisor.operators.family import Tf32Flag, base_name, names, wanted_rate
from advisor.operators.registry import family_of
from advisor.operators.work import numel
from advisor.predict.distinct import shared
from advisor.predict.host import SYNCHRONISING
from advisor.predict.what_if.changed_memory import of_lower_precision
from advisor.predict.what_if.flash import in_flash_layout
from advisor.predict.what_if.held_tensors import FACTORS, Shape, held, is_of, num_parameters, parameter_shapes

# The rules are those of ``aten/src/ATen/autocast_mode.h``: products, convolutions, attention and recurrent
# layers run in the lower precision, some operators (layer norm, losses, powers) in float32, all others in
# what they are given. What they are given follows from the operators that made it; where a trace does not
# tell which those were, from shapes.

_UNSCALE = "aten::_amp_foreach_non_finite_check_and_unscale_"


def under_autocast(trace: Trace, dtype: str) -> Trace | None:
    """The trace with float32 replaced where autocast would by ``"bfloat16"`` or ``"float16"``, and its casts.

    None if there is nothing to replace: the script uses autocast, or its products are of other dtypes. FLOPs
    stay the same. Float16 adds the gradient scaler's pass over the gradients, and its look for infinite ones,
    for which the host waits. Activations move as what the backward pass reads does, copies that were cast
    included. Times that were measured at full precision are dropped.
    """
    products = (op for op in trace.ops if op.phase is not Phase.OPTIMIZER and _is_lowered(op))
    is_full = any(tensor.dtype == _FULL for op in products for tensor in op.inputs)
    if trace.precision.amp_dtype is not None or not is_full:
        return None
    if any(op.flows for op in trace.ops):
        followed = in_flash_layout(trace.ops) if dtype == "bfloat16" else trace.ops
        ops, casts = lowered_by_flows(followed, dtype, trace.accumulation)
    else:
        walk = _ShapeWalk(lower=dtype, parameters=parameter_shapes(trace.ops))
        ops, casts = [walk.lowered(op) for op in shared(tuple(trace.ops))], walk.casts
    gradient_bytes = trace.memory.gradient_bytes or 0
    if dtype == "float16" and gradient_bytes:
        gradients = TensorSpec(shape=(gradient_bytes // 4,), dtype=_FULL)
        ops.append(_plain_op(_UNSCALE, Phase.OPTIMIZER, gradients, gradients, 2 * gradient_bytes, count=1))
        is_infinite = TensorSpec(shape=(), dtype=_FULL)
        ops.append(_plain_op(SYNCHRONISING, Phase.FORWARD, is_infinite, is_infinite, 4, count=1))
    # Activations are what passes hold then; what is unknown shrinks as forward results do.
    before, after = (held(one, trace.accumulation, gradient_bytes) for one in (trace.ops, (*ops, *casts)))
    before_bytes = _given_bytes(trace.ops)
    share = _given_bytes(ops) / before_bytes if before_bytes else 1.0
    return replace(
        trace,
        ops=(*ops, *casts),
        precision=replace(trace.precision, amp_dtype=dtype),
        memory=of_lower_precision(trace.memory, before, after, share),
        iteration_s=None,
    )


def _given_bytes(ops: Sequence[Op]) -> int:
    """What forward operators give, those apart that write over what they are given."""
    return sum(
        op.count * _total_bytes(op.outputs[:1])
        for op in ops
        if op.phase is Phase.FORWARD and not base_name(op.name).endswith("_")
    )


def allow_tf32(trace: Trace) -> Trace | None:
    """The trace after ``torch.set_float32_matmul_precision("high")``; None if that changes nothing.

    Convolutions have a flag of their own, which is on by default. Times of products that were measured at
    full precision are dropped.
    """

    def is_full(op: Op) -> bool:
        family = family_of(op)
        compute = family.compute
        is_switched = compute.tensor_cores and compute.tf32 is Tf32Flag.MATMUL
        return is_switched and wanted_rate(op, family, trace.precision) == "fp32"

    def unmeasured(op: Op) -> Op:
        return replace(op, measured_s=None, kernels=()) if is_full(op) else op

    if not any(is_full(op) for op in trace.ops):
        return None
    measured = any(op.measured_s is not None or op.kernels for op in trace.ops)
    return replace(
        trace,
        # Where there is nothing to drop they stay the same operators, of which much is known already.
        ops=tuple(map(unmeasured, trace.ops)) if measured else trace.ops,
        precision=replace(trace.precision, tf32_matmul=True),
        iteration_s=None,
    )


# Operators under autocast: what each runs in, its casts, and what made its operands.

_FULL = "float32"
_ITEM_BYTES = {_FULL: 4, "float16": 2, "bfloat16": 2, "float64": 8, "int64": 8, "int32": 4}


def _is_lowered(op: Op) -> bool:
    """Whether it runs in the lower precision whatever it is given."""
    return family_of(op).compute.tensor_cores


def _asked_dtype(op: Op, lower: str) -> str | None:
    """The dtype that a forward operator asks for; None if it takes what it is given."""
    if _is_lowered(op):
        return lower
    return _FULL if base_name(op.name) in family_of(op).autocast.full else None


def _plain_op(
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
class _Run:
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


def _casts_of(op: Op, run: _Run, counts: Sequence[int], has_gradient: Sequence[bool]) -> Iterator[Op]:
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


def _retyped_op(op: Op, run: _Run) -> Op:
    """The operator on operands as they are given, or on their casts."""
    operands = zip(op.inputs, run.given, strict=True)
    inputs = tuple(_retyped(tensor, run.runs_in or dtype, run) for tensor, dtype in operands)
    outputs = tuple(_retyped(tensor, run.result, run) for tensor in op.outputs)
    if (inputs, outputs) == (op.inputs, op.outputs):
        return op
    # Its traffic shrinks as the tensors do.
    share = _total_bytes((*inputs, *outputs)) / max(_total_bytes((*op.inputs, *op.outputs)), 1)
    return replace(
        op, inputs=inputs, outputs=outputs, bytes=round(op.bytes * share), measured_s=None, kernels=()
    )


def _is_retyped(tensor: TensorSpec, run: _Run) -> bool:
    return tensor.dtype == _FULL and (run.with_vectors or len(tensor.shape) > 1)


def _retyped(tensor: TensorSpec, dtype: str, run: _Run) -> TensorSpec:
    if run.with_vectors and tensor.dtype == "uint8" and len(tensor.shape) == 1:
        # cuDNN's activations of all steps.
        return replace(tensor, shape=(tensor.shape[0] * _ITEM_BYTES[dtype] // _ITEM_BYTES[_FULL],))
    is_other = dtype != tensor.dtype and _is_retyped(tensor, run)
    return replace(tensor, dtype=dtype) if is_other else tensor


def _cast(tensor: TensorSpec, source: str, target: str, phase: Phase, count: int) -> Op:
    num_bytes = numel(tensor) * (_ITEM_BYTES[source] + _ITEM_BYTES[target])
    before, after = (TensorSpec(shape=tensor.shape, dtype=dtype) for dtype in (source, target))
    return _plain_op("aten::_to_copy", phase, before, after, num_bytes, count=count)


def _result_of(op: Op, given: Sequence[str]) -> str:
    """The dtype of a result: normalisation keeps its input's, others promote to the widest.

    A vector that is added is the bias of a product that was taken apart, and cast with it. Operands that the
    script itself made of another dtype say nothing.
    """
    operands = [(t, dtype) for t, dtype in zip(op.inputs, given, strict=True) if t.dtype == _FULL]
    if base_name(op.name) in ("add", "add_"):
        operands = [(t, dtype) for t, dtype in operands if len(t.shape) > 1] or operands
    if family_of(op).autocast.keeps_dtype:
        operands = operands[:1]
    dtypes = {dtype for _, dtype in operands} or {_FULL}
    return _FULL if _FULL in dtypes else dtypes.pop()


def _total_bytes(tensors: Sequence[TensorSpec]) -> int:
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
    runs: dict[int, _Run] = field(default_factory=dict)
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
        ways: dict[tuple[_Run, tuple[Role | None, ...]], list[Flow]] = {}
        for flow in op.flows:
            roles = tuple(Role(source) if source < len(Role) else None for source in flow.sources)
            ways.setdefault((self._run(op, flow), roles), []).append(flow)
        for (run, roles), flows in ways.items():
            one = replace(op, count=sum(flow.count for flow in flows), flows=tuple(flows))
            yield _retyped_op(one, run), tuple(self._casts(one, run, roles))

    def _casts(self, op: Op, run: _Run, roles: Sequence[Role | None]) -> Iterator[Op]:
        """Autocast casts a parameter once in each pass, and all else for each call anew."""
        if op.phase is not Phase.FORWARD:
            return iter(())
        of_parameter = self.passes * num_parameters(op.flows)
        counts = [of_parameter if role is Role.PARAMETER else op.count for role in roles]
        return _casts_of(op, run, counts, [role is not Role.OUTSIDE for role in roles])

    def _run(self, op: Op, flow: Flow) -> _Run:
        forward = flow.forward
        if op.phase is Phase.BACKWARD and forward is not None and forward in self.makers:
            return self._backward(op, flow, forward)
        if Role.GRADIENT in flow.sources:  # each is cast before it is added to those of other passes
            return self._all_in(op, _FULL)
        given, runs_in = self._given(op, list(map(self._made, flow.sources))), _asked_dtype(op, self.lower)
        is_sum = base_name(op.name) in _SUMS and len(op.inputs) == 2 and len(op.inputs[1].shape) == 1
        if is_sum and flow.sources[1] == Role.PARAMETER and flow.sources[0] in self.makers:
            # A product that was taken apart adds its bias, which is cast with its operands.
            runs_in = self.lower if _is_lowered(self.makers[flow.sources[0]]) else runs_in
        return self._of(op, given, runs_in)

    def _backward(self, op: Op, flow: Flow, forward: int) -> _Run:
        """Gradients have the dtype of what they are of; what the forward call kept, that which it ran in."""
        of = self.runs.get(forward)
        if of is None:  # of a later call of the list
            return self._all_in(op, self.lower)
        if flow.is_of_view:
            return self._all_in(op, of.result)
        if base_name(op.name) in _SUMS and all(self._is_gradient(source) for source in flow.sources):
            # Those of the forward call's operand of this size are added up.
            operands, size = zip(self.makers[forward].inputs, of.given, strict=True), numel(op.outputs[0])
            dtypes = (dtype for tensor, dtype in operands if numel(tensor) == size)
            return self._all_in(op, next(dtypes, of.result))
        if of.runs_in is not None:
            return self._all_in(op, of.runs_in)
        given = self._given(op, [self._saved_or_gradient(source, forward, of) for source in flow.sources])
        return self._of(op, given, None)

    def _all_in(self, op: Op, dtype: str) -> _Run:
        return self._of(op, self._given(op, [dtype] * len(op.inputs)), dtype)

    def _of(self, op: Op, given: tuple[str, ...], runs_in: str | None) -> _Run:
        result = runs_in or _result_of(op, given)
        with_vectors = _is_lowered(op) or runs_in == self.lower
        return _Run(given=given, runs_in=runs_in, result=result, with_vectors=with_vectors)

    def _saved_or_gradient(self, source: int, forward: int, of: _Run) -> str:
        is_step_of_same = source in self.runs and any(
            flow.id == source and flow.forward == forward for flow in self.makers[source].flows
        )
        if self._is_gradient(source) and not is_step_of_same:
            return of.result
        return self._made(source)

    def _is_gradient(self, source: int) -> bool:
        maker = self.makers.get(source)
        return maker is not None and maker.phase is Phase.BACKWARD

    def _made(self, source: int) -> str:
        """The dtype of what a flow makes; parameters and what comes from outside are float32."""
        if source not in self.makers:
            return _FULL
        run = self.runs.get(source)
        return self.lower if run is None else run.result

    def _given(self, op: Op, dtypes: Sequence[str]) -> tuple[str, ...]:
        """What is of another dtype than float32 was made so by the script; what is empty takes any."""
        pairs = zip(op.inputs, dtypes, strict=True)
        return tuple(
            tensor.dtype if tensor.dtype != _FULL else dtype if numel(tensor) else self.lower
            for tensor, dtype in pairs
        )


def _wider(one: str, other: str) -> str:
    return _FULL if _FULL in (one, other) else one


# A tensor's dtype is that of the last one of its shape, else of its size, that was not taken yet; where
# none is left, the one that most of its shape have, and float32 where they are even.

_FORWARD_OF = {"threshold": "relu"}
_Call = tuple[int, str | None, tuple[str, ...]]


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
        given, runs_in = self._given(op), _asked_dtype(op, self.lower)
        is_factor = base_name(op.name) in FACTORS
        if runs_in is None and op.phase is Phase.BACKWARD and op.inputs and not is_factor:
            runs_in = self.forward.get(_key(op))
        key = id(op), runs_in, given
        if key not in self.made:
            result = runs_in or _result_of(op, given)
            run = _Run(given=given, runs_in=runs_in, result=result, with_vectors=_is_lowered(op))
            is_cast = op.phase is Phase.FORWARD and family_of(op).autocast.casts_operands
            of_op = _casts_of(op, run, [op.count] * len(given), [True] * len(given)) if is_cast else ()
            self.made[key] = result, _retyped_op(op, run), tuple(of_op)
        result, lowered, own_casts = self.made[key]
        self.casts += own_casts
        if op.phase is Phase.FORWARD and op.inputs:
            self.forward[_key(op)] = result
            if is_factor:
                largest = max(range(len(given)), key=lambda i: numel(op.inputs[i]))
                self.factors[_key(op)] = given[largest]
        for tensor in lowered.outputs:
            self._put(tensor, op)
        return lowered

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
        if tensor.dtype != _FULL:
            return tensor.dtype
        size = numel(tensor)
        waiting = self.waiting.get(size, [])
        own = next((i for i in reversed(range(len(waiting))) if waiting[i][0] == tensor.shape), None)
        if own is not None:
            return waiting.pop(own)[1]
        if is_of(self.parameters, tensor):
            return _FULL
        seen = self.made_as.get(tensor.shape)
        if waiting and (seen is None or _FULL in seen):  # given another shape
            return waiting.pop()[1]
        seen = seen or self.made_as.get((size,), Counter())
        return _FULL if seen[_FULL] >= seen[self.lower] else self.lower

    def _put(self, tensor: TensorSpec, op: Op) -> None:
        is_gradient = op.phase is Phase.BACKWARD and is_of(self.parameters, tensor)
        if is_gradient or tensor.dtype not in (_FULL, self.lower):
            return
        size = numel(tensor)
        self.waiting.setdefault(size, []).append((tensor.shape, tensor.dtype))
        # Of the backward pass it may be a guess, which would make more of them.
        if op.phase is Phase.FORWARD or tensor.dtype != _FULL:
            for shape in {tensor.shape, (size,)}:
                self.made_as.setdefault(shape, Counter())[tensor.dtype] += op.count


def _key(op: Op) -> tuple[str, int]:
    """The name that an operator shares with its other pass, and its largest operand.

    A pool or a loss has a smaller gradient, beside what it was given.
    """
    name = base_name(op.name).removesuffix("_data").removesuffix("_backward").removesuffix("_forward")
    return _FORWARD_OF.get(name.strip("_"), name.strip("_")), max(map(numel, op.inputs))
