"""Interruption buckets: the formula, the shipped table, and how it is built."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.errors import CatalogError
from advisor.core.gpus import catalog_path
from advisor.core.units import HOURS_PER_MONTH
from advisor.pricing.instance_types import load_instances
from advisor.pricing.spot import (
    INTERRUPTION_COLUMNS,
    load_interruptions,
    preemptions_per_h,
    read_interruptions,
)
from tests.shared import SHARED, needs_shared

ROOT = Path(__file__).resolve().parents[4]
HEADER = ",".join(INTERRUPTION_COLUMNS)
BUCKETS = {(0, 5), (5, 10), (10, 15), (15, 20), (20, 100)}


@given(st.floats(0, 99.9))
def test_the_rate_takes_the_share_back_within_a_month(monthly_pct: float) -> None:
    survived = math.exp(-preemptions_per_h(monthly_pct) * HOURS_PER_MONTH)
    assert 100 * (1 - survived) == pytest.approx(monthly_pct, abs=1e-9)


def test_known_rates() -> None:
    assert preemptions_per_h(0) == 0
    assert preemptions_per_h(5) == pytest.approx(7.03e-5, rel=1e-3)
    assert preemptions_per_h(20) == pytest.approx(3.057e-4, rel=1e-3)


@pytest.mark.parametrize("pct", [100, -1, math.nan])
def test_a_share_without_a_rate_is_refused(pct: float) -> None:
    with pytest.raises(ValueError, match="from 0 to below 100"):
        preemptions_per_h(pct)


def test_the_shipped_table_is_of_known_types_and_buckets() -> None:
    known = {name for provider, name in load_instances() if provider == "aws"}
    table = load_interruptions()
    assert len(table) > 600
    for (instance_type, region), bucket in table.items():
        assert instance_type in known
        assert (bucket.low_pct, bucket.high_pct) in BUCKETS
        assert re.fullmatch(r"[a-z]+-[a-z]+-\d", region)
        assert bucket.as_of == date(2025, 6, 28)
        assert bucket.least_preemptions_per_h == preemptions_per_h(bucket.low_pct)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("g6.xlarge,us-east-1,5,5,2025-06-28,test", "5 to 5 % is no bucket"),
        ("g6.xlarge,us-east-1,20,101,2025-06-28,test", "20 to 101 % is no bucket"),
        ("g6.xlarge,us-east-1,a,5,2025-06-28,test", "line 2: invalid literal"),
        ("g6.xlarge,us-east-1,0,5,soon,test", "line 2: Invalid isoformat"),
        ("g6.xlarge,,0,5,2025-06-28,test", "region or source is empty"),
        ("g6.xlarge,us-east-1,0,5", "4 fields instead of 6"),
        ("g6.xlarge,us-east-1,0,5,2025-06-28,a\ng6.xlarge,us-east-1,5,10,2025-06-28,a", "listed twice"),
    ],
)
def test_a_broken_row_is_an_error_with_its_line(row: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "interruptions.csv"
    path.write_text(f"{HEADER}\n{row}\n")
    with pytest.raises(CatalogError, match=problem):
        read_interruptions(path)


@needs_shared
@pytest.mark.shared
def test_the_build_reproduces_the_committed_file(tmp_path: Path) -> None:
    script = ROOT / "tools" / "build_interruptions.py"
    command = [sys.executable, str(script), "--shared", str(SHARED), "--out", str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert (tmp_path / "interruptions.csv").read_bytes() == catalog_path("interruptions.csv").read_bytes()
    assert "as of 2025-06-28" in run.stdout
