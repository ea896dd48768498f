"""Files of somebody else: opened if they are files, unpacked in proportion."""

import gzip
import os
import socket
import tempfile
import zlib
from pathlib import Path

import pytest

from advisor.formats import foreign_files
from advisor.formats.foreign_files import first_bytes, is_gzip, open_regular, open_unpacked, read_plain


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
