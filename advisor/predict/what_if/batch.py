"""A trace as if each pass took more samples, or a step several passes.

A trace has shapes, but not which dimension is the batch. In a tensor that is no parameter's it is the
outermost one in memory whose size is the batch or a multiple of it: ``[64, 3, 224, 224]``,
``[64 * 512, 768]``, ``[768, 64 * 512]`` where it was transposed, and ``[512, 64, 768]`` where sequences come
first. A matrix product says more: of ``[m, k] x [k, n]`` the batch is ``k`` where it gives a weight's
gradient, else ``m``.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import starmap

from advisor.core.values import AttributeValue, Op, Phase, TensorSpec, Trace
from advisor.operators.family import base_name, names
from advisor.operators.registry import cost_of
from advisor.operators.work import first_list, total_bytes
from advisor.predict.what_if.changed_memory import of_larger_batch, of_more_passes
from advisor.predict.what_if.held_tensors import Weights, with_weights

_PRODUCTS = names("mm addmm")
_RECURRENT = names("_cudnn_rnn _cudnn_rnn_backward")
_MOST_OFF = 0.05
Shape = tuple[int, ...]


def with_batch(trace: Trace, factor: int) -> Trace | None:
    """The trace of a script whose passes take ``factor`` times as many samples.

    Times that were measured are dropped. Memory is exact as far as activations grow with the batch. None
    where the batch is not known, or work does not grow with it as far as shapes tell.
    """
    if trace.batch_size is None or trace.batch_size % trace.accumulation:
        return None
    batch = trace.batch_size // trace.accumulation
    passes = [op for op in trace.ops if op.phase is not Phase.OPTIMIZER]
    inner = frozenset(size for op in passes for tensor in op.outputs for size in tensor.shape[1:])
    growing = _Growing(batch=batch, factor=factor, inner=inner)
    # Of what the optimizer steps over, whichever way round a matrix is used.
    stepped = (tensor for op in trace.ops if op.phase is Phase.OPTIMIZER for tensor in op.inputs)
    parameters = frozenset(_folded(tensor, batch) for tensor in stepped)
    calls = with_weights(trace.ops, lambda tensor: _folded(tensor, batch) in parameters)
    ops = tuple(growing.op(op, weights) for op, weights in calls)
    # Work is proportional to the batch; where shapes say otherwise, they were read wrongly.
    wanted = factor * _pass_flops(trace.ops)
    if abs(_pass_flops(ops) - wanted) > _MOST_OFF * wanted:
        return None
    memory = of_larger_batch(trace.memory, factor)
    return replace(with_larger_steps(trace, factor), ops=ops, memory=memory)


def _pass_flops(ops: Iterable[Op]) -> int:
    return sum(op.flops * op.count for op in ops if op.phase is not Phase.OPTIMIZER)


def with_larger_steps(trace: Trace, factor: int) -> Trace:
    """The trace where a step takes ``factor`` times as many samples, as far as it counts them."""
    per_epoch, loading_s, batch_size = trace.iterations_per_epoch, trace.data_loading_s, trace.batch_size
    return replace(
        trace,
        batch_size=None if batch_size is None else batch_size * factor,
        iterations_per_epoch=None if per_epoch is None else math.ceil(per_epoch / factor),
        data_loading_s=None if loading_s is None else loading_s * factor,
        iteration_s=None,
    )


def _folded(tensor: TensorSpec, batch: int) -> Shape:
    """Without dimensions of one element, which reductions leave and broadcasts add; a batch may be one."""
    return tuple(sorted(size for size in tensor.shape if size != 1 or batch == 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Growing:
    """What grows with a batch."""

    batch: int
    """Samples of one pass."""
    factor: int
    inner: frozenset[int]
    """Sizes of dimensions that are not the first of a tensor."""

    def op(self, op: Op, weights: Weights) -> Op:
        """The operator over a larger batch."""
        if op.phase is Phase.OPTIMIZER:
            return op
        name = base_name(op.name)
        # A profiler may leave shapes of matrices out.
        has_shapes = len(op.outputs) == 1 and [len(tensor.shape) for tensor in op.inputs[-2:]] == [2, 2]
        if name in _PRODUCTS and has_shapes:
            return recosted(op, *self._product(op))
        axis = 1 if name in _RECURRENT and not op.attributes.get("batch_first") else None
        # A bias's gradient is summed over what never is a weight, whatever its shape.
        stays = [False] * len(op.inputs) if name == "sum" else weights.inputs
        pairs = zip(op.inputs, stays, strict=True), zip(op.outputs, weights.outputs, strict=True)
        inputs, outputs = (tuple(starmap(partial(self._tensor, axis=axis), one)) for one in pairs)
        return recosted(op, inputs, outputs)

    def _product(self, op: Op) -> tuple[tuple[TensorSpec, ...], tuple[TensorSpec, ...]]:
        *bias, left, right = op.inputs
        (out,) = op.outputs
        is_transposed = left.stride is not None and left.stride[0] == 1 != left.stride[1]
        if op.phase is Phase.BACKWARD and is_transposed and self._is_batch(left.shape[1]):
            return (*bias, self._along(left, 1), self._along(right, 0)), (out,)
        if not self._is_batch(left.shape[0]):
            return op.inputs, op.outputs
        return (*bias, self._along(left, 0), right), (self._along(out, 0),)

    def _tensor(self, tensor: TensorSpec, is_weight: bool, *, axis: int | None) -> TensorSpec:
        if not tensor.shape or is_weight:
            return tensor
        if axis is not None:
            return self._along(tensor, axis) if len(tensor.shape) == 3 else tensor
        # By their place in memory, the outermost first, as far as strides tell.
        axes, stride = list(range(len(tensor.shape))), tensor.stride
        if stride is not None and stride[0]:
            axes = sorted(axes, key=lambda i: -stride[i])
        axis = next((i for i in axes if self._is_batch(tensor.shape[i])), None)
        return tensor if axis is None else self._along(tensor, axis)

    def _is_batch(self, size: int) -> bool:
        """Whether a size is the batch, or the batch times something else that the trace knows."""
        if size % self.batch:
            return False
        return size == self.batch or size not in self.inner or size // self.batch in self.inner

    def _along(self, tensor: TensorSpec, axis: int) -> TensorSpec:
        shape = tuple(size * self.factor if i == axis else size for i, size in enumerate(tensor.shape))
        stride = tensor.stride
        if stride is not None:  # dimensions outside of it move apart
            stride = tuple(step * self.factor if step > stride[axis] else step for step in stride)
        return replace(tensor, shape=shape, stride=stride)


def recosted(op: Op, inputs: tuple[TensorSpec, ...], outputs: tuple[TensorSpec, ...]) -> Op:
    """The operator on other tensors, with the FLOPs and bytes of these; its measured time is dropped."""
    if (inputs, outputs) == (op.inputs, op.outputs):
        return op
    attributes: dict[str, AttributeValue] = dict(op.attributes)
    cost = cost_of(op.name, inputs, outputs, attributes)
    return replace(
        op, inputs=inputs, outputs=outputs, flops=cost.flops, bytes=cost.bytes, measured_s=None, kernels=()
    )


def made_op(
    name: str,
    phase: Phase,
    inputs: tuple[TensorSpec, ...],
    outputs: tuple[TensorSpec, ...],
    attributes: dict[str, AttributeValue],
    count: int,
) -> Op:
    """An operator that a change adds, with the FLOPs and bytes of its tensors."""
    cost = cost_of(name, inputs, outputs, attributes)
    return Op(
        name=name,
        phase=phase,
        inputs=inputs,
        outputs=outputs,
        attributes=attributes,
        flops=cost.flops,
        bytes=cost.bytes,
        count=count,
    )


def accumulated(trace: Trace, passes: int) -> Trace | None:
    """The trace of a script that steps after ``passes`` times as many passes, each as it is.

    The first pass leaves its gradients, each of the others adds to them (PyTorch's ``AccumulateGrad``). Each
    loss is divided by the number of passes. None where the optimizer's parameters are not known.
    """
    parameters = _parameters(trace)
    if not parameters:
        return None
    last = max((i for i, op in enumerate(trace.ops) if op.phase is Phase.BACKWARD), default=-1)
    # Behind the last gradient they are clipped: once a step.
    in_passes = []
    for i, op in enumerate(trace.ops):
        if i <= last and op.phase is not Phase.OPTIMIZER:
            flows = tuple(replace(flow, count=flow.count * passes) for flow in op.flows)
            op = replace(op, count=op.count * passes, flows=flows)
        in_passes.append(op)
    additions = (
        made_op("aten::add_", Phase.BACKWARD, (tensor, tensor), (tensor,), {"alpha": 1}, count * (passes - 1))
        for tensor, count in Counter(parameters).items()
    )
    loss = (TensorSpec(shape=(), dtype="float32", stride=()),)
    scaled = (
        made_op("aten::div", phase, loss, loss, {}, passes) for phase in (Phase.FORWARD, Phase.BACKWARD)
    )
    return replace(
        with_larger_steps(trace, passes),
        ops=(*in_passes, *additions, *scaled),
        accumulation=trace.accumulation * passes,
        memory=of_more_passes(trace.memory),
    )


def _parameters(trace: Trace) -> tuple[TensorSpec, ...]:
    """What the optimizer steps over: of what its operators work on, the one as large as the gradients."""
    lists: dict[str, list[TensorSpec]] = {}
    for op in trace.ops:
        if op.phase is Phase.OPTIMIZER:
            stepped = (
                first_list(op.inputs, op.attributes) if "num_tensors" in op.attributes else op.outputs[:1]
            )
            lists.setdefault(op.name, []).extend(tensor for tensor in stepped for _ in range(op.count))

    def order(tensors: list[TensorSpec]) -> tuple[int, int]:
        num_bytes = total_bytes(tensors)
        return abs(num_bytes - (trace.memory.gradient_bytes or num_bytes)), -len(tensors)

    smallest: list[TensorSpec] = min(lists.values(), key=order) if lists else []
    return tuple(smallest)
