"""What nvidia-smi tells each second, summed up; a command never waits for it."""

import os
from pathlib import Path

import pytest

from advisor.receipt.gpu_use import GpuUse, sampling

MIB = 2**20
# Two seconds of two GPUs, a line cut off, and a driver that does not tell everything.
SAMPLES = """
NVIDIA L4, 23034, 100, 0, 30.0
NVIDIA L4, 23034, 9000, 100, 70.0
NVIDIA L4, 23034, 12000, 60, [N/A]
NVIDIA L4, 23034, 8000, 40, 50.0
NVIDIA L4, 2303
NVIDIA L4, 23034, [N/A], [N/A], 50.0
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """First on the path."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def tells(folder: Path, then: str = "while :; do read line < fifo; done") -> None:
    (folder / "samples").write_text(SAMPLES)
    os.mkfifo(folder / "told")
    os.mkfifo(folder / "fifo")
    program = folder / "nvidia-smi"
    program.write_text(f'#!/bin/sh\ncd {folder}\necho "$@" > asked\ncat samples\necho > told\n{then}\n')
    program.chmod(0o755)


def test_use_is_the_mean_over_all_samples_and_the_highest_peak(folder):
    tells(folder, "exit")
    with sampling({"CUDA_VISIBLE_DEVICES": "2,3"}) as sampler:
        (folder / "told").read_text()
    assert sampler.use == GpuUse(busy_share=0.5, peak_bytes=12000 * MIB, mean_w=50.0)
    asked = (folder / "asked").read_text()
    assert "--loop=1 --id=2,3" in asked
    assert "power.draw" in asked


def test_a_sampler_that_goes_on_ends_with_the_command(folder):
    tells(folder)
    with sampling({}) as sampler:
        (folder / "told").read_text()
    assert sampler.use is not None
    assert "--id" not in (folder / "asked").read_text()


def test_what_is_not_there_tells_nothing(folder, monkeypatch):
    tells(folder)
    # A command without GPUs uses none.
    with sampling({"CUDA_VISIBLE_DEVICES": ""}) as sampler:
        pass
    assert sampler.use is None
    assert not (folder / "asked").exists()
    monkeypatch.setenv("PATH", "/nowhere")
    with sampling({}) as sampler:
        pass
    assert sampler.use is None


def test_a_driver_that_fails_tells_nothing(folder):
    program = folder / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 'Failed to initialize NVML'; exit 9\n")
    program.chmod(0o755)
    with sampling({}) as sampler:
        pass
    assert sampler.use is None
