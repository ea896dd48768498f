"""The compiled module: same face as the reference, agrees on many kernels, releases the GIL."""

# ruff: noqa: N806 -- the capital letters are shape suffixes

import inspect
import sys
import threading
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest

from advisor import native
from advisor.native import reference
from tests.unit.native.samples import make_gpus, make_kernels, needs_compiled, random_gpus, random_kernels


def test_the_backend_says_what_it_is():
    assert (native.scale_kernels is not reference.scale_kernels) == native.COMPILED
    assert (native.WHY_NOT_COMPILED is None) == native.COMPILED


def test_the_public_face_is_complete():
    assert len(set(native.__all__)) == len(native.__all__)
    assert all(hasattr(native, name) for name in native.__all__)


@needs_compiled
@pytest.mark.parametrize("name", ["count_resident_blocks", "scale_kernels"])
def test_compiled_functions_take_the_parameters_of_the_reference(name):
    signature = str(getattr(native, name).__nb_signature__[0][0])
    for parameter in inspect.signature(getattr(reference, name)).parameters:
        assert f"{parameter}:" in signature


@needs_compiled
def test_many_kernels_are_scaled_one_by_one():
    rng = np.random.default_rng(7)
    kernels, origin, gpus = random_kernels(rng, 100_000), random_gpus(rng, 1), random_gpus(rng, 4)
    time_s_KG = native.scale_kernels(kernels, origin, gpus)
    assert time_s_KG.shape == (100_000, 4)
    assert np.isfinite(time_s_KG).all()
    assert (time_s_KG > 0).all()


@needs_compiled
def test_results_outlive_their_arguments_and_are_ours_to_change():
    time_s_KG = native.scale_kernels(make_kernels({}), make_gpus({}), make_gpus({}, {}))
    time_s_KG *= 2
    assert time_s_KG.tolist() == [[2e-3, 2e-3]]


@needs_compiled
def test_arrays_are_never_converted_behind_the_callers_back():
    kernels = make_kernels({})
    names = ["blocks_K", "threads_per_block_K", "registers_per_thread_K", "shared_bytes_K"]
    columns = {name: getattr(kernels, name) for name in names}
    floats = SimpleNamespace(
        **columns,
        duration_s_K=kernels.duration_s_K.astype(np.float32),
        intensity_flops_per_byte_K=kernels.intensity_flops_per_byte_K,
    )
    with pytest.raises(TypeError, match="duration_s_K must be a C-contiguous numpy array"):
        native.count_resident_blocks(floats, make_gpus({}))  # type: ignore[arg-type]


def runs_beside(work: Callable[[], object]) -> bool:
    """Whether this thread got to run while another was inside ``work``.

    The interpreter is told never to take the GIL away, so a thread runs only when the other gives it up:
    by blocking, by ending, or inside ``work``.
    """
    inside = threading.Event()
    state = {"done": False}

    def worker() -> None:
        inside.set()
        work()
        state["done"] = True

    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1000.0)
    try:
        thread = threading.Thread(target=worker)
        thread.start()
        inside.wait()
        seen = not state["done"]
        thread.join()
    finally:
        sys.setswitchinterval(interval_s)
    return seen


@needs_compiled
def test_other_threads_run_while_the_core_computes():
    rng = np.random.default_rng(3)
    kernels, origin, gpus = random_kernels(rng, 20_000), random_gpus(rng, 1), random_gpus(rng, 50)
    # A busy machine may wake this thread too late, so it tries again; without the release none succeeds.
    attempts = (runs_beside(lambda: native.scale_kernels(kernels, origin, gpus)) for _ in range(20))
    assert any(attempts)
    attempts = (runs_beside(lambda: native.count_resident_blocks(kernels, gpus)) for _ in range(20))
    assert any(attempts)


def test_the_observer_sees_nothing_while_the_gil_is_held():
    assert not any(runs_beside(lambda: sum(range(20_000))) for _ in range(20))
