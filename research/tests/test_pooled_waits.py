"""Waits of open job logs, pooled by class."""

from __future__ import annotations

import numpy as np
import pytest

from recommender.queue.waits import WAITS_FILE
from research.pooled_waits import ROOT, catalog, pooled, quantiles_of
from tests.shared import SHARED, needs_shared


def test_each_log_counts_alike_however_many_jobs_it_has() -> None:
    """Half of all waits are those of a small log, whose least is above the most of the large one."""
    large, small = np.zeros(1000), np.full(10, 100.0)
    at = quantiles_of((large, small))
    assert at[0] == 0.0
    assert at[-1] == pytest.approx(100.0)
    assert at[3] == pytest.approx(100.0), "p75"


@needs_shared
def test_the_shipped_waits_are_what_the_logs_tell() -> None:
    assert catalog(pooled(SHARED / "traces")) == (ROOT / "catalogs" / WAITS_FILE).read_text()
