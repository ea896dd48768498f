"""Rates of the settings go before those that ship, and can be free."""

import pytest
from pydantic import ValidationError

from advisor.config.settings import RateSettings
from advisor.pricing.storage_rates import RateKind, charge, load_rates
from advisor.service.recommend.plan_sources import rates_of


def test_a_rate_of_the_settings_goes_before_the_catalog():
    entry = {"provider": "AWS", "region": "us-*", "kind": "block-storage", "usd": 0.05}
    rates = rates_of([RateSettings.model_validate(entry)])
    cost = charge(rates, RateKind.BLOCK_STORAGE, "aws", "us-east-1", gib=100)
    assert (cost.usd, cost.stand_in, cost.rate.source) == (5.0, None, "rates of the settings, entry 1")
    assert charge(rates, RateKind.BLOCK_STORAGE, "aws", "eu-west-1", gib=100).usd == pytest.approx(8.8)


def test_a_provider_that_nobody_knows_can_be_free():
    entry = {"provider": "lambda", "kind": "egress-internet", "usd": 0}
    rates = rates_of([RateSettings.model_validate(entry)])
    assert charge(rates, RateKind.EGRESS_INTERNET, "lambda", "us-west-1", gib=100).usd == 0
    assert charge(rates_of(()), RateKind.EGRESS_INTERNET, "lambda", "us-west-1", gib=100).usd == 15.0
    assert rates_of(()) == load_rates()


@pytest.mark.parametrize("change", [{"usd": -1}, {"kind": "tape"}, {"provider": ""}, {"per": "GB"}])
def test_a_rate_that_cannot_be_meant(change):
    entry = {"provider": "lambda", "kind": "egress-internet", "usd": 0} | change
    with pytest.raises(ValidationError):
        RateSettings.model_validate(entry)
