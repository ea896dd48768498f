"""Published tables are read alike, packed or not."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from research.training.published_rows import published_rows

TEXT = 'gpu,note,time_us\nA100,"two, with a comma",3.5\nH200,,4\n'
ROWS = [
    {"gpu": "A100", "note": "two, with a comma", "time_us": "3.5"},
    {"gpu": "H200", "note": "", "time_us": "4"},
]


@pytest.mark.parametrize("name", ["table.csv", "table.csv.gz"])
def test_rows_are_those_of_the_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(TEXT.encode()) if name.endswith(".gz") else TEXT.encode())
    assert list(published_rows(path)) == ROWS


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        list(published_rows(tmp_path / "nowhere.csv"))
