"""A trace as if each pass took more samples, or a step several passes.

A trace has shapes, but not which dimension is the batch. In a tensor that is no parameter's it is the
outermost one in memory whose size is the batch or a multiple of it: ``[64, 3, 224, 224]``,
``[64 * 512, 768]``, ``[768, 64 * 512]`` where it was transposed, and ``[512, 64, 768]`` where sequences come
first. A matrix product says more: of ``[m, k] x [k, n]`` the batch is ``k`` where it gives a weight's
gradient, else ``m``.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import starmap

from advisor.core.values import AttributeValue, Op, Phase, TensorSpec, Trace
from advisor.operators.family import base_name, names
from advisor.operators.registry import cost_of
from advisor.operators.work import first_list, total_bytes
from advisor.predict.what_if.changed_memory import of_larger_batch, of_more_passes
from advisor.predict.what_if.held import Weights, with_weights

_PRODUCTS = names("mm addmm")
_RECURRENT = names("_cudnn_rnn _cudnn_rnn_backward")
_MOST_OFF = 0.05
Shape = tuple[int, ...]


def with_batch(trace: Trace, factor: int) -> Trace | None:
    """The trace of a script whose passes take ``factor`` times as many samples.

    Times that were measured are dropped. Memory is exact as far as activations grow with the batch.

    Args:
        factor: 2 for twice the batch.

    Returns:
        None where the batch is not known, or work does not grow with it as far as shapes tell.
    """
    if trace.batch_size is None or trace.batch_size % trace.accumulation:
        return None
    batch = trace.batch_size // trace.accumulation
    growing = _Growing(batch=batch, factor=factor, inner=_inner_sizes(trace.ops))
    parameters = _parameter_shapes(trace.ops, batch)
    calls = with_weights(trace.ops, lambda tensor: _folded(tensor, batch) in parameters)
    ops = tuple(growing.op(op, weights) for op, weights in calls)
    if not _has_grown(trace.ops, ops, factor):
        return None
    memory = of_larger_batch(trace.memory, factor)
    return replace(with_larger_steps(trace, factor), ops=ops, memory=memory)


def _has_grown(before: Iterable[Op], after: Iterable[Op], factor: int) -> bool:
    """Work is proportional to the batch; where shapes say otherwise, they were read wrongly."""
    wanted = factor * _pass_flops(before)
    return abs(_pass_flops(after) - wanted) <= _MOST_OFF * wanted


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


def _parameter_shapes(ops: Sequence[Op], batch: int) -> frozenset[Shape]:
    """Of what the optimizer steps over, whichever way round a matrix is used."""
    stepped = (tensor for op in ops if op.phase is Phase.OPTIMIZER for tensor in op.inputs)
    return frozenset(_folded(tensor, batch) for tensor in stepped)


def _folded(tensor: TensorSpec, batch: int) -> Shape:
    """Without dimensions of one element, which reductions leave and broadcasts add; a batch may be one."""
    return tuple(sorted(size for size in tensor.shape if size != 1 or batch == 1))


def _inner_sizes(ops: Iterable[Op]) -> frozenset[int]:
    return frozenset(
        size
        for op in ops
        if op.phase is not Phase.OPTIMIZER
        for tensor in op.outputs
        for size in tensor.shape[1:]
    )


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
        if name in _PRODUCTS and _is_product(op):
            inputs, outputs = self._product(op)
        else:
            axis = 1 if name in _RECURRENT and not op.attributes.get("batch_first") else None
            # A bias's gradient is summed over what never is a weight, whatever its shape.
            stays = [False] * len(op.inputs) if name == "sum" else weights.inputs
            inputs = tuple(starmap(partial(self._tensor, axis=axis), zip(op.inputs, stays, strict=True)))
            outputs = tuple(
                starmap(partial(self._tensor, axis=axis), zip(op.outputs, weights.outputs, strict=True))
            )
        return recosted(op, inputs, outputs)

    def _product(self, op: Op) -> tuple[tuple[TensorSpec, ...], tuple[TensorSpec, ...]]:
        *bias, left, right = op.inputs
        (out,) = op.outputs
        if op.phase is Phase.BACKWARD and _is_transposed(left) and self._is_batch(left.shape[1]):
            return (*bias, self._along(left, 1), self._along(right, 0)), (out,)
        if not self._is_batch(left.shape[0]):
            return op.inputs, op.outputs
        return (*bias, self._along(left, 0), right), (self._along(out, 0),)

    def _tensor(self, tensor: TensorSpec, is_weight: bool, *, axis: int | None) -> TensorSpec:
        if not tensor.shape or is_weight:
            return tensor
        if axis is not None:
            return self._along(tensor, axis) if len(tensor.shape) == 3 else tensor
        axis = next((i for i in _from_outside(tensor) if self._is_batch(tensor.shape[i])), None)
        return tensor if axis is None else self._along(tensor, axis)

    def _is_batch(self, size: int) -> bool:
        """Whether a size is the batch, or the batch times something else that the trace knows."""
        if size % self.batch:
            return False
        return size == self.batch or size not in self.inner or size // self.batch in self.inner

    def _along(self, tensor: TensorSpec, axis: int) -> TensorSpec:
        shape = tuple(size * self.factor if i == axis else size for i, size in enumerate(tensor.shape))
        return replace(tensor, shape=shape, stride=_stride(tensor, axis, self.factor))


def _is_product(op: Op) -> bool:
    """Whether both operands are matrices: a profiler may leave shapes out."""
    return len(op.outputs) == 1 and [len(tensor.shape) for tensor in op.inputs[-2:]] == [2, 2]


def _is_transposed(tensor: TensorSpec) -> bool:
    return tensor.stride is not None and len(tensor.shape) == 2 and tensor.stride[0] == 1 != tensor.stride[1]


def _from_outside(tensor: TensorSpec) -> list[int]:
    """The dimensions by their place in memory, as far as strides tell."""
    stride = tensor.stride
    if stride is None or stride[0] == 0:
        return list(range(len(tensor.shape)))
    return sorted(range(len(tensor.shape)), key=lambda i: -stride[i])


def _stride(tensor: TensorSpec, axis: int, factor: int) -> tuple[int, ...] | None:
    """Where a dimension grows, those outside of it move apart."""
    if tensor.stride is None:
        return None
    return tuple(step * factor if step > tensor.stride[axis] else step for step in tensor.stride)


def recosted(op: Op, inputs: tuple[TensorSpec, ...], outputs: tuple[TensorSpec, ...]) -> Op:
    """The operator on other tensors, with the FLOPs and bytes of these; its measured time is dropped."""
    if (inputs, outputs) == (op.inputs, op.outputs):
        return op
    attributes: dict[str, AttributeValue] = dict(op.attributes)
    cost = cost_of(op.name, inputs, outputs, attributes)
    return replace(
        op, inputs=inputs, outputs=outputs, flops=cost.flops, bytes=cost.bytes, measured_s=None, kernels=()
    )


def accumulated(trace: Trace, passes: int) -> Trace | None:
    """The trace of a script that steps after ``passes`` times as many passes, each as it is.

    The first pass leaves its gradients, each of the others adds to them (PyTorch's ``AccumulateGrad``). Each
    loss is divided by the number of passes.

    Args:
        passes: 4 for four passes where there was one.

    Returns:
        None where the optimizer's parameters are not known.
    """
    parameters = _parameters(trace)
    if not parameters:
        return None
    last = max((i for i, op in enumerate(trace.ops) if op.phase is Phase.BACKWARD), default=-1)
    # Behind the last gradient they are clipped: once a step.
    in_passes = (_repeated(op, passes) if i <= last else op for i, op in enumerate(trace.ops))
    return replace(
        with_larger_steps(trace, passes),
        ops=(*in_passes, *_additions(parameters, passes - 1), *_scaled_losses(passes)),
        accumulation=trace.accumulation * passes,
        memory=of_more_passes(trace.memory),
    )


def _repeated(op: Op, passes: int) -> Op:
    if op.phase is Phase.OPTIMIZER:
        return op
    flows = tuple(replace(flow, count=flow.count * passes) for flow in op.flows)
    return replace(op, count=op.count * passes, flows=flows)


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

    if not lists:
        return ()
    smallest: list[TensorSpec] = min(lists.values(), key=order)
    return tuple(smallest)


def _additions(parameters: tuple[TensorSpec, ...], times: int) -> tuple[Op, ...]:
    counts: dict[TensorSpec, int] = {}
    for tensor in parameters:
        counts[tensor] = counts.get(tensor, 0) + 1
    return tuple(_addition(tensor, count * times) for tensor, count in counts.items())


def _scaled_losses(passes: int) -> tuple[Op, ...]:
    loss = TensorSpec(shape=(), dtype="float32", stride=())
    return tuple(
        _op("aten::div", phase, (loss,), loss, {}, passes) for phase in (Phase.FORWARD, Phase.BACKWARD)
    )


def _addition(tensor: TensorSpec, count: int) -> Op:
    return _op("aten::add_", Phase.BACKWARD, (tensor, tensor), tensor, {"alpha": 1}, count)


def _op(
    name: str,
    phase: Phase,
    inputs: tuple[TensorSpec, ...],
    output: TensorSpec,
    attributes: dict[str, AttributeValue],
    count: int,
) -> Op:
    cost = cost_of(name, inputs, (output,), attributes)
    return Op(
        name=name,
        phase=phase,
        inputs=inputs,
        outputs=(output,),
        attributes=attributes,
        flops=cost.flops,
        bytes=cost.bytes,
        count=count,
    )
