"""Occupancy against NVIDIA's published examples and counts that follow by hand."""

import pytest

from advisor.core.gpus import load_gpus
from advisor.native import count_resident_blocks
from advisor.native.reference import occupancy, resident_blocks
from tests.unit.native.samples import BACKENDS, KIB, LIMITS, make_gpus, make_kernels

# Compute capability, threads, registers a thread, shared bytes, resident blocks, occupancy, and why.
EXAMPLES = [
    # CUDA C++ Best Practices Guide, "Calculating Occupancy": the numbers are theirs.
    ("7.0", 128, 37, 0, 12, 0.75, "37*32 -> 1280 a warp; 65536/1280 = 51 -> 48 warps; 48/4"),
    ("7.0", 320, 37, 0, 4, 0.625, "48 warps / 10 = 4 blocks, 40 of 64 warps"),
    ("7.0", 256, 32, 0, 8, 1.0, "32 registers are the most that 2048 threads can have"),
    ("7.0", 256, 33, 0, 6, 0.75, "33*32 -> 1280 a warp; 48 warps / 8"),
    # CUDA C++ Programming Guide, "Multiprocessor Level": one register more halves the blocks.
    ("6.1", 512, 64, 0, 2, 0.5, "2 x 512 x 64 registers are exactly the 65536 there are"),
    ("6.1", 512, 65, 0, 1, 0.25, "65*32 -> 2304 a warp; 28 warps hold one block of 16"),
    # Kepler Tuning Guide: GK210 doubles the registers; Maxwell has half again.
    ("3.7", 256, 128, 0, 4, 0.5, "4096 a warp; 131072/4096 = 32 warps / 8"),
    ("5.2", 256, 128, 0, 2, 0.25, "4096 a warp; 65536/4096 = 16 warps / 8"),
    ("3.7", 128, 32, 12 * KIB, 9, 0.5625, "112/12 = 9.3 blocks by shared memory; 36 of 64 warps"),
    ("3.7", 32, 32, 0, 16, 0.25, "16 block slots of one warp"),
    ("5.2", 32, 32, 0, 32, 0.5, "32 block slots of one warp"),
    # P100 has two partitions, so warps round down to even numbers rather than to fours.
    ("6.0", 160, 40, 0, 10, 0.78125, "1280 a warp; 51 -> 50 warps / 5"),
    ("7.0", 160, 40, 0, 9, 0.703125, "1280 a warp; 51 -> 48 warps / 5 = 9.6"),
    # Turing Tuning Guide: 32 warps, 16 blocks, 64 KiB.
    ("7.5", 256, 32, 0, 4, 1.0, "1024 threads / 256"),
    ("7.5", 32, 32, 0, 16, 0.5, "16 block slots"),
    ("7.5", 128, 64, 24 * KIB, 2, 0.25, "64/24 = 2.7 blocks by shared memory; 8 of 32 warps"),
    # NVIDIA Ampere GPU Architecture Tuning Guide: 1 KiB a block is reserved; 163 of 164 KiB usable.
    ("8.0", 256, 32, 20 * KIB, 7, 0.875, "164/21 = 7.8; without the reserved KiB it would be 8"),
    ("8.0", 128, 32, 163 * KIB, 1, 0.0625, "163 + 1 KiB are the whole 164"),
    ("8.6", 1024, 32, 0, 1, 2 / 3, "1536 threads hold one block of 1024"),
    ("8.6", 64, 32, 0, 16, 2 / 3, "16 block slots, 32 of 48 warps"),
    # NVIDIA Ada GPU Architecture Tuning Guide: 24 blocks.
    ("8.9", 64, 32, 0, 24, 1.0, "24 block slots, 48 of 48 warps"),
    # NVIDIA Hopper Tuning Guide: 64 warps, 228 KiB of which a block has 227.
    ("9.0", 384, 168, 200 * KIB, 1, 0.1875, "5376 a warp; 12 warps / 12; 228/201 = 1"),
    ("9.0", 128, 32, 32 * KIB, 6, 0.375, "228/33 = 6.9"),
    # What cannot be launched at all.
    ("7.0", 1025, 32, 0, 0, 0.0, "a block has at most 1024 threads"),
    ("7.0", 32, 256, 0, 0, 0.0, "a thread has at most 255 registers"),
    ("7.0", 1024, 65, 0, 0, 0.0, "32 warps x 2304 are more than a block's 65536"),
    ("3.7", 1024, 65, 0, 0, 0.0, "the SM has 131072, but a block still 65536"),
    ("6.0", 288, 173, 0, 0, 0.0, "5632 a warp; 9 -> 12 warps in the launch check are over 65536"),
    ("5.2", 128, 32, 48 * KIB + 1, 0, 0.0, "a block has at most 48 KiB"),
    ("8.0", 128, 32, 163 * KIB + 1, 0, 0.0, "a block has at most 163 KiB"),
    # What does not limit.
    ("7.0", 64, 0, 0, 32, 1.0, "no registers at all: block slots and threads decide"),
    ("9.0", 1, 1, 0, 32, 0.5, "one thread takes a warp"),
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("capability", "threads", "registers", "shared", "blocks", "share", "why"), EXAMPLES)
def test_published_and_hand_counted_examples(
    backend, capability, threads, registers, shared, blocks, share, why
):
    kernels = make_kernels({"threads": threads, "registers": registers, "shared": shared})
    resident_KG = backend.count_resident_blocks(kernels, make_gpus({"cc": capability}))  # noqa: N806
    assert resident_KG.tolist() == [[blocks]], why
    assert resident_blocks(threads, registers, shared, LIMITS[capability]) == blocks
    assert occupancy(threads, blocks, LIMITS[capability]) == pytest.approx(share)


@pytest.mark.parametrize("capability", LIMITS)
def test_the_catalog_has_the_limits_of_the_examples(capability):
    gpus = [gpu for gpu in load_gpus().values() if gpu.compute_capability == capability]
    assert [gpu.name for gpu in gpus if gpu.occupancy != LIMITS[capability]] == []


def test_one_row_a_kernel_one_column_a_gpu():
    kernels = make_kernels({"threads": 64}, {"threads": 512})
    resident_KG = count_resident_blocks(kernels, make_gpus({"cc": "7.0"}, {"cc": "7.5"}, {"cc": "8.9"}))  # noqa: N806
    assert resident_KG.tolist() == [[32, 16, 24], [4, 2, 3]]
