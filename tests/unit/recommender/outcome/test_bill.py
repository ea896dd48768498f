"""The bill in figures by hand: what time is billed, and under which name each dollar stands."""

from typing import Any

import numpy as np
import pytest

from advisor.core.values import Market, Plan
from recommender.outcome.bill import billed_time_s, breakdown_usd, cost_usd
from tests.builders import HOUR_S, make_plan


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


def test_rent_disks_and_egress_add_up():
    # 1,000 s are billed as 1,020: 10.20; disks for 1,000 s: 1.00; egress: 5.00.
    assert cost(full_plan(), 1000.0) == pytest.approx(16.20)


def test_disks_are_paid_while_the_machine_is_away():
    assert cost(full_plan(), 1000.0, 5000.0) == pytest.approx(10.20 + 5.00 + 5.00)


def test_data_that_moves_is_paid_once():
    plan = full_plan(storage_usd_per_h=0.0, egress_usd=2.0, transfer_usd=3.0)
    assert cost(plan, 1000.0) == pytest.approx(15.20)
    assert cost(full_plan(None, storage_usd_per_h=0.0, egress_usd=0.0), 1000.0) == 0


def test_what_never_ends_costs_without_bound_unless_it_is_free():
    never = float("inf")
    assert cost(full_plan(), never) == never
    assert cost(full_plan(0.0), never) == never
    assert cost(full_plan(0.0, storage_usd_per_h=0.0), never) == 5.0


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
