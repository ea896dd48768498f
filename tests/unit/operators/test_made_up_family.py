"""A new family is one file and one row: a made-up one, registered here alone, reaches every room."""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from advisor.core.errors import CalibrationError
from advisor.core.findings import quoted
from advisor.core.gpus import resolve_gpu
from advisor.core.values import Method, Op, Phase, Precision, TensorSpec
from advisor.formats.recording_files import Recording
from advisor.measure import Extent, calibration_kernels, grid
from advisor.operators import registry
from advisor.operators.case import Caps, Case, call, tensor
from advisor.operators.elementwise import ELEMENTWISE
from advisor.operators.family import Autocast, Compute, Family, Learned, RooflineTime, Roofs, higher_roof
from advisor.operators.registry import FAMILIES, cost_of, family_of, joined
from advisor.operators.work import Attributes, Tensors, numel
from advisor.predict.calibrating import calibrate, learned_offsets
from advisor.predict.constants import constants_for
from advisor.predict.interval import LEFT_IN_A_STEP, SIGMA_LAB
from advisor.predict.iteration import predict
from advisor.predict.knowledge import (
    Knowledge,
    read_calibration,
    read_networks,
    shipped,
    write_calibration,
    write_networks,
)
from advisor.predict.learned import grouped, shape_of
from advisor.predict.roofline import KERNEL_FLOOR_S, op_time
from advisor.predict.step_time import HOST
from advisor.predict.what_if.precision import allow_tf32
from advisor.report import explain as breakdown
from advisor.report.words import sentences
from tests.builders import make_op, make_trace
from tests.recommendations import make_option
from tests.recordings import make_header, make_measurement
from tests.unit.predict.learned.values import make_network

T4 = resolve_gpu("T4")
EXACT = Precision(amp_dtype=None, tf32_matmul=False, tf32_cudnn=False)
CAVEAT = quoted("butterflies: assumed to run in one kernel")


def _flops(inputs: Tensors, outputs: Tensors, attributes: Attributes) -> int:
    """A butterfly of two multiply-adds for each element and level."""
    points = inputs[0].shape[-1]
    return 4 * numel(inputs[0]) * round(math.log2(points))


def _time(op: Op, roofs: Roofs) -> RooflineTime:
    """Two passes over memory."""
    return higher_roof(replace(op, bytes=2 * op.bytes), roofs)


def _features(op: Op) -> tuple[float, ...]:
    return math.log(op.flops), math.log(op.inputs[0].shape[-1])


def _butterfly(points: int, dtype: str = "float32") -> Case:
    return Case(family="fft", dtype=dtype, call=call("_fft_r2c", tensor((64, points), dtype), [1], 0, True))


def _cases(index: int, caps: Caps) -> Iterator[Case]:
    yield _butterfly(2 ** (8 + index))


FFT = Family(
    word="butterfly",
    flops={"_fft_r2c": _flops},
    traffic={"_fft_r2c": lambda inputs, outputs, attributes: 1000},  # noqa: ARG005
    compute=Compute(fraction="fft_fraction", tensor_cores=True),
    bandwidth="fft_bandwidth",
    calibrates="fft_fraction",
    time=_time,
    sigma=0.75,
    caveat=lambda op: CAVEAT,  # noqa: ARG005
    learned=(
        Learned(
            name="fft", names=frozenset({"_fft_r2c"}), num_features=2, features=_features, counts_flops=True,
            steps=3, units=8, rates=frozenset({"fp32"}),
        ),
    ),
    autocast=Autocast(casts_operands=False),
    cases={"fft": _cases},
    calibration_cases=lambda: iter([_butterfly(4096)]),
)  # fmt: skip


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setattr(registry, "_ROWS", joined((*FAMILIES, FFT)))
    registry._family.cache_clear()
    yield
    registry._family.cache_clear()


def signals(rows: int = 256, points: int = 4096) -> tuple[TensorSpec, ...]:
    return (TensorSpec(shape=(rows, points), dtype="float32"),)


def transform(rows: int = 256, points: int = 4096) -> Op:
    cost = cost_of("aten::_fft_r2c", signals(rows, points), signals(rows, points), {})
    op = make_op("aten::_fft_r2c", flops=cost.flops, num_bytes=cost.bytes)
    return replace(op, inputs=signals(rows, points), outputs=signals(rows, points))


def knowledge(*, is_learned: bool = False) -> Knowledge:
    """What ships, with what the new family's constants are assumed to be, and its network if asked."""
    tables = dict(shipped().tables)
    known = {"fft_fraction": {"fp32": 0.25, "tf32": 0.5}, "fft_bandwidth": 0.5}
    tables["assumed"] = {**tables["assumed"], "any": {**tables["assumed"]["any"], **known}}
    networks = {"fft": make_network(FFT.learned[0].num_features + 2)} if is_learned else {}
    return Knowledge(tables=tables, networks=networks)


def recorded(op: Op, time_s: float) -> Recording:
    """One kernel of a T4."""
    kernel = replace(make_measurement(), op=replace(op, measured_s=time_s), precision=EXACT)
    header = make_header(gpu="T4", device_name="Tesla T4")
    return Recording(header=header, measurements=(kernel,), skipped=(), references_s=())


def test_its_names_flops_and_bytes_are_known():
    cost = cost_of("aten::_fft_r2c", signals(256, 4096), signals(), {})
    assert (cost.flops, cost.bytes, cost.warning) == (4 * 256 * 4096 * 12, 1000, None)
    assert family_of(make_op("aten::_fft_r2c")) is FFT
    assert family_of(make_op("aten::_fft_r2c", phase=Phase.OPTIMIZER)) is FFT
    assert family_of(make_op("aten::_fft_c2r")) is ELEMENTWISE


def test_its_own_time_at_its_own_rate_and_bandwidth():
    constants = constants_for(T4, knowledge())
    computing = replace(transform(), flops=10**12, bytes=0)
    timing = op_time(computing, T4, constants, EXACT)
    assert timing.time_s == pytest.approx(KERNEL_FLOOR_S + 10**12 / (0.25 * T4.vector_flops_per_s["fp32"]))
    assert timing.constant == "fft_fraction.fp32"
    streaming = op_time(replace(transform(), flops=0, bytes=10**9), T4, constants, EXACT)
    assert streaming.time_s == pytest.approx(KERNEL_FLOOR_S + 2 * 10**9 / (0.5 * T4.memory_bytes_per_s))
    assert streaming.constant == "fft_bandwidth"


def test_predictions_and_their_breakdown_use_its_word():
    trace = make_trace(ops=(replace(transform(), flops=10**12), make_op("aten::mm", flops=10**10)))
    estimate = predict(trace, T4, knowledge=knowledge())
    seconds = op_time(trace.ops[0], T4, constants_for(T4, knowledge()), EXACT).time_s
    assert estimate.by_family["butterfly"] == pytest.approx(seconds)
    assert CAVEAT in estimate.assumptions
    assert any("fft (fp32)" in text for text in sentences(estimate.assumptions))
    families, *_ = breakdown.iteration(make_option("T4", 1.0, 1.0, estimate=estimate))
    assert "butterfly" in [fact.name for fact in families.facts]


def test_how_sure_its_time_is():
    trace = make_trace(ops=(replace(transform(), flops=10**13),))
    timed = predict(trace, T4, knowledge=knowledge())
    assert HOST not in timed.by_family
    assert math.log(timed.iteration_s.p90 / timed.iteration_s.p50) == pytest.approx(
        1.2816 * math.hypot(LEFT_IN_A_STEP * 0.75, SIGMA_LAB), rel=1e-3
    )


def test_a_time_may_say_how_sure_it_is(monkeypatch):
    sure = replace(FFT, time=lambda op, roofs: replace(_time(op, roofs), sigma=0.05))
    monkeypatch.setattr(registry, "_ROWS", joined((*FAMILIES, sure)))
    registry._family.cache_clear()
    timed = predict(make_trace(ops=(replace(transform(), flops=10**13),)), T4, knowledge=knowledge())
    assert math.log(timed.iteration_s.p90 / timed.iteration_s.p50) == pytest.approx(
        1.2816 * math.hypot(LEFT_IN_A_STEP * 0.05, SIGMA_LAB), rel=0.01
    )


def test_its_network_reads_its_features_and_tells_its_time(tmp_path):
    write_networks(knowledge(is_learned=True).networks, tmp_path / "learned.npz")
    known = replace(knowledge(), networks=read_networks(tmp_path / "learned.npz"))
    shape = shape_of(transform())
    assert (shape.network, shape.values) == ("fft", _features(transform()))
    (calls,) = grouped([transform()])
    assert calls.flops.tolist() == [float(transform().flops)]
    estimate = predict(make_trace(ops=(transform(),)), T4, knowledge=known)
    assert set(estimate.by_operator) - {HOST} == {"_fft_r2c (learned)"}
    assert estimate.by_method[Method.LEARNED] == estimate.by_family["butterfly"]


def test_tf32_and_autocast_follow_its_rules():
    trace = make_trace(ops=(transform(),))
    switched = allow_tf32(trace)
    rate = op_time(transform(points=2**20), T4, constants_for(T4, knowledge()), switched.precision)
    assert rate.constant == "fft_fraction.fp32"  # a T4 has no TF32
    a100 = resolve_gpu("A100-SXM-80GB")
    on_tensor_cores = op_time(
        replace(transform(), flops=10**13), a100, constants_for(a100, knowledge()), switched.precision
    )
    assert on_tensor_cores.constant == "fft_fraction.tf32"


def test_it_is_measured_and_calibrated():
    assert [case.call.arguments[0]["tensor"]["shape"] for case in grid(Extent.QUICK, only=["fft"])] == [
        [64, 256], [64, 512],
    ]  # fmt: skip
    assert _butterfly(4096).key in {case.key for case in calibration_kernels()}


def test_a_recording_tells_its_constant(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr("advisor.predict.calibrating.shipped", knowledge)
    monkeypatch.setattr("advisor.predict.constants.shipped", knowledge)
    large = replace(transform(), flops=10**12)
    expected_s = op_time(large, T4, constants_for(T4, knowledge()), EXACT).time_s
    (constant,) = calibrate(recorded(large, 2 * expected_s)).constants
    assert (constant.name, constant.before) == ("fft_fraction.fp32", 0.25)
    assert constant.after == pytest.approx(0.125, rel=1e-3)
    write_calibration("T4", "2026-11-22", {"fft_fraction.fp32": constant.after, "fft_bandwidth": 0.6})
    assert read_calibration("T4") is not None


def test_its_network_can_be_corrected():
    known = knowledge(is_learned=True)
    large = replace(transform(), flops=10**12)
    (constant,) = learned_offsets(recorded(large, 0.05).measurements, T4, known)
    assert constant.name == "learned.fft"
    assert np.isfinite(constant.after)


def test_a_name_cannot_stand_in_two_families():
    with pytest.raises(ValueError, match="'mm' stands in the tables of two families"):
        joined((*FAMILIES, Family(word="other", others=frozenset({"mm"}))))


def test_without_its_row_nothing_of_it_is_known(monkeypatch):
    monkeypatch.setattr(registry, "_ROWS", joined(FAMILIES))
    registry._family.cache_clear()
    assert family_of(make_op("aten::_fft_r2c")) is ELEMENTWISE
    assert cost_of("aten::_fft_r2c", signals(), signals(), {}).warning is not None
    assert shape_of(transform()) is None
    with pytest.raises(CalibrationError):
        calibrate(recorded(make_op("aten::_fft_r2c", num_bytes=10**9), 1e-5))
