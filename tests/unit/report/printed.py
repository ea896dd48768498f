"""What a printer wrote to stdout, read back."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest


def read_csv(capsys: pytest.CaptureFixture[str]) -> list[dict[str, str]]:
    """Rows by column."""
    return list(csv.DictReader(io.StringIO(capsys.readouterr().out)))


def read_json(capsys: pytest.CaptureFixture[str]) -> Any:
    """The document."""
    return json.loads(capsys.readouterr().out)
