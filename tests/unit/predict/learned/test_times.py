"""Learned times of operators, what they leave to the roofline, and their place among the methods."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.errors import CatalogError
from advisor.core.gpus import load_gpus, resolve_gpu
from advisor.core.values import GpuSpec, Kernel, Method, Op, Precision
from advisor.formats.recording_files import Measurement
from advisor.predict.calibrating import learned_offsets
from advisor.predict.constants import constants_for
from advisor.predict.knowledge import Knowledge, calibration_path, write_calibration
from advisor.predict.learned import CallTimes, learned_times
from advisor.predict.methods import BLEND, op_times
from advisor.predict.roofline import KERNEL_FLOOR_S
from tests.builders import make_op, make_trace
from tests.unit.predict.learned import values

T4, V100, A100 = (resolve_gpu(name) for name in ("T4", "V100-PCIE-32GB", "A100-PCIE-80GB"))
TF32 = Precision(amp_dtype=None, tf32_matmul=True, tf32_cudnn=True)
OPS = (
    values.mm(512, 256, 128),
    values.convolution(8, 16, 32),
    values.softmax(64, 1000),
    values.add(64, 1000),
    values.layer_norm(64, 768),
)
KNOWLEDGE = replace(values.make_knowledge(), is_calibrated_here=True)
WITHOUT = replace(KNOWLEDGE, networks={})


@pytest.fixture(autouse=True)
def nothing_calibrated(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


def times(
    ops: tuple[Op, ...] = OPS,
    gpu: GpuSpec = T4,
    precision: Precision = values.EXACT,
    knowledge: Knowledge = KNOWLEDGE,
) -> CallTimes:
    return learned_times(ops, gpu, constants_for(gpu, knowledge), precision, knowledge)


def is_known(*ops: Op, gpu: GpuSpec = T4, precision: Precision = values.EXACT) -> list[bool]:
    predicted = times(ops, gpu, precision)
    known = ~np.isnan(predicted.time_s)
    assert (known == ~np.isnan(predicted.sigma)).all()
    return known.tolist()


def test_every_family_is_known_in_fp32():
    assert is_known(*OPS) == [True] * len(OPS)
    assert (times().time_s > KERNEL_FLOOR_S).all()


@pytest.mark.parametrize("gpu", [gpu for gpu in load_gpus().values() if gpu.vendor == "NVIDIA"])
def test_every_nvidia_gpu_has_finite_times(gpu):
    predicted = times(gpu=gpu)
    assert np.isfinite(predicted.time_s).all()
    assert (predicted.sigma > 0).all()


@pytest.mark.parametrize(
    "gpu", [g for g in load_gpus().values() if g.vendor != "NVIDIA"], ids=lambda g: g.name
)
def test_gpus_of_other_vendors_are_left_to_the_roofline(gpu):
    assert is_known(*OPS, gpu=gpu) == [False] * len(OPS)
    trace = make_trace(ops=OPS, precision=values.EXACT)
    assert {time.method for time in op_times(trace, gpu, constants_for(gpu, KNOWLEDGE), KNOWLEDGE)} == {
        Method.ROOFLINE
    }


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e4m3fn", "float64"])
def test_products_of_other_bits_are_left_to_the_roofline(dtype):
    op = values.mm(512, 256, 128, dtype=dtype)
    assert [gpu.name for gpu in load_gpus().values() if is_known(op, gpu=gpu) != [False]] == []


@pytest.mark.parametrize("gpu", [T4, V100], ids=lambda gpu: gpu.name)
def test_tf32_is_fp32_where_the_gpu_has_none(gpu):
    assert times(gpu=gpu, precision=TF32).time_s == pytest.approx(times(gpu=gpu).time_s)


def test_tf32_is_left_to_the_roofline_where_the_gpu_has_it():
    assert is_known(*OPS, gpu=A100, precision=TF32) == [False, False, True, True, True]


@pytest.mark.parametrize("dtype", ["float64", "int64", "bool"])
@pytest.mark.parametrize("gpu", [T4, A100], ids=lambda gpu: gpu.name)
def test_element_wise_operators_are_known_at_any_dtype(gpu, dtype):
    assert is_known(values.add(64, 1000, dtype=dtype), gpu=gpu) == [True]
    same = times((values.add(64, 1000, dtype=dtype),)).time_s
    assert same == pytest.approx(times((values.add(64, 1000),)).time_s)  # the same bytes


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_the_bytes_are_not_what_the_networks_learned(dtype):
    assert is_known(values.add(64, 1000, dtype=dtype), gpu=T4) == [False]


def test_what_no_network_knows_is_left_to_the_roofline():
    unknown = make_op("aten::embedding")
    assert is_known(OPS[0], unknown, OPS[3], values.add(0)) == [True, False, True, False]


@pytest.mark.parametrize("family", values.EXAMPLES)
def test_a_family_without_a_network_is_left_to_the_roofline(family):
    networks = {"fft" if name == family else name: kept for name, kept in values.make_networks().items()}
    predicted = times(tuple(values.EXAMPLES.values()), knowledge=replace(KNOWLEDGE, networks=networks))
    for numbers in (predicted.time_s, predicted.sigma):
        assert np.isnan(numbers).tolist() == [name == family for name in values.EXAMPLES]


def test_no_operators_have_no_times():
    assert times(()).time_s.shape == (0,)


def test_a_gpu_that_was_measured_is_surer():
    # T4 and L4 differ in the board too, so the same board under another name.
    unseen = replace(T4, name="T5")
    assert (times(gpu=unseen).sigma > times(gpu=T4).sigma).all()
    assert times(gpu=unseen).time_s == pytest.approx(times(gpu=T4).time_s)


def test_a_gpu_that_was_calibrated_is_surer_than_unseen_and_less_sure_than_measured():
    stranger = replace(T4, name="T5")
    unseen, measured_s = times(gpu=stranger).sigma, times(gpu=T4).sigma
    calibrated = times(
        gpu=stranger, knowledge=replace(KNOWLEDGE, corrections={"T5": dict.fromkeys(LARGE, 1.0)})
    ).sigma
    assert (measured_s < calibrated).all()
    assert (calibrated < unseen).all()


def work_s(times_of_all: CallTimes) -> np.ndarray:
    return times_of_all.time_s - KERNEL_FLOOR_S


@pytest.mark.parametrize("reached", [0.25, 0.5, 1.0, 1.6])
def test_what_is_reached_of_the_rate_divides_the_time(reached):
    corrected = replace(KNOWLEDGE, corrections={"T4": {"gemm": reached}})
    expected = work_s(times()) / [reached, 1, 1, 1, 1]
    assert work_s(times(knowledge=corrected)) == pytest.approx(expected)
    assert times(gpu=V100, knowledge=corrected).time_s == pytest.approx(times(gpu=V100).time_s)


def test_calibrating_this_machine_corrects_its_times_unless_the_knowledge_has_corrections():
    before = work_s(times())
    write_calibration("T4", "today", {"learned.gemm": 0.5, "learned.norm": 0.8})
    expected = before / [0.5, 1, 0.8, 1, 0.8]
    assert work_s(times()) == pytest.approx(expected)
    ones = replace(KNOWLEDGE, corrections={"T4": dict.fromkeys(values.EXAMPLES, 1.0)})
    assert work_s(times(knowledge=ones)) == pytest.approx(before)


def test_a_knowledge_of_its_own_does_not_read_this_machine():
    before = work_s(times())
    write_calibration("T4", "today", {"learned.gemm": 0.5})
    assert work_s(times(knowledge=values.make_knowledge())) == pytest.approx(before)


def test_a_broken_calibration_is_refused():
    path = calibration_path("T4")
    path.parent.mkdir(parents=True)
    path.write_text("[learned")
    with pytest.raises(CatalogError, match="cannot be used"):
        times()


LARGE = {
    "gemm": values.mm(4096, 4096, 4096),
    "conv": values.convolution(64, 128, 128, 56),
    "norm": values.softmax(16384, 4096),
    "pointwise": values.add(8192, 8192),
}


def kernel(op: Op, time_s: float) -> Measurement:
    measured = replace(op, measured_s=time_s)
    return Measurement(case="0", op=measured, precision=values.EXACT, spread=0.0, num_samples=1)


# The part of what a calibration finds that counts.
TRUST = 0.6


def measured(op: Op, factor: float, gpu: GpuSpec = T4) -> Measurement:
    """The call, beyond its launch so much slower than the networks say."""
    learned_s = float(times((op,), gpu).time_s[0])
    return kernel(op, KERNEL_FLOOR_S + factor * (learned_s - KERNEL_FLOOR_S))


@pytest.mark.parametrize("first", [0.6, 1.0, 1.3, 5.0])
def test_each_family_has_the_offset_of_what_it_reaches(first):
    kernels = [measured(op, first + i / 10) for i, op in enumerate(LARGE.values())]
    offsets = learned_offsets(kernels, T4, KNOWLEDGE)
    assert {fit.before for fit in offsets} == {1.0}
    expected = {f"learned.{family}": (first + i / 10) ** -TRUST for i, family in enumerate(LARGE)}
    assert {fit.name: fit.after for fit in offsets} == pytest.approx(expected)


def test_predictions_with_offsets_go_a_part_of_the_way_to_what_was_measured():
    kernels = [measured(op, 1.7) for op in LARGE.values()]
    offsets = learned_offsets(kernels, T4, KNOWLEDGE)
    trusted = [measured(op, 1.7**TRUST) for op in LARGE.values()]
    expected = np.array([kernel.time_s for kernel in trusted])
    write_calibration("T4", "today", {fit.name: fit.after for fit in offsets})
    assert times(tuple(LARGE.values())).time_s == pytest.approx(expected, rel=1e-3)


def test_offsets_do_not_build_on_an_older_calibration():
    kernels = [measured(op, 1.7) for op in LARGE.values()]
    first = learned_offsets(kernels, T4, KNOWLEDGE)
    write_calibration("T4", "today", {fit.name: fit.after for fit in first})
    assert learned_offsets(kernels, T4, KNOWLEDGE) == first


def test_kernels_that_are_small_or_unknown_have_no_offset():
    kernels = [
        kernel(values.mm(16, 16, 16), 1e-5),
        kernel(values.mm(4096, 4096, 4096, dtype="float16"), 1e-2),
        kernel(make_op("aten::embedding"), 1e-2),
    ]
    assert learned_offsets(kernels, T4, KNOWLEDGE) == ()
    assert learned_offsets([measured(op, 1.0) for op in LARGE.values()], T4, WITHOUT) == ()


WAVE_KERNEL = Kernel(
    name="k", grid=(10_000, 1, 1), block=(256, 1, 1), registers_per_thread=32, shared_bytes=0, duration_s=1e-3
)
TRACE = make_trace(ops=OPS, precision=values.EXACT)


def methods(*ops: Op, origin: str | None, gpu: GpuSpec, knowledge: Knowledge = KNOWLEDGE) -> list[Method]:
    trace = make_trace(ops=ops, origin_gpu=origin, precision=values.EXACT)
    return [time.method for time in op_times(trace, gpu, constants_for(gpu, knowledge), knowledge)]


def test_without_networks_all_is_roofline_and_with_them_learned():
    assert methods(*OPS, origin=None, gpu=T4, knowledge=WITHOUT) == [Method.ROOFLINE] * len(OPS)
    assert methods(*OPS, origin=None, gpu=T4) == [Method.LEARNED] * len(OPS)
    left_out = (make_op("aten::embedding"), values.mm(64, 64, 64, dtype="float16"))
    assert methods(*left_out, origin=None, gpu=T4) == [Method.ROOFLINE] * 2
    at_home = (OPS[0], replace(OPS[0], measured_s=1.0))
    assert methods(*at_home, origin="T4", gpu=T4) == [Method.LEARNED, Method.MEASURED]


def test_learned_times_are_the_networks_times():
    timings = op_times(TRACE, T4, constants_for(T4, KNOWLEDGE), KNOWLEDGE)
    assert [time.time_s for time in timings] == pytest.approx(times().time_s.tolist())
    assert [time.sigma for time in timings] == pytest.approx(times().sigma.tolist())
    assert {time.constant for time in timings} == {""}


def test_learned_beats_waves_and_waves_beat_the_roofline():
    known = replace(values.add(64, 1000), measured_s=1e-3, kernels=(WAVE_KERNEL,))
    unknown = replace(known, name="aten::max")
    ops = (known, unknown)
    assert methods(*ops, origin=V100.name, gpu=T4) == [Method.LEARNED, Method.WAVE]
    assert methods(*ops, origin=V100.name, gpu=T4, knowledge=WITHOUT) == [Method.WAVE, Method.WAVE]


@given(st.one_of(st.floats(1e-7, 1.0), st.sampled_from([None, 0.0])))
def test_measured_elsewhere_is_a_blend(measured_s):
    ops = tuple(replace(op, measured_s=measured_s) for op in OPS)
    trace = make_trace(ops=ops, origin_gpu=V100.name, precision=values.EXACT)
    timings = op_times(trace, T4, constants_for(T4, KNOWLEDGE), KNOWLEDGE)
    direct, at_origin = times(ops).time_s, times(ops, V100).time_s
    seen_s = measured_s or at_origin  # without a measurement there is nothing to blend
    expected = direct ** (1 - BLEND) * (seen_s * direct / at_origin) ** BLEND
    assert [time.time_s for time in timings] == pytest.approx(expected.tolist())
    assert [time.sigma for time in timings] == pytest.approx(times(ops).sigma.tolist())
    assert {time.method for time in timings} == {Method.LEARNED}


def test_a_product_that_only_one_of_both_gpus_runs_in_fp32_is_not_blended():
    # TF32 counts on the A100 alone, so nobody knows how far off the networks were there.
    op = replace(OPS[0], measured_s=1.0)
    trace = make_trace(ops=(op,), origin_gpu=A100.name, precision=TF32)
    (timing,) = op_times(trace, T4, constants_for(T4, KNOWLEDGE), KNOWLEDGE)
    assert timing.time_s == pytest.approx(float(times((op,), precision=TF32).time_s[0]))
