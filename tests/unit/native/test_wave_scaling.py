"""Wave scaling: each form by hand, when each applies, and what is refused."""

# ruff: noqa: N806 -- the capital letters are shape suffixes

import math
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from advisor.native.arrays import Unlaunchable, WaveForm
from tests.unit.native.samples import BACKENDS, make_gpus, make_kernels

pytestmark = pytest.mark.parametrize("backend", BACKENDS)

ORIGIN = make_gpus({})  # 80 SMs x 8 blocks: a wave is 640 blocks
MILLISECOND = 1e-3


def scale_one(
    backend: ModuleType, kernel: dict[str, Any], gpu: dict[str, Any], form: WaveForm = WaveForm.AUTO
) -> float:
    time_s_KG = backend.scale_kernels(make_kernels(kernel), ORIGIN, make_gpus(gpu), form=form)
    assert time_s_KG.shape == (1, 1)
    return float(time_s_KG[0, 0])


BIGGEST = (2**31 - 1) * 65_535 * 65_535
HALF_THE_GPU = {"sms": 40, "clock": 4e9}


@pytest.mark.parametrize(
    ("kernel", "gpu", "form", "expected_s"),
    [
        # Many waves of unknown intensity follow bandwidth alone; small kernels of it keep their time.
        ({}, {"bandwidth": 2e12, "sms": 10, "clock": 3e9}, WaveForm.AUTO, MILLISECOND / 2),
        ({"blocks": 1}, {"bandwidth": 4e12, "clock": 3e9}, WaveForm.AUTO, MILLISECOND),
        # R = 2e13 / 2e12 = 10, x = 5: g = 1 - 5/20 = 0.75. Waves 640 -> 320, clock 1 -> 2 GHz: product 1.
        ({"intensity": 5.0}, {"bandwidth": 2e12, "peak": 2e13, "sms": 40, "clock": 2e9}, WaveForm.LARGE,
         MILLISECOND * 0.5**0.75 * 1.0**0.25),
        # Compute-bound kernels follow SMs and clock.
        ({"intensity": math.inf}, {"bandwidth": 9e12, "sms": 160, "clock": 2e9}, WaveForm.LARGE,
         MILLISECOND / 4),
        # 7.5 holds 4 blocks of 256 threads where 7.0 holds 8: twice the waves, at g = 0 twice the time.
        ({"intensity": math.inf}, {"cc": "7.5"}, WaveForm.LARGE, 2 * MILLISECOND),
        # B = 1000: 2 waves of 640 on the origin, 4 of 320 here. g = 0.5 at x = R = 10.
        *(({"blocks": 1000, "intensity": 10.0}, HALF_THE_GPU, form,
           MILLISECOND * (4 / 2) * (1 * 320 / 640) ** 0.5 * (1 / 4) ** 0.5)
          for form in (WaveForm.AUTO, WaveForm.EXACT)),
        # B = 100 < 640 and 400: two turns of 80 SMs there, two of 50 here; twice the clock; g = 0.5.
        ({"blocks": 100, "intensity": 10.0}, {"sms": 50, "clock": 2e9, "bandwidth": 1e12}, WaveForm.AUTO,
         MILLISECOND * 0.5**0.5),
        # Five turns rather than two, and still less than a wave of 160.
        ({"blocks": 100, "intensity": 10.0}, {"sms": 20, "clock": 2e9, "bandwidth": 1e12}, WaveForm.AUTO,
         MILLISECOND * (0.5 * 5 / 2) ** 0.5),
        # The largest launch does not overflow, and no time stays none.
        ({"blocks": BIGGEST, "intensity": math.inf}, {"sms": 160}, WaveForm.EXACT, MILLISECOND / 2),
        ({"duration": 0.0}, {"sms": 3}, WaveForm.AUTO, 0.0),
    ],
)  # fmt: skip
def test_times_by_hand(backend, kernel, gpu, form, expected_s):
    assert scale_one(backend, kernel, gpu, form) == pytest.approx(expected_s)


def test_exact_form_shows_the_tail_effect(backend):
    # One block more than a wave costs a second wave.
    kernel = {"intensity": math.inf}
    full = scale_one(backend, {**kernel, "blocks": 800}, {"sms": 100}, WaveForm.EXACT)
    over = scale_one(backend, {**kernel, "blocks": 801}, {"sms": 100}, WaveForm.EXACT)
    assert over == pytest.approx(2 * full)


@pytest.mark.parametrize(
    ("blocks", "form"),
    [
        (640, WaveForm.EXACT),  # fills one wave of the origin
        (20 * 1280 - 1, WaveForm.EXACT),
        (20 * 1280, WaveForm.LARGE),  # 20 waves on the bigger of the two
        (10**9, WaveForm.LARGE),
    ],
)
def test_auto_takes_the_large_form_from_20_waves_on_both(backend, blocks, form):
    kernel, gpu = {"blocks": blocks, "intensity": 7.0}, {"sms": 160, "clock": 1.3e9}
    assert scale_one(backend, kernel, gpu) == scale_one(backend, kernel, gpu, form)


def test_a_kernel_that_fills_one_of_the_two_is_not_small(backend):
    kernel = {"blocks": 639, "intensity": 7.0}
    small_on_one = {"sms": 79}  # a wave of 632 blocks
    exact = scale_one(backend, kernel, small_on_one, WaveForm.EXACT)
    assert scale_one(backend, kernel, small_on_one) == exact
    assert scale_one(backend, kernel, {"sms": 160}) != scale_one(
        backend, kernel, {"sms": 160}, WaveForm.EXACT
    )


@pytest.mark.parametrize(("num_kernels", "num_gpus"), [(0, 0), (0, 3), (2, 0), (0, 1)])
def test_nothing_to_scale(backend, num_kernels, num_gpus):
    kernels, gpus = make_kernels(*[{}] * num_kernels), make_gpus(*[{}] * num_gpus)
    time_s_KG = backend.scale_kernels(kernels, ORIGIN, gpus)
    assert time_s_KG.shape == (num_kernels, num_gpus)
    assert time_s_KG.dtype == np.float64
    assert backend.count_resident_blocks(kernels, gpus).shape == (num_kernels, num_gpus)


def test_rows_are_kernels_and_columns_gpus(backend):
    kernels = make_kernels({"duration": 1.0}, {"duration": 3.0})
    gpus = make_gpus({}, {"bandwidth": 2e12}, {"bandwidth": 4e12})
    expected = [[1.0, 0.5, 0.25], [3.0, 1.5, 0.75]]
    np.testing.assert_allclose(backend.scale_kernels(kernels, ORIGIN, gpus), expected)


TOO_BIG = {"threads": 1024, "registers": 65}  # cannot launch anywhere
OVER_48_KIB = {"shared": 60 * 1024}  # launches on 7.0, not on 6.1


def test_no_wave_on_the_origin_is_an_error(backend):
    message = r"wave size of kernel 1 is 0: no block of it can be resident on the origin"
    with pytest.raises(ValueError, match=message):
        backend.scale_kernels(make_kernels({}, TOO_BIG), ORIGIN, make_gpus({}), unlaunchable=Unlaunchable.NAN)


def test_no_wave_on_a_destination_is_an_error_or_nan_if_the_caller_says_so(backend):
    kernels, gpus = make_kernels({}, OVER_48_KIB), make_gpus({}, {"cc": "6.1"})
    with pytest.raises(ValueError, match=r"wave size of kernel 1 is 0: .* on destination 1"):
        backend.scale_kernels(kernels, ORIGIN, gpus)
    time_s_KG = backend.scale_kernels(kernels, ORIGIN, gpus, unlaunchable=Unlaunchable.NAN)
    assert np.isnan(time_s_KG).tolist() == [[False, False], [False, True]]


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ({"blocks": 0}, r"^blocks of kernel 1 is 0: must be 1 or more$"),
        ({"threads": 0}, r"^threads_per_block of kernel 1 is 0: must be 1 or more$"),
        ({"registers": -1}, r"^registers_per_thread of kernel 1 is -1: must be 0 or more$"),
        ({"shared": -8}, r"^shared_bytes of kernel 1 is -8: must be 0 or more$"),
        ({"duration": -0.5}, r"^duration_s of kernel 1 is -0\.5: must be finite, 0 or more$"),
        ({"duration": math.nan}, r"^duration_s of kernel 1 is nan"),
        ({"duration": math.inf}, r"^duration_s of kernel 1 is inf"),
        ({"intensity": -0.5}, r"^intensity_flops_per_byte of kernel 1 is -0\.5: must be 0 or more$"),
    ],
)
def test_impossible_kernels_are_named(backend, kernel, message):
    with pytest.raises(ValueError, match=message):
        backend.scale_kernels(make_kernels({}, kernel), ORIGIN, make_gpus({}))


@pytest.mark.parametrize(
    ("gpu", "message"),
    [
        ({"sms": 0}, r"^num_sms of GPU 0 is 0: must be 1 to 2147483647$"),
        ({"sms": 2**31}, r"^num_sms of GPU 0 is 2147483648: must be 1 to 2147483647$"),
        ({"clock": math.nan}, r"^base_clock_hz of GPU 0 is nan: must be finite and positive$"),
        ({"clock": 0.0}, r"^base_clock_hz of GPU 0 is 0"),
        ({"bandwidth": -0.5}, r"^memory_bytes_per_s of GPU 0 is -0\.5"),
        ({"bandwidth": math.inf}, r"^memory_bytes_per_s of GPU 0 is inf"),
        ({"peak": 0.0}, r"^peak_flops_per_s of GPU 0 is 0"),
    ],
)
@pytest.mark.parametrize("side", ["origin", "destination"])
def test_impossible_gpus_are_named(backend, side, gpu, message):
    gpus = make_gpus(gpu)
    origin, destinations = (gpus, ORIGIN) if side == "origin" else (ORIGIN, gpus)
    with pytest.raises(ValueError, match=message):
        backend.scale_kernels(make_kernels({}), origin, destinations)


@pytest.mark.parametrize(("column", "name"), [(0, "max_threads"), (7, "register_unit"), (10, "warp_size")])
def test_impossible_limits_are_named(backend, column, name):
    gpus = make_gpus({}, {})
    gpus.limits_GL[1, column] = 0
    with pytest.raises(ValueError, match=rf"^{name} of GPU 1 is 0: must be 1 to 2147483647$"):
        backend.count_resident_blocks(make_kernels({}), gpus)


@pytest.mark.parametrize("num_origins", [0, 2])
def test_the_origin_is_one_gpu(backend, num_origins):
    origins = make_gpus(*[{}] * num_origins)
    with pytest.raises(ValueError, match=f"num_gpus of origin is {num_origins}: must be 1"):
        backend.scale_kernels(make_kernels({}), origins, ORIGIN)


@pytest.mark.parametrize("option", [{"form": "smal"}, {"unlaunchable": "skip"}])
def test_misspelt_options_are_refused(backend, option):
    with pytest.raises(ValueError, match=r"'(smal|skip)' is not a valid (WaveForm|Unlaunchable)"):
        backend.scale_kernels(make_kernels({}), ORIGIN, ORIGIN, **option)
