"""What a SKU of Compute Engine prices, on what terms, for how much."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.values import Market
from advisor.pricing.sources.gcp.skus import (
    PriceTier,
    Pricing,
    Sku,
    SkuKind,
    components,
    kind_of,
    recognise,
    usd_per_h,
)
from tests.clouds.gcp_skus import rows
from tests.shared import needs_shared

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
