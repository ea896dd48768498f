"""What a SKU of Compute Engine prices, on what terms, for how much."""

import dataclasses
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.errors import CatalogError
from advisor.core.gpus import catalog_path
from advisor.core.values import Market
from advisor.pricing.instance_types import load_instances
from advisor.pricing.sources.gcp.skus import (
    MACHINE_COLUMNS,
    MACHINE_FILE,
    UNITS,
    MachineType,
    PriceTier,
    Pricing,
    Sku,
    SkuKind,
    components,
    kind_of,
    load_machines,
    machine_usd_per_h,
    part_of,
    rates_of,
    read_machines,
    recognise,
    usd_per_h,
)
from advisor.pricing.sources.protocol import Part
from tests.clouds.gcp_skus import rows
from tests.shared import needs_shared
from tools.build_price_catalog import write_machines

NOW = datetime(2026, 11, 21, tzinfo=UTC)
GIB_HOURS = 2**30 * 3600
NAMES = {"H100-80GB-MEGA": "H100-80GB-Mega", "H100-80GB-PLUS": "H100-80GB-Mega"}
MARKETS = {
    "on_demand": ("OnDemand", Market.ON_DEMAND),
    "spot": ("Preemptible", Market.SPOT),
    "dws_flex_start": ("OnDemand", Market.FLEX_START),
    "calendar_mode": ("OnDemand", Market.CALENDAR),
    "reserved": ("OnDemand", Market.RESERVED),
    "commit_1y": ("Commit1Yr", Market.COMMIT_1Y),
    "commit_3y": ("Commit3Yr", Market.COMMIT_3Y),
}


def tier(units: int = 0, nanos: int = 0, currency: str = "USD") -> PriceTier:
    return PriceTier(currency=currency, units=units, nanos=nanos)


def pricing(
    *tiers: PriceTier, effective_at: datetime | None = NOW, unit: str = "h", base_units: float = 3600
) -> Pricing:
    return Pricing(effective_at=effective_at, usage_unit=unit, base_units=base_units, tiers=tiers)


def sku(*prices: Pricing) -> Sku:
    return Sku(sku_id="S", description="", usage_type="OnDemand", regions=("us-central1",), pricing=prices)


# --- What and on what terms -----------------------------------------------------------------------


TEXTS = {
    (Market.ON_DEMAND, "OnDemand"): {
        "A2 Instance Core running in Americas": "A2 core",
        "A2 Instance Ram running in Americas": "A2 RAM",
        "A3 Instance Core running in Sydney": "A3 core",
        "A3Plus Instance Core running in Sydney": "A3-Mega core",
        "A3Ultra Instance Ram running in Sydney": "A3-Ultra RAM",
        "G2 Instance Core running in Zurich": "G2 core",
        "G4 Instance Ram running in Zurich": "G4 RAM",
        "RTX 6000 96GB running in Zurich": "RTX-PRO-6000 GPU",
        "N1 Predefined Instance Core running in Paris": "N1 core",
        "Nvidia Tesla A100 GPU running in Americas": "A100-40GB GPU",
        "Nvidia Tesla A100 80GB GPU running in Iowa": "A100-80GB GPU",
        "Nvidia H100 80GB GPU running in Iowa": "H100-80GB GPU",
        "Nvidia H100 80GB Mega GPU running in Iowa": "H100-80GB-Mega GPU",
        "SSD backed Local Storage": "local SSD",
        "SSD backed Local Storage in Iowa": "local SSD",
    },
    (Market.SPOT, "Preemptible"): {
        "Spot Preemptible A2 Instance Core running in Iowa": "A2 core",
        "Preemptible A2 Instance Ram running in Iowa": "A2 RAM",
        "Spot Preemptible N1 Predefined Instance Ram running in Paris": "N1 RAM",
        "Nvidia L4  GPU attached to Spot Preemptible VMs running in Hong Kong": "L4 GPU",
        "Spot Preemptible A4 Nvidia B200 (1 gpu slice) in Iowa": "B200 slice",
        "SSD backed Local Storage attached to Spot Preemptible VMs in Iowa": "local SSD",
    },
    (Market.FLEX_START, "OnDemand"): {
        "H200 141GB GPU attached to DWS Defined Duration VMs running in Iowa": "H200-141GB GPU",
        "A3 Instance Core attached to DWS Defined Duration VMs running in Iowa": "A3 core",
    },
    (Market.CALENDAR, "OnDemand"): {
        "Reserved Nvidia H100 80GB GPU in Iowa in Calendar Mode": "H100-80GB GPU",
        "DWS Calendar Mode A4 Nvidia B200 (1 gpu slice) running in Iowa": "B200 slice",
    },
    (Market.RESERVED, "OnDemand"): {"Reserved Nvidia Tesla A100 GPU in APAC": "A100-40GB GPU"},
    (Market.COMMIT_1Y, "Commit1Yr"): {"Commitment v1: A2 Cpu in APAC for 1 Year": "A2 core"},
    (Market.COMMIT_3Y, "Commit3Yr"): {
        "Commitment v1: Ram in APAC for 3 Years": "N1 RAM",
        "Commitment v1: Nvidia Tesla T4 GPU running in Iowa for 3 Year": "T4 GPU",
    },
}


@pytest.mark.parametrize(
    ("text", "component", "market", "usage_type"),
    [(text, name, *terms) for terms, names in TEXTS.items() for text, name in names.items()],
)
def test_texts_of_components(text, component, market, usage_type):
    assert recognise(text, usage_type) == (component, market)


@pytest.mark.parametrize(
    ("description", "usage_type"),
    [
        ("", "OnDemand"),
        ("E2 Instance Core running in Americas", "OnDemand"),
        ("A2 Sole Tenancy Instance Core running in Americas", "OnDemand"),
        ("A2 Instance Core running in Americas Sole Tenancy", "OnDemand"),
        ("Nvidia L4 GPU attached to Spot Preemptible VMs running in Americas Sole Tenancy", "Preemptible"),
        ("N1 Custom Instance Core running in Americas", "OnDemand"),
        ("Custom Extended Instance Ram running in Americas", "OnDemand"),
        ("A2 Instance Core Premium running in Americas", "OnDemand"),
        ("Licensing Fee for Deep Learning Image (CPU cost)", "OnDemand"),
        ("Nvidia Tesla T4 vWS GPU running in Americas", "OnDemand"),
        ("Nvidia L40S GPU running in Americas", "OnDemand"),
        ("Nvidia L4 GPU suspended running in Americas", "OnDemand"),
        ("Calendar Mode Nvidia L4 GPU running in Americas", "OnDemand"),
        ("Nvidia L4 GPU running in DWS", "OnDemand"),
        # text and usage type contradict each other
        ("A2 Instance Core running in Americas", "Preemptible"),
        ("A2 Instance Core running in Americas", "Commit1Yr"),
        ("Spot Preemptible A2 Instance Core running in Americas", "OnDemand"),
        ("Commitment v1: A2 Cpu in APAC for 1 Year", "Commit3Yr"),
    ],
)
def test_other_texts_count_for_nothing(description, usage_type):
    assert recognise(description, usage_type) is None


@pytest.mark.shared
@needs_shared
def test_every_real_gpu_sku_is_what_its_collector_says_it_is():
    for row in rows("gcp_gpu_skus.csv"):
        usage_type, market = MARKETS[row["usage"]]
        component = f"{NAMES.get(row['gpu'], row['gpu'])} GPU"
        assert recognise(row["description"], usage_type) == (component, market), row


def test_no_text_is_two_components():
    """The first pattern wins, so none may hide another."""
    for name, own in components().items():
        for text in (name.replace("-", " "), f"nvidia {name}", f"{name.removesuffix(' core')} instance core"):
            matching = [other for other, pattern in components().items() if pattern.fullmatch(text.lower())]
            assert len(matching) <= 1, (name, own, matching)


def test_kinds_are_the_last_words():
    assert {kind_of(name) for name in components()} == set(SkuKind)
    with pytest.raises(ValueError, match="'A9 core' is no component: there are A2 core"):
        kind_of("A9 core")


# --- For how much ---------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.integers(0, 10**9 - 1))
def test_a_price_is_units_and_nanos(units, nanos):
    item = sku(pricing(tier(units, nanos)))
    if (units, nanos) == (0, 0):
        with pytest.raises(ValueError, match="price 0, which means unknown"):
            usd_per_h(item, "A2 core", NOW)
    else:
        assert usd_per_h(item, "A2 core", NOW) == Decimal(units * 10**9 + nanos) / 10**9


OLD = pricing(tier(1), effective_at=NOW - timedelta(days=400))
NEW = pricing(tier(2), effective_at=NOW - timedelta(days=1))
AHEAD = pricing(tier(3), effective_at=NOW + timedelta(seconds=1))
UNDATED = pricing(tier(4), effective_at=None)
MEMORY = pricing(tier(0, 4_237_000), unit="GiBy.h", base_units=GIB_HOURS)
DISK = pricing(tier(0, 80_000_000), unit="GiBy.mo", base_units=GIB_HOURS * 744)


@pytest.mark.parametrize(
    ("component", "prices", "usd"),
    [
        ("A2 RAM", [MEMORY], Decimal("0.004237")),
        ("local SSD", [DISK], Decimal("0.08") / 730),
        ("A2 core", [pricing(tier(1), base_units=0)], 1),
        # The first tier that is not free counts, and the newest price in effect.
        ("A2 core", [pricing(tier(), tier(2), tier(3))], 2),
        ("A2 core", [AHEAD, NEW, UNDATED, OLD], 2),
        ("A2 core", [UNDATED], 4),
        ("A2 core", [UNDATED, AHEAD], 4),
        ("A2 core", [pricing(tier(2)), pricing(tier(2))], 2),
    ],
)
def test_what_counts(component, prices, usd):
    assert usd_per_h(sku(*prices), component, NOW) == usd


@pytest.mark.parametrize(
    ("component", "prices", "message"),
    [
        ("A2 core", [pricing(tier(1), unit="mo", base_units=0)], "is priced per 'mo', not per h"),
        ("A2 core", [pricing(tier(1), base_units=60)], "counts 60 base units per h"),
        ("A2 RAM", [pricing(tier(1))], "is priced per 'h', not per GiBy.h"),
        ("A2 RAM", [pricing(tier(1), unit="GiBy.h")], "counts 3600 base units per GiBy.h"),
        ("A2 RAM", [pricing(tier(1), unit="GBy.h", base_units=0)], "is priced per 'GBy.h'"),
        ("local SSD", [MEMORY], "is priced per 'GiBy.h', not per GiBy.mo"),
        ("A2 core", [pricing()], "price 0, which means unknown"),
        ("A2 core", [pricing(tier())], "price 0, which means unknown"),
        ("A2 core", [pricing(tier(-1))], "has the price -1"),
        ("A2 core", [pricing(tier(0, -5))], "has the price -5E-9"),
        ("A2 core", [pricing(tier(), tier(-1), tier(3))], "has the price -1"),
        ("A2 core", [pricing(tier(68, currency="IDR"))], "is priced in IDR, not in USD"),
        ("A2 core", [pricing(tier(68, currency=""))], "is priced in no currency"),
        ("A2 core", [], "has no price yet"),
        ("A2 core", [AHEAD], "has no price yet"),
        ("A2 core", [pricing(tier(2)), pricing(tier(3))], "several prices from the same moment"),
    ],
)
def test_prices_that_cannot_be_used(component, prices, message):
    with pytest.raises(ValueError, match=message):
        usd_per_h(sku(*prices), component, NOW)


INSTANCES = load_instances()
A2 = "a2-ultragpu-2g,A2 core|A2 RAM|A100-80GB GPU|local SSD,750,,us-central1|us-east4,test,2026-08-17"


def read(folder: Path, *lines: str, header: str = ",".join(MACHINE_COLUMNS)) -> tuple[MachineType, ...]:
    path = folder / "machines.csv"
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return read_machines(path, INSTANCES)


def test_a_row_is_joined_to_its_instance_type(tmp_path):
    (machine,) = read(tmp_path, A2)
    assert machine.needs == {
        "A2 core": Decimal(24),
        "A2 RAM": Decimal(340),
        "A100-80GB GPU": Decimal(2),
        "local SSD": Decimal(750),
    }
    assert machine.regions == ("us-central1", "us-east4")
    assert machine.markets == tuple(Market)
    assert machine.instance.gpu == "A100-SXM-80GB"


def test_the_shipped_table_is_as_we_would_write_it(tmp_path):
    write_machines(tmp_path / "machines.csv", load_machines())
    assert (tmp_path / "machines.csv").read_bytes() == catalog_path(MACHINE_FILE).read_bytes()


def test_markets_may_be_limited(tmp_path):
    (machine,) = read(tmp_path, A2.replace("750,,", "750,spot|flex-start,"))
    assert machine.markets == (Market.SPOT, Market.FLEX_START)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (A2.replace("a2-ultragpu-2g", "a9-megagpu"), "line 2: gcp 'a9-megagpu' is not in instances.csv"),
        (A2.replace("A2 core", "A9 core"), "line 2: 'A9 core' is no component"),
        (A2.replace(",750,", ",0,"), "line 2: a2-ultragpu-2g is billed by a component of which it has none"),
        (A2.replace("750,,", "750,someday,"), "line 2: 'someday' is not a valid Market"),
        (A2.replace("us-central1|us-east4", ""), "line 2: regions or source is empty"),
        (A2.replace("2026-08-17", "lately"), "line 2: Invalid isoformat"),
        (f"{A2}\n{A2}", "line 3: 'a2-ultragpu-2g' is listed twice"),
        (A2 + ",more", "line 2: 8 fields instead of 7"),
    ],
)
def test_a_broken_row_is_named(tmp_path, line, message):
    with pytest.raises(CatalogError, match=message.replace("(", r"\(")):
        read(tmp_path, line)


def test_other_columns_and_a_missing_file_are_errors(tmp_path):
    with pytest.raises(CatalogError, match="the columns are machine,price"):
        read(tmp_path, A2, header="machine,price")
    with pytest.raises(CatalogError, match=r"cannot read the catalog file .*nowhere\.csv"):
        read_machines(tmp_path / "nowhere.csv", INSTANCES)


def test_every_gcp_instance_type_is_in_the_shipped_table():
    names = {machine.instance.instance_type for machine in load_machines()}
    assert names == {name for provider, name in INSTANCES if provider == "gcp"}


REGION = "us-central1"
MACHINES = tuple(machine for machine in load_machines() if REGION in machine.regions)
MACHINE_NAMES = {machine.instance.instance_type for machine in MACHINES}
# The texts by which Google lists what the machines of this region need, on demand.
ANY_TEXT = {
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
COMPONENTS = st.sampled_from(sorted(ANY_TEXT))
NANOS = st.integers(1, 20 * 10**9)


def any_sku(
    component: str, nanos: int = 10**9, *, sku_id: str = "", regions: tuple[str, ...] = (REGION,)
) -> Sku:
    unit, *_ = UNITS[kind_of(component)]
    tier = PriceTier(currency="USD", units=nanos // 10**9, nanos=nanos % 10**9)
    price = Pricing(effective_at=NOW, usage_unit=unit, base_units=0, tiers=(tier,))
    return Sku(
        sku_id=sku_id or component,
        description=f"{ANY_TEXT[component]} running in Americas",
        usage_type="OnDemand",
        regions=regions,
        pricing=(price,),
    )


FULL_LIST = tuple(any_sku(component, 10**9 + number) for number, component in enumerate(ANY_TEXT))


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


@pytest.mark.parametrize("component", sorted(ANY_TEXT))
def test_without_one_component_exactly_the_machines_that_need_it_are_gone(component):
    part = quote(item for item in FULL_LIST if item.sku_id != component)
    whole = prices(quote(FULL_LIST))
    assert prices(part) == {name: usd for name, usd in whole.items() if name not in needing(component)}
    assert names_of(part) == needing(component)
    assert all(f"{REGION} on-demand: no price of {component} (no SKU)" in gap for gap in part.gaps)


@given(COMPONENTS, st.sampled_from([0, -1, -(10**9)]))
def test_a_price_that_is_not_above_0_is_as_none_and_is_said(component, nanos):
    others = [item for item in FULL_LIST if item.sku_id != component]
    part = quote([*others, any_sku(component, nanos)])
    assert prices(part) == prices(quote(others))
    assert all(f"{component} (SKU {component} has the price" in gap for gap in part.gaps)


def test_a_machine_that_is_not_in_a_region_has_no_price_there_whatever_the_skus_say():
    elsewhere = [dataclasses.replace(item, regions=("southamerica-west1",)) for item in FULL_LIST]
    part = quote(elsewhere, region="southamerica-west1")
    place = ("gcp", "southamerica-west1", Market.ON_DEMAND)
    assert part == Part(scope="southamerica-west1 on-demand", place=place)


def test_types_that_start_only_as_spot_or_flex_start_are_no_gap_on_demand():
    small = {f"a3-highgpu-{n}g" for n in (1, 2, 4)}
    assert small < MACHINE_NAMES
    for skus in (FULL_LIST, ()):
        part = quote(skus)
        assert not small & (set(prices(part)) | names_of(part))
    assert small < names_of(quote((), Market.SPOT))


def test_other_markets_have_gaps_only_where_google_prices_the_gpu():
    assert not quote((), Market.COMMIT_1Y).gaps
    committed = dataclasses.replace(
        any_sku("L4 GPU"), description="Commitment v1: Nvidia L4 GPU in X for 1 Year", usage_type="Commit1Yr"
    )
    part = quote([committed], Market.COMMIT_1Y)
    assert not part.offers
    assert names_of(part) == needing("L4 GPU")


# --- Doubtful parts -------------------------------------------------------------------------------


@given(COMPONENTS, NANOS, NANOS)
def test_two_skus_for_one_component_must_agree(component, first, second):
    others = [item for item in FULL_LIST if item.sku_id != component]
    pair = [any_sku(component, first, sku_id="A"), any_sku(component, second, sku_id="B")]
    part = quote([*others, *pair])
    if first == second:
        assert part == quote([*others, pair[0]])
    else:
        assert prices(part) == prices(quote(others))
        assert all(f"{component} (SKUs disagree (USD/h: A " in gap for gap in part.gaps)


def test_a_usable_and_an_unusable_sku_of_one_component_are_a_gap():
    part = quote([*FULL_LIST, any_sku("L4 GPU", 0, sku_id="Z")])
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
