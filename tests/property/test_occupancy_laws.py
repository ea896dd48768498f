"""Laws of occupancy, on limits no GPU has."""

# ruff: noqa: N806 -- the capital letters are shape suffixes

from dataclasses import replace

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from advisor import native
from advisor.core.values import OccupancyLimits
from advisor.native import reference
from advisor.native.arrays import LIMIT_COLUMNS, GpuArrays, KernelArrays
from advisor.native.reference import occupancy, resident_blocks
from tests.unit.native.samples import make_gpus, make_kernels, needs_compiled

LIMITS = st.builds(
    OccupancyLimits,
    max_threads=st.integers(1, 64).map(lambda warps: 32 * warps),
    max_blocks=st.integers(1, 64),
    max_registers=st.integers(1, 200_000),
    max_registers_per_thread=st.integers(1, 300),
    max_shared_bytes=st.integers(0, 300_000),
    max_shared_bytes_per_block=st.integers(0, 300_000),
    reserved_shared_bytes_per_block=st.integers(0, 2048),
    register_unit=st.sampled_from([1, 64, 256, 512]),
    shared_unit_bytes=st.sampled_from([1, 128, 256]),
    warp_allocation_unit=st.sampled_from([1, 2, 4]),
    warp_size=st.just(32),
)
THREADS = st.integers(1, 1100)
REGISTERS = st.integers(0, 310)
SHARED_BYTES = st.one_of(st.just(0), st.integers(0, 300_000))


def round_up(value: int, unit: int) -> int:
    return (value + unit - 1) // unit * unit


def fits(num_blocks: int, threads: int, registers: int, shared: int, limits: OccupancyLimits) -> bool:
    """Whether an SM holds so many blocks: what each partition and the whole SM have, added up."""
    warps = num_blocks * round_up(threads, limits.warp_size) // limits.warp_size
    registers_per_warp = round_up(registers * limits.warp_size, limits.register_unit)
    partitions = limits.warp_allocation_unit
    registers_per_partition = limits.max_registers // partitions
    fullest_partition = round_up(warps, partitions) // partitions
    shared_per_block = round_up(shared + limits.reserved_shared_bytes_per_block, limits.shared_unit_bytes)
    return (
        warps * limits.warp_size <= limits.max_threads
        and num_blocks <= limits.max_blocks
        and fullest_partition * registers_per_warp <= registers_per_partition
        and num_blocks * shared_per_block <= limits.max_shared_bytes
    )


def launches(threads: int, registers: int, shared: int, limits: OccupancyLimits) -> bool:
    """Whether one block passes the checks of a launch, whatever an SM holds."""
    warps = round_up(round_up(threads, limits.warp_size) // limits.warp_size, 4)
    registers_per_warp = round_up(registers * limits.warp_size, limits.register_unit)
    return (
        threads <= 1024
        and registers <= limits.max_registers_per_thread
        and warps * registers_per_warp <= 65_536
        and shared <= limits.max_shared_bytes_per_block
    )


@given(THREADS, REGISTERS, SHARED_BYTES, LIMITS)
def test_resident_blocks_are_the_most_that_fit(threads, registers, shared, limits):
    num_blocks = resident_blocks(threads, registers, shared, limits)
    if not launches(threads, registers, shared, limits):
        assert num_blocks == 0
        return
    most = max(n for n in range(limits.max_blocks + 1) if fits(n, threads, registers, shared, limits))
    assert num_blocks == most


@given(THREADS, REGISTERS, SHARED_BYTES, LIMITS)
def test_occupancy_is_a_share(threads, registers, shared, limits):
    num_blocks = resident_blocks(threads, registers, shared, limits)
    assert 0.0 <= occupancy(threads, num_blocks, limits) <= 1.0


@needs_compiled
@given(st.lists(st.tuples(THREADS, REGISTERS, SHARED_BYTES), max_size=8), st.lists(LIMITS, max_size=4))
def test_compiled_counts_equal_the_reference(launched, limits):
    kernels = make_kernels(*({"threads": t, "registers": r, "shared": s} for t, r, s in launched))
    gpus = with_limits(limits)
    np.testing.assert_array_equal(
        native.count_resident_blocks(kernels, gpus), reference.count_resident_blocks(kernels, gpus)
    )


@needs_compiled
@given(*[st.integers(0, 2**63 - 1)] * 3, st.lists(st.integers(1, 2**31 - 1), min_size=11, max_size=11))
def test_compiled_counts_equal_the_reference_at_the_edge_of_64_bits(threads, registers, shared, row):
    assume(threads > 0)
    kernels: KernelArrays = make_kernels({"threads": threads, "registers": registers, "shared": shared})
    gpus = with_limits([OccupancyLimits(**dict(zip(LIMIT_COLUMNS, row, strict=True)))])
    np.testing.assert_array_equal(
        native.count_resident_blocks(kernels, gpus), reference.count_resident_blocks(kernels, gpus)
    )


def with_limits(limits: list[OccupancyLimits]) -> GpuArrays:
    rows = [[getattr(limit, column) for column in LIMIT_COLUMNS] for limit in limits]
    limits_GL = np.array(rows, dtype=np.int64).reshape(len(rows), len(LIMIT_COLUMNS))
    return replace(make_gpus(*[{}] * len(rows)), limits_GL=limits_GL)
