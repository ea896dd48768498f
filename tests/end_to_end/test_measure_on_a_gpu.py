"""advisor measure and advisor calibrate on a GPU that is there."""

import statistics

import pytest

from advisor.formats.recording_files import read_recording
from advisor.operators.registry import family_of
from tests.devices import need_torch_and_cuda
from tests.end_to_end.cli import Shell

pytestmark = [pytest.mark.torch, pytest.mark.gpu, pytest.mark.slow]


@pytest.fixture(scope="module", autouse=True)
def gpu():
    need_torch_and_cuda()


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    shell = Shell(folder=tmp_path_factory.mktemp("gpu"))
    answer = shell.run("measure", "--quick", timeout_s=600)
    assert answer.code == 0, answer.err
    return read_recording(shell.folder / "kernels.jsonl")


def test_nearly_every_case_is_measured(recording):
    allowed = ("needs compute capability", "out of memory")
    refused = [entry.reason for entry in recording.skipped if not any(w in entry.reason for w in allowed)]
    assert len(refused) <= 4, refused
    assert recording.header.gpu is not None


def test_times_are_steady(recording):
    spreads = [kernel.spread for kernel in recording.measurements]
    assert statistics.median(spreads) < 0.02
    assert recording.drift < 0.2


def test_no_kernel_is_faster_than_light(recording):
    from advisor.core.gpus import resolve_gpu

    gpu = resolve_gpu(recording.header.gpu)
    peak = max({**gpu.vector_flops_per_s, **gpu.tensor_flops_per_s}.values())
    for kernel in recording.measurements:
        if family_of(kernel.op) in ("gemm", "convolution"):
            # Winograd needs fewer multiplications than a convolution has.
            assert kernel.op.flops / kernel.time_s < 4 * peak, kernel


def test_small_kernels_show_no_host_time(recording):
    assert min(kernel.time_s for kernel in recording.measurements) < 6e-6


def test_calibrating_takes_all_constants_from_this_gpu(tmp_path):
    answer = Shell(folder=tmp_path).run("calibrate", "--json", timeout_s=600)
    assert answer.code == 0, answer.err
    constants = answer.document["calibration"]["constants"]
    names = {fit["name"].partition(".")[0] for fit in constants}
    assert names == {"streaming_fraction", "reduction_fraction", "gemm_fraction", "conv_fraction"}
    assert all(0.05 < fit["after"] < 1.6 for fit in constants)
