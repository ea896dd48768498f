"""Quotas: which machines an account may not start, and what is unknown stays allowed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.values import Market, Offer, Quantiles
from advisor.report.words import sentence
from recommender.plans.candidates import Quota, over_quota, plans_of_offers
from recommender.plans.extras import CloudTerms
from tests.builders import make_offer

BOTH = (Market.ON_DEMAND, Market.SPOT)


def quota(**changes: object) -> Quota:
    facts = {"provider": "aws", "instance_types": ("p*",), "regions": ("us-*",), "markets": BOTH, "vcpus": 96}
    return Quota(**(facts | changes))


def offer(**changes: object) -> Offer:
    return make_offer("X", **({"instance_type": "p5.48xlarge", "num_vcpus": 192} | changes))


def test_what_is_too_large_says_the_figures_and_whom_to_ask():
    reason = over_quota(offer(), [quota()])
    assert reason is not None
    assert sentence(reason) == (
        "over the quota: it has 192 vCPU, and 96 are allowed for p* in us-east-1; ask aws for more"
    )


@pytest.mark.parametrize(
    "other",
    [
        {"provider": "gcp"},
        {"instance_types": ("g*",)},
        {"regions": ("eu-*",)},
        {"markets": (Market.SPOT,)},
        {"vcpus": 192},
    ],
)
def test_a_quota_of_something_else_or_a_large_one_forbids_nothing(other):
    assert over_quota(offer(), [quota(**other)]) is None


def test_every_quota_that_matches_must_hold():
    assert over_quota(offer(), [quota(vcpus=500), quota(instance_types=("P5.*",), vcpus=0)])


def test_a_machine_of_unknown_size_is_not_judged():
    assert over_quota(offer(num_vcpus=None), [quota(vcpus=0)]) is None


@given(st.integers(1, 500), st.integers(0, 500), st.integers(0, 500))
def test_a_higher_quota_never_forbids_more(vcpus, low, more):
    machine = offer(num_vcpus=vcpus)
    if over_quota(machine, [quota(vcpus=low)]) is None:
        assert over_quota(machine, [quota(vcpus=low + more)]) is None


def test_plans_carry_the_quota_and_the_wait():
    wait = Quantiles(p50=60.0, p90=3600.0)
    terms = CloudTerms(startup_s=0.0, wait_s=wait)
    free, blocked = plans_of_offers([offer(num_vcpus=8), offer()], terms=terms, quotas=[quota()])
    assert free.blocked is None
    assert blocked.blocked is not None
    assert (free.wait_s, blocked.wait_s) == (wait, wait)
