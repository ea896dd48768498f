"""Packing kernels and GPUs into columns."""

import math
from dataclasses import fields, replace

import numpy as np
import pytest

from advisor.core.values import Kernel, OccupancyLimits
from advisor.native.arrays import (
    ASSUMED_REGISTERS_PER_THREAD,
    ASSUMED_SHARED_BYTES,
    LIMIT_COLUMNS,
    GpuArrays,
    KernelArrays,
    has_known_resources,
    limits_from_row,
)
from tests.builders import VOLTA_LIMITS, make_gpu

KERNEL = Kernel(
    name="gemm", grid=(4, 3, 2), block=(16, 8, 2), registers_per_thread=64, shared_bytes=2048, duration_s=1e-5
)
UNKNOWN = replace(KERNEL, registers_per_thread=None, shared_bytes=None)


def test_kernels_become_columns():
    arrays = KernelArrays.from_kernels([KERNEL, UNKNOWN], intensity_flops_per_byte=[2.5, None])
    assert arrays.num_kernels == 2
    assert arrays.blocks_K.tolist() == [24, 24]
    assert arrays.threads_per_block_K.tolist() == [256, 256]
    assert arrays.registers_per_thread_K.tolist() == [64, ASSUMED_REGISTERS_PER_THREAD]
    assert arrays.shared_bytes_K.tolist() == [2048, ASSUMED_SHARED_BYTES]
    assert arrays.duration_s_K.tolist() == [1e-5, 1e-5]
    np.testing.assert_equal(arrays.intensity_flops_per_byte_K, [2.5, math.nan])


def test_intensity_is_unknown_by_default_and_nothing_keeps_its_shape():
    assert np.isnan(KernelArrays.from_kernels([KERNEL]).intensity_flops_per_byte_K).all()
    assert KernelArrays.from_kernels([]).num_kernels == 0
    gpus = GpuArrays.from_specs([])
    assert gpus.num_gpus == 0
    assert gpus.limits_GL.shape == (0, len(LIMIT_COLUMNS))


def test_assumed_resources_can_be_counted():
    for changes in ({}, {"shared_bytes": 0}):
        assert has_known_resources(replace(KERNEL, **changes))
    for name in ("registers_per_thread", "shared_bytes"):
        assert not has_known_resources(replace(KERNEL, **{name: None}))


def test_gpus_become_columns():
    arrays = GpuArrays.from_specs([make_gpu(num_sms=84), make_gpu(base_clock_hz=2e9)])
    assert arrays.num_gpus == 2
    assert arrays.num_sms_G.tolist() == [84, 80]
    assert arrays.base_clock_hz_G.tolist() == [1.2e9, 2e9]
    assert arrays.memory_bytes_per_s_G.tolist() == [1e12, 1e12]
    assert arrays.peak_flops_per_s_G.tolist() == [10e12, 10e12]
    assert limits_from_row(arrays.limits_GL[1]) == VOLTA_LIMITS
    # Another peak moves the ridge point.
    other = GpuArrays.from_specs([make_gpu()], peak_flops_per_s=lambda s: s.tensor_flops_per_s["fp16"])
    assert other.peak_flops_per_s_G.tolist() == [100e12]


def test_gpus_without_limits_or_peak_are_named():
    with pytest.raises(ValueError, match="MI300X has no occupancy limits"):
        GpuArrays.from_specs([make_gpu("MI300X", occupancy=None)])
    with pytest.raises(ValueError, match="ODD has no fp32 peak"):
        GpuArrays.from_specs([make_gpu("ODD", vector_flops_per_s={})])


def test_the_columns_are_all_the_limits_in_order():
    assert tuple(field.name for field in fields(OccupancyLimits)) == LIMIT_COLUMNS
