"""What nvidia-smi tells each second, and which GPUs a command gets of CUDA_VISIBLE_DEVICES."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from advisor.core.devices import Device
from advisor.receipt.command import VARIABLE, GpuUse, gpus_seen, sampling
from tests.programs import write_program

MIB = 2**20
# Two seconds of two GPUs, a line cut off, and a driver that does not tell everything.
SAMPLES = """
GPU-a, 100, 0, 30.0, 210
GPU-b, 9000, 100, 70.0, 1980
GPU-a, 12000, 60, [N/A], 1410
GPU-b, 8000, 40, 50.0, [N/A]
GPU-a, 2303
GPU-b, [N/A], [N/A], 50.0, 1980
"""
BOTH = GpuUse(busy_share=0.5, peak_bytes=12000 * MIB, mean_w=50.0, mean_clock_hz=1.2e9)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """First on the path."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path


def tells(folder: Path, users: str = "", then: str = "while :; do read line < fifo; done") -> None:
    """An nvidia-smi that tells of cards, and of processes on them; a pipe each says that all was told."""
    (folder / "cards").write_text(SAMPLES)
    (folder / "users").write_text(users)
    for name in ("told-cards", "told-users", "fifo"):
        os.mkfifo(folder / name)
    write_program(
        folder / "nvidia-smi",
        f'cd {folder}\ncase "$1" in *compute-apps*) what=users;; *) what=cards;; esac\n'
        f'echo "$@" > asked-$what\ncat $what\necho > told-$what\n{then}',
    )


def seen(
    folder: Path, environment: dict[str, str], *, then_of: tuple[str, ...] = ("cards", "users")
) -> GpuUse | None:
    with sampling(environment) as sampler:
        for what in then_of:
            (folder / f"told-{what}").read_text()
    return sampler.use


def test_use_is_the_mean_over_all_samples_and_the_highest_peak(folder):
    tells(folder, then="exit")
    assert seen(folder, {"CUDA_VISIBLE_DEVICES": "2,3"}, then_of=("cards",)) == BOTH
    asked = (folder / "asked-cards").read_text()
    assert "--loop=1 --id=2,3" in asked
    assert "power.draw" in asked


@pytest.mark.parametrize(
    ("users", "use"),
    [
        (
            "GPU-b, {own}\nGPU-a, 1\n",
            GpuUse(busy_share=0.7, peak_bytes=9000 * MIB, mean_w=60.0, mean_clock_hz=1.98e9),
        ),
        ("GPU-b, {own}\nGPU-a, {own}\n", BOTH),
        # In a container the driver names processes of the machine outside, or none.
        ("GPU-b, 1\n[N/A], [N/A]\nGPU-a\n", replace(BOTH, num_unsure=2)),
        ("", replace(BOTH, num_unsure=2)),
    ],
    ids=["one of two", "both", "of others", "nobody"],
)
def test_cards_count_on_which_the_command_works_else_all_do(users, use, folder):
    tells(folder, users.format(own=os.getpid()))
    assert seen(folder, {}) == use
    assert "--id" not in (folder / "asked-cards").read_text()


def test_what_is_not_there_tells_nothing(folder, monkeypatch):
    tells(folder)
    # A command without GPUs uses none.
    assert seen(folder, {"CUDA_VISIBLE_DEVICES": ""}, then_of=()) is None
    assert not (folder / "asked-cards").exists()
    monkeypatch.setenv("PATH", "/nowhere")
    assert seen(folder, {}, then_of=()) is None


def test_a_driver_that_fails_tells_nothing(folder):
    write_program(folder / "nvidia-smi", "echo 'Failed to initialize NVML'; exit 9")
    assert seen(folder, {}, then_of=()) is None


def cards(*names: str) -> list[Device]:
    return [Device(name=name, memory_bytes=None, used_bytes=None, utilization=None) for name in names]


@pytest.mark.parametrize(
    ("which", "num_visible"),
    [
        (None, 4),
        ("0", 1),
        ("0,2", 2),
        ("3, 1", 2),
        ("0,9,1", 1),
        ("0,-1,1", 1),
        ("0,²,1", 1),
        ("0,--1", 1),
        ("GPU-8932f937,GPU-1234", 2),
    ],
)
def test_how_many_are_visible(which, num_visible):
    seen = gpus_seen(cards(*["NVIDIA L4"] * 4), {} if which is None else {VARIABLE: which})
    assert (seen.name, seen.num_visible, seen.num_all) == ("L4", num_visible, 4)


@pytest.mark.parametrize("which", ["", "-1", "NoDevFiles,"])
def test_none_visible_is_none(which):
    assert gpus_seen(cards("NVIDIA L4") if which != "NoDevFiles," else [], {VARIABLE: which}) is None


def test_no_card_is_none():
    assert gpus_seen([], {}) is None


def test_of_several_kinds_the_first_visible_counts_and_a_stranger_keeps_its_name():
    mixed = cards("NVIDIA L4", "NVIDIA GeForce GTX 9999")
    seen = gpus_seen(mixed, {VARIABLE: "1,0"})
    assert seen.name == "NVIDIA GeForce GTX 9999"
