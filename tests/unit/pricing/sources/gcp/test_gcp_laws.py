"""Laws of prices by parts: sums, order, missing and doubtful parts."""

import dataclasses
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.values import Market
from advisor.pricing.sources.gcp.skus import (
    UNITS,
    PriceTier,
    Pricing,
    Sku,
    kind_of,
    load_machines,
    machine_usd_per_h,
    part_of,
    rates_of,
)
from advisor.pricing.sources.protocol import Part

NOW = datetime(2026, 11, 21, tzinfo=UTC)
REGION = "us-central1"
MACHINES = tuple(machine for machine in load_machines() if REGION in machine.regions)
NAMES = {machine.instance.instance_type for machine in MACHINES}
# The texts by which Google lists what the machines of this region need, on demand.
TEXTS = {
    "A2 core": "A2 Instance Core", "A2 RAM": "A2 Instance Ram", "A3 core": "A3 Instance Core",
    "A3 RAM": "A3 Instance Ram", "A3-Mega core": "A3Plus Instance Core", "A3-Mega RAM": "A3Plus Instance Ram",
    "A3-Ultra core": "A3Ultra Instance Core", "A3-Ultra RAM": "A3Ultra Instance Ram",
    "A3-Edge core": "A3Edge Instance Core", "A3-Edge RAM": "A3Edge Instance Ram",
    "G2 core": "G2 Instance Core", "G2 RAM": "G2 Instance Ram", "G4 core": "G4 Instance Core",
    "G4 RAM": "G4 Instance Ram", "N1 core": "N1 Predefined Instance Core",
    "N1 RAM": "N1 Predefined Instance Ram", "A100-40GB GPU": "Nvidia Tesla A100 GPU",
    "A100-80GB GPU": "Nvidia Tesla A100 80GB GPU", "H100-80GB GPU": "Nvidia H100 80GB GPU",
    "H100-80GB-Mega GPU": "Nvidia H100 80GB Mega GPU", "H200-141GB GPU": "H200 141GB GPU",
    "L4 GPU": "Nvidia L4 GPU", "RTX-PRO-6000 GPU": "RTX 6000 96GB", "T4 GPU": "Nvidia Tesla T4 GPU",
    "P4 GPU": "Nvidia Tesla P4 GPU", "P100 GPU": "Nvidia Tesla P100 GPU", "V100 GPU": "Nvidia Tesla V100 GPU",
    "B200 slice": "A4 Nvidia B200 (1 gpu slice)", "local SSD": "SSD backed Local Storage",
}  # fmt: skip
COMPONENTS = st.sampled_from(sorted(TEXTS))
NANOS = st.integers(1, 20 * 10**9)


def sku(component: str, nanos: int = 10**9, *, sku_id: str = "", regions: tuple[str, ...] = (REGION,)) -> Sku:
    unit, *_ = UNITS[kind_of(component)]
    tier = PriceTier(currency="USD", units=nanos // 10**9, nanos=nanos % 10**9)
    price = Pricing(effective_at=NOW, usage_unit=unit, base_units=0, tiers=(tier,))
    return Sku(
        sku_id=sku_id or component,
        description=f"{TEXTS[component]} running in Americas",
        usage_type="OnDemand",
        regions=regions,
        pricing=(price,),
    )


FULL_LIST = tuple(sku(component, 10**9 + number) for number, component in enumerate(TEXTS))


def quote(skus: Iterable[Sku], market: Market = Market.ON_DEMAND, region: str = REGION) -> Part:
    return part_of(region, market, MACHINES, rates_of(skus, NOW), retrieved_at=NOW)


def prices(part: Part) -> dict[str, float]:
    return {offer.instance_type: offer.list_usd_per_h for offer in part.offers}


def names_of(part: Part) -> set[str]:
    return {gap.split(" ")[0] for gap in part.gaps}


def needing(component: str) -> set[str]:
    """Machines that Google starts on demand and that have the component."""
    return {
        machine.instance.instance_type
        for machine in MACHINES
        if component in machine.needs and Market.ON_DEMAND in machine.markets
    }


# --- Sums -----------------------------------------------------------------------------------------


@given(st.data())
def test_a_machine_costs_the_sum_of_its_parts(data):
    machine = data.draw(st.sampled_from(MACHINES))
    nanos = {component: data.draw(NANOS) for component in machine.needs}
    rates = {name: Decimal(n) / 10**9 for name, n in nanos.items()}
    total, missing = machine_usd_per_h(machine, rates)
    assert total is not None
    assert not missing
    exact = sum(int(machine.needs[name]) * n for name, n in nanos.items())
    assert total * 10**9 == exact


def test_a_whole_list_leaves_no_gap():
    part = quote(FULL_LIST)
    assert not part.gaps
    startable = {m.instance.instance_type for m in MACHINES if Market.ON_DEMAND in m.markets}
    assert set(prices(part)) == startable


@given(st.permutations(FULL_LIST))
def test_the_order_of_the_list_changes_nothing(skus):
    assert quote(skus) == quote(FULL_LIST)


def test_what_an_offer_says_besides_its_price():
    offer = next(o for o in quote(FULL_LIST).offers if o.instance_type == "a2-ultragpu-1g")
    assert offer.includes == ("12 vCPU", "170 GiB RAM", "375 GB local SSD")
    assert (offer.gpu, offer.num_gpus, offer.num_vcpus) == ("A100-SXM-80GB", 1, 12)
    assert (offer.minimum_billed_s, offer.billed_step_s, offer.zone) == (60, 1, None)
    assert (offer.retrieved_at, offer.source) == (NOW, "Cloud Billing Catalog")


# --- Missing parts --------------------------------------------------------------------------------


@pytest.mark.parametrize("component", sorted(TEXTS))
def test_without_one_component_exactly_the_machines_that_need_it_are_gone(component):
    part = quote(item for item in FULL_LIST if item.sku_id != component)
    whole = prices(quote(FULL_LIST))
    assert prices(part) == {name: usd for name, usd in whole.items() if name not in needing(component)}
    assert names_of(part) == needing(component)
    assert all(f"{REGION} on-demand: no price of {component} (no SKU)" in gap for gap in part.gaps)


@given(COMPONENTS, st.sampled_from([0, -1, -(10**9)]))
def test_a_price_that_is_not_above_0_is_as_none_and_is_said(component, nanos):
    others = [item for item in FULL_LIST if item.sku_id != component]
    part = quote([*others, sku(component, nanos)])
    assert prices(part) == prices(quote(others))
    assert all(f"{component} (SKU {component} has the price" in gap for gap in part.gaps)


def test_a_machine_that_is_not_in_a_region_has_no_price_there_whatever_the_skus_say():
    elsewhere = [dataclasses.replace(item, regions=("southamerica-west1",)) for item in FULL_LIST]
    part = quote(elsewhere, region="southamerica-west1")
    place = ("gcp", "southamerica-west1", Market.ON_DEMAND)
    assert part == Part(scope="southamerica-west1 on-demand", place=place)


def test_types_that_start_only_as_spot_or_flex_start_are_no_gap_on_demand():
    small = {f"a3-highgpu-{n}g" for n in (1, 2, 4)}
    assert small < NAMES
    for skus in (FULL_LIST, ()):
        part = quote(skus)
        assert not small & (set(prices(part)) | names_of(part))
    assert small < names_of(quote((), Market.SPOT))


def test_other_markets_have_gaps_only_where_google_prices_the_gpu():
    assert not quote((), Market.COMMIT_1Y).gaps
    committed = dataclasses.replace(
        sku("L4 GPU"), description="Commitment v1: Nvidia L4 GPU in X for 1 Year", usage_type="Commit1Yr"
    )
    part = quote([committed], Market.COMMIT_1Y)
    assert not part.offers
    assert names_of(part) == needing("L4 GPU")


# --- Doubtful parts -------------------------------------------------------------------------------


@given(COMPONENTS, NANOS, NANOS)
def test_two_skus_for_one_component_must_agree(component, first, second):
    others = [item for item in FULL_LIST if item.sku_id != component]
    pair = [sku(component, first, sku_id="A"), sku(component, second, sku_id="B")]
    part = quote([*others, *pair])
    if first == second:
        assert part == quote([*others, pair[0]])
    else:
        assert prices(part) == prices(quote(others))
        assert all(f"{component} (SKUs disagree (USD/h: A " in gap for gap in part.gaps)


def test_a_usable_and_an_unusable_sku_of_one_component_are_a_gap():
    part = quote([*FULL_LIST, sku("L4 GPU", 0, sku_id="Z")])
    assert names_of(part) == needing("L4 GPU")
    assert "SKU Z has the price 0, which means unknown" in part.gaps[0]


def test_a_sku_counts_in_the_regions_it_lists_and_no_others():
    """Its text says Americas."""
    moved = [
        dataclasses.replace(item, regions=("europe-west4",)) if item.sku_id == "L4 GPU" else item
        for item in FULL_LIST
    ]
    assert names_of(quote(moved)) == needing("L4 GPU")
    rates = rates_of(moved, NOW)
    assert [place[1] for place in rates if place[0] == "L4 GPU"] == ["europe-west4"]


def test_an_a100_machine_of_the_sample():
    """Decision 6: host 0.739477 + A100 2.933908, never one of them alone."""
    rates = {"A2 core": "0.031611", "A2 RAM": "0.004237", "A100-40GB GPU": "2.933908"}
    machine = next(m for m in MACHINES if m.instance.instance_type == "a2-highgpu-1g")
    priced = {name: Decimal(usd) for name, usd in rates.items()}
    assert machine_usd_per_h(machine, priced) == (Decimal("3.673385"), "")
