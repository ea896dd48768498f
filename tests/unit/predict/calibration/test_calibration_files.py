"""The files of calibrations: read back, replaced, refused when broken, and first among the constants."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.errors import CalibrationError, CatalogError
from advisor.core.gpus import resolve_gpu
from advisor.predict import knowledge
from advisor.predict.constants import constants_for, described
from advisor.report.words import sentence

VALUES = {"streaming_fraction": 0.91, "gemm_fraction.fp16": 0.5, "gemm_fraction.bf16": 0.55}
L4 = resolve_gpu("L4")


@pytest.fixture(autouse=True)
def data_home(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    return tmp_path


def test_the_file_is_one_a_gpu_in_the_users_folder(data_home):
    path = knowledge.write_calibration("L4", "2026-11-21, driver 580", VALUES)
    assert path == knowledge.calibration_path("L4") == data_home / "advisor" / "calibrations" / "L4.toml"
    assert tomllib.loads(path.read_text()) == {
        "source": "calibrated on this machine, 2026-11-21, driver 580",
        "streaming_fraction": 0.91,
        "gemm_fraction": {"fp16": 0.5, "bf16": 0.55},
    }


def test_one_of_a_recording_says_so_and_counts_as_measured_too():
    knowledge.write_calibration("L4", "2026-11-21", VALUES, where=knowledge.RECORDED)
    constants = constants_for(L4)
    assert (
        sentence(described(constants.origin)[0])
        == "roofline constants, calibrated from a recording, 2026-11-21: gemm (bf16, fp16), streaming"
    )
    assert constants.measured >= set(VALUES)


def test_those_that_are_there_are_listed(data_home):
    assert knowledge.calibrated_gpus() == ()
    for gpu in ("T4", "L4"):
        knowledge.write_calibration(gpu, "today", VALUES)
    (data_home / "advisor" / "calibrations" / "folder.toml").mkdir()
    (data_home / "advisor" / "calibrations" / "notes.txt").write_text("")
    assert knowledge.calibrated_gpus() == ("L4", "T4")


def test_a_newer_one_takes_the_place_of_an_older_one():
    assert knowledge.read_calibration("L4") is None
    knowledge.write_calibration("L4", "first", VALUES)
    knowledge.write_calibration("L4", "second", {"streaming_fraction": 0.8})
    assert knowledge.read_calibration("L4") == {
        "source": "calibrated on this machine, second",
        "streaming_fraction": 0.8,
    }


def test_it_comes_before_the_catalog_and_counts_as_measured():
    before, other = constants_for(L4), constants_for(resolve_gpu("T4"))
    assert "gemm_fraction.fp16" not in before.measured
    knowledge.write_calibration("L4", "today", VALUES)
    after = constants_for(L4)
    assert constants_for(resolve_gpu("T4")) == other
    assert (after.fractions["streaming_fraction"], after.fractions["gemm_fraction.fp16"]) == (0.91, 0.5)
    assert after.measured >= set(VALUES)
    changed = {name for name, value in after.fractions.items() if value != before.fractions[name]}
    assert changed == set(VALUES)
    assert (
        sentence(described(after.origin)[0])
        == "roofline constants, calibrated on this machine, today: gemm (bf16, fp16), streaming"
    )


@pytest.mark.parametrize(
    "text",
    [
        "source = ",
        'source = "by hand"\nstreaming_fraction = 0.9',
        "streaming_fraction = 0.9",
        f'source = "{knowledge.CALIBRATED}"\nstreaming_fraction = 0',
        f'source = "{knowledge.CALIBRATED}"\nstreaming_fraction = -0.5',
        f'source = "{knowledge.CALIBRATED}"\nstreaming_fraction = nan',
        f'source = "{knowledge.CALIBRATED}"\ngemm_fraction.fp16 = 3',
        f'source = "{knowledge.CALIBRATED}"\ngemm_fraction.fp16 = "fast"',
        f'source = "{knowledge.CALIBRATED}"\ngemm_fraction.fp16 = true',
        f'source = "{knowledge.CALIBRATED}"\ngemm_fraction = 0.5',
        f'source = "{knowledge.CALIBRATED}"\nlearned = 0.5',
        b"\xff\xfe",
    ],
)
def test_a_broken_one_is_refused_with_its_path(text):
    path = knowledge.calibration_path("L4")
    path.parent.mkdir(parents=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(CatalogError, match=r"L4\.toml' cannot be used.*Delete it"):
        constants_for(L4)


def test_a_folder_that_cannot_be_written(monkeypatch, data_home):
    (data_home / "file").write_text("")
    monkeypatch.setenv("XDG_DATA_HOME", str(data_home / "file"))
    with pytest.raises(CalibrationError, match="XDG_DATA_HOME"):
        knowledge.write_calibration("L4", "today", VALUES)


@given(source=st.text(max_size=40), value=st.floats(0.001, 2.0))
def test_whatever_a_driver_is_called_the_file_can_be_read(source, value):
    knowledge.write_calibration("T4", source, {"streaming_fraction": value})
    table = knowledge.read_calibration("T4")
    assert table["streaming_fraction"] == pytest.approx(value, abs=1e-4)
