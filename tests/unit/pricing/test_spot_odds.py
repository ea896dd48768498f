"""Preemption rates and start waits by class of machine."""

import itertools
import math
import re
import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.gpus import catalog_path, load_gpus
from advisor.core.units import HOURS_PER_MONTH
from advisor.core.values import Market
from advisor.pricing.instance_types import load_instances, read_as
from advisor.pricing.spot_odds import (
    SPOT_ODDS_FILE,
    START_ODDS_FILE,
    Age,
    Basis,
    Size,
    SpotOdds,
    StartOdds,
    class_of,
    load_interruptions,
    preemptions_per_h,
    spot_odds,
    start_odds,
)
from tests.shared import SHARED, needs_shared

ROOT = Path(__file__).resolve().parents[3]
BUCKETS = {(0, 5), (5, 10), (10, 15), (15, 20), (20, 100)}


@given(st.floats(0, 99.9))
def test_the_rate_takes_the_share_back_within_a_month(monthly_pct):
    survived = math.exp(-preemptions_per_h(monthly_pct) * HOURS_PER_MONTH)
    assert 100 * (1 - survived) == pytest.approx(monthly_pct, abs=1e-9)


def test_known_rates():
    assert preemptions_per_h(0) == 0
    assert preemptions_per_h(5) == pytest.approx(7.03e-5, rel=1e-3)
    assert preemptions_per_h(20) == pytest.approx(3.057e-4, rel=1e-3)


@pytest.mark.parametrize("pct", [100, -1, math.nan])
def test_a_share_without_a_rate_is_refused(pct):
    with pytest.raises(ValueError, match="from 0 to below 100"):
        preemptions_per_h(pct)


def test_the_shipped_table_is_of_known_types_and_buckets():
    known = {name for provider, name in load_instances() if provider == "aws"}
    table = load_interruptions()
    assert len(table) > 600
    for (instance_type, region), bucket in table.items():
        assert instance_type in known
        assert (bucket.low_pct, bucket.high_pct) in BUCKETS
        assert re.fullmatch(r"[a-z]+-[a-z]+-\d", region)
        assert bucket.as_of == date(2025, 6, 28)
        assert bucket.least_preemptions_per_h == preemptions_per_h(bucket.low_pct)


@needs_shared
@pytest.mark.shared
def test_the_build_reproduces_the_committed_file(tmp_path):
    script = ROOT / "tools" / "build_interruptions.py"
    command = [sys.executable, str(script), "--shared", str(SHARED), "--out", str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert (tmp_path / "interruptions.csv").read_bytes() == catalog_path("interruptions.csv").read_bytes()
    assert "as of 2025-06-28" in run.stdout


OLD, NEW = "V100-SXM-16GB", "B200-SXM-180GB"


def test_every_class_has_odds_with_source_and_date():
    table = read_as(catalog_path(SPOT_ODDS_FILE), SpotOdds)
    assert {(odds.size, odds.age) for odds in table} == set(itertools.product(Size, Age))
    for odds in table:
        assert "Stanford" in odds.source
        assert odds.as_of <= date(2026, 11, 22)


def test_every_market_has_a_wait_by_class():
    table = read_as(catalog_path(START_ODDS_FILE), StartOdds)
    wanted = set(itertools.product((Market.SPOT, Market.ON_DEMAND), Size, Age))
    assert {(odds.market, odds.size, odds.age) for odds in table} == wanted


@pytest.mark.parametrize(
    ("gpu", "year", "age"),
    [(OLD, 2026, Age.KNOWN), (OLD, 2018, Age.NEW), (NEW, 2026, Age.NEW), ("of tomorrow", 2026, Age.NEW)],
)
def test_what_is_newer_than_any_trace_or_unknown_counts_as_new(gpu, year, age):
    assert class_of(gpu, 1, date(year, 1, 1)) == (Size.ONE, age)
    assert class_of(gpu, 8, date(year, 1, 1)) == (Size.SEVERAL, age)


def test_a_gpu_is_new_for_three_years():
    released = load_gpus()[OLD].released
    ages = [class_of(OLD, 1, released + timedelta(days=days))[1] for days in (3 * 365 - 1, 3 * 365)]
    assert ages == [Age.NEW, Age.KNOWN]


def test_newer_and_larger_machines_go_away_no_less_and_come_back_no_sooner():
    for num_gpus in (1, 8):
        old, new = spot_odds(OLD, num_gpus), spot_odds(NEW, num_gpus)
        assert new.preemptions_per_h > old.preemptions_per_h
        assert new.outage_h > old.outage_h
    for gpu in (OLD, NEW):
        assert spot_odds(gpu, 8).outage_h > spot_odds(gpu, 1).outage_h


@pytest.mark.parametrize("market", [Market.SPOT, Market.ON_DEMAND])
def test_newer_and_larger_machines_wait_longer(market):
    for num_gpus in (1, 8):
        old, new = (start_odds(gpu, num_gpus, market).wait_s for gpu in (OLD, NEW))
        assert new.p_at_once < old.p_at_once
        assert new.p90 > old.p90
    for gpu in (OLD, NEW):
        assert start_odds(gpu, 8, market).wait_s.p_at_once < start_odds(gpu, 1, market).wait_s.p_at_once


@pytest.mark.parametrize(("gpu", "num_gpus"), list(itertools.product((OLD, NEW), (1, 8))))
def test_spot_waits_longer_than_on_demand_which_is_judged(gpu, num_gpus):
    spot, rented = (start_odds(gpu, num_gpus, market) for market in (Market.SPOT, Market.ON_DEMAND))
    assert spot.wait_s.p90 > rented.wait_s.p90
    assert rented.basis is Basis.JUDGED


@pytest.mark.parametrize("market", Market)
def test_no_rented_machine_is_there_in_no_time(market):
    wait = start_odds(OLD, 1, market).wait_s
    assert 0 < wait.p50 <= wait.p90


def test_what_is_left_over_waits_like_spot_and_what_is_sold_like_on_demand():
    assert start_odds(NEW, 8, Market.FLEX_START) == start_odds(NEW, 8, Market.SPOT)
    for market in (Market.RESERVED, Market.CAPACITY_BLOCK, Market.COMMIT_1Y):
        assert start_odds(NEW, 8, market) == start_odds(NEW, 8, Market.ON_DEMAND)
