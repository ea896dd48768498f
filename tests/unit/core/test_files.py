"""A file is whole or not there."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from advisor.core.files import write_atomically


def test_write_and_overwrite(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for payload in (b"one", b"two"):
        write_atomically(path, payload)
        assert path.read_bytes() == payload
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]
    assert stat.S_IMODE(path.stat().st_mode) & 0o400


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_an_interruption_keeps_the_old_file_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def interrupted(self: Path, target: Path) -> Path:
        raise error

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(error):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]


def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        write_atomically(tmp_path / "no" / "a", b"")
