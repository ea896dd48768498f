"""Records of trust: bound to path and content, private, and never damaged into trust."""

import stat
from pathlib import Path

import pytest

from advisor.config.project_layer import (
    forget,
    is_current,
    is_trusted,
    read_project_file,
    remember,
    remembered,
)
from advisor.core.errors import ConfigError


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path


def project(folder: Path, text: str = "local: {}\n") -> tuple[Path, str]:
    folder.mkdir(exist_ok=True)
    path = folder / ".advisor.yaml"
    path.write_text(text)
    return path, read_project_file(path)[1]


def record_of(home: Path) -> Path:
    (record,) = (home / "data").rglob("*.json")
    return record


def test_trust_is_of_one_path_and_one_content(home):
    path, sha256 = project(home / "a")
    other, _ = project(home / "b")
    assert not is_trusted(path, sha256)
    remember(path, sha256)
    assert is_trusted(path, sha256)
    assert not is_trusted(other, sha256)
    assert not is_trusted(path, "0" * 64)


def test_a_new_content_takes_the_place_of_the_old(home):
    path, first = project(home / "a")
    remember(path, first)
    _, second = project(home / "a", "cloud: {}\n")
    remember(path, second)
    assert not is_trusted(path, first)
    assert [(one.path, is_current(one)) for one in remembered()] == [(path, True)]


def test_the_folder_may_be_reached_by_a_link(home):
    path, sha256 = project(home / "a")
    (home / "link").symlink_to("a")
    remember(home / "link" / path.name, sha256)
    assert is_trusted(path, sha256)


def test_taking_it_back(home):
    path, sha256 = project(home / "a")
    remember(path, sha256)
    path.unlink()
    assert [is_current(one) for one in remembered()] == [None]
    assert forget(path)
    assert not forget(path)
    assert list(remembered()) == []


def test_records_are_private(home):
    remember(*project(home / "a"))
    record = record_of(home)
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    assert stat.S_IMODE(record.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "body",
    [b"", b"\xff", b"[]", b"null", b"{}", b'{"format_version": 2}', b'{"format_version": 1, "file": 5}'],
)
def test_a_damaged_record_trusts_nothing(home, body):
    path, sha256 = project(home / "a")
    remember(path, sha256)
    record_of(home).write_bytes(body)
    assert not is_trusted(path, sha256)
    assert list(remembered()) == []
    remember(path, sha256)
    assert is_trusted(path, sha256)


def test_the_hash_is_of_the_text_that_is_read(home):
    path, _ = project(home / "a", "a: 1\n")
    text, sha256 = read_project_file(path)
    assert (text, len(sha256)) == ("a: 1\n", 64)


def test_a_file_that_is_too_large_or_none(home):
    path, _ = project(home / "a")
    path.write_text("#" * 64_001)
    with pytest.raises(ConfigError, match="larger than 64 kB"):
        read_project_file(path)
    with pytest.raises(ConfigError, match="cannot read"):
        read_project_file(home / "a")
