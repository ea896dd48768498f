"""Laws of wave scaling."""

# ruff: noqa: N806 -- the capital letters are shape suffixes

import math
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from advisor import native
from advisor.native import reference, scale_kernels
from advisor.native.arrays import GpuArrays, KernelArrays, Unlaunchable, WaveForm
from tests.unit.native.samples import LIMITS, make_gpus, make_kernels, needs_compiled

INTENSITY = st.one_of(st.just(math.nan), st.just(math.inf), st.floats(0.0, 1e5))
# Any of these is resident on every GPU of LIMITS: at most 512 threads of 64 registers, 48 KiB.
KERNELS = st.fixed_dictionaries(
    {
        "blocks": st.one_of(st.integers(1, 2000), st.integers(1, 10**9)),
        "threads": st.integers(1, 512),
        "registers": st.integers(0, 64),
        "shared": st.integers(0, 48 * 1024),
        "duration": st.floats(1e-7, 10.0),
        "intensity": INTENSITY,
    }
)
GPUS = st.fixed_dictionaries(
    {
        "sms": st.integers(1, 200),
        "clock": st.floats(0.3e9, 3e9),
        "bandwidth": st.floats(0.1e12, 10e12),
        "peak": st.floats(1e12, 1e15),
        "cc": st.sampled_from(sorted(LIMITS)),
    }
)
FORMS = st.sampled_from(WaveForm)
MORE = st.floats(1.0, 10.0)

Row = dict[str, Any]


def one(kernel: Row, origin: Row, destination: Row, form: WaveForm = WaveForm.AUTO) -> float:
    times = scale_kernels(make_kernels(kernel), make_gpus(origin), make_gpus(destination), form=form)
    return float(times[0, 0])


def full_waves(kernel: Row, gpu: Row) -> int:
    resident = native.count_resident_blocks(make_kernels(kernel), make_gpus(gpu))
    return int(kernel["blocks"] // (gpu["sms"] * resident[0, 0]))


@given(KERNELS, GPUS, FORMS)
def test_scaling_to_the_origin_returns_the_origin(kernel, gpu, form):
    assert one(kernel, gpu, gpu, form) == kernel["duration"]


@given(KERNELS, GPUS, GPUS, MORE)
def test_more_bandwidth_is_never_slower_in_the_large_form(kernel, origin, gpu, more):
    # g stays where it was if the peak grows along.
    faster = gpu | {"bandwidth": gpu["bandwidth"] * more, "peak": gpu["peak"] * more}
    assert one(kernel, origin, faster, WaveForm.LARGE) <= one(kernel, origin, gpu, WaveForm.LARGE) * (
        1 + 1e-12
    )


@given(KERNELS, GPUS, GPUS, st.integers(0, 100), MORE)
def test_more_sms_and_clock_are_never_slower_in_the_large_form(kernel, origin, gpu, more_sms, more):
    faster = gpu | {"sms": gpu["sms"] + more_sms, "clock": gpu["clock"] * more}
    assert one(kernel, origin, faster, WaveForm.LARGE) <= one(kernel, origin, gpu, WaveForm.LARGE) * (
        1 + 1e-12
    )


@given(KERNELS, GPUS, GPUS, MORE)
def test_a_higher_clock_is_never_slower_in_any_form(kernel, origin, gpu, more):
    faster = gpu | {"clock": gpu["clock"] * more}
    for form in WaveForm:
        assert one(kernel, origin, faster, form) <= one(kernel, origin, gpu, form) * (1 + 1e-12)


@given(KERNELS, GPUS, GPUS)
def test_exact_and_large_differ_by_at_most_one_wave(kernel, origin, gpu):
    num_waves = min(full_waves(kernel, origin), full_waves(kernel, gpu))
    assume(num_waves >= 1)
    ratio = one(kernel, origin, gpu, WaveForm.EXACT) / one(kernel, origin, gpu, WaveForm.LARGE)
    most = (1 + 1 / num_waves) * (1 + 1e-9)
    assert 1 / most <= ratio <= most


@given(KERNELS, GPUS, GPUS, FORMS)
def test_there_and_back_is_the_measured_time_at_the_same_g(kernel, origin, gpu, form):
    gpu = gpu | {"peak": gpu["bandwidth"] * (origin["peak"] / origin["bandwidth"])}
    there = kernel | {"duration": one(kernel, origin, gpu, form)}
    assert one(there, gpu, origin, form) == pytest.approx(kernel["duration"], rel=1e-9)


@given(KERNELS, GPUS, GPUS, MORE, FORMS)
def test_time_is_proportional_to_the_measured_time(kernel, origin, gpu, more, form):
    longer = kernel | {"duration": kernel["duration"] * more}
    expected = one(kernel, origin, gpu, form) * more
    assert one(longer, origin, gpu, form) == pytest.approx(expected, rel=1e-12)


@given(st.floats(0.0, 1e6), st.floats(1e-3, 1e6))
def test_g_falls_from_1_through_a_half_at_the_ridge_towards_0(intensity, ridge):
    g = reference.memory_weight(intensity, ridge)
    assert 0.0 <= g <= 1.0
    assert (g > 0.5) == (intensity < ridge) or g == pytest.approx(0.5)
    assert reference.memory_weight(intensity * 1.5, ridge) <= g


@needs_compiled
@given(st.lists(KERNELS, max_size=6), GPUS, st.lists(GPUS, max_size=4), FORMS)
def test_compiled_times_equal_the_reference(kernels, origin, gpus, form):
    arguments = (make_kernels(*kernels), make_gpus(origin), make_gpus(*gpus))
    expected_KG = reference.scale_kernels(*arguments, form=form)
    time_s_KG = native.scale_kernels(*arguments, form=form)
    np.testing.assert_allclose(time_s_KG, expected_KG, rtol=1e-9, atol=0)


@needs_compiled
@given(KERNELS, GPUS, GPUS, st.integers(0, 1100), st.integers(0, 300), st.integers(0, 250_000))
def test_compiled_refusals_equal_the_reference(kernel, origin, gpu, threads, registers, shared):
    launch = make_kernels(kernel | {"threads": threads, "registers": registers, "shared": shared})
    for unlaunchable in Unlaunchable:
        arguments = (launch, make_gpus(origin), make_gpus(gpu), unlaunchable)
        time_s, refusal = outcome(native, *arguments)
        expected_s, expected_refusal = outcome(reference, *arguments)
        assert refusal == expected_refusal
        assert time_s == pytest.approx(expected_s, rel=1e-9, nan_ok=True)


def outcome(
    backend: ModuleType,
    kernel: KernelArrays,
    origin: GpuArrays,
    destination: GpuArrays,
    unlaunchable: Unlaunchable,
) -> tuple[float, str]:
    """The time of one kernel on one GPU, or NaN and the refusal in words."""
    try:
        times = backend.scale_kernels(kernel, origin, destination, unlaunchable=unlaunchable)
    except ValueError as error:
        return math.nan, str(error)
    return float(times[0, 0]), ""
