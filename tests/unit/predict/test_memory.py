"""Memory fit in hand arithmetic, and what would fit instead."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from advisor.core.units import GIB
from advisor.core.values import MemoryUse
from advisor.predict.memory import (
    CONTEXT_BYTES,
    FRAGMENTATION,
    WORKSPACE_BYTES,
    needed_bytes,
    what_would_fit,
)
from tests.builders import make_gpu

STATE = MemoryUse(
    parameter_bytes=GIB,
    gradient_bytes=GIB,
    optimizer_bytes=2 * GIB,
    activation_bytes=16 * GIB,
    peak_bytes=20 * GIB,
)


def test_one_gpu() -> None:
    assert needed_bytes(STATE) == round(20 * GIB * FRAGMENTATION) + WORKSPACE_BYTES + CONTEXT_BYTES


def test_data_parallel_keeps_a_second_copy_of_the_gradients() -> None:
    alone, in_parallel = needed_bytes(STATE), needed_bytes(STATE, num_gpus=2)
    assert alone is not None
    assert in_parallel == alone + round(GIB * FRAGMENTATION)


def test_a_smaller_batch_that_fits_does_fit() -> None:
    gpu = make_gpu(memory_bytes=12 * GIB)
    batch = what_would_fit(STATE, gpu, batch_size=64)["fitting_batch_size"]
    assert isinstance(batch, int)
    for size, fits in ((batch, True), (batch + 1, False)):
        activation = round(16 * GIB * size / 64)
        smaller = MemoryUse(
            parameter_bytes=GIB,
            gradient_bytes=GIB,
            optimizer_bytes=2 * GIB,
            activation_bytes=activation,
            peak_bytes=4 * GIB + activation,
        )
        needed = needed_bytes(smaller)
        assert needed is not None
        assert (needed <= gpu.memory_bytes) == fits


def test_weights_alone_too_large() -> None:
    advice = what_would_fit(STATE, make_gpu(memory_bytes=3 * GIB), batch_size=64)
    assert (advice["fitting_share"], advice["fitting_batch_size"]) == (0.0, 0)


def test_not_even_one_sample() -> None:
    gpu = make_gpu(memory_bytes=round(5.2 * GIB))
    advice = what_would_fit(STATE, gpu, batch_size=8)
    assert 0 < (advice["fitting_share"] or 0) < 1 / 8
    assert advice["fitting_batch_size"] == 0


def test_unknown_batch() -> None:
    advice = what_would_fit(STATE, make_gpu(memory_bytes=12 * GIB), batch_size=None)
    assert 0 < (advice["fitting_share"] or 0) < 1
    assert (advice["batch_size"], advice["fitting_batch_size"]) == (None, None)


def test_an_unknown_peak_stays_unknown() -> None:
    unknown = replace(STATE, optimizer_bytes=None, activation_bytes=None, peak_bytes=None)
    assert needed_bytes(unknown) is None
    advice = what_would_fit(unknown, make_gpu(), batch_size=64)
    assert advice == {"fitting_share": None, "batch_size": 64, "fitting_batch_size": None}


def test_the_batch_that_would_fit_is_smaller_also_with_gradient_buckets() -> None:
    gpu = make_gpu(memory_bytes=round(21.9 * GIB))
    alone = needed_bytes(STATE)
    assert alone is not None
    assert alone <= gpu.memory_bytes < (needed_bytes(STATE, num_gpus=8) or 0)
    fitting = what_would_fit(STATE, gpu, batch_size=64, num_gpus=8)["fitting_batch_size"]
    assert fitting is not None
    assert 60 <= fitting < 64


@given(st.integers(2, 512), st.floats(4.0, 40.0), st.booleans())
def test_the_batch_that_fits_is_the_largest_below_the_one_that_does_not(
    batch_size: int, memory_gib: float, is_parallel: bool
) -> None:
    num_gpus = 2 if is_parallel else 1
    gpu = make_gpu(memory_bytes=round(memory_gib * GIB))

    def fits(size: int) -> bool:
        activation = round(16 * GIB * size / batch_size)
        needed = needed_bytes(replace(STATE, peak_bytes=4 * GIB + activation), num_gpus=num_gpus)
        return needed is not None and needed <= gpu.memory_bytes

    largest = max((size for size in range(1, batch_size) if fits(size)), default=0)
    advice = what_would_fit(STATE, gpu, batch_size=batch_size, num_gpus=num_gpus)
    assert advice["fitting_batch_size"] == largest
