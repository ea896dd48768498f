"""A whole pull of GCP's price list against what machines are known to cost."""

import random
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from advisor.core.values import Market, Offer
from advisor.pricing.sources.gcp import gcp_source
from advisor.pricing.sources.gcp.client import ENDPOINT_VARIABLE
from advisor.pricing.sources.gcp.skus import MachineType, load_machines
from advisor.pricing.sources.protocol import OfferQuery, Part
from tests.clouds import gcp_skus
from tests.clouds.gcp_server import SECRETS, Behaviour, serving
from tests.clouds.gcp_skus import DERIVED, attached_prices, host_prices, machine_prices, sku
from tests.end_to_end.cli import Shell
from tests.shared import needs_shared

pytestmark = [pytest.mark.shared, needs_shared]
A_CENT = 0.005
SPOT_ONLY = {f"a3-highgpu-{n}g" for n in (1, 2, 4)}
FRACTIONS = {f"g4-standard-{n}" for n in (6, 12, 24)}
ATTACHED = [m for m in load_machines() if "+" in m.instance.instance_type]

Key = tuple[str, str, str]


def pull(skus: Sequence[dict[str, Any]], query: OfferQuery | None = None) -> list[Part]:
    """What the source says as it is found by its entry point, on a server that lists these SKUs."""
    with pytest.MonkeyPatch.context() as patch, serving(Behaviour(skus=skus)) as server:
        patch.setenv(ENDPOINT_VARIABLE, server.url)
        return list(gcp_source({}).offers(query or OfferQuery()))


@pytest.fixture(scope="module")
def parts():
    return pull(gcp_skus.skus())


@pytest.fixture(scope="module")
def offers(parts):
    return offers_of(parts)


def offers_of(parts: list[Part]) -> dict[Key, Offer]:
    return {(o.instance_type, o.region, o.market): o for part in parts for o in part.offers}


def prices_of(parts: list[Part]) -> dict[Key, float]:
    return {key: offer.list_usd_per_h for key, offer in offers_of(parts).items()}


def known_prices() -> dict[Key, float]:
    """Machines with GPUs built in that our catalog rents and Google starts on these terms."""
    return {
        key: usd
        for key, usd in machine_prices().items()
        if key[0] not in FRACTIONS and not (key[0] in SPOT_ONLY and key[2] == Market.ON_DEMAND)
    }


def combined_prices() -> dict[Key, float]:
    """N1 hosts + attached GPUs where both are priced."""
    prices = {}
    for machine in ATTACHED:
        host, _, gpus = machine.instance.instance_type.partition("+")
        count, gpu = gpus.split("x")
        for (name, region, market), usd in host_prices().items():
            usd_per_gpu = attached_prices().get((gpu, region, market))
            if name == host and usd_per_gpu is not None:
                prices[machine.instance.instance_type, region, market] = usd + int(count) * usd_per_gpu
    return prices


# --- Prices ---------------------------------------------------------------------------------------


def test_every_known_price_comes_out_to_the_cent(offers):
    known = known_prices()
    assert len(known) > 650
    missing = set(known) - set(offers)
    assert not missing
    wrong = {key: (usd, offers[key].usd_per_h) for key, usd in known.items() if off(usd, offers[key])}
    assert not wrong


def test_n1_hosts_cost_themselves_and_their_gpus(offers):
    known = combined_prices()
    assert {key[0].partition("x")[2] for key in known} == {"T4", "P4", "P100", "V100"}
    assert len(known) > 500
    wrong = {key: usd for key, usd in known.items() if key not in offers or off(usd, offers[key])}
    assert not wrong


def off(usd_per_h: float, offer: Offer) -> bool:
    return abs(offer.usd_per_h - usd_per_h) >= A_CENT


def test_nothing_else_has_a_price(offers):
    assert set(offers) == set(known_prices()) | set(combined_prices())


@pytest.mark.parametrize(
    ("name", "usd_per_h"),
    [
        ("a2-highgpu-1g", 3.673385),  # host 0.739477 + A100 2.933908, never 2.93 or 0.74
        ("a3-highgpu-8g", 88.49),
        ("n1-standard-8+2xT4", 1.079998),  # 8 x 0.031611 + 30 x 0.004237 + 2 x 0.35
    ],
)
def test_machines_everybody_knows(offers, name, usd_per_h):
    offer = offers[name, "us-central1", "on-demand"]
    assert offer.usd_per_h == pytest.approx(usd_per_h, abs=5e-6)


def test_offers_are_of_now_and_billed_by_the_second_after_a_minute(offers):
    (moment,) = {offer.retrieved_at for offer in offers.values()}
    assert abs((datetime.now(UTC) - moment).total_seconds()) < 3600
    assert {offer.minimum_billed_s for offer in offers.values()} == {60.0}
    assert offers["a2-ultragpu-1g", "us-central1", "spot"].includes == (
        "12 vCPU", "170 GiB RAM", "375 GB local SSD",
    )  # fmt: skip


# --- Gaps -----------------------------------------------------------------------------------------


def test_every_machine_and_region_is_priced_or_a_gap(parts, offers):
    gaps = {tuple(gap.split(":")[0].split(" ")) for part in parts for gap in part.gaps}
    for market in (Market.ON_DEMAND, Market.SPOT):
        startable = {
            (machine.instance.instance_type, region, str(market))
            for machine in load_machines()
            if market in machine.markets
            for region in machine.regions
        }
        priced = {key for key in offers if key[2] == market}
        assert priced | {gap for gap in gaps if gap[2] == market} == startable
        assert not priced & gaps


def test_gaps_are_told_by_region_and_market(parts):
    for part in parts:
        assert all(f" {part.scope}: no price of " in gap for gap in part.gaps)
        assert all(f"{o.region} {o.market}" == part.scope for o in part.offers)
    mega = next(part for part in parts if part.scope == "us-central1 on-demand").gaps
    assert (
        "a3-megagpu-8g us-central1 on-demand: no price of A3-Mega core (no SKU), A3-Mega RAM (no SKU)" in mega
    )


def test_types_that_start_only_as_spot_or_flex_start_have_no_on_demand_price(offers):
    markets = Counter((key[0], key[2]) for key in offers if key[0] in SPOT_ONLY)
    assert set(markets) == {(name, "spot") for name in SPOT_ONLY}


# --- SKUs that must not count ---------------------------------------------------------------------


def test_planted_skus_and_those_of_other_markets_change_no_price(parts):
    planted = {item["skuId"] for item in gcp_skus.planted()}
    other_markets = {
        row["sku_id"]
        for row in gcp_skus.rows("gcp_gpu_skus.csv")
        if row["usage"] not in ("on_demand", "spot")
    }
    assert len(other_markets) > 700
    without = [item for item in gcp_skus.skus() if item["skuId"] not in planted | other_markets]
    assert prices_of(pull(without)) == prices_of(parts)


def test_the_order_of_the_list_changes_nothing(parts):
    shuffled = list(gcp_skus.skus())
    random.Random(20261121).shuffle(shuffled)  # noqa: S311
    again = pull(shuffled)
    assert [(p.scope, p.gaps) for p in again] == [(p.scope, p.gaps) for p in parts]
    assert prices_of(again) == prices_of(parts)


def test_a_dws_gpu_with_its_own_host_is_a_market_of_its_own(parts):
    """The H100 SKU of 4.20 that other catalogs take for the on-demand price of 9.80."""
    where = ("us-central1",)
    dws = "attached to DWS Defined Duration VMs running in Americas"
    host = (
        sku("FLEX-CORE", f"A3 Instance Core {dws}", where, 0.01),
        sku("FLEX-RAM", f"A3 Instance Ram {dws}", where, 0.001, unit="GiBy.h"),
        sku("FLEX-SSD", f"SSD backed Local Storage {dws}", where, 0.0365, unit="GiBy.mo"),
    )
    (real,) = (
        float(row["usd_per_gpu_hour"])
        for row in gcp_skus.rows("gcp_gpu_skus.csv")
        if (row["gpu"], row["usage"], row["location_text"]) == ("H100-80GB", "dws_flex_start", "Americas")
    )
    prices = prices_of(pull([*gcp_skus.skus(), *host]))
    flex = {key: usd for key, usd in prices.items() if key[2] == Market.FLEX_START}
    expected = 26 * 0.01 + 234 * 0.001 + real + 750 * 0.0365 / 730
    assert flex["a3-highgpu-1g", "us-central1", "flex-start"] == pytest.approx(expected, abs=1e-9)
    assert {name for name, _, _ in flex} == {"a3-highgpu-8g", *SPOT_ONLY}
    assert {key: usd for key, usd in prices.items() if key not in flex} == prices_of(parts)


def test_a_commitment_needs_all_its_parts():
    real = gcp_skus.skus()
    where = ("us-central1",)
    core = sku("C1", "Commitment v1: A2 Cpu in Americas for 1 Year", where, 0.02, usage_type="Commit1Yr")
    text = "Commitment v1: A2 Ram in Americas for 1 Year"
    memory = sku("C2", text, where, 0.003, usage_type="Commit1Yr", unit="GiBy.h")
    query = OfferQuery(regions=where, markets=(Market.COMMIT_1Y,), gpus=("A100-SXM-40GB",), num_gpus=(1,))
    planted = {item["skuId"] for item in gcp_skus.planted()}
    rest = [item for item in real if item["skuId"] not in planted]
    (part,) = pull([*rest, core], query)
    assert not part.offers
    assert part.gaps == ("a2-highgpu-1g us-central1 commit-1y: no price of A2 RAM (no SKU)",)
    (part,) = pull([*rest, core, memory], query)
    (offer,) = part.offers
    assert offer.list_usd_per_h == pytest.approx(12 * 0.02 + 85 * 0.003 + 1.848362)


# --- The reference list itself --------------------------------------------------------------------


def test_the_list_holds_what_it_claims():
    skus = gcp_skus.skus()
    ids = Counter(item["skuId"] for item in skus)
    assert set(ids.values()) == {1}
    assert {item["skuId"] for item in gcp_skus.sample_skus()} <= set(ids)
    derived = [item for item in skus if item["skuId"].startswith(DERIVED)]
    assert 400 < len(derived) < len(skus) / 2
    assert all(len(item["serviceRegions"]) == 1 for item in derived)


def test_the_list_needs_every_derived_sku(parts):
    """Dropping the cores of one family in one region removes its machines there and no others."""
    text = "G2 Instance Core running in us-central1"
    assert [item for item in gcp_skus.skus() if item["description"] == text]
    left = pull([item for item in gcp_skus.skus() if item["description"] != text])
    gone = set(offers_of(parts)) - set(offers_of(left))
    assert gone == {
        (machine.instance.instance_type, "us-central1", "on-demand")
        for machine in load_machines()
        if is_g2(machine) and "us-central1" in machine.regions
    }


def is_g2(machine: MachineType) -> bool:
    return machine.instance.instance_type.startswith("g2-")


# --- As a person types it -------------------------------------------------------------------------


def test_a_refresh_is_kept_and_outlives_a_refusal(tmp_path):
    shell = Shell(folder=tmp_path)
    behaviour = Behaviour(skus=gcp_skus.skus())
    shown = ("prices", "--provider", "gcp", "--gpu", "A100-SXM-40GB:1", "--region", "us-central1", "--json")
    with serving(behaviour) as server:
        environ = {ENDPOINT_VARIABLE: server.url}
        assert shell.run("prices", "refresh", "--source", "gcp", **environ).code == 0
        live = shell.run(*shown, **environ).document["offers"]
        (source,) = [
            s for s in shell.run("prices", "sources", "--json").document["sources"] if s["name"] == "gcp"
        ]
        assert 0 < len(source["gaps"]) < 100, "1,834 gaps, a line for each reason"
        lines = shell.run("prices", "sources").out.splitlines()
        assert max(map(len, lines)) < 450
        prices = {o["market"]: o["usd_per_h"] for o in live}
        assert prices == pytest.approx({"on-demand": 3.673385, "spot": 1.92802}, abs=1e-6)
        assert {o["source"] for o in live} == {"Cloud Billing Catalog"}
        behaviour.always = "403"
        refused = shell.run("prices", "refresh", "--source", "gcp", **environ)
        assert refused.code == 1
        assert "enable cloudbilling.googleapis.com" in refused.err
        assert not [secret for secret in SECRETS if secret in refused.out + refused.err]
        assert shell.run(*shown, **environ).document["offers"] == live
