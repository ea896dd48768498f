"""The mirror of the file system where a profiled script's checkpoints go."""

from pathlib import Path

import pytest

from advisor.payload.fake.saved_files import SavedFiles


@pytest.fixture
def saved(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "job"))
    (tmp_path / "job").mkdir()
    return SavedFiles()


@pytest.fixture
def home(tmp_path, monkeypatch):
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def save(saved: SavedFiles, path: object) -> str:
    stand_in = saved.place(path)
    Path(stand_in).write_text("saved")
    return stand_in


def test_nothing_is_made_before_something_is_saved(saved, home, tmp_path):
    assert saved.find("model.pt") is None
    assert saved.folder(".") is None
    assert list((tmp_path / "job").iterdir()) == []


def test_a_file_is_written_elsewhere_and_found_by_each_of_its_names(saved, home, tmp_path):
    stand_in = save(saved, "model.pt")
    assert stand_in.startswith(str(tmp_path / "job"))
    assert list(home.iterdir()) == []
    for name in ("model.pt", b"model.pt", home / "model.pt", str(home / "sub" / ".." / "model.pt")):
        assert saved.find(name) == stand_in


def test_what_was_not_saved_is_left_to_the_real_place(saved, home):
    save(saved, "model.pt")
    (home / "data.txt").write_text("real")
    for path in ("data.txt", "missing.pt", home, home.parent, "/", 0, None):
        assert saved.find(path) is None


def test_a_saved_file_hides_a_real_one(saved, home):
    (home / "model.pt").write_text("real")
    stand_in = save(saved, "model.pt")
    assert saved.find("model.pt") == stand_in
    assert (home / "model.pt").read_text() == "real"


def test_a_folder_that_only_the_script_made_up_is_found(saved, home):
    save(saved, "out/config.json")
    assert saved.find("out") == saved.folder("out")
    (home / "out").mkdir()
    assert saved.find("out") is None
    assert [path.name for path in Path(saved.folder("out")).iterdir()] == ["config.json"]


def test_a_stand_in_is_its_own_stand_in(saved, home):
    stand_in = save(saved, "out/config.json")
    assert saved.place(stand_in) == stand_in
    assert saved.find(stand_in) is None
    assert saved.folder(Path(stand_in).parent) is None


def test_a_removed_file_is_gone(saved, home):
    Path(save(saved, "model.pt")).unlink()
    assert saved.find("model.pt") is None


def test_two_runs_do_not_meet(saved, home):
    save(saved, "model.pt")
    other = SavedFiles()
    assert other.find("model.pt") is None
    assert other.place("model.pt") != saved.place("model.pt")
