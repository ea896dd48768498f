"""At which rates convolutions run: in TF32 by layout, in FP32 by groups, and the faster counts."""

from dataclasses import replace

import pytest

from advisor.core.gpus import load_gpus, resolve_gpu
from advisor.core.values import Method, Op, Precision, TensorSpec
from advisor.operators.convolution import CONVOLUTION
from advisor.predict.constants import constants_for
from advisor.predict.knowledge import shipped
from advisor.predict.learned import learned_times
from advisor.predict.methods import op_times
from tests.builders import make_op, make_trace

FP16 = Precision(amp_dtype="float16", tf32_matmul=False, tf32_cudnn=False)
GEOMETRY = {"stride": (1, 1), "padding": (1, 1), "dilation": (1, 1), "transposed": False}


def convolution(*, is_last: bool = False, groups: int = 1, channels: int = 256) -> Op:
    def image(*shape: int) -> TensorSpec:
        _, of, height, width = shape
        last, first = (
            (height * width * of, 1, width * of, of),
            (of * height * width, height * width, width, 1),
        )
        return TensorSpec(shape=shape, dtype="float32", stride=last if is_last else first)

    source, weight = image(64, channels, 28, 28), image(channels, channels // groups, 5, 5)
    op = make_op(
        "aten::convolution",
        flops=2 * 64 * 28 * 28 * channels * channels // groups * 25,
        num_bytes=4 * 2 * 64 * channels * 28 * 28,
    )
    return replace(op, inputs=(source, weight), outputs=(source,), attributes={**GEOMETRY, "groups": groups})


def alone(op: Op, gpu: str, *, tf32: bool) -> tuple[float, Method]:
    precision = Precision(amp_dtype=None, tf32_matmul=False, tf32_cudnn=tf32)
    spec = resolve_gpu(gpu)
    times = op_times(make_trace(ops=(op,), precision=precision), spec, constants_for(spec), shipped())
    (time,) = times
    return time.time_s, time.method


def test_in_tf32_the_layout_counts():
    first, method = alone(convolution(), "A100-SXM-80GB", tf32=True)
    last, _ = alone(convolution(is_last=True), "A100-SXM-80GB", tf32=True)
    assert method == Method.LEARNED
    assert first > 1.05 * last


def test_groups_reach_an_eighth_of_the_rate_of_others_in_fp32():
    grouped, whole = convolution(groups=16, channels=1024), convolution(channels=256)
    assert grouped.flops == whole.flops
    slow, method = alone(grouped, "V100-SXM-32GB", tf32=False)
    fast, _ = alone(whole, "V100-SXM-32GB", tf32=False)
    assert method == Method.ROOFLINE
    assert slow == pytest.approx(fast / 0.12, rel=0.01)


def cycles_s(gpu: str, taps_a_cycle: float) -> float:
    spec = resolve_gpu(gpu)
    return 64 * 28 * 28 * 256 * 25 / taps_a_cycle / spec.num_sms / spec.boost_clock_hz


def test_depthwise_filters_in_fp32_take_cycles_of_sms_whatever_tensor_cores_there_are():
    for gpu in ("RTX-3090", "A100-SXM-80GB", "V100-SXM-32GB"):
        time_s, _ = alone(convolution(groups=256), gpu, tf32=True)
        assert time_s == pytest.approx(2e-6 + cycles_s(gpu, 6.3), rel=1e-6)


def cast(op: Op, dtype: str) -> Op:
    source, weight = (replace(each, dtype=dtype) for each in op.inputs)
    return replace(op, inputs=(source, weight), outputs=(source,))


def test_depthwise_filters_in_half_precision_are_no_faster_than_the_fastest_kernels():
    op = convolution(groups=256)
    time_s, _ = alone(replace(cast(op, "float16"), bytes=op.bytes // 2), "B200-SXM-180GB", tf32=True)
    assert time_s >= (2e-6 + cycles_s("B200-SXM-180GB", 22.7)) * (1 - 1e-9)


@pytest.mark.parametrize("groups", [16, 256])
def test_a_board_that_does_not_compute_in_16_bits_takes_the_cycles_of_fp32(groups):
    def seconds(dtype: str, gpu: str) -> float:
        return alone(cast(convolution(groups=groups), dtype), gpu, tf32=False)[0]

    assert seconds("bfloat16", "V100-SXM-32GB") >= seconds("float16", "V100-SXM-32GB")
    assert seconds("float16", "P40") >= 0.5 * seconds("float32", "P40")


@pytest.mark.parametrize("gpu", ["A100-SXM-80GB", "V100-SXM-32GB", "RTX-3090", "P40"])
def test_an_operator_s_own_error_is_a_part_of_all(gpu):
    half, spec = cast(convolution(groups=256), "float16"), resolve_gpu(gpu)
    known = learned_times([half], spec, constants_for(spec), FP16, shipped())
    assert known.own_sigma[0] <= known.sigma[0]


@pytest.mark.parametrize("groups", [1, 16, 256])
def test_shapes_tell_of_groups_as_a_profiler_keeps_them(groups):
    """Its operators have no attributes, and a transposed weight has its channels the other way round."""
    op = convolution(groups=groups)
    profiled = replace(op, name="aten::cudnn_convolution", attributes={})
    wide = replace(op.inputs[0], shape=(64, 512, 28, 28))
    weight = replace(op.inputs[1], shape=(256, 512 // groups, 5, 5))
    turned = replace(op, inputs=(op.inputs[0], weight), outputs=(wide,), attributes={})
    backward = replace(op, name="aten::convolution_backward", inputs=(*op.outputs, *op.inputs), attributes={})
    expected = CONVOLUTION.compute.share(op)
    assert expected == (1.0 if groups == 1 else 0.12)
    assert [CONVOLUTION.compute.share(each) for each in (profiled, turned, backward)] == [expected] * 3


@pytest.mark.parametrize(
    "gpu", [name for name, gpu in load_gpus().items() if "tf32" in gpu.tensor_flops_per_s]
)
def test_tf32_that_is_allowed_is_never_slower(gpu):
    for op in (convolution(), convolution(is_last=True), convolution(groups=256), convolution(channels=16)):
        (allowed, _), (exact, _) = alone(op, gpu, tf32=True), alone(op, gpu, tf32=False)
        assert allowed <= exact * (1 + 1e-9)


def volumes(
    channels: int, *, dtype: str = "float16", is_last: bool = True, mask: tuple[bool, ...] | None = None
) -> Op:
    """A batch of two, 64 voxels a side; backward where a mask says of what."""
    side, name = 64, "aten::convolution" if mask is None else "aten::convolution_backward"
    last, first = (channels * side**3, 1, channels * side**2, channels * side, channels), (
        channels * side**3, side**3, side**2, side, 1,
    )  # fmt: skip
    volume = TensorSpec(shape=(2, channels, side, side, side), dtype=dtype, stride=last if is_last else first)
    weight = TensorSpec(shape=(channels, channels, 3, 3, 3), dtype=dtype)
    op = make_op(name, flops=2 * 2 * side**3 * channels**2 * 27 * sum(mask or (True,)))
    attributes = {"stride": (1, 1, 1), "transposed": False, "groups": 1}
    if mask is None:
        return replace(op, inputs=(volume, weight), outputs=(volume,), attributes=attributes)
    inputs, outputs = (volume, volume, weight), (volume, weight)
    return replace(op, inputs=inputs, outputs=outputs, attributes={**attributes, "output_mask": mask})


def rate(op: Op, gpu: str, *, tf32: bool = False) -> float:
    return op.flops / alone(op, gpu, tf32=tf32)[0]


def test_narrow_volumes_wait_for_the_operand_that_each_block_of_filters_reads():
    spec = resolve_gpu("A100-SXM-80GB")
    narrow, wide = volumes(32), volumes(256)
    assert rate(narrow, spec.name) == pytest.approx(24.3 * 32 * spec.num_sms * spec.boost_clock_hz, rel=0.02)
    assert rate(wide, spec.name) == pytest.approx(0.68 * spec.tensor_flops_per_s["fp16"], rel=0.05)
    # In FP32 no tensor core waits.
    full = [volumes(size, dtype="float32") for size in (32, 256)]
    assert rate(full[0], "V100-SXM-32GB") == pytest.approx(rate(full[1], "V100-SXM-32GB"), rel=0.05)


def test_tensor_cores_copy_volumes_with_channels_first():
    first, last = (
        alone(volumes(32, is_last=is_last), "A100-SXM-80GB", tf32=False)[0] for is_last in (False, True)
    )
    moved_bytes = 2 * 2 * 2 * 32 * 64**3 * 2
    assert first - last == pytest.approx(
        moved_bytes / resolve_gpu("A100-SXM-80GB").memory_bytes_per_s, rel=0.2
    )


def test_gradients_of_weights_of_volumes_take_longer_in_32_bits():
    def seconds(dtype: str, mask: tuple[bool, ...]) -> float:
        return alone(volumes(128, dtype=dtype, mask=mask), "A100-SXM-80GB", tf32=True)[0]

    data, weights = (True, False, False), (False, True, False)
    assert seconds("float32", weights) > 1.3 * seconds("float32", data)
    assert seconds("float16", weights) < 1.3 * seconds("float16", data)
    both = seconds("float32", (True, True, False))
    assert both == pytest.approx(seconds("float32", data) + seconds("float32", weights), rel=0.02)


def sigma(op: Op, gpu: str) -> float:
    spec = resolve_gpu(gpu)
    (time,) = op_times(make_trace(ops=(op,)), spec, constants_for(spec), shipped())
    assert time.method == Method.ROOFLINE
    return time.sigma


@pytest.mark.parametrize("attributes", [{"transposed": True}, {"stride": None}])
def test_other_volumes_are_a_roofline_and_less_sure(attributes):
    op = volumes(32)
    other = replace(op, attributes=op.attributes | attributes)
    assert rate(other, "A100-SXM-80GB") == pytest.approx(0.27 * 312e12, rel=0.05)
    assert sigma(op, "A100-SXM-80GB") < sigma(other, "A100-SXM-80GB") == sigma(op, "MI300X")
