"""nvidia-smi's answers, whole and broken."""

import os

import pytest

from advisor.core.devices import (
    MIB,
    Device,
    detect_device,
    detect_devices,
    device_state,
    parse_devices,
    why_in_use,
)
from advisor.core.gpus import resolve_gpu
from advisor.report.words import sentence
from tests.programs import write_program


def test_two_cards():
    text = "NVIDIA A100-SXM4-80GB, 81920, 512, 37, 300.00\nTesla T4, 15360, 0, 0, [N/A]\n"
    first, second = parse_devices(text)
    assert resolve_gpu(first.name).name == "A100-SXM-80GB"
    assert (first.memory_bytes, first.used_bytes) == (81920 * MIB, 512 * MIB)
    assert first.utilization == pytest.approx(0.37)
    assert (first.power_limit_w, second.power_limit_w) == (300.0, None)
    assert resolve_gpu(second.name).name == "T4"


@pytest.mark.parametrize("text", ["", "\n", "No devices were found", "a, b"])
def test_no_cards(text):
    assert parse_devices(text) == ()


def test_the_program_is_asked(tmp_path, monkeypatch):
    write_program(tmp_path / "nvidia-smi", 'echo "NVIDIA L4, 23034, 1, [N/A], 72.00"')
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    (device,) = detect_devices()
    assert device.name == "NVIDIA L4"
    assert device.utilization is None


@pytest.mark.parametrize(
    "body",
    [
        "exit 9",
        "exit 6",
        "kill -9 $$",
        "echo nonsense",
        "echo 'NVIDIA L4, 1, 2'",
        "echo 'No devices were found'",
    ],
)
def test_a_broken_driver_means_no_gpu_and_nothing_is_known(tmp_path, monkeypatch, body):
    write_program(tmp_path / "nvidia-smi", body)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert (detect_devices(), detect_device("GPU-8932f937")) == ((), None)
    state = device_state("0")
    assert {state.driver, state.sm_clock_hz, state.max_sm_clock_hz, state.power_limit_w} == {None}


def test_no_driver(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert detect_devices() == ()


def test_one_card_is_asked_for_by_its_name(tmp_path, monkeypatch):
    write_program(
        tmp_path / "nvidia-smi", f'echo "$@" > {tmp_path}/asked; echo "NVIDIA L4, 23034, 1, 50, 72.00"'
    )
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    user = detect_device("GPU-8932f937 ; x")
    assert user is not None
    assert user.utilization == 0.5
    assert "--id=GPU-8932f937 ; x" in (tmp_path / "asked").read_text()


# --- Who uses it -----------------------------------------------------------------------------------


def device(used_mib: float | None, utilization: float | None, total_mib: int | None = 81920) -> Device:
    return Device(
        name="NVIDIA A100-SXM4-80GB",
        memory_bytes=None if total_mib is None else total_mib * MIB,
        used_bytes=None if used_mib is None else round(used_mib * MIB),
        utilization=utilization,
    )


@pytest.mark.parametrize(
    ("user", "reason"),
    [
        (device(0, 0.92), "GPU 1 is in use: 92 % busy"),
        (device(70000, 0.16), "GPU 1 is in use: 16 % busy"),
        (device(40960, 0.0), "GPU 1 is in use: 40 GiB of its 80 GiB are taken"),
        (device(40960, None), "GPU 1 is in use: 40 GiB of its 80 GiB are taken"),
        (device(16384, 0.15), None),
        (device(None, None), None),
        (device(99, None, total_mib=None), None),
    ],
)
def test_a_card_that_others_use_says_what_for(user, reason):
    why = why_in_use(1, user)
    assert (None if why is None else sentence(why)) == reason


# --- What times depend on ------------------------------------------------------------------------


def test_driver_clocks_and_power_limit(tmp_path, monkeypatch):
    write_program(
        tmp_path / "nvidia-smi", f'echo "$@" > {tmp_path}/asked; echo "580.95.05, 1980, 1980, 700.00"'
    )
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    state = device_state("3")
    assert (state.driver, state.sm_clock_hz, state.max_sm_clock_hz) == ("580.95.05", 1.98e9, 1.98e9)
    assert state.power_limit_w == 700.0
    assert "--id=3" in (tmp_path / "asked").read_text()


def test_what_a_card_does_not_tell_is_unknown(tmp_path, monkeypatch):
    write_program(tmp_path / "nvidia-smi", 'echo "580.95, [N/A], 1980, [Not Supported]"')
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    state = device_state("0")
    assert (state.sm_clock_hz, state.max_sm_clock_hz, state.power_limit_w) == (None, 1.98e9, None)
