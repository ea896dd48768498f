"""AWS rows of the price catalog: instance types, on-demand, spot quoted and spot derived."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import Any

from advisor.core.errors import UnknownGpuError
from advisor.pricing.instance_types import InstanceType
from advisor.pricing.sources.protocol import DERIVED
from tools.price_catalog_rows import ON_DEMAND, SPOT, CatalogRows, PriceRow, instance_type, read_csv

ADVISOR_DATE = "2025-06-28"  # the newest snapshot of the Spot Advisor
FIXED_GBPS = re.compile(r"(?:(\d+)x )?(\d+) Gigabit")


def aws_instances(prices_dir: Path, facts: dict[str, Any], rows: CatalogRows) -> None:
    """Appends the instance types whose GPU the catalog knows."""
    minimum_s = facts["minimum_billed_s"]["aws"]
    for row in read_csv(prices_dir / "aws_instance_types.csv"):
        if float(row["gpu_partition_size"] or 1) < 1:
            rows.drop(row["instance_type"], "aws types with a fraction of a GPU")
            continue
        try:
            rows.instances.append(_instance(row, minimum_s))
        except UnknownGpuError:
            reason = f"aws types with a GPU the catalog lacks ({row['gpu_name']})"
            rows.drop(row["instance_type"], reason)
    rows.instances += [
        _by_hand(fact, facts["aws_instance_source"], minimum_s) for fact in facts["aws_instance"]
    ]


def _instance(row: dict[str, str], minimum_billed_s: float) -> InstanceType:
    source, _, as_of = row["source"].partition(" ")
    return instance_type(
        provider="aws",
        name=row["instance_type"],
        gpu_name=row["gpu_name"],
        gpu_memory=f"{float(row['gpu_memory_gib_each']):g} GiB",
        num_gpus=int(row["gpu_count"]),
        vcpus=int(row["vcpus"]),
        memory_gib=float(row["memory_gib"]),
        network_gbps=_network_gbps(row),
        local_ssd_gb=int(row["local_nvme_gb"]),
        architecture=row["architectures"],
        minimum_billed_s=minimum_billed_s,
        source=source,
        as_of=date.fromisoformat(as_of.strip("()")),
    )


def _network_gbps(row: dict[str, str]) -> float:
    """The stated figure where it is fixed, else the baseline of "Up to N Gigabit".

    Baselines summed over network cards contradict the fixed figures (p6-b200: 1600, stated 3200).
    """
    fixed = FIXED_GBPS.fullmatch(row["network_performance"])
    if fixed:
        return int(fixed[1] or 1) * float(fixed[2])
    return float(row["network_baseline_gbps"])


def _by_hand(fact: dict[str, Any], source: dict[str, Any], minimum_billed_s: float) -> InstanceType:
    return instance_type(
        provider="aws",
        name=fact["instance_type"],
        minimum_billed_s=minimum_billed_s,
        source=source["text"],
        as_of=source["as_of"],
        **{key: value for key, value in fact.items() if key != "instance_type"},
    )


def aws_prices(prices_dir: Path, rows: CatalogRows) -> None:
    """Appends on-demand prices of ordinary regions, spot prices quoted by zone and derived ones."""
    on_demand = _on_demand(prices_dir, rows)
    quoted = read_csv(prices_dir / "aws_spot_snapshot_azid.csv")
    for row in quoted:
        price = _quoted_spot(row)
        if row["flag"] == "no_spot_price":
            rows.drop(price.what, "aws zones that quoted no spot price")
        else:
            rows.prices.append(price)
    answered = {(row["instance_type"], row["region"]) for row in quoted}
    for row in read_csv(prices_dir / "aws_spot_advisor.csv"):
        key = (row["instance_type"], row["region"])
        newest_linux = row["os"] == "Linux" and row["as_of"] == ADVISOR_DATE
        if newest_linux and key in on_demand and key not in answered:
            rows.prices.append(_derived_spot(row, on_demand[key]))


def _on_demand(prices_dir: Path, rows: CatalogRows) -> dict[tuple[str, str], PriceRow]:
    on_demand = {}
    for row in read_csv(prices_dir / "aws_ondemand.csv"):
        price = PriceRow(
            provider="aws",
            instance_type=row["instance_type"],
            region=row["region"],
            market=ON_DEMAND,
            usd_per_h=row["usd_per_hour"],
            retrieved_at=row["as_of"],
            source=row["source"],
        )
        if row["is_local_or_wavelength_zone"] == "true":
            rows.drop(price.what, "aws prices in local and wavelength zones")
        elif row["region"].startswith("us-gov-"):
            rows.drop(price.what, "aws prices in US government regions")
        else:
            on_demand[price.instance_type, price.region] = price
    rows.prices += on_demand.values()
    return on_demand


def _quoted_spot(row: dict[str, str]) -> PriceRow:
    start, end = row["as_of_window"].split("/")
    return PriceRow(
        provider="aws",
        instance_type=row["instance_type"],
        region=row["region"],
        zone=row["availability_zone_id"],
        market=SPOT,
        usd_per_h=row["spot_usd_per_hour"],
        retrieved_at=start,
        source=f"skypilot-catalog@e385a0d (one snapshot between {start} and {end})",
    )


def _derived_spot(row: dict[str, str], on_demand: PriceRow) -> PriceRow:
    usd_per_h = float(on_demand.usd_per_h) * (1 - int(row["savings_pct"]) / 100)
    return PriceRow(
        provider="aws",
        instance_type=row["instance_type"],
        region=row["region"],
        market=SPOT,
        usd_per_h=f"{usd_per_h:.4f}",
        retrieved_at=row["as_of"],
        source=f"{DERIVED} Spot Advisor savings {row['as_of']}"
        f" and the on-demand price of {on_demand.retrieved_at}",
    )
