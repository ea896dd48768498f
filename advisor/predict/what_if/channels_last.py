"""A trace as if the script trained in ``channels_last``: the same operators, other strides."""

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from advisor.core.values import Op, Phase, TensorSpec, Trace
from advisor.operators.convolution import is_channels_last
from advisor.operators.family import base_name, names
from advisor.operators.registry import cost_of

# Their kernels depend on the layout; whatever stands between them keeps that of its input.
_OF_IMAGES = names(
    """convolution convolution_backward cudnn_batch_norm cudnn_batch_norm_backward native_batch_norm
    native_batch_norm_backward"""
)
# ATen's kernels know NCHW alone: images are copied to it before them, and back for the next convolution.
_OF_NCHW = names("native_group_norm native_group_norm_backward")
_PRODUCTS = names("mm addmm linear")


def in_channels_last(trace: Trace) -> Trace | None:
    """The trace after ``model.to(memory_format=torch.channels_last)``; None if that changes nothing.

    Times of operators that change are dropped.
    """
    ops = turned(trace.ops)
    return None if ops is trace.ops else replace(trace, ops=ops, iteration_s=None)


def turned(ops: tuple[Op, ...]) -> tuple[Op, ...]:
    """The operators with their images in that layout, and copies; themselves if that changes nothing."""
    changed = only_turned(ops)
    if changed is ops:
        return ops
    parts: list[Op] = []
    for last, op in zip((None, *ops), changed, strict=False):
        # To NCHW of what an operator reads, and back of what it writes.
        images = (op.inputs[0], op.outputs[0]) if base_name(op.name) in _OF_NCHW else ()
        parts += [*(copy for image in images for copy in _copy(op, image)), *_flattened(op, last), op]
    return tuple(parts)


def only_turned(ops: tuple[Op, ...]) -> tuple[Op, ...]:
    """The same where nothing has to be copied, since whatever needs another layout reads it as it is."""
    changed = []
    for op in ops:
        tensors = tuple(map(_turned, op.inputs)), tuple(map(_turned, op.outputs))
        if base_name(op.name) in _OF_IMAGES and tensors != (op.inputs, op.outputs):
            op = replace(op, inputs=tensors[0], outputs=tensors[1], measured_s=None, kernels=())
        changed.append(op)
    return ops if all(new is old for new, old in zip(changed, ops, strict=True)) else tuple(changed)


def _flattened(op: Op, last: Op | None) -> Iterator[Op]:
    """Images that a product reads as rows, in the order of NCHW: what was a view is a copy then."""
    if last is None or op.phase is not Phase.FORWARD or base_name(op.name) not in _PRODUCTS:
        return
    image = last.outputs[0] if last.outputs else None
    if image is None or len(image.shape) != 4 or 1 in (image.shape[1], prod(image.shape[2:])):
        return
    if any(tensor.shape == (image.shape[0], prod(image.shape[1:])) for tensor in op.inputs):
        yield from _copy(op, image)


def _copy(op: Op, image: TensorSpec) -> Iterator[Op]:
    in_layout = _turned(image)
    if is_channels_last(in_layout):
        cost = cost_of("aten::clone", (in_layout,), (image,), {})
        yield replace(
            op, name="aten::clone", inputs=(in_layout,), outputs=(image,), attributes={}, flows=(),
            flops=cost.flops, bytes=cost.bytes, measured_s=None, kernels=(),
        )  # fmt: skip


def _turned(tensor: TensorSpec) -> TensorSpec:
    if len(tensor.shape) != 4 or tensor.stride is None:
        return tensor
    _, channels, height, width = tensor.shape
    return replace(tensor, stride=(channels * height * width, 1, width * channels, channels))
