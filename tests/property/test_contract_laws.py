"""Laws of contracts: no contract makes dearer, none touches what it does not name."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from advisor.config.settings import ContractSettings
from advisor.core.values import Market, Offer
from advisor.pricing.contracts import contracted
from tests.builders import make_offer

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
