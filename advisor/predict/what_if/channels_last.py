"""A trace as if the script trained in ``channels_last``: the same operators, other strides."""

from __future__ import annotations

from dataclasses import replace

from advisor.core.values import Op, TensorSpec, Trace
from advisor.operators.family import base_name, names

# Their kernels depend on the layout; whatever stands between them keeps that of its input.
_OF_IMAGES = names(
    """convolution convolution_backward cudnn_batch_norm cudnn_batch_norm_backward native_batch_norm
    native_batch_norm_backward"""
)


def in_channels_last(trace: Trace) -> Trace | None:
    """The trace after ``model.to(memory_format=torch.channels_last)``; None if that changes nothing.

    Times of operators that change are dropped.
    """
    ops = tuple(_changed(op) if base_name(op.name) in _OF_IMAGES else op for op in trace.ops)
    if all(new is old for new, old in zip(ops, trace.ops, strict=True)):
        return None
    return replace(trace, ops=ops, iteration_s=None)


def _changed(op: Op) -> Op:
    inputs, outputs = tuple(map(_turned, op.inputs)), tuple(map(_turned, op.outputs))
    if (inputs, outputs) == (op.inputs, op.outputs):
        return op
    return replace(op, inputs=inputs, outputs=outputs, measured_s=None, kernels=())


def _turned(tensor: TensorSpec) -> TensorSpec:
    if len(tensor.shape) != 4 or tensor.stride is None:
        return tensor
    _, channels, height, width = tensor.shape
    return replace(tensor, stride=(channels * height * width, 1, width * channels, channels))
