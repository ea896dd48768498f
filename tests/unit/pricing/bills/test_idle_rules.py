"""Contracts and quotas that are about nothing: found, named, and told where the last offer is lost."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.config.settings import ContractSettings
from advisor.core.globs import is_among
from advisor.core.values import Market, Offer
from advisor.pricing.bills.idle_rules import idle_rules
from tests.builders import make_offer

OFFERS = (
    make_offer(instance_type="p5.48xlarge", region="us-east-1"),
    make_offer(instance_type="g5.xlarge", region="eu-west-1", market=Market.SPOT),
    make_offer(instance_type="a2-highgpu-1g", provider="gcp", region="us-central1"),
)


def rule(**changes: Any) -> ContractSettings:
    return ContractSettings(**({"provider": "aws"} | changes))


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
def test_the_key_that_nothing_gets_past_is_named(changes: dict[str, Any], key: str) -> None:
    (idle_rule,) = idle(**changes)
    assert idle_rule.endswith(f"nothing gets past its {key}")


def test_the_rule_is_told_in_full() -> None:
    changes = {"instance_types": ("p6*", "p7*"), "regions": ("us-*",), "markets": (Market.SPOT,)}
    (idle_rule,) = idle(**changes)
    assert idle_rule == (
        "contracts, entry 1, matches no offer of any source: aws p6* p7* in us-*, spot; nothing gets past its"
        " instance_types"
    )


def test_rules_that_match_are_not_told_and_the_others_keep_their_order() -> None:
    rules = {"c": rule(provider="c"), "a": rule(), "b": rule(instance_types=("b*",))}
    assert [idle_rule.split(",")[0] for idle_rule in idle_rules(rules, OFFERS)] == ["c", "b"]


def test_without_offers_every_rule_is_idle_and_without_rules_none() -> None:
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
def test_idle_is_what_no_offer_is_among(rules: list[ContractSettings], offers: list[Offer]) -> None:
    idle_rule = idle_rules({f"rule {number}": each for number, each in enumerate(rules)}, offers)
    expected = [f"rule {n}" for n, each in enumerate(rules) if not any(is_among(o, each) for o in offers)]
    assert [line.split(",")[0] for line in idle_rule] == expected
