"""SKUs of Compute Engine in the form of its API, made from the collected prices.

Real ones (the sample of A2, GPU SKUs of 2025-06) keep their ids. Of other machines only the sums are on
record: SKUs of their parts are derived so that they add up again, and their ids begin with ``DERIVED``.
"""

import csv
import json
from collections.abc import Iterator
from functools import cache
from itertools import count
from typing import Any

import numpy as np

from tests.shared import SHARED

PRICES = SHARED / "prices"
ON_DEMAND, SPOT = "on-demand", "spot"
DERIVED = "DERIVED"
SSD_USD_PER_GIB_MONTH = {ON_DEMAND: 0.08, SPOT: 0.032}
HOURS_PER_MONTH = 730

# Beginning of a machine type: host and GPU in the words of the price list.
FAMILIES = {
    "a2-highgpu": ("A2", "Nvidia Tesla A100 GPU"),
    "a2-megagpu": ("A2", "Nvidia Tesla A100 GPU"),
    "a2-ultragpu": ("A2", "Nvidia Tesla A100 80GB GPU"),
    "a3-highgpu": ("A3", "Nvidia H100 80GB GPU"),
    "a3-megagpu": ("A3Plus", "Nvidia H100 80GB Mega GPU"),
    "g2-standard": ("G2", "Nvidia L4 GPU"),
    "g4-standard": ("G4", "RTX 6000 96GB"),
}
# Only where a derivation starts from: about what Google asks in us-central1.
TYPICAL_USD_PER_H = {
    "A2 Core": 0.0316, "A2 Ram": 0.0042, "A3 Core": 0.0293, "A3 Ram": 0.0025, "A3Plus Core": 0.0293,
    "A3Plus Ram": 0.0025, "G2 Core": 0.025, "G2 Ram": 0.0029, "G4 Core": 0.03, "G4 Ram": 0.003,
    "Nvidia Tesla A100 GPU": 2.93, "Nvidia Tesla A100 80GB GPU": 3.93, "Nvidia H100 80GB GPU": 9.8,
    "Nvidia H100 80GB Mega GPU": 10.34, "Nvidia L4 GPU": 0.56, "RTX 6000 96GB": 2.6,
}  # fmt: skip
USAGE_TYPES = {
    "on_demand": "OnDemand", "spot": "Preemptible", "dws_flex_start": "OnDemand", "calendar_mode": "OnDemand",
    "reserved": "OnDemand", "commit_1y": "Commit1Yr", "commit_3y": "Commit3Yr",
}  # fmt: skip
LOCATIONS = {
    "Americas": ("us-central1", "us-east1", "us-west1"), "APAC": ("asia-east1",), "EMEA": ("europe-west1",),
    "Netherlands": ("europe-west4",), "Las Vegas": ("us-west4",), "Columbus": ("us-east5",),
    "Seoul": ("asia-northeast3",), "Dallas": ("us-south1",), "Delhi": ("asia-south2",),
    "Singapore": ("asia-southeast1",), "Sydney": ("australia-southeast1",), "Tokyo": ("asia-northeast1",),
    "Salt Lake City": ("us-west3",), "Zurich": ("europe-west6",), "Milan": ("europe-west8",),
    "Paris": ("europe-west9",), "Virginia": ("us-east4",), "Melbourne": ("australia-southeast2",),
    "Montreal": ("northamerica-northeast1",), "Mumbai": ("asia-south1",), "Frankfurt": ("europe-west3",),
    "Los Angeles": ("us-west2",), "London": ("europe-west2",), "Hong Kong": ("asia-east2",),
    "Sao Paulo": ("southamerica-east1",), "Finland": ("europe-north1",), "Israel": ("me-west1",),
}  # fmt: skip

Key = tuple[str, str, str]
"""Machine type, region, market."""


def rows(name: str) -> list[dict[str, str]]:
    with (PRICES / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def sku(
    sku_id: str,
    description: str,
    regions: tuple[str, ...],
    usd: float,
    *,
    usage_type: str = "OnDemand",
    unit: str = "h",
) -> dict[str, Any]:
    """One SKU of the list; the price to the nano."""
    units, nanos = divmod(round(usd * 10**9), 10**9)
    base_units = {"h": 3600, "GiBy.h": 2**30 * 3600, "GiBy.mo": 2**30 * 3600 * 744}[unit]
    rate = {"startUsageAmount": 0, "unitPrice": {"currencyCode": "USD", "units": str(units), "nanos": nanos}}
    expression = {
        "usageUnit": unit,
        "displayQuantity": 1,
        "tieredRates": [rate],
        "baseUnitConversionFactor": base_units,
    }
    return {
        "name": f"services/6F81-5844-456A/skus/{sku_id}",
        "skuId": sku_id,
        "description": description,
        "category": {"serviceDisplayName": "Compute Engine", "usageType": usage_type},
        "serviceRegions": list(regions),
        "pricingInfo": [
            {"pricingExpression": expression, "effectiveTime": "2026-08-03T00:00:00Z", "summary": ""}
        ],
        "serviceProviderName": "Google",
    }


# --- What machines cost ---------------------------------------------------------------------------


@cache
def machine_prices() -> dict[Key, float]:
    """The newest price of each machine type with GPUs built in."""
    newest: dict[tuple[str, str], dict[str, str]] = {}
    for row in sorted(rows("gcp_prices.csv"), key=lambda row: row["as_of"]):
        newest[row["machine_type"], row["region"]] = row
    columns = {ON_DEMAND: "ondemand_usd_per_hour", SPOT: "spot_usd_per_hour"}
    return {
        (name, region, market): float(row[column])
        for (name, region), row in newest.items()
        for market, column in columns.items()
    }


@cache
def attached_prices() -> dict[Key, float]:
    """Of one GPU (T4, ...), by region and market."""
    columns = {ON_DEMAND: "ondemand_usd_per_gpu_hour", SPOT: "spot_usd_per_gpu_hour"}
    return {
        (row["gpu"], row["region"], market): float(row[column])
        for row in rows("gcp_attached_gpu.csv")
        for market, column in columns.items()
    }


@cache
def host_prices() -> dict[Key, float]:
    """Of N1 machines without GPUs."""
    columns = {ON_DEMAND: "ondemand_usd_per_hour", SPOT: "spot_usd_per_hour"}
    return {
        (row["machine_type"], row["region"], market): float(row[column])
        for row in rows("gcp_n1_host_prices.csv")
        for market, column in columns.items()
    }


# --- SKUs that add up to it -----------------------------------------------------------------------


@cache
def sample_skus() -> tuple[dict[str, Any], ...]:
    sample = json.loads((PRICES / "samples/gcp_cloudbilling_skus_a2.json").read_text(encoding="utf-8"))
    return tuple(sample["skus"])


def _sampled(region: str, market: str) -> dict[str, float]:
    """Parts that the sample prices, by the names used here."""
    if market != ON_DEMAND or region not in LOCATIONS["Americas"]:
        return {}
    return {"A2 Core": 0.031611, "A2 Ram": 0.004237, "Nvidia Tesla A100 GPU": 2.933908}


def _amounts(row: dict[str, str]) -> dict[str, float]:
    """How much of each part a machine type has."""
    host, gpu = FAMILIES["-".join(row["machine_type"].split("-")[:2])]
    return {
        f"{host} Core": float(row["vcpus"]),
        f"{host} Ram": float(row["memory_gib"]),
        gpu: float(row["gpu_count"]),
        "SSD": float(row["bundled_local_ssd_gb"] or 0),
    }


def parts_of_machines(region: str, market: str) -> dict[str, float]:
    """Prices of parts of which the machines of a region add up to what they cost.

    There are more parts than sizes: of all solutions, the one nearest to typical prices (relative least
    squares). What the sample prices is left as it is.
    """
    priced = {
        name: usd
        for (name, place, term), usd in machine_prices().items()
        if (place, term) == (region, market)
    }
    amounts = {row["machine_type"]: _amounts(row) for row in rows("gcp_machine_types.csv")
               if row["machine_type"] in priced}  # fmt: skip
    known = _sampled(region, market) | {"SSD": SSD_USD_PER_GIB_MONTH[market] / HOURS_PER_MONTH}
    unknown = sorted({part for parts in amounts.values() for part in parts} - set(known))
    if not unknown:
        return {}
    a = np.array([[parts.get(part, 0.0) for part in unknown] for parts in amounts.values()])
    rest = [sum(parts[p] * usd for p, usd in known.items() if p in parts) for parts in amounts.values()]
    b = np.array([priced[name] for name in amounts]) - rest
    start = np.array([TYPICAL_USD_PER_H[part] for part in unknown]) * (0.5 if market == SPOT else 1.0)
    scale = a * start
    x = start * (1 + np.linalg.pinv(scale) @ (b - scale.sum(axis=1)))
    assert (x > 1e-6).all(), (region, market, dict(zip(unknown, x, strict=True)))
    return dict(zip(unknown, map(float, x), strict=True))


def parts_of_hosts(region: str, market: str) -> dict[str, float]:
    """A core and a GiB of N1 in a region, by least squares over its twelve sizes; empty without any."""
    sizes = {row["machine_type"]: row for row in rows("gcp_n1_host_prices.csv") if row["region"] == region}
    if not sizes:
        return {}
    a = np.array([[float(row["vcpus"]), float(row["memory_gib"])] for row in sizes.values()])
    b = np.array([host_prices()[name, region, market] for name in sizes])
    core, ram = map(float, np.linalg.lstsq(a, b, rcond=None)[0])
    return {"N1 Predefined Core": core, "N1 Predefined Ram": ram}


@cache
def skus() -> tuple[dict[str, Any], ...]:
    """The whole list: real, derived and planted."""
    real = {item["skuId"]: item for item in [*_gpu_skus(), *sample_skus()]}
    return (*real.values(), *_derived(), *planted())


def _derived() -> Iterator[dict[str, Any]]:
    number = count(1)
    regions = {key[1] for prices in (machine_prices(), host_prices(), attached_prices()) for key in prices}
    for region in sorted(regions):
        for market in (ON_DEMAND, SPOT):
            yield _ssd(f"{DERIVED}-SSD-{region}-{market}", region, market)
            parts = parts_of_machines(region, market) | parts_of_hosts(region, market)
            for gpu in ("T4", "P4", "P100", "V100"):
                usd = attached_prices().get((gpu, region, market))
                if usd is not None and (gpu, region, market) not in _confirmed():
                    parts[f"Nvidia Tesla {gpu} GPU"] = usd
            for part, usd in parts.items():
                yield _part(f"{DERIVED}-{next(number):04}", part, region, market, usd)


def _ssd(sku_id: str, region: str, market: str) -> dict[str, Any]:
    usage_type = "Preemptible" if market == SPOT else "OnDemand"
    text = "SSD backed Local Storage" + (" attached to Spot Preemptible VMs" if market == SPOT else "")
    usd = SSD_USD_PER_GIB_MONTH[market]
    return sku(sku_id, f"{text} in {region}", (region,), usd, usage_type=usage_type, unit="GiBy.mo")


def _part(sku_id: str, part: str, region: str, market: str, usd: float) -> dict[str, Any]:
    unit = "GiBy.h" if part.endswith("Ram") else "h"
    for word in ("Core", "Ram"):
        part = part.replace(f" {word}", f" Instance {word}")
    if market == ON_DEMAND:
        return sku(sku_id, f"{part} running in {region}", (region,), usd, unit=unit)
    gpu_text = f"{part} attached to Spot Preemptible VMs running in {region}"
    text = gpu_text if "GPU" in part else f"Spot Preemptible {part} running in {region}"
    return sku(sku_id, text, (region,), usd, unit=unit, usage_type="Preemptible")


# --- Real GPU SKUs --------------------------------------------------------------------------------


@cache
def _confirmed() -> frozenset[Key]:
    """GPUs attached to N1 of which a real SKU says what the newer table says, in all its regions."""
    places = set()
    for row in rows("gcp_gpu_skus.csv"):
        market = {"on_demand": ON_DEMAND, "spot": SPOT}.get(row["usage"])
        if market and row["gpu"] in {"T4", "P4", "P100", "V100"} and _agrees(row, market):
            places |= {(row["gpu"], region, market) for region in LOCATIONS[row["location_text"]]}
    return frozenset(places)


def _agrees(row: dict[str, str], market: str) -> bool:
    regions = LOCATIONS.get(row["location_text"], ())
    prices = {attached_prices().get((row["gpu"], region, market)) for region in regions}
    return prices == {float(row["usd_per_gpu_hour"])}


def _gpu_skus() -> Iterator[dict[str, Any]]:
    """Real SKUs, except for on-demand and spot prices of machines whose newer sums are on record."""
    for row in rows("gcp_gpu_skus.csv"):
        regions = LOCATIONS.get(row["location_text"], ())
        market = {"on_demand": ON_DEMAND, "spot": SPOT}.get(row["usage"])
        if market is None or _agrees(row, market) or not any(_is_derived(row, r, market) for r in regions):
            usd, usage_type = float(row["usd_per_gpu_hour"]), USAGE_TYPES[row["usage"]]
            yield sku(row["sku_id"], row["description"], regions, usd, usage_type=usage_type)


def _is_derived(row: dict[str, str], region: str, market: str) -> bool:
    if (row["gpu"], region, market) in attached_prices():
        return True
    return any(
        (name, region, market) in machine_prices() and gpu.lower() in row["description"].lower()
        for name in {key[0] for key in machine_prices()}
        for _, gpu in [FAMILIES["-".join(name.split("-")[:2])]]
    )


# --- Planted: must change no on-demand or spot price ----------------------------------------------


@cache
def planted() -> tuple[dict[str, Any], ...]:
    """SKUs that look like others, all absurdly cheap, in two regions whose text says otherwise."""
    where, usd = ("us-central1", "europe-west4"), 0.000001
    texts = (
        "A2 Instance Core attached to DWS Defined Duration VMs running in Americas",
        "DWS Defined Duration A2 Instance Core running in Americas",
        "Nvidia L4 GPU attached to DWS Defined Duration VMs running in Americas",
        "DWS Calendar Mode A2 Instance Core running in Americas",
        "Reserved Nvidia L4 GPU in Americas in Calendar Mode",
        "Reserved G2 Instance Core in Americas",
        "Calendar Mode Nvidia L4 GPU running in Americas",
        "A2 Sole Tenancy Instance Core running in Americas",
        "Sole Tenancy Premium for A2 Instance Core running in Americas",
        "N1 Predefined Instance Core running in Americas Sole Tenancy",
        "Custom Instance Core running in Americas",
        "Custom Extended Instance Core running in Americas",
        "G2 Custom Instance Core running in Americas",
        "Licensing Fee for Deep Learning Image on A2 Instance Core",
        "A2 Instance Core Premium running in Americas",
        "Nvidia Tesla A100 GPU suspended running in Americas",
        "Nvidia A100 vWS GPU running in Americas",
        "Network Egress of A2 Instance Core",
    )
    others = (
        ("A2 Instance Core", "Commit1Yr"),
        ("Spot Preemptible A2 Instance Core in Americas", "OnDemand"),
        ("Commitment v1: A2 Cpu in Americas for 1 Year", "Commit1Yr"),
        ("Commitment v1: L4 GPU in Americas for 3 Years", "Commit3Yr"),
    )
    typed = [*((text, "OnDemand") for text in texts), *others]
    return tuple(
        sku(f"PLANTED-{number:02}", text, where, usd, usage_type=usage_type)
        for number, (text, usage_type) in enumerate(typed)
    )
