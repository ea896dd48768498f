"""Several machines that must all be there: what of one holds for them, and what is assumed on top."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from advisor.core.values import Layout, Market, Plan, StartWait
from advisor.pricing.spot_odds import spot_odds, start_odds
from recommender.outcome import nodes
from recommender.outcome.draws import NUM_DRAWS, make_draws
from recommender.outcome.outcomes import runs_of
from recommender.outcome.spot import ASSUMED_TERMS, CONFIGURED, SpotTerms, terms_of_plans
from recommender.plans.candidates import together, wait_of
from tests.builders import make_offer, make_plan
from tests.findings import said

DRAWS = make_draws(np.random.default_rng(0))


def spot_plan(num_nodes: int, **changes: Any) -> Plan:
    offer = make_offer(market=Market.SPOT, num_gpus=8)
    return make_plan(layout=Layout(gpus_per_node=8, num_nodes=num_nodes), offer=offer, **changes)


def test_the_prior_lies_between_one_fate_and_one_for_each():
    drawn = nodes.times_of_one(16) * nodes.drawn_over_median(np.array([16.0]), DRAWS.preemption_rate)[0]
    assert np.quantile(drawn, [0.5, 0.9]) == pytest.approx(
        [16**nodes.EXPONENT_P50, 16**nodes.EXPONENT_P90], rel=0.01
    )
    assert drawn.min() == pytest.approx(1.0)
    assert drawn.max() <= 16.0


def test_the_prior_covers_what_is_known_of_eight_gpus_and_of_sixteen_nodes():
    """Eight GPUs against one in the same zone, and 7 to 11 of 16 nodes that went at once."""
    one, eight = (start_odds("T4", count, Market.SPOT).wait_s.p_at_once for count in (1, 8))
    away = spot_odds("T4", 8).outage_h / spot_odds("T4", 1).outage_h
    known = [np.log(np.log(eight) / np.log(one)) / np.log(8), np.log(away) / np.log(8)]
    known += [np.log(16 / together) / np.log(16) for together in (7, 11)]
    assert all(0 < exponent < nodes.EXPONENT_P90 for exponent in known)
    assert np.mean(known) == pytest.approx(nodes.EXPONENT_P50, abs=0.05)


def test_one_node_is_what_it_was():
    one = spot_plan(1)
    assert (nodes.times_of_one(1), nodes.slowest_boot(1), nodes.all_at_once(0.7, 1)) == (1.0, 1.0, 0.7)
    assert terms_of_plans(SpotTerms(), None)(one) == SpotTerms()
    assert (nodes.drawn_over_median(np.ones(1), DRAWS.preemption_rate) == 1).all()


def test_terms_of_a_gang_grow_and_restart_with_the_slowest_boot():
    terms = SpotTerms(preemptions_per_h=0.4, reacquire_h=1.0, restart_h=0.1, most_per_h=3.0, most_away_h=5.0)
    gang = terms_of_plans(terms, None)(spot_plan(16))
    assert (gang.preemptions_per_h, gang.reacquire_h, gang.num_nodes) == (0.8, 2.0, 16)
    assert gang.restart_h == pytest.approx(0.1 * nodes.slowest_boot(16))
    # For each running hour it goes away so many times as often, and for so many times as long.
    assert (gang.most_per_h, gang.most_away_h) == (6.0, 20.0)
    assert gang.rate_source == CONFIGURED


def test_the_class_of_a_gang_is_that_of_its_machine():
    one = make_plan(
        layout=Layout(gpus_per_node=1, num_nodes=2), offer=make_offer(market=Market.SPOT), gpu="T4"
    )
    odds = spot_odds("T4", 1)
    terms = terms_of_plans(ASSUMED_TERMS, None)(one)
    assert terms.preemptions_per_h == pytest.approx(odds.preemptions_per_h * nodes.times_of_one(2))
    assert terms.reacquire_h == pytest.approx(odds.outage_h * nodes.times_of_one(2))


def test_every_draw_of_more_nodes_is_as_late_and_takes_as_long():
    work_s = np.full(NUM_DRAWS, 20 * 3600.0)
    plans = [spot_plan(num_nodes) for num_nodes in (1, 2, 8)]
    terms = [terms_of_plans(SpotTerms(), None)(plan) for plan in plans]
    rows_s = [run.train_s for run in runs_of(plans, [work_s] * 3, terms, DRAWS)]
    medians = [float(np.median(row)) for row in rows_s]
    assert medians == sorted(medians)
    assert np.mean(rows_s[2]) > np.mean(rows_s[1]) > np.mean(rows_s[0])


def test_a_start_of_several_waits_for_the_last():
    offer = make_offer("T4", num_gpus=8)
    (one, _), (four, notes) = (
        wait_of(offer, configured=None, history={}, num_nodes=num_nodes) for num_nodes in (1, 4)
    )
    assert isinstance(one, StartWait)
    assert isinstance(four, StartWait)
    assert four.p_at_once == pytest.approx(one.p_at_once ** nodes.times_of_one(4))
    assert four.later_p50_s == pytest.approx(one.later_p50_s * nodes.times_of_one(4))
    assert (DRAWS.waits_of(four) >= DRAWS.waits_of(one)).all()
    assert "4 nodes must be there at once: assumed that 75 % of starts find all of them" in said(notes)


def test_a_configured_wait_is_that_for_one():
    configured = make_plan().wait_s
    assert configured is not None
    wait_s = replace(configured, p50=60.0, p90=600.0)
    four, notes = wait_of(make_offer(), configured=wait_s, history={}, num_nodes=16)
    assert (four.p50, four.p90) == (120.0, 1200.0)
    assert said(notes) == "16 nodes must be there at once: assumed that the wait is 2 times that for one"
    assert together(wait_s, 16) == four
