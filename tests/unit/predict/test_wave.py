"""Wave scaling of operators: sums over kernels, the ridge point, and what cannot be scaled."""

import math
from dataclasses import replace
from typing import Any

import pytest

from advisor.core.values import GpuSpec, Kernel, Op
from advisor.predict.roofline import op_times_s, rests_on_unknown_resources
from tests.builders import VOLTA_LIMITS, make_gpu, make_op

ORIGIN = make_gpu("ORIGIN")
# Half the bandwidth, three times the clock, the same SMs and limits.
OTHER = make_gpu("OTHER", memory_bytes_per_s=0.5e12, base_clock_hz=3.6e9)
# 10 TFLOP/s at 0.5 TB/s: the ridge point lies at 20 FLOP/byte.
PEAK = 10e12


def make_kernel(**changes: Any) -> Kernel:
    facts: dict[str, Any] = {
        "name": "k",
        "grid": (1_000_000, 1, 1),
        "block": (256, 1, 1),
        "registers_per_thread": 32,
        "shared_bytes": 0,
        "duration_s": 1e-3,
    }
    return Kernel(**(facts | changes))


def op_of(*kernels: Kernel, flops: int = 0, num_bytes: int = 10**6, name: str = "aten::add") -> Op:
    return replace(make_op(name, flops=flops, num_bytes=num_bytes), kernels=kernels)


def scaled(*ops: Op, origin: GpuSpec = ORIGIN, gpu: GpuSpec = OTHER, peak: float = PEAK) -> list[float]:
    return op_times_s(ops, origin, gpu, lambda _op, _gpu: peak).tolist()


@pytest.mark.parametrize(
    ("op", "expected_s"),
    [
        # Streams take twice as long at half the bandwidth, products follow the clock.
        (op_of(make_kernel()), 2e-3),
        (op_of(make_kernel(), flops=10**12, num_bytes=1), 1e-3 / 3),
        # Intensity 10 FLOP/byte is half of the ridge point: g = 1 - 0.5 x 10 / 20 = 0.75 (Habitat, eq. 3).
        (op_of(make_kernel(), flops=10**7, num_bytes=10**6), 1e-3 * 2**0.75 * (1 / 3) ** 0.25),
        # An unknown intensity counts as memory-bound.
        (op_of(make_kernel(), flops=10**12, num_bytes=0), 2e-3),
        (op_of(make_kernel(), flops=0, num_bytes=0), 2e-3),
        # An operator is the sum of its kernels.
        (op_of(make_kernel(), make_kernel(duration_s=3e-3), make_kernel()), 10e-3),
    ],
)
def test_times_by_hand(op, expected_s):
    assert scaled(op) == pytest.approx([expected_s])


def test_the_peak_of_the_destination_counts_operator_by_operator():
    ops = [op_of(make_kernel(), flops=10**7, name=name) for name in ("aten::add", "aten::mm")]
    peaks = {("aten::add", "OTHER"): 1e14, ("aten::mm", "OTHER"): 1e12}
    times_s = op_times_s(ops, ORIGIN, OTHER, lambda op, gpu: peaks[op.name, gpu.name]).tolist()
    assert times_s == pytest.approx([scaled(ops[0], peak=1e14)[0], scaled(ops[1], peak=1e12)[0]])
    assert times_s[0] != pytest.approx(times_s[1])


def test_operators_do_not_mix():
    first, second = op_of(make_kernel()), op_of(make_kernel(duration_s=2e-3), make_kernel(duration_s=5e-3))
    assert scaled(first, second) == pytest.approx([2e-3, 14e-3])
    assert scaled(second, first) == pytest.approx([14e-3, 2e-3])


def test_an_operator_without_kernels_is_left_to_another_method():
    times_s = scaled(op_of(), op_of(make_kernel()), op_of())
    assert [math.isnan(s) for s in times_s] == [True, False, True]
    assert scaled() == []


@pytest.mark.parametrize(("origin", "gpu"), [(None, VOLTA_LIMITS), (VOLTA_LIMITS, None), (None, None)])
def test_without_cuda_on_both_sides_nothing_scales(origin, gpu):
    times_s = scaled(
        op_of(make_kernel()), origin=make_gpu("A", occupancy=origin), gpu=make_gpu("B", occupancy=gpu)
    )
    assert math.isnan(times_s[0])


def test_one_kernel_that_cannot_run_leaves_the_whole_operator_unscaled():
    # 98,304 bytes of shared memory fit the origin and not a destination with half of it.
    small = make_gpu("SMALL", occupancy=replace(VOLTA_LIMITS, max_shared_bytes_per_block=49_152))
    large = make_kernel(shared_bytes=98_304)
    mixed, fine = op_of(make_kernel(), large), op_of(make_kernel())
    abroad = scaled(mixed, fine, gpu=small)
    assert math.isnan(abroad[0])
    assert not math.isnan(abroad[1])
    impossible = scaled(mixed, fine, origin=small, gpu=ORIGIN)
    assert math.isnan(impossible[0])
    assert not math.isnan(impossible[1])
    assert not math.isnan(scaled(mixed)[0])


def test_resources_are_unknown_if_one_kernel_hides_them():
    known, hidden = make_kernel(), make_kernel(shared_bytes=None)
    assert not rests_on_unknown_resources([op_of(known), op_of(known, known)])
    assert rests_on_unknown_resources([op_of(known), op_of(known, hidden)])
    assert rests_on_unknown_resources([op_of(make_kernel(registers_per_thread=None))])
    assert not rests_on_unknown_resources([op_of()])
