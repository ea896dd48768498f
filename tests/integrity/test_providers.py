"""Every row of who rents GPUs, and of the forms of their GPUs: dated, sourced and of use."""

import re
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from advisor.core.gpus import load_gpus
from advisor.pricing.instance_types import load_instances
from advisor.pricing.providers import PriceAccess, RowKind, load_forms, load_providers

RENTERS = load_providers()


@pytest.mark.parametrize("row", [*RENTERS.values(), *load_forms()], ids=lambda row: row.source[:20])
def test_every_row_is_dated_and_sourced(row):
    assert date(2020, 1, 1) <= row.as_of <= datetime.now(UTC).date()
    assert len(row.source) > 10


@pytest.mark.parametrize("provider", RENTERS.values(), ids=lambda provider: provider.name)
def test_every_provider_bills_in_a_way_that_can_be(provider):
    assert provider.name == provider.name.lower()
    assert 1 <= provider.billed_step_s <= 3600
    assert 60 <= provider.minimum_billed_s <= 3600
    assert (provider.known_billed_step_s is None) is (provider.known_minimum_billed_s is None)
    assert provider.spot_floor_share is None or 0 < provider.spot_floor_share < 1


def test_names_mean_one_provider_each():
    assert len({provider.gpuhunt_name for provider in RENTERS.values()}) == len(RENTERS)
    foreign = {provider.gpuhunt_name for name, provider in RENTERS.items() if provider.gpuhunt_name != name}
    assert not foreign & RENTERS.keys()


def test_nobody_whose_terms_are_unknown_bills_less_than_anybody_whose_are_known():
    """What is not known never looks better than what is."""
    known = [provider for provider in RENTERS.values() if provider.known_minimum_billed_s is not None]
    for provider in (one for one in RENTERS.values() if one not in known):
        assert provider.minimum_billed_s == max(one.minimum_billed_s for one in known)
        assert provider.billed_step_s == max(one.billed_step_s for one in known)


def test_the_clouds_of_our_catalog_are_among_them():
    assert {provider for provider, _ in load_instances()} <= RENTERS.keys()


def test_hosts_of_a_marketplace_are_all_of_others():
    for provider in RENTERS.values():
        assert provider.machines is not RowKind.HOSTS or provider.community_locations == ("*",)


def test_forms_are_those_of_our_gpus_and_of_known_providers():
    words = {word for name in load_gpus() for word in name.split("-")}
    for row in load_forms():
        assert row.provider in RENTERS
        assert row.form in words & {"PCIE", "SXM", "NVL"}


def test_the_page_names_each_and_how_it_is_known():
    page = (Path(__file__).parents[2] / "docs/prices.md").read_text(encoding="utf-8")
    lines = {
        PriceAccess.PUBLISHED: next(
            line for line in page.splitlines() if "publishes a catalog a day" in line
        ),
        PriceAccess.ASKED: next(line for line in page.splitlines() if "asks them directly" in line),
    }
    for name, provider in RENTERS.items():
        assert re.search(rf"\b{name}\b", lines[provider.access]), name
