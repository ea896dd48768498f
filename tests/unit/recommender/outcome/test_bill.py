"""The bill in figures by hand: what time is billed, and under which name each dollar stands."""

import itertools
import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.values import EmpiricalWait, Interval, Market, Plan, Quantiles, StartWait
from recommender.outcome.bill import billed_time_s, breakdown_usd, cost_usd
from recommender.outcome.draws import NUM_DRAWS, Z90, log_normal, make_draws, quantiles_of_rows, waits
from tests.builders import HOUR_S, make_plan, quantiles_of


def billed(run_s: float, minimum_s: float = 0.0, step_s: float = 0.0) -> float:
    return float(billed_time_s(np.array([run_s]), minimum_s=minimum_s, step_s=step_s)[0])


@pytest.mark.parametrize(
    ("run_s", "minimum_s", "step_s", "expected_s"),
    [
        (20.0, 60.0, 1.0, 60.0),
        (60.0, 60.0, 1.0, 60.0),
        (60.2, 60.0, 1.0, 61.0),
        (61.0, 60.0, 1.0, 61.0),
        (59.5, 0.0, 60.0, 60.0),
        (3601.0, 60.0, 3600.0, 7200.0),
        (3600.0000000000005, 60.0, 3600.0, 3600.0),  # 36,000 x 0.1 s is one hour, not two
        (12.34, 0.0, 0.0, 12.34),
        (0.0, 0.0, 60.0, 0.0),
        (float("inf"), 60.0, 1.0, float("inf")),
    ],
)
def test_time_billed(run_s, minimum_s, step_s, expected_s):
    assert billed(run_s, minimum_s, step_s) == expected_s


def cost(plan: Plan, run_s: float, kept_s: float | None = None) -> float:
    kept = np.array([run_s if kept_s is None else kept_s])
    return float(cost_usd(plan, run_s=np.array([run_s]), kept_s=kept)[0])


def full_plan(usd_per_h: float | None = 36.0, **changes: Any) -> Plan:
    """36 dollars an hour by the minute, disks for 3.60 an hour, 5 dollars of egress."""
    facts: dict[str, Any] = {
        "startup_s": 100.0,
        "minimum_billed_s": 600.0,
        "billed_step_s": 60.0,
        "storage_usd_per_h": 3.6,
        "egress_usd": 5.0,
    }
    return make_plan("X", usd_per_h, **(facts | changes))


INF = float("inf")


@pytest.mark.parametrize(
    ("plan", "run_s", "kept_s", "usd"),
    [
        # 1,000 s are billed as 1,020: 10.20; disks for 1,000 s: 1.00; egress: 5.00.
        (full_plan(), 1000.0, None, 16.20),
        # Disks are paid while the machine is away.
        (full_plan(), 1000.0, 5000.0, 10.20 + 5.00 + 5.00),
        (full_plan(storage_usd_per_h=0.0, egress_usd=2.0, transfer_usd=3.0), 1000.0, None, 15.20),
        (full_plan(None, storage_usd_per_h=0.0, egress_usd=0.0), 1000.0, None, 0),
        (full_plan(), INF, None, INF),
        (full_plan(0.0), INF, None, INF),
        (full_plan(0.0, storage_usd_per_h=0.0), INF, None, 5.0),
    ],
)
def test_rent_disks_egress_and_moved_data_add_up(plan, run_s, kept_s, usd):
    assert cost(plan, run_s, kept_s) == pytest.approx(usd)


def test_each_dollar_has_a_name():
    # 900 s of training and 100 s of start-up.
    plan = full_plan()
    assert breakdown_usd(plan, cost(plan, 1000.0), 900.0) == {
        "training": pytest.approx(9.0),
        "start-up": pytest.approx(1.0),
        "storage": pytest.approx(1.0),
        "data transfer": 5.0,
        "billing step": pytest.approx(0.2),
    }


def test_the_minimum_has_its_own_name():
    plan = full_plan(storage_usd_per_h=0.0, egress_usd=0.0)
    assert breakdown_usd(plan, cost(plan, 300.0), 200.0) == {
        "training": pytest.approx(2.0),
        "start-up": pytest.approx(1.0),
        "billing minimum": pytest.approx(3.0),
    }


def test_what_preemptions_cost_holds_the_disks_kept_meanwhile():
    plan = full_plan(market=Market.SPOT, billed_step_s=0.0)
    breakdown = breakdown_usd(plan, cost(plan, 2000.0, 11_000.0), 900.0)
    assert breakdown == {
        "training": pytest.approx(9.0),
        "start-up": pytest.approx(1.0),
        "storage": pytest.approx(1.0),
        "data transfer": 5.0,
        "preemptions": pytest.approx(10.0 + 10.0),
    }


def test_what_dearer_hours_cost_is_no_preemption():
    # 1,000 s at 36 dollars an hour, 10 % dearer at the median.
    plan = full_plan(market=Market.SPOT, billed_step_s=0.0, storage_usd_per_h=0.0, egress_usd=0.0)
    breakdown = breakdown_usd(plan, 11.0, 900.0, 1.0)
    assert breakdown == {"training": pytest.approx(9.0), "start-up": pytest.approx(1.0), "price rise": 1.0}
    repeated = breakdown_usd(plan, 13.0, 900.0, 1.0)
    assert (repeated["price rise"], repeated["preemptions"]) == (1.0, pytest.approx(2.0))


def test_a_line_of_nothing_is_left_out():
    plan = make_plan("X", 3.6, startup_s=0.0)
    assert breakdown_usd(plan, cost(plan, HOUR_S), HOUR_S) == {"training": pytest.approx(3.6), "start-up": 0}


def test_a_hopeless_run_is_named_and_not_undefined():
    plan = full_plan(market=Market.SPOT)
    breakdown = breakdown_usd(plan, float("inf"), 900.0)
    assert breakdown["preemptions"] == float("inf")
    assert breakdown == breakdown_usd(plan, float("inf"), 900.0, float("nan"))
    assert not any(usd != usd for usd in breakdown.values())


FIELDS = ("prediction", "wait", "preemption_rate", "reacquire", "preemption", "price")


@pytest.fixture(scope="module")
def draws():
    return make_draws(np.random.default_rng(0))


def test_every_field_holds_the_same_strata(draws):
    expected = [NormalDist().inv_cdf(i / 1000) for i in range(1, 1000)]
    for name in FIELDS:
        assert np.sort(getattr(draws, name)) == pytest.approx(expected)


def test_no_two_fields_share_their_luck(draws):
    for one, other in itertools.combinations(FIELDS, 2):
        correlation = np.corrcoef(getattr(draws, one), getattr(draws, other))[0, 1]
        assert abs(correlation) < 0.15, (one, other)


def test_the_same_seed_gives_the_same_draws(draws):
    again, other = make_draws(np.random.default_rng(0)), make_draws(np.random.default_rng(1))
    for name in FIELDS:
        assert np.array_equal(getattr(draws, name), getattr(again, name))
    assert not np.array_equal(draws.wait, other.wait)


def test_a_log_normal_keeps_all_three_quantiles(draws):
    ordered = np.sort(log_normal(Interval(p10=1.0, p50=2.0, p90=10.0), draws.prediction))
    # Weibull: the quantile p of n = 999 draws is the one at 1000 p - 1.
    assert (ordered[99], ordered[499], ordered[899]) == pytest.approx((1.0, 2.0, 10.0))


@pytest.mark.parametrize(
    ("drawn", "quantiles", "z", "expected"),
    [
        (log_normal, Interval(p10=3.0, p50=3.0, p90=3.0), (-3.0, 0.0, 3.0), (3.0, 3.0, 3.0)),
        # Above the median: sigma = ln(4) / 1.2816, so z = 2 x 1.2816 gives 4 squared.
        (log_normal, Interval(p10=0.5, p50=1.0, p90=4.0), (-2 * Z90, 0.0, 2 * Z90), (0.25, 1.0, 16.0)),
        # Waits of a second or more are log-normal on both sides; shorter ones are none for half of the runs.
        (waits, Quantiles(p50=1.0, p90=3.0), (-Z90, 0.0, Z90), (1 / 3, 1.0, 3.0)),
        (waits, Quantiles(p50=600.0, p90=1200.0), (-Z90, 0.0, Z90), (300.0, 600.0, 1200.0)),
        (waits, Quantiles(p50=0.0, p90=60.0), (-3.0, -Z90, 0.0, Z90, 2 * Z90), (0, 0, 0, 60.0, 120.0)),
        (waits, Quantiles(p50=0.0, p90=0.0), (-3.0, 0.0, 3.0), (0, 0, 0)),
    ],
)
def test_log_normals_and_waits_by_hand(drawn, quantiles, z, expected):
    assert drawn(quantiles, np.array(z)) == pytest.approx(expected)


WAIT = StartWait.of(p_at_once=0.6, at_once_s=60.0, later_p50_s=3600.0, later_p90_s=36_000.0)


def test_starts_are_at_once_or_wait_with_both_quantiles(draws):
    seconds = waits(WAIT, draws.wait)
    later = np.sort(seconds[seconds > 60.0]) - 60.0
    assert np.mean(seconds == 60.0) == pytest.approx(0.6, abs=0.002)
    assert later[len(later) // 2] == pytest.approx(3600.0, rel=0.02)
    assert later[int(0.9 * len(later))] == pytest.approx(36_000.0, rel=0.05)


def test_the_quantiles_of_a_start_are_those_of_its_draws(draws):
    quantiles = quantiles_of(waits(WAIT, draws.wait))
    assert (quantiles.p50, quantiles.p90) == (pytest.approx(WAIT.p50), pytest.approx(WAIT.p90))


@given(st.floats(0.05, 0.95), st.floats(0.01, 0.9), st.floats(1, 1e5), st.floats(1.01, 100))
def test_rarer_machines_never_come_sooner(p_at_once, share, later_p50_s, factor):
    tail = {"at_once_s": 60.0, "later_p50_s": later_p50_s, "later_p90_s": later_p50_s * factor}
    often = StartWait.of(p_at_once=p_at_once, **tail)
    rarely = StartWait.of(p_at_once=p_at_once * share, **tail)
    z = np.linspace(-3, 3, 25)
    assert (waits(rarely, z) >= waits(often, z) * (1 - 1e-12)).all()
    assert often.p50 <= often.p90
    assert 60.0 <= often.p50 <= rarely.p50


def test_a_wait_of_a_log_is_drawn_from_all_its_quantiles():
    """A fifth of the jobs do not wait, one in a hundred for a day: no log-normal has both."""
    wait = EmpiricalWait(
        p50=60.0, p90=600.0, levels=(0.2, 0.5, 0.9, 0.99), waits_s=(0.0, 60.0, 600.0, 86400.0)
    )
    drawn = waits(wait, make_draws(np.random.default_rng(0)).wait)
    assert np.mean(drawn == 0) == pytest.approx(0.2, abs=0.002)
    (quantiles,) = quantiles_of_rows(drawn[None, :])
    assert (quantiles.p50, quantiles.p90) == pytest.approx((60, 600))
    assert np.mean(drawn >= 86399.9) == pytest.approx(0.01, abs=0.001)


@pytest.mark.parametrize(
    ("values", "p50", "p90"),
    [
        # Nine values: the median is the fifth, p90 the ninth; the order does not matter.
        ([9.0, 1, 8, 2, 7, 3, 6, 4, 5], 5.0, 9.0),
        # Four values: the median lies at 1.5, halfway between the second and the third.
        ([10.0, 20.0, 40.0, 80.0], 30.0, 80.0),
        ([7.0], 7.0, 7.0),
        ([math.inf] * 4, math.inf, math.inf),
    ],
)
def test_quantiles_are_weibulls(values, p50, p90):
    found = quantiles_of(np.array(values))
    assert (found.p50, found.p90) == (pytest.approx(p50), p90)


@pytest.mark.parametrize(
    ("num_infinite", "finite"),
    [
        (0, (True, True)),
        (99, (True, True)),
        (100, (True, False)),
        (499, (True, False)),
        (500, (False, False)),
    ],
)
def test_a_quantile_is_infinite_where_its_draw_is(num_infinite, finite):
    values = np.ones(NUM_DRAWS)
    values[:num_infinite] = math.inf
    quantiles = quantiles_of(values)
    assert (math.isfinite(quantiles.p50), math.isfinite(quantiles.p90)) == finite
    assert not math.isnan(quantiles.p90)
