"""Files that people write or somebody else made: size, encoding, strict YAML, and faults in words."""

import gzip
import os
import socket
import tempfile
import zlib
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, ValidationError

from advisor.core.errors import ConfigError
from advisor.formats import foreign_files
from advisor.formats.foreign_files import first_bytes, is_gzip, open_regular, open_unpacked, read_plain
from advisor.formats.user_files import (
    MAX_FILE_BYTES,
    at_home,
    fault_in_words,
    parse_document,
    read_document,
    read_text,
)


def yaml_of(path: Path, text: str) -> Any:
    path.write_text(text, encoding="utf-8")
    return read_document(path, kind="list of rates", advice="Ask somebody.").value


def test_a_tilde_is_the_home_folder_where_there_is_one(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert at_home("~/a.yaml") == at_home(Path("~/a.yaml")) == tmp_path / "a.yaml"
    assert at_home("~nobody-here/a.yaml") == Path("~nobody-here/a.yaml")
    assert at_home("b/~/a.yaml") == Path("b/~/a.yaml")


def test_plain_yaml(tmp_path):
    assert yaml_of(tmp_path / "x.yaml", "a: [1, 2.5]\nb: null\n") == {"a": [1, 2.5], "b": None}
    assert yaml_of(tmp_path / "x.yaml", "# nothing\n") is None


def test_the_mark_that_editors_put_first_is_left_out(tmp_path):
    (tmp_path / "x.csv").write_bytes(b"\xef\xbb\xbfprovider")
    assert read_text(tmp_path / "x.csv", kind="table") == "provider"
    assert yaml_of(tmp_path / "x.yaml", "\ufeffa: 1") == {"a": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\na: 2", "the key 'a' stands twice"),
        ("- a: 1\n- {b: 1, b: 2}", "the key 'b' stands twice"),
        ("a: &a [1]\nb: *a", "aliases are not allowed"),
        ("a: [", "line 1"),
        ("a: 2026-13-01", "month must be in 1..12"),
        ("!!python/object/apply:os.system [echo]", "could not determine a constructor"),
        ("? [1, 2]\n: 3", "unhashable key"),
    ],
)
def test_malformed_yaml_is_refused_with_advice(tmp_path, text, message):
    path = tmp_path / "x.yaml"
    with pytest.raises(ConfigError, match="is not valid YAML: ") as caught:
        yaml_of(path, text)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert str(caught.value).endswith("Ask somebody.")


def test_nesting_has_a_limit(tmp_path):
    with pytest.raises(ConfigError, match="nested too deeply for a list of rates"):
        yaml_of(tmp_path / "x.yaml", "a: " + "[" * 5000)


def test_a_file_that_is_no_text_or_not_there_or_has_no_end(tmp_path):
    path = tmp_path / "x.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    for bad in (path, tmp_path / "absent", tmp_path, Path("/dev/zero")):
        with pytest.raises(ConfigError, match="cannot read") as caught:
            read_text(bad, kind="settings file")
        assert str(bad) in str(caught.value)


def test_a_huge_file_is_refused(tmp_path):
    path = tmp_path / "x.yaml"
    with pytest.raises(ConfigError, match="larger than 1 MB: that is no list of rates"):
        yaml_of(path, "a: " + "x" * MAX_FILE_BYTES)
    assert len(yaml_of(path, "a: " + "x" * (MAX_FILE_BYTES - 3))["a"]) == MAX_FILE_BYTES - 3


class Row(BaseModel):
    model_config = ConfigDict(strict=True)
    price: float = 1.0
    names: tuple[str, ...] = ()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"price": "3.5"}, "it must be a valid number (a number is written without quotes); got '3.5'."),
        ({"price": None}, "it must be a valid number; got None."),
        ({"names": 5}, "it must be a list, such as [a, b]; got 5."),
    ],
)
def test_faults_name_what_was_given(values, words):
    with pytest.raises(ValidationError) as caught:
        Row.model_validate(values)
    (item,) = caught.value.errors()
    assert fault_in_words(item) == words


def test_each_key_and_entry_knows_its_line(tmp_path):
    path = tmp_path / "x.yaml"
    path.write_text("# first\na:\n  b: 1\n  c:\n    - x\n    - {d: 2}\n3: y\n")
    document = read_document(path, kind="settings file", advice="")
    assert document.value == {"a": {"b": 1, "c": ["x", {"d": 2}]}, 3: "y"}
    assert document.lines == {
        ("a",): 2, ("a", "b"): 3, ("a", "c"): 4, ("a", "c", 0): 5, ("a", "c", 1): 6, ("a", "c", 1, "d"): 6,
        ("3",): 7,
    }  # fmt: skip
    assert document.line(("a", "c", 7)) == 4
    assert document.line(("nothing",)) == 1


OLD_NUMBERS = ("1:1:1:1", "1:30", "12:30:45.5", "010", "007", "-0:1", "0o10")
NUMBERS = {"0": 0, "-12": -12, "+3": 3, "1_000": 1000, "0x10": 16, "1.5": 1.5, ".5": 0.5}


@pytest.mark.parametrize(("word", "value"), [*zip(OLD_NUMBERS, OLD_NUMBERS, strict=True), *NUMBERS.items()])
def test_numbers_of_base_60_and_8_stay_texts_and_others_are_read_as_ever(word, value):
    """YAML 1.1 reads 1:30 as 90 and 010 as 8, which nobody means: no number is made of them."""
    text = f"a: {word}\nb: '{word}'\n"
    document = parse_document(text, place="x", kind="settings file", advice="")
    assert document.value == {"a": value, "b": word}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "x"


def read_unpacked(path: Path) -> bytes:
    with open_unpacked(path) as file:
        return file.read()


@pytest.mark.parametrize("content", [b"", b"a", b"\x1f", b"plain " * 100_000])
def test_contents_are_the_same_zipped_or_not(path, content):
    path.write_bytes(content)
    assert read_plain(path, most_bytes=10**6) == read_unpacked(path) == content
    path.write_bytes(gzip.compress(content))
    assert read_unpacked(path) == content
    assert is_gzip(path)


def test_files_that_were_zipped_one_after_the_other_are_one(path):
    path.write_bytes(gzip.compress(b"a\n") + gzip.compress(b"b\n"))
    with open_unpacked(path) as file:
        assert file.readlines() == [b"a\n", b"b\n"]


def test_a_limit_is_told(path):
    path.write_bytes(b"x" * 2_000_001)
    with pytest.raises(ValueError, match="it holds more than 2 MB"):
        read_plain(path, most_bytes=2_000_000)
    assert len(read_plain(path, most_bytes=2_000_001)) == 2_000_001


def test_what_unpacks_out_of_proportion_is_refused(path, monkeypatch):
    path.write_bytes(gzip.compress(bytes(10**6)))
    assert len(read_unpacked(path)) == 10**6
    monkeypatch.setattr(foreign_files, "_ALWAYS_BYTES", 1000)
    with pytest.raises(ValueError, match="it unpacks to more than 200 times its size"):
        read_unpacked(path)


def test_damage_is_told_by_its_kind(path):
    whole = gzip.compress(os.urandom(10_000))
    path.write_bytes(whole[:-20])
    with pytest.raises(EOFError):
        read_unpacked(path)
    path.write_bytes(whole[:-6] + bytes(6))
    with pytest.raises(ValueError, match="check failed"):
        read_unpacked(path)
    path.write_bytes(whole[:10] + b"\xff" * 100)
    with pytest.raises(zlib.error):
        read_unpacked(path)


def test_the_beginning_of_what_cannot_be_read_is_empty(path):
    assert first_bytes(path, 4) == b""
    path.write_bytes(b"abcdef")
    assert first_bytes(path, 4) == b"abcd"
    path.write_bytes(gzip.compress(b"abcdef"))
    assert first_bytes(path, 4) == b"abcd"
    path.write_bytes(b"\x1f\x8bnothing")
    assert first_bytes(path, 4) == b""


def test_pipes_and_devices_are_no_files(path):
    os.mkfifo(path)
    for other in (path, Path("/dev/zero"), Path("/dev/null")):
        with pytest.raises(OSError, match="it is a pipe or a device: write its contents to a file"):
            open_regular(other)


def test_neither_are_folders_and_sockets(tmp_path):
    with pytest.raises(IsADirectoryError):
        open_regular(tmp_path)
    # A socket's path may have 107 characters.
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{folder}/s")
        with pytest.raises(OSError, match="No such device or address"):
            open_regular(Path(folder) / "s")
