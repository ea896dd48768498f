"""Laws of bills and contracts: never less than what ran, no contract makes dearer, each dollar is named."""

import math
from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from advisor.config.settings import ContractSettings
from advisor.core.values import Market, Offer, Plan
from advisor.pricing.contracts import contracted
from advisor.pricing.storage_rates import RateKind, StorageRate, charge, usd_of
from recommender.outcome import bill
from recommender.outcome.draws import Array, make_draws
from recommender.plans.candidates import cheapest_plans
from tests.builders import make_offer, make_plan, make_price

SECONDS = st.floats(0, 1e7)
STEPS = st.sampled_from([0.0, 1.0, 60.0, 3600.0])
MINIMA = st.sampled_from([0.0, 60.0, 600.0])
RATES = st.floats(0, 100)


def billed(run_s: float, minimum_s: float, step_s: float) -> float:
    return float(bill.billed_time_s(np.array([run_s]), minimum_s=minimum_s, step_s=step_s)[0])


@given(SECONDS, MINIMA, STEPS)
def test_time_billed_is_between_what_ran_and_a_step_more(run_s, minimum_s, step_s):
    billed_s = billed(run_s, minimum_s, step_s)
    assert billed_s >= minimum_s
    assert billed_s >= run_s - bill.TOLERANCE * step_s
    assert billed_s in (minimum_s, run_s) or billed_s < run_s + step_s * (1 + bill.TOLERANCE)


@given(SECONDS, MINIMA, st.sampled_from([1.0, 60.0, 3600.0]))
def test_time_billed_is_the_minimum_or_whole_steps(run_s, minimum_s, step_s):
    billed_s = billed(run_s, minimum_s, step_s)
    assert billed_s == minimum_s or billed_s % step_s == 0


@given(SECONDS, SECONDS, MINIMA, STEPS)
def test_running_longer_is_never_billed_less(a_s, b_s, minimum_s, step_s):
    short, long = sorted((a_s, b_s))
    assert billed(short, minimum_s, step_s) <= billed(long, minimum_s, step_s)


@given(SECONDS, MINIMA, STEPS)
def test_what_was_billed_is_billed_the_same_again(run_s, minimum_s, step_s):
    once = billed(run_s, minimum_s, step_s)
    assume(not step_s or once % step_s == 0)
    assert billed(once, minimum_s, step_s) == once


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    return make_plan(
        "X",
        draw(st.none() | RATES),
        market=draw(st.sampled_from([Market.ON_DEMAND, Market.SPOT])),
        startup_s=draw(st.floats(0, 3600)),
        minimum_billed_s=draw(MINIMA),
        billed_step_s=draw(STEPS),
        storage_usd_per_h=draw(RATES),
        egress_usd=draw(RATES),
        transfer_usd=draw(RATES),
    )


@given(plans(), SECONDS, st.floats(0, 1e6))
def test_cost_is_price_times_billed_time_and_extras(plan, run_s, away_s):
    kept_s = run_s + away_s
    value = float(bill.cost_usd(plan, run_s=np.array([run_s]), kept_s=np.array([kept_s]))[0])
    rent = (plan.usd_per_h or 0) * billed(run_s, plan.minimum_billed_s, plan.billed_step_s) / 3600
    extras = plan.storage_usd_per_h * kept_s / 3600 + plan.egress_usd + plan.transfer_usd
    assert value == pytest.approx(rent + extras, rel=1e-12)


@given(plans(), SECONDS)
def test_the_lines_add_up_whatever_the_terms(plan, train_s):
    run_s = np.array([plan.startup_s + train_s])
    total = float(bill.cost_usd(plan, run_s=run_s, kept_s=run_s)[0])
    lines = bill.breakdown_usd(plan, total, train_s)
    assert sum(lines.values()) == pytest.approx(total, rel=2 * bill.TOLERANCE)
    assert min(lines.values()) >= -bill.TOLERANCE * (1 + total)
    assert ("storage" in lines) <= bool(plan.storage_usd_per_h)
    assert ("data transfer" in lines) == bool(plan.egress_usd)
    assert ("moving the data" in lines) == bool(plan.transfer_usd)


@st.composite
def tiers(draw: st.DrawFn) -> tuple[StorageRate, ...]:
    limits = draw(st.lists(st.floats(1, 1e5), min_size=1, max_size=4, unique=True))
    last = draw(st.sampled_from([math.inf, max(limits)]))
    return tuple(
        StorageRate(
            provider="aws",
            region="*",
            kind=RateKind.EGRESS_INTERNET,
            up_to_gib=limit,
            usd=draw(st.floats(0.01, 1)),
            source="a test",
            as_of=date(2025, 1, 1),
        )
        for limit in sorted({*limits, last})
    )


@given(tiers(), st.floats(0, 2e5), st.floats(0, 2e5))
def test_more_data_never_costs_less(rates, a_gib, b_gib):
    few, many = (usd_of(rates, gib) for gib in sorted((a_gib, b_gib)))
    assert many is None or (few is not None and few <= many * (1 + 1e-12))


@given(tiers(), st.floats(0, 2e5))
def test_data_costs_between_the_cheapest_and_the_dearest_tier(rates, gib):
    usd = usd_of(rates, gib)
    assert (usd is None) == (gib > rates[-1].up_to_gib)
    if usd is not None:
        low, high = min(rate.usd for rate in rates), max(rate.usd for rate in rates)
        assert low * gib * (1 - 1e-9) <= usd <= high * gib * (1 + 1e-9)


PLACES = st.sampled_from(["us-east-1", "us-west-2", "eu-west-1", "sa-east-1"])


@st.composite
def catalogs(draw: st.DrawFn) -> tuple[StorageRate, ...]:
    """Flat rates of some places of two clouds."""
    places = draw(st.lists(st.tuples(st.sampled_from(["aws", "gcp"]), PLACES), min_size=1, unique=True))
    return tuple(
        StorageRate(
            provider=provider,
            region=region,
            kind=RateKind.EGRESS_INTERNET,
            up_to_gib=math.inf,
            usd=draw(st.floats(0.01, 1)),
            source="a test",
            as_of=date(2025, 1, 1),
        )
        for provider, region in places
    )


@given(catalogs(), st.sampled_from(["aws", "gcp", "lambda"]), st.floats(0, 2e5))
def test_unknown_is_never_cheaper_than_the_dearest_known(rates, provider, gib):
    def usd(at: str, region: str) -> float:
        return charge(rates, RateKind.EGRESS_INTERNET, at, region, gib=gib).usd

    unknown = usd(provider, "mars")
    own = [rate for rate in rates if rate.provider == provider]
    assert unknown == max(usd(rate.provider, rate.region) for rate in own or rates)


@st.composite
def places(draw: st.DrawFn, market: Market = Market.ON_DEMAND) -> list[Plan]:
    count = draw(st.integers(1, 6))
    prices = st.sampled_from([1.0, 2.0, 3.0])
    rises = st.sampled_from([1.0, 2.0, 4.5]) if market is Market.SPOT else st.just(1.0)
    return [
        make_plan(
            offer=make_offer("X", usd_per_h := draw(prices), region=f"r{i}", market=market),
            usd_per_h=usd_per_h,
            price=make_price(usd_per_h, usd_per_h * draw(rises)),
            id=f"r{i}",
            storage_usd_per_h=draw(prices),
            egress_usd=draw(prices),
            transfer_usd=draw(prices),
            startup_s=draw(prices) * 1800,
        )
        for i in range(count)
    ]


def total_usd(plan: Plan, hours: float) -> float:
    run_h = hours + plan.startup_s / 3600
    return (plan.usd_per_h + plan.storage_usd_per_h) * run_h + plan.egress_usd + plan.transfer_usd


@given(places(), st.floats(0, 100))
def test_the_places_kept_hold_the_cheapest_for_a_job_of_any_length(plans, hours):
    kept = cheapest_plans(plans)
    assert min(total_usd(plan, hours) for plan in kept) == min(total_usd(plan, hours) for plan in plans)


@given(places(Market.SPOT), st.floats(0, 100), st.floats(0, 100))
def test_the_spot_places_kept_hold_the_cheapest_of_every_draw(plans, run_h, away_h):
    draws = make_draws(np.random.default_rng(0))
    plans = [replace(plan, storage_usd_per_h=1.0) for plan in plans]

    def factors_of(plan: Plan) -> Array:
        rise = bill.price_rise(plan, (run_h + away_h) / 24)
        return bill.rent_over_median(draws.price, rise, bill.most_rise(plan))

    def least_usd(some: list[Plan]) -> Array:
        run_s = np.full_like(draws.price, run_h * 3600)
        kept_s = run_s + away_h * 3600
        costs = [
            bill.cost_usd(plan, run_s=run_s, kept_s=kept_s, over_median=factors_of(plan)) for plan in some
        ]
        return np.asarray(np.min(costs, axis=0))

    assert least_usd(cheapest_plans(plans)) == pytest.approx(least_usd(plans), rel=1e-12)


@given(places())
def test_no_place_that_is_kept_is_beaten_by_another(plans):
    def price(plan: Plan) -> tuple[float, float, float]:
        once_usd = plan.egress_usd + plan.transfer_usd
        return total_usd(plan, 1.0) - total_usd(plan, 0.0), once_usd, plan.startup_s

    kept = cheapest_plans(plans)
    assert {plan.id for plan in kept} <= {plan.id for plan in plans}
    for one in kept:
        for other in kept:
            assert one is other or not all(a <= b for a, b in zip(price(one), price(other), strict=True))


DISCOUNTS = st.floats(0, 1, exclude_max=True)
PROVIDERS = st.sampled_from(["aws", "gcp"])
GLOBS = st.lists(st.sampled_from(["*", "x*", "y.xlarge", "us-*", "eu-west-1"]), max_size=2)


@st.composite
def rules(draw: st.DrawFn, **fixed: Any) -> ContractSettings:
    facts = {
        "provider": draw(PROVIDERS),
        "instance_types": draw(GLOBS),
        "regions": draw(GLOBS),
        "markets": draw(st.lists(st.sampled_from(Market), max_size=3)),
        "discount": draw(DISCOUNTS),
        "commitment_discount": draw(DISCOUNTS),
        "coverage": draw(st.floats(0, 1)),
    }
    return ContractSettings(**(facts | fixed))


@st.composite
def offers(draw: st.DrawFn) -> Offer:
    return make_offer(
        draw(st.sampled_from(["X", "Y"])),
        draw(st.floats(0.01, 1000)),
        provider=draw(PROVIDERS),
        region=draw(st.sampled_from(["us-east-1", "eu-west-1"])),
        market=draw(st.sampled_from(Market)),
    )


@given(st.lists(offers(), max_size=5), st.lists(rules(), max_size=4))
def test_effective_is_at_most_contracted_is_at_most_list(listed, contract):
    for before, after in zip(listed, contracted(listed, contract), strict=True):
        assert after.list_usd_per_h == before.list_usd_per_h
        negotiated = (
            after.list_usd_per_h if after.contracted_usd_per_h is None else after.contracted_usd_per_h
        )
        effective = negotiated if after.effective_usd_per_h is None else after.effective_usd_per_h
        assert 0 < effective <= negotiated <= after.list_usd_per_h
        assert after.usd_per_h == effective


@given(st.lists(offers(), max_size=5), st.lists(rules(discount=0, commitment_discount=0), max_size=3))
def test_rules_without_a_discount_change_nothing(listed, contract):
    assert contracted(listed, contract) == tuple(listed)
    assert contracted(listed, ()) == tuple(listed)


@given(st.lists(offers(), max_size=5), st.lists(rules(markets=[Market.ON_DEMAND]), max_size=3))
def test_spot_that_no_rule_names_stays(listed, contract):
    for before, after in zip(listed, contracted(listed, contract), strict=True):
        if before.market is not Market.ON_DEMAND:
            assert after == before


@given(st.lists(offers(), max_size=5), st.lists(rules(), max_size=3), st.lists(rules(), max_size=3))
def test_what_the_first_rules_price_later_ones_never_change(listed, first, later):
    alone, together = contracted(listed, first), contracted(listed, [*first, *later])
    for before, one, both in zip(listed, alone, together, strict=True):
        assert both == one or one == before
