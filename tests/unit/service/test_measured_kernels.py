"""Measuring and calibrating as use cases: what is handed on, noted and kept."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import advisor.measure
from advisor.config.layers import FLAG, TracingSettings
from advisor.config.settings import InputSettings, ProfileSettings
from advisor.core.errors import InputError
from advisor.formats.recording_files import read_recording
from advisor.measure import Extent, grid
from advisor.predict.knowledge import read_calibration
from advisor.service.measured_kernels import MeasureRequest, calibrate_gpu, measure_kernels
from tests.listening import Heard
from tests.recordings import make_measurement, write_recording

PYTHON = Path("/p/python")


def measuring(monkeypatch: pytest.MonkeyPatch, steps: list[tuple[int, int]], end: type | None = None) -> Any:
    """A measurement that counts so; answers with the recording that is at its path."""
    calls: list[Any] = []

    def measure(cases: Any, path: Path, *, progress: Callable[[int, int], None], **options: Any) -> Any:
        calls.append((cases, options))
        for done, total in steps:
            progress(done, total)
        if end is not None:
            raise end
        return read_recording(path)

    monkeypatch.setattr(advisor.measure, "measure", measure)
    return calls


def request(path: Path) -> MeasureRequest:
    return MeasureRequest(extent=Extent.QUICK, out=path, families=("gemm",), backend="cpu")


def test_what_was_asked_for_is_measured(monkeypatch, tmp_path):
    path = write_recording(tmp_path / "k.jsonl", [make_measurement()], backend="cpu")
    calls = measuring(monkeypatch, [(0, 2), (1, 2), (2, 2)])
    heard = Heard()
    answer = measure_kernels(request(path), PYTHON, heard)
    assert answer.recording == read_recording(path)
    ((cases, options),) = calls
    assert cases == grid(Extent.QUICK, only=["gemm"], backend="cpu")
    assert options == {"backend": "cpu", "python": Path("/p/python")}
    assert heard.notes == []


def test_a_complete_recording_is_noted(monkeypatch, tmp_path):
    path = write_recording(tmp_path / "k.jsonl", [make_measurement()], backend="cpu")
    measuring(monkeypatch, [(2, 2)])
    heard = Heard()
    measure_kernels(request(path), PYTHON, heard)
    assert heard.notes == [f"{path} was complete already."]


@pytest.mark.parametrize(("steps", "words"), [([(0, 9), (4, 9)], "4 of 9 are kept in"), ([(0, 9)], None)])
def test_who_interrupts_hears_what_is_kept(monkeypatch, tmp_path, steps, words):
    measuring(monkeypatch, steps, KeyboardInterrupt)
    heard = Heard()
    with pytest.raises(KeyboardInterrupt):
        measure_kernels(request(tmp_path / "k.jsonl"), PYTHON, heard)
    assert [words in note for note in heard.notes] == ([] if words is None else [True])


def test_a_recording_is_fitted_to_and_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    kernels = [make_measurement(time_s=0.02, case=f"{n:016x}") for n in range(9)]
    path = write_recording(tmp_path / "k.jsonl", kernels)
    tracing = TracingSettings(profile=ProfileSettings(), input=InputSettings(), origins={})
    calibration, kept = calibrate_gpu(path, tracing, Heard())
    assert calibration.gpu == "L4"
    assert kept.is_file()
    stored = read_calibration("L4")
    assert stored is not None
    assert stored["source"].endswith(calibration.source)


def test_an_interpreter_for_a_recording_is_refused(tmp_path):
    given = TracingSettings(
        profile=ProfileSettings(), input=InputSettings(), origins={"profile.python": FLAG}
    )
    with pytest.raises(InputError, match=r"give profile\.python to measure here, or source"):
        calibrate_gpu(tmp_path / "k.jsonl", given, Heard())
