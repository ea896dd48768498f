"""Convolutions of images: what networks use, forward and backward, in both layouts."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import cast

import numpy as np
from numpy.typing import NDArray

from advisor.core.values import GpuSpec, Op, Phase, TensorSpec
from advisor.operators import family, work
from advisor.operators.case import RATES, Caps, Case, Draw, call, channels_last, shrunk, tensor
from advisor.operators.family import (
    HALF_RATES,
    FittedTime,
    Learned,
    RooflineTime,
    Roofs,
    base_name,
    each,
    names,
)
from advisor.operators.work import padding

NAMES = frozenset({"convolution", "convolution_backward"})
_TILE = 128
# Tiles of the product stand here among the features, as a logarithm.
_TILES_AT = 0
NUM_FEATURES = 30
NUM_CUDNN_FEATURES = NUM_FEATURES + 1
# Channels of a group, and of all, for which cuDNN has a tensor-core kernel in channels_last. In measured
# steps of an RTX 3090 it makes 16 TFLOP/s (seresnext101_32x4d), and what replaces it 1 (senet154, which has
# other filters than channels, res2next50, which has few of them, eca_nfnet_l0, whose groups have 64).
_GROUP_WIDTHS, _FEWEST_CHANNELS = frozenset({4, 8, 16, 24, 32, 40, 48}), 96


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pass:
    """One call: which results it computes, and of what shape everything is."""

    source: TensorSpec
    weight: TensorSpec
    target: TensorSpec
    gives_data: bool
    gives_weights: bool
    stride: int
    groups: int

    @property
    def is_channels_last(self) -> bool:
        """CuDNN takes that layout where the input or the weight has it."""
        return is_channels_last(self.source) or is_channels_last(self.weight)

    @property
    def is_depthwise(self) -> bool:
        """Whether each channel meets a filter of its own."""
        return self.weight.shape[1] == 1 and self.groups > 1

    @property
    def narrow_kind(self) -> tuple[int, bool]:
        """Of kernels for narrow groups: an element's bytes, and whether a group has one channel."""
        return work.item_bytes(self.source.dtype), self.is_depthwise

    @property
    def taps_met(self) -> int:
        """Of filters in each pixel of the input or result, which has more, whatever a group's width."""
        pixels = max(prod(self.source.shape[2:]), prod(self.target.shape[2:]))
        return self.source.shape[0] * pixels * self.weight.shape[0] * prod(self.weight.shape[2:])

    @property
    def product(self) -> tuple[float, int, float]:
        """Rows, columns and inner size of one group's product; of both gradients the input's counts."""
        out_channels, in_channels, *filter_sides = self.weight.shape
        filters, taps = out_channels // self.groups, prod(filter_sides)
        pixels_in = self.source.shape[0] * prod(self.source.shape[2:])
        pixels_out = self.target.shape[0] * prod(self.target.shape[2:])
        if self.gives_data:
            return pixels_in, in_channels, max(filters * taps / self.stride, 1.0)
        if self.gives_weights:
            return filters, in_channels * taps, pixels_out
        return pixels_out, filters, in_channels * taps


def is_channels_last(tensor: TensorSpec) -> bool:
    """Whether channels lie next to each other; of one channel or one pixel this is unknown.

    >>> is_channels_last(TensorSpec(shape=(2, 3, 4, 4), dtype="float16", stride=(48, 1, 12, 3)))
    True
    """
    if tensor.stride is None or len(tensor.shape) < 3 or tensor.shape[1] == 1:
        return False
    return tensor.stride[1] == 1 and prod(tensor.shape[2:]) > 1


def features(op: Op) -> tuple[float, ...] | None:
    """Numbers of one call; None but for two-dimensional convolutions that are not transposed."""
    call = _pass_of(op)
    if call is None:
        return None
    rows, columns, inner = call.product
    out_channels, in_channels, height, width = call.weight.shape
    filters, taps = out_channels // call.groups, height * width
    is_depthwise = call.is_depthwise
    is_grouped = call.groups > 1 and not is_depthwise
    last = call.is_channels_last
    num_tiles = math.ceil(rows / _TILE) * math.ceil(columns / _TILE) * call.groups
    pixels = prod(call.target.shape[2:])
    flags = (
        call.gives_data, call.gives_weights, last, is_depthwise, is_grouped,
        last and is_depthwise, last and is_grouped, taps == 1, height != width,
        taps == 9 and call.stride == 1 and call.groups == 1,  # Winograd's
        call.source.dtype == "float32", call.source.dtype == "bfloat16",
    )  # fmt: skip
    sizes = (
        num_tiles, rows, columns, inner, in_channels, filters, call.groups, taps, call.stride, pixels,
        call.source.shape[0],
    )  # fmt: skip
    return (
        *map(math.log, sizes),
        *map(float, flags),
        padding(math.ceil(rows), _TILE),
        *(padding(math.ceil(size), 32) for size in (columns, inner)),
        padding(columns, 64),
        *(work.alignment(size) for size in (in_channels, filters, pixels)),
    )


def cudnn_features(op: Op) -> tuple[float, ...] | None:
    """As ``features``, and whether tensor cores compute the groups of a call in channels_last."""
    shared, call = features(op), _pass_of(op)
    if shared is None or call is None or (call.is_depthwise and call.source.dtype == "float32"):
        return None  # no tensor core multiplies channels one by one
    filters, channels = call.weight.shape[0] // call.groups, call.weight.shape[1]
    has_kernel = (
        call.is_channels_last
        and call.weight.shape[0] >= _FEWEST_CHANNELS
        and filters == channels
        and channels in _GROUP_WIDTHS
    )
    return (*shared, float(has_kernel))


def _pass_of(op: Op) -> _Pass | None:
    is_backward = base_name(op.name) == "convolution_backward"
    target, source, weight = op.inputs[:3] if is_backward else (op.outputs[0], *op.inputs[:2])
    mask = cast("tuple[bool, ...]", op.attributes["output_mask"]) if is_backward else (False, False)
    shapes = (source.shape, weight.shape, target.shape)
    if len(source.shape) != 4 or op.attributes["transposed"] or not op.flops or min(map(min, shapes)) < 1:
        return None
    return _Pass(
        source=source, weight=weight, target=target, gives_data=bool(mask[0]), gives_weights=bool(mask[1]),
        stride=prod(cast("tuple[int, ...]", op.attributes["stride"])), groups=num_groups(op),
    )  # fmt: skip


def _waves(calls: NDArray[np.float32], gpu: GpuSpec) -> NDArray[np.float32]:
    waves = np.exp(calls[:, _TILES_AT].astype(float)) / gpu.num_sms
    board = np.broadcast_to([math.log(gpu.num_sms), math.log(gpu.tdp_w)], (len(calls), 2))
    of_calls = np.stack([np.log(waves), np.log(np.ceil(waves) / waves)], axis=1)
    return np.concatenate([of_calls, board], axis=1).astype(np.float32)


WAVES = family.BoardInputs(num_features=4, features=_waves)


def _convolve(source: TensorSpec, weight: TensorSpec, result: TensorSpec, transposed: bool) -> int:
    """Each weight meets each position of the output, or of the input if transposed."""
    positions = (source if transposed else result).shape[2:]
    return 2 * source.shape[0] * prod(positions) * work.numel(weight)


def _backward(inputs: work.Tensors, outputs: work.Tensors, attributes: work.Attributes) -> int:  # noqa: ARG001
    grad_output, source, weight = inputs[:3]
    mask = cast("tuple[bool, ...]", attributes["output_mask"])
    forward = _convolve(source, weight, grad_output, bool(attributes.get("transposed")))
    return forward * sum(bool(wanted) for wanted in mask[:2])


def _backward_bytes(inputs: work.Tensors, outputs: work.Tensors, attributes: work.Attributes) -> int:
    """Reads the weight for the input's gradient and the input for the weight's."""
    mask = cast("tuple[bool, ...]", attributes["output_mask"])
    grad_output, source, weight = inputs[:3]
    read = [tensor for tensor, is_wanted in zip((weight, source), mask, strict=False) if is_wanted]
    return work.total_bytes([grad_output, *read, *outputs])


# Of the rate of others; fitted to NVIDIA's steps of ResNeXt-101 in FP32 on V100s, EfficientNet's judge
# (research/docs/accuracy/families.md).
_OF_GROUPS = 0.12


def num_groups(op: Op) -> int:
    """By shapes, which profilers keep too: a weight has all channels of one side, a group's of the other."""
    is_backward = base_name(op.name) == "convolution_backward"
    tensors = op.inputs[:3] if is_backward else (*op.outputs[:1], *op.inputs[:2])
    if len(tensors) < 3 or min(len(tensor.shape) for tensor in tensors) < 3:
        return 1
    target, source, weight = (tensor.shape for tensor in tensors)
    whole = source if target[1] == weight[0] else target
    return whole[1] // max(weight[1], 1)


# Filter taps of an SM in a cycle where groups are narrow: forward, of the input's gradient, of the weight's;
# by an element's bytes and whether a group has one channel. In 16 bits with channels last, the fastest
# layout; of several channels FP32 reaches a share of others (research/training/fit_depthwise.py).
NARROW = {(2, True): (22.7, 13.3, 20.9), (4, True): (6.3, 3.2, 2.8), (2, False): (9.6, 9.3, 4.7)}
SIGMA_NARROW = 0.51
_NARROW_CHANNELS = 16


def narrow_call(op: Op) -> _Pass | None:
    """The call if it is of two dimensions and in groups of few channels; None where no stride is recorded."""
    try:
        call = _pass_of(op)
    except (IndexError, KeyError, ValueError, TypeError):
        return None
    is_narrow = call is not None and call.groups > 1 and call.weight.shape[1] <= _NARROW_CHANNELS
    return call if is_narrow else None


def _narrow(op: Op) -> family.TimeOnGpu | None:
    """Instructions bind such kernels: SMs and their clock count, of input and result the larger."""
    call = narrow_call(op)
    return None if call is None else partial(_narrow_on, call, op.bytes)


def _narrow_on(call: _Pass, num_bytes: int, gpu: GpuSpec) -> FittedTime | None:
    item_bytes, is_depthwise = call.narrow_kind
    # A board that does not compute in 16 bits does it in FP32.
    has_rate = HALF_RATES.get(call.source.dtype) in gpu.tensor_flops_per_s
    rates = NARROW.get((item_bytes if item_bytes != 2 or has_rate else 4, is_depthwise))
    if rates is None or gpu.vendor != "NVIDIA":
        return None
    forward, data, weights = rates
    cycles = call.gives_data / data + call.gives_weights / weights or 1 / forward
    time_s = call.taps_met * cycles / (gpu.num_sms * gpu.boost_clock_hz)
    return FittedTime(time_s=max(time_s, num_bytes / gpu.memory_bytes_per_s), sigma=SIGMA_NARROW)


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeRates:
    """What convolutions of volumes reach."""

    of_peak: float
    """Of tensor cores' peak where they have asynchronous copies; those before reach what images do."""
    operand_bytes: float
    """That an SM reads in a clock: each block of filters reads the whole operand, however few they are."""
    of_long_sums: float
    """Of both, by gradients of weights of 32 bits."""


VOLUME_RATES = VolumeRates(of_peak=0.68, operand_bytes=24.3, of_long_sums=0.59)
"""Fitted to 81 kernels of an H100 (``research/training/fit_volumes.py``)."""
# Of a kernel there, and of other boards and of FP32 as of any constant that is assumed.
SIGMA_VOLUMES = math.hypot(0.39, 0.35)
# Of other volumes, such as transposed ones: by a roofline nnU-Net was 36 % too fast to 45 % too slow.
_SIGMA_OTHER_VOLUMES = 0.75
_VOLUME_DIMENSIONS, _FILTER_BLOCK, _LEAST_CHANNELS, _HALF_BYTES, _ASYNCHRONOUS = 5, 128, 8, 2, 8.0


def _of_volumes(op: Op) -> work.Tensors:
    """Result, input and weight; none of transposed convolutions, of groups, and where no stride was kept."""
    is_backward, stride = base_name(op.name) == "convolution_backward", op.attributes.get("stride")
    tensors = op.inputs[:3] if is_backward else (*op.outputs[:1], *op.inputs[:2])
    is_volumes = len(tensors) == 3 and all(len(each.shape) == _VOLUME_DIMENSIONS for each in tensors)
    is_told = isinstance(stride, tuple) and not op.attributes.get("transposed")
    return tensors if is_volumes and is_told and num_groups(op) == 1 else ()


def _operands(op: Op, tensors: work.Tensors) -> list[tuple[float, bool]]:
    """Numbers that the blocks of each pass of volumes read, and whether it is of the weight's gradient."""
    target, source, weight = tensors
    inputs, results = (each.shape[0] * prod(each.shape[2:]) for each in (source, target))
    filters, channels = (max(size, _LEAST_CHANNELS) for size in weight.shape[:2])
    taps, steps = prod(weight.shape[2:]), prod(cast("tuple[int, ...]", op.attributes["stride"]))
    filter_blocks, channel_blocks, tap_blocks = (
        math.ceil(columns / _FILTER_BLOCK) for columns in (filters, channels, channels * taps)
    )
    if base_name(op.name) != "convolution_backward":
        return [(results * channels * taps * filter_blocks, False)]
    of_data = inputs * filters * taps / steps * channel_blocks
    of_weights = results * (filters * tap_blocks + channels * taps * filter_blocks)
    mask = cast("tuple[bool, ...]", op.attributes.get("output_mask", (True, True)))
    passes = ((of_data, False), (of_weights, True))
    return [one for one, is_wanted in zip(passes, mask, strict=False) if is_wanted]


def volumes_s(op: Op, roofs: Roofs, rates: VolumeRates = VOLUME_RATES) -> float | None:
    """Seconds of a convolution of volumes without its launch; None for others, and boards not of NVIDIA.

    Tensor cores want channels last: what has them first is copied there and back.
    """
    tensors, rate, gpu = _of_volumes(op), roofs.rate, roofs.gpu
    if not tensors or gpu.vendor != "NVIDIA":
        return None
    operands = _operands(op, tensors)
    item_bytes, moved_s = work.item_bytes(tensors[0].dtype), work.total_bytes(tensors) / roofs.bytes_per_s
    on_tensor_cores = rate.constant.rpartition(".")[2] in {"tf32", *HALF_RATES.values()}
    is_asynchronous = on_tensor_cores and float(gpu.compute_capability) >= _ASYNCHRONOUS
    flops_per_s = rates.of_peak * rate.peak_flops_per_s if is_asynchronous else rate.flops_per_s
    operand_per_s = rates.operand_bytes / item_bytes * gpu.num_sms * gpu.boost_clock_hz
    copies_s = 2 * moved_s if on_tensor_cores and not any(map(is_channels_last, tensors)) else 0.0

    def of_pass(operand: float, is_of_weights: bool) -> float:
        share = rates.of_long_sums if is_of_weights and item_bytes > _HALF_BYTES else 1.0
        products_s = max(op.flops / len(operands) / flops_per_s, operand / operand_per_s) / share
        return max(products_s, moved_s) + copies_s

    return sum(of_pass(operand, is_of_weights) for operand, is_of_weights in operands)


def _time(op: Op, roofs: Roofs) -> RooflineTime:
    time_s = volumes_s(op, roofs)
    if time_s is not None:
        return RooflineTime(time_s=roofs.launch_s + time_s, constant=roofs.rate.constant, sigma=SIGMA_VOLUMES)
    is_of_volumes = any(len(each.shape) == _VOLUME_DIMENSIONS for each in op.inputs)
    roofline = family.higher_roof(op, roofs)
    return replace(roofline, sigma=_SIGMA_OTHER_VOLUMES) if is_of_volumes else roofline


_MEASURED = {"stride": (1, 1), "dilation": (1, 1), "transposed": False, "groups": 1}
_MOST_IMAGES = 64


def _features(op: Op) -> tuple[float, ...] | None:
    """Forward, 3 x 3, stride 1, no groups: what was measured. Beyond 64 images efficiency stays as it is."""
    source, weight, target = op.inputs[0].shape, op.inputs[1].shape, op.outputs[0].shape
    setting = {name: op.attributes[name] for name in _MEASURED}
    is_measured = setting == _MEASURED and weight[2:] == (3, 3)
    if len(source) != 4 or not is_measured or not op.flops or min(*source, *weight, *target) < 1:
        return None
    batch, pixels = min(source[0], _MOST_IMAGES), target[2] * target[3]
    m, n, k = batch * pixels, weight[0], prod(weight[1:])
    return (
        *(math.log(size) for size in (batch, source[1], weight[0], pixels, m, k)),
        *(padding(size, tile) for size in (m, n, k) for tile in (32, 128)),
        *(work.alignment(size) for size in (source[1], weight[0])),
        math.log(work.tiles(m, 128) * work.tiles(n, 64)),
    )


# Images, channels in and out, side, filter: two of ResNet-50's.
_LARGE = ((64, 128, 128, 56, 3), (64, 512, 512, 14, 3))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Filter:
    """A kind of convolution; ``in_channels`` where it is always the same."""

    size: int
    stride: int = 1
    in_channels: int | None = None
    is_depthwise: bool = False
    is_transposed: bool = False

    @property
    def padding(self) -> int:
        return 1 if self.is_transposed else self.size // 2


# ResNet's, MobileNet's, VGG's, Inception's, DCGAN's; what is most frequent comes twice.
_FILTERS = (
    _Filter(size=3), _Filter(size=1), _Filter(size=3, stride=2), _Filter(size=1, stride=2),
    _Filter(size=7, stride=2, in_channels=3), _Filter(size=3), _Filter(size=1), _Filter(size=5),
    _Filter(size=3, is_depthwise=True), _Filter(size=4, stride=2, is_transposed=True),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Convolution:
    """A convolution of a batch of square images."""

    filter: _Filter
    in_channels: int
    out_channels: int
    batch: int
    side: int

    @property
    def groups(self) -> int:
        return self.out_channels if self.filter.is_depthwise else 1

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Of input, weight and result."""
        size, stride, padding = self.filter.size, self.filter.stride, self.filter.padding
        channels = (self.out_channels, self.in_channels // self.groups)
        side = (self.side + 2 * padding - size) // stride + 1
        if self.filter.is_transposed:
            channels = (self.in_channels, self.out_channels)
            side = (self.side - 1) * stride - 2 * padding + size
        source = (self.batch, self.in_channels, self.side, self.side)
        return source, (*channels, size, size), (self.batch, self.out_channels, side, side)

    def fits(self, caps: Caps, dtype: str, tf32: bool) -> bool:
        """Whether forward and backward stay below the caps."""
        source, weight, out = self.shapes
        positions = source if self.filter.is_transposed else out
        flops = 2 * self.batch * prod(positions[2:]) * prod(weight)
        elements = prod(source) + prod(out) + prod(weight)
        return caps.allow(2 * elements, dtype, flops=2 * flops, tf32=tf32)


def _cases(index: int, caps: Caps) -> Iterator[Case]:
    for dtype, tf32 in RATES:
        draw = Draw(f"conv {dtype} {tf32}", index)
        layout = draw.choice((None, channels_last))
        chosen = _drawn(draw, caps, dtype, tf32)
        source, weight, out = (
            tensor(shape, dtype, stride=layout(shape) if layout else None) for shape in chosen.shapes
        )
        stride, padding = chosen.filter.stride, chosen.filter.padding
        geometry = [stride] * 2, [padding] * 2, [1, 1], chosen.filter.is_transposed, [0, 0], chosen.groups
        forward = call("convolution", source, weight, None, *geometry)
        backward = call("convolution_backward", out, source, weight, None, *geometry, [True, True, False])
        yield Case(family="conv", dtype=dtype, tf32=tf32, call=forward)
        yield Case(family="conv", dtype=dtype, tf32=tf32, phase=Phase.BACKWARD, call=backward)


def _drawn(draw: Draw, caps: Caps, dtype: str, tf32: bool) -> _Convolution:
    kind = draw.choice(_FILTERS)
    out_channels = draw.size(16, 1024, 8)
    in_channels = kind.in_channels or (out_channels if kind.is_depthwise else draw.size(16, 1024, 8))

    def fits(batch: int, side: int, channels: int = max(in_channels, out_channels)) -> bool:
        return convolution(batch, side, channels).fits(caps, dtype, tf32)

    def convolution(batch: int, side: int, most: int) -> _Convolution:
        into, out_of = min(in_channels, most), min(out_channels, most)
        return _Convolution(filter=kind, in_channels=into, out_channels=out_of, batch=batch, side=side)

    batch, side = shrunk((draw.size(1, 256), draw.size(7, 224)), fits, least=4)
    # Caps of a GPU let any channels pass.
    (channels,) = shrunk((max(in_channels, out_channels),), lambda most: fits(batch, side, most))
    return convolution(batch, side, channels)


def _calibration_cases() -> Iterator[Case]:
    for dtype, tf32 in RATES:
        for images, channels_in, channels_out, side, size in _LARGE:
            source = tensor((images, channels_in, side, side), dtype)
            weight = tensor((channels_out, channels_in, size, size), dtype)
            geometry = ([1, 1], [size // 2] * 2, [1, 1], False, [0, 0], 1)
            convolution = call("convolution", source, weight, None, *geometry)
            yield Case(family="conv", dtype=dtype, tf32=tf32, call=convolution)


# Convolutions of a GPU that was left out are predicted 17 % off with the noise, 21 without; products worse.
_FP32 = Learned(
    name="conv", names=names("convolution"), num_features=15, features=_features, counts_flops=True,
    steps=1500, board_noise=0.3, rates=frozenset({"fp32"}), measured_by=frozenset({"gemm_fraction.fp32"}),
)  # fmt: skip
# What a layout costs is the same in TF32; on an H100 it is 21 % off uncoupled and 5 coupled. By the noise,
# forward passes of a board that was left out are 27 and 14 % off, 30 and 14 without; steps 18 instead of 22.
_CUDNN = Learned(
    name="conv16", rates=frozenset({"fp16", "bf16", "tf32"}), coupled={"tf32": 0.15},
    measured_by=frozenset({"conv_fraction.fp16"}), steps=1200, board_noise=0.7, units=96, members=8,
    names=NAMES, num_features=NUM_CUDNN_FEATURES, features=cudnn_features, counts_flops=True, board=WAVES,
)  # fmt: skip
_AMD = Learned(
    name="conv_amd", rates=frozenset({"fp32", "fp16", "bf16"}), steps=3000, units=64, vendor="AMD",
    measured_by=frozenset({"conv_fraction.fp32"}), names=NAMES, num_features=NUM_FEATURES,
    features=features, counts_flops=True, board=WAVES,
)  # fmt: skip


CONVOLUTION = family.Family(
    word="convolution",
    others=names(
        """cudnn_convolution_backward cudnn_convolution_backward_input cudnn_convolution_backward_weight
        cudnn_convolution_transpose"""
    ),
    flops={
        **each(
            """convolution _convolution cudnn_convolution _slow_conv2d_forward convolution_overrideable
            mkldnn_convolution _conv_depthwise2d""",
            lambda inputs, outputs, attributes: _convolve(
                inputs[0], inputs[1], outputs[0], bool(attributes.get("transposed"))
            ),
        ),
        "convolution_backward": _backward,
    },
    traffic={"convolution_backward": _backward_bytes},
    compute=family.Compute(
        fraction="conv_fraction",
        tensor_cores=True,
        tf32=family.Tf32Flag.CUDNN,
        # Groups are many small products, for which libraries have no blocked kernel.
        share=lambda op: _OF_GROUPS if num_groups(op) > 1 else 1.0,
    ),
    calibrates="conv_fraction",
    time=_time,
    fitted=_narrow,
    learned=(_FP32, _CUDNN, _AMD),
    cases={"conv": _cases},
    calibration_cases=_calibration_cases,
)
