"""Contracts: prices under them, and rules that match no offer."""

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.config.settings import ContractSettings
from advisor.core.globs import is_among
from advisor.core.values import Market, Offer
from advisor.pricing.contracts import contracted, idle_rules, in_force
from tests.builders import make_offer


def rule(**changes: Any) -> ContractSettings:
    return ContractSettings(**({"provider": "aws", "discount": 0.1} | changes))


def priced(offer: Offer, *rules: ContractSettings) -> tuple[float | None, float | None, float]:
    """Contracted, effective and paid price."""
    (offers_priced,) = contracted([offer], rules)
    assert offers_priced.list_usd_per_h == offer.list_usd_per_h
    return offers_priced.contracted_usd_per_h, offers_priced.effective_usd_per_h, offers_priced.usd_per_h


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"discount": 0.1}, (36, None, 36)),
        # A commitment is off the contracted price, for the share that it covers: 36 x (1 - 0.5 x 0.3).
        ({"discount": 0.1, "commitment_discount": 0.3, "coverage": 0.5}, (36, 30.6, 30.6)),
        ({"discount": 0, "commitment_discount": 0.25}, (None, 30, 30)),
        ({"discount": 0, "commitment_discount": 0.5, "coverage": 0}, (None, None, 40)),
        ({"discount": 0}, (None, None, 40)),
    ],
)
def test_what_a_rule_makes_of_40_dollars(changes, expected):
    assert priced(make_offer(usd_per_h=40.0), rule(**changes)) == pytest.approx(expected)


def test_no_rule_changes_nothing():
    offers = (make_offer(), make_offer("Y", 2.0, market=Market.SPOT))
    assert contracted(offers, ()) == offers
    assert contracted((), [rule()]) == ()


@pytest.mark.parametrize(
    ("changes", "matches"),
    [
        ({}, True),
        ({"provider": "gcp"}, False),
        ({"instance_types": ("p5*",)}, True),
        ({"instance_types": ("P5.*",)}, True),
        ({"instance_types": ("p5",)}, False),
        ({"instance_types": ("g5*", "p5.48xlarge")}, True),
        ({"instance_types": ()}, False),
        ({"regions": ("us-*",)}, True),
        ({"regions": ("eu-*",)}, False),
        ({"markets": (Market.SPOT,)}, False),
        ({"markets": (Market.SPOT, Market.ON_DEMAND)}, True),
    ],
)
def test_whom_a_rule_means(changes, matches):
    offer = make_offer(instance_type="p5.48xlarge", region="us-east-1")
    assert (priced(offer, rule(**changes))[0] is not None) == matches


@pytest.mark.parametrize("market", [market for market in Market if market is not Market.ON_DEMAND])
def test_only_on_demand_is_discounted_unless_the_market_is_named(market):
    offer = make_offer(usd_per_h=10.0, market=market)
    assert priced(offer, rule(commitment_discount=0.5)) == (None, None, 10.0)
    assert priced(offer, rule(markets=(market,)))[0] == pytest.approx(9)


def test_the_first_rule_that_matches_counts():
    offer = make_offer(usd_per_h=10.0, instance_type="p5.48xlarge")
    special, general = rule(instance_types=("p5*",), discount=0.5), rule(discount=0.1)
    assert priced(offer, special, general)[0] == pytest.approx(5)
    assert priced(offer, general, special)[0] == pytest.approx(9)
    assert priced(make_offer(usd_per_h=10.0), special, general)[0] == pytest.approx(9)


@pytest.mark.parametrize("quoted", [{"contracted_usd_per_h": 7.0}, {"effective_usd_per_h": 7.0}])
def test_a_price_that_the_source_tells_is_kept(quoted):
    offer = make_offer(usd_per_h=10.0, **quoted)
    assert contracted([offer], [rule()]) == (offer,)


def test_a_contract_holds_through_its_last_day_and_all_that_have_ended_are_one_warning():
    rules = tuple(rule(provider=name, until=date(2026, 11, day)) for name, day in (("aws", 21), ("gcp", 22)))
    assert in_force(rules, date(2026, 11, 21)) == (rules, ())
    kept, (warning,) = in_force(rules, date(2026, 11, 22))
    assert kept == rules[1:]
    assert "aws (until 2026-11-21);" in warning
    kept, (warning,) = in_force(rules, date(2026, 11, 23))
    assert kept == ()
    assert "aws (until 2026-11-21), gcp (until 2026-11-22)" in warning
    assert in_force((), date(2026, 1, 1)) == ((), ())


OFFERS = (
    make_offer(instance_type="p5.48xlarge", region="us-east-1"),
    make_offer(instance_type="g5.xlarge", region="eu-west-1", market=Market.SPOT),
    make_offer(instance_type="a2-highgpu-1g", provider="gcp", region="us-central1"),
)


def idle(**changes: Any) -> list[str]:
    return idle_rules({"contracts, entry 1": rule(**changes)}, OFFERS)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"provider": "amazon"}, "provider"),
        ({"instance_types": ("p6*",)}, "instance_types"),
        ({"regions": ("us-west-*",)}, "regions"),
        ({"instance_types": ("g5*",), "regions": ("us-*",)}, "regions"),
        ({"instance_types": ("g5*",)}, "markets"),
        ({"markets": (Market.COMMIT_1Y,)}, "markets"),
    ],
)
def test_the_key_that_nothing_gets_past_is_named(changes, key):
    (idle_rule,) = idle(**changes)
    assert idle_rule.endswith(f"nothing gets past its {key}")


def test_the_rule_is_told_in_full():
    changes = {"instance_types": ("p6*", "p7*"), "regions": ("us-*",), "markets": (Market.SPOT,)}
    (idle_rule,) = idle(**changes)
    assert idle_rule == (
        "contracts, entry 1, matches no offer of any source: aws p6* p7* in us-*, spot; nothing gets past its"
        " instance_types"
    )


def test_rules_that_match_are_not_told_and_the_others_keep_their_order():
    rules = {"c": rule(provider="c"), "a": rule(), "b": rule(instance_types=("b*",))}
    assert [idle_rule.split(",")[0] for idle_rule in idle_rules(rules, OFFERS)] == ["c", "b"]


def test_without_offers_every_rule_is_idle_and_without_rules_none():
    assert len(idle_rules({"a": rule(), "b": rule()}, ())) == 2
    assert idle_rules({}, OFFERS) == []


NAMES = st.sampled_from(["a", "b", "a*", "*"])
RULES = st.builds(
    rule,
    provider=st.sampled_from(["aws", "gcp"]),
    instance_types=st.tuples(NAMES),
    regions=st.tuples(NAMES),
    markets=st.tuples(st.sampled_from([Market.ON_DEMAND, Market.SPOT])),
)
PLAIN = st.sampled_from(["a", "b", "ab"])
SOME_OFFERS = st.builds(
    make_offer,
    provider=st.sampled_from(["aws", "gcp"]),
    instance_type=PLAIN,
    region=PLAIN,
    market=st.sampled_from([Market.ON_DEMAND, Market.SPOT]),
)


@given(st.lists(RULES, max_size=4), st.lists(SOME_OFFERS, max_size=5))
def test_idle_is_what_no_offer_is_among(rules, offers):
    idle_rule = idle_rules({f"rule {number}": each for number, each in enumerate(rules)}, offers)
    expected = [f"rule {n}" for n, each in enumerate(rules) if not any(is_among(o, each) for o in offers)]
    assert [line.split(",")[0] for line in idle_rule] == expected
