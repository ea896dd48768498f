"""Text reaches stdout, or what reads stdout has gone; nothing else depends on that."""

import os
from pathlib import Path

import pytest

from advisor.report.plain import print_lines, print_message, print_text


@pytest.fixture
def unread():
    """A pipe that nobody reads any more."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", encoding="utf-8") as stream:
        yield stream


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_reader_who_left_ends_nothing(unread, name, monkeypatch):
    with pytest.raises(BrokenPipeError):
        os.write(unread.fileno(), b"nobody hears this")
    monkeypatch.setattr(f"sys.{name}", unread)
    print_text("a table\n" * 100_000)
    print_lines("Recorded as 1.", "Wrote it.")
    print_message("warning", "and what was said beside it")
    # As Python does at exit, where an error would be a second exit code.
    unread.flush()


def test_a_full_disk_is_an_error(monkeypatch):
    with Path("/dev/full").open("w", encoding="utf-8", buffering=1) as full:
        monkeypatch.setattr("sys.stdout", full)
        with pytest.raises(OSError, match="No space left"):
            print_text("a table")
        monkeypatch.undo()
        os.dup2(os.open(os.devnull, os.O_WRONLY), full.fileno())
