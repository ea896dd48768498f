"""Constants from a recording: found again where they made it, refused where they make no sense."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.errors import CalibrationError, RecordingError
from advisor.core.findings.about_estimates import KernelsDoubtful
from advisor.core.gpus import resolve_gpu
from advisor.formats.recording_files import Measurement, Recording
from advisor.predict import calibrating as calibration
from advisor.predict.calibrating import Calibration, FittedConstant, calibrate, fit_offset
from advisor.predict.constants import constants_for, described
from advisor.predict.roofline import KERNEL_FLOOR_S, op_time
from advisor.report.words import sentence
from tests.recordings import make_header, make_measurement

L4 = resolve_gpu("L4")
LARGE = (8192, 8192)
KERNELS = {
    "streaming_fraction": make_measurement("aten::add", shape=LARGE),
    "reduction_fraction": make_measurement("aten::_softmax", shape=LARGE),
    "gemm_fraction.fp32": make_measurement("aten::mm"),
    "gemm_fraction.tf32": make_measurement("aten::mm", tf32=True),
    "gemm_fraction.fp16": make_measurement("aten::mm", dtype="float16"),
    "gemm_fraction.bf16": make_measurement("aten::mm", dtype="bfloat16"),
}


@pytest.fixture(autouse=True)
def nothing_calibrated(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


def slower(kernel: Measurement, factor: float) -> Measurement:
    """The kernel, beyond its launch so much slower than the roofline says for an L4."""
    timing = op_time(kernel.op, L4, constants_for(L4), kernel.precision)
    return timed(kernel, KERNEL_FLOOR_S + factor * (timing.time_s - KERNEL_FLOOR_S))


def timed(kernel: Measurement, time_s: float) -> Measurement:
    op = kernel.op
    tf32 = kernel.precision.tf32_matmul
    return make_measurement(
        op.name, time_s=time_s, dtype=op.inputs[0].dtype, shape=op.inputs[0].shape, tf32=tf32
    )


def recorded(*kernels: Measurement, references_s: tuple[float, ...] = (), **header: object) -> Recording:
    return Recording(
        header=make_header(**header), measurements=kernels, skipped=(), references_s=references_s
    )


def roofline_constants(calibration: Calibration) -> list[FittedConstant]:
    return [fit for fit in calibration.constants if not fit.name.startswith("learned.")]


@given(factor=st.floats(0.7, 3.0))
@pytest.mark.parametrize("name", KERNELS)
def test_what_is_slower_by_a_factor_gets_a_constant_that_is_smaller_by_it(name, factor):
    (fitted,) = roofline_constants(calibrate(recorded(slower(KERNELS[name], factor))))
    assert fitted.name == name
    assert fitted.after == pytest.approx(fitted.before / factor)


def test_predictions_with_the_new_constants_are_what_was_measured():
    from advisor.predict.knowledge import write_calibration

    kernels = [slower(kernel, 1.1 + 0.1 * number) for number, kernel in enumerate(KERNELS.values())]
    calibration = calibrate(recorded(*kernels))
    write_calibration("L4", calibration.source, {fit.name: fit.after for fit in calibration.constants})
    after = constants_for(L4)
    assert after.measured >= set(KERNELS)
    source = "calibrated on this machine, 2026-11-21, driver 580.1, torch 2.13.0"
    assert sentence(described(after.origin)[0]).startswith(f"roofline constants, {source}: ")
    for kernel in kernels:
        assert op_time(kernel.op, L4, after, kernel.precision).time_s == pytest.approx(
            kernel.time_s, rel=1e-3
        )


def test_calibrating_again_changes_nothing():
    from advisor.predict.knowledge import write_calibration

    recording = recorded(*(slower(kernel, 1.3) for kernel in KERNELS.values()))
    first = {fit.name: fit.after for fit in calibrate(recording).constants}
    write_calibration("L4", "again", first)
    second = {fit.name: fit.after for fit in calibrate(recording).constants}
    assert second == pytest.approx(first, rel=1e-3)


def test_the_median_kernel_decides():
    kernels = [slower(KERNELS["gemm_fraction.fp16"], factor) for factor in (1.2, 1.25, 40.0)]
    fitted, of_network = calibrate(recorded(*kernels)).constants
    assert fitted.after == pytest.approx(fitted.before / 1.25)
    assert (fitted.num_kernels, of_network.num_kernels) == (3, 3)
    assert of_network.name == "learned.tensor_gemm"


def test_kernels_that_differ_are_warned_of():
    kernels = [slower(KERNELS["gemm_fraction.fp16"], factor) for factor in (1.0, 2.0, 4.0)]
    warnings = calibrate(recorded(*kernels)).warnings
    assert {warning.facts["why"] for warning in warnings} == {"disagree"}
    assert "gemm_fraction.fp16: the 3 kernels differ by 69%" in sentence(warnings[0])
    names = [sentence(warning).partition(":")[0] for warning in warnings]
    assert names == ["gemm_fraction.fp16", "learned.tensor_gemm"]
    alike = [slower(KERNELS["gemm_fraction.fp16"], factor) for factor in (1.0, 1.1, 1.2)]
    assert calibrate(recorded(*alike)).warnings == ()


def test_clocks_that_drift_are_warned_of():
    kernel = slower(KERNELS["gemm_fraction.fp16"], 1.0)
    (warning,) = calibrate(recorded(kernel, references_s=(1e-3, 1.2e-3))).warnings
    assert isinstance(warning, KernelsDoubtful)
    assert warning.why == "clocks"
    assert "20% longer" in sentence(warning)
    assert calibrate(recorded(kernel, references_s=(1e-3, 1.04e-3))).warnings == ()


@pytest.mark.parametrize("factor", [0.05, 0.1, 1e3])
def test_a_gpu_that_cannot_be_the_one_of_the_data_sheet_is_refused(factor):
    with pytest.raises(CalibrationError, match=r"gemm_fraction.fp16 would become .*is this the GPU"):
        calibrate(recorded(slower(make_measurement(shape=(2**15, 2**15), dtype="float16"), factor)))


FLASH = "aten::_scaled_dot_product_flash_attention"


@pytest.mark.parametrize(
    ("recording", "kind", "words"),
    [
        *(
            (recorded(kernel), CalibrationError, r"these families: gemm, .*without `source`")
            for kernel in (
                make_measurement("aten::add", time_s=1e-5, shape=(64, 64)),
                make_measurement("aten::embedding", shape=LARGE),
                make_measurement(FLASH, shape=(8, 16, 1024, 64), dtype="float16"),
            )
        ),
        # A product that memory binds says nothing of products.
        (recorded(make_measurement("aten::mm", shape=(2**22, 2))), CalibrationError, "holds no kernel"),
        (recorded(backend="cpu", gpu=None), RecordingError, "of the backend cpu: only kernels of a GPU"),
        (recorded(gpu=None, device_name="NVIDIA Z9"), RecordingError,
         r"'NVIDIA Z9' is not in the catalog.*catalogs/gpus\.toml"),
    ],
)  # fmt: skip
def test_small_kernels_and_other_families_do_not_count(recording, kind, words):
    with pytest.raises(kind, match=words):
        calibrate(recording)


@given(
    before=st.floats(0.05, 0.95),
    factors=st.lists(st.floats(0.6, 4.0), min_size=1, max_size=9),
    launch_s=st.floats(1e-7, 1e-5),
)
def test_the_offset_of_any_predictor_is_found(before, factors, launch_s):
    beyond_s = 1e-3
    kernels = [make_measurement(time_s=launch_s + beyond_s * factor) for factor in factors]
    fitted = fit_offset("any", before, kernels, lambda *_: launch_s + beyond_s, launch_s)
    assert before / max(factors) * 0.999 <= fitted.after <= before / min(factors) * 1.001
    assert fitted.num_kernels == len(factors)
    assert fitted.spread >= 0


def at(time_s: float) -> Callable[..., float]:
    return lambda *_: time_s


def test_kernels_below_their_launch_are_left_out():
    kernels = [make_measurement(time_s=1e-6), make_measurement(time_s=2e-3)]
    fitted = fit_offset("any", 0.5, kernels, at(1e-3), 2e-6)
    assert fitted.num_kernels == 1
    with pytest.raises(CalibrationError, match="takes longer than its launch"):
        fit_offset("any", 0.5, kernels[:1], at(1e-3), 2e-6)
    with pytest.raises(CalibrationError, match="takes longer than its launch"):
        fit_offset("any", 0.5, kernels, at(1e-6), 2e-6)


def test_the_spread_is_the_median_deviation_of_logarithms():
    kernels = [make_measurement(time_s=factor * 1e-3) for factor in (1.0, 2.0, 4.0)]
    assert fit_offset("any", 0.5, kernels, at(1e-3), 0.0).spread == pytest.approx(math.log(2))


def test_the_least_kernel_is_far_above_a_launch():
    assert calibration._LEAST_S > 10 * KERNEL_FLOOR_S
