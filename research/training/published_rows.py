"""Rows of published tables, which are CSV, packed or not."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator, Mapping
from pathlib import Path


def published_rows(path: Path) -> Iterator[Mapping[str, str]]:
    """Each row by its columns' names.

    Raises:
        FileNotFoundError: there is no such file.
    """
    content = path.read_bytes()
    text = gzip.decompress(content) if path.suffix == ".gz" else content
    yield from csv.DictReader(io.StringIO(text.decode()))
