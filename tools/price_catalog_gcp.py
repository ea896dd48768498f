"""GCP rows of the price catalog: whole machines, and N1 hosts with attached GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

from advisor.core.errors import UnknownGpuError
from advisor.pricing.instance_types import InstanceType
from tools.price_catalog_rows import ON_DEMAND, SPOT, CatalogRows, PriceRow, instance_type, read_csv

ATTACHED_SOURCE = "anycloud-sh/catalog@62ff0a9"


def gcp_instances(prices_dir: Path, facts: dict[str, Any], rows: CatalogRows) -> None:
    """Appends machine types with GPUs built in, and combinations of N1 hosts with attached GPUs."""
    minimum_s = facts["minimum_billed_s"]["gcp"]
    for row in read_csv(prices_dir / "gcp_machine_types.csv"):
        if float(row["gpu_count"]) < 1:
            rows.drop(row["machine_type"], "gcp types with a fraction of a GPU")
            continue
        try:
            rows.instances.append(_instance(row, facts["gcp"], minimum_s))
        except UnknownGpuError:
            reason = f"gcp types with a GPU the catalog lacks ({row['gpu_name']})"
            rows.drop(row["machine_type"], reason)
    hosts = {row["machine_type"]: row for row in read_csv(prices_dir / "gcp_n1_host_prices.csv")}
    gpus = {row["gpu"]: row for row in read_csv(prices_dir / "gcp_attached_gpu.csv")}
    rows.instances += [
        _combined(gpus[gpu], count, hosts[host], minimum_s) for gpu, count, host in combinations(facts)
    ]


def _instance(row: dict[str, str], facts: dict[str, Any], minimum_billed_s: float) -> InstanceType:
    return instance_type(
        provider="gcp",
        name=row["machine_type"],
        gpu_name=row["gpu_name"],
        gpu_memory=f"{row['gpu_memory_gb_each']} GB",
        num_gpus=int(row["gpu_count"]),
        vcpus=int(row["vcpus"]),
        memory_gib=float(row["memory_gib"]),
        local_ssd_gb=local_ssd_gib(row, facts),
        minimum_billed_s=minimum_billed_s,
        source=row["source"],
        as_of=facts["as_of"],
    )


def local_ssd_gib(row: dict[str, str], facts: dict[str, Any]) -> int:
    """Disks that a machine comes with; the tables' "375 GB" is billed as 375 GiB."""
    return int(row["bundled_local_ssd_gb"] or facts["local_ssd_gib"].get(row["machine_type"], 0))


def _combined(gpu: dict[str, str], count: int, host: dict[str, str], minimum_billed_s: float) -> InstanceType:
    return instance_type(
        provider="gcp",
        name=combined_name(gpu["gpu"], count, host["machine_type"]),
        gpu_name=gpu["gpu"],
        gpu_memory=f"{gpu['gpu_memory_gb']} GB",
        num_gpus=count,
        vcpus=int(float(host["vcpus"])),
        memory_gib=float(host["memory_gib"]),
        minimum_billed_s=minimum_billed_s,
        source=ATTACHED_SOURCE,
        as_of=date.fromisoformat(host["as_of"]),
    )


def combined_name(gpu: str, count: int, host: str) -> str:
    """Our name of an N1 host with attached GPUs."""
    return f"{host}+{count}x{gpu}"


def combinations(facts: dict[str, Any]) -> Iterator[tuple[str, int, str]]:
    """(GPU, number of GPUs, host) of every combination that is offered."""
    for gpu, by_count in facts["n1_hosts"].items():
        for count, hosts in by_count.items():
            for host in hosts:
                yield gpu, int(count), host


def gcp_prices(prices_dir: Path, facts: dict[str, Any], rows: CatalogRows) -> None:
    """Appends on-demand and spot prices, the newest of each machine type and region."""
    newest: dict[tuple[str, str], dict[str, str]] = {}
    for row in read_csv(prices_dir / "gcp_prices.csv"):
        key = (row["machine_type"], row["region"])
        if key not in newest or row["as_of"] > newest[key]["as_of"]:
            newest[key] = row
    known = {row.instance_type for row in rows.instances}
    for row in newest.values():
        if row["machine_type"] in known:
            rows.prices += _whole(row)
    rows.prices += _attached(prices_dir, facts)


def _whole(row: dict[str, str]) -> list[PriceRow]:
    return [
        PriceRow(
            provider="gcp",
            instance_type=row["machine_type"],
            region=row["region"],
            market=market,
            usd_per_h=_tidy(float(row[column])),
            retrieved_at=row["as_of"],
            source=row["source"],
        )
        for market, column in ((ON_DEMAND, "ondemand_usd_per_hour"), (SPOT, "spot_usd_per_hour"))
    ]


def drop_unrentable(spot_only: list[str], rows: CatalogRows) -> None:
    """Takes out on-demand prices at which nobody can rent, once they have served the checks."""
    for row in list(rows.prices):
        if row.market == ON_DEMAND and row.instance_type in spot_only:
            rows.prices.remove(row)
            reason = "gcp on-demand prices of types that start only as spot or flex-start"
            rows.drop(f"{row.instance_type} {row.region}", reason)


def _attached(prices_dir: Path, facts: dict[str, Any]) -> Iterator[PriceRow]:
    """Host + GPUs, in regions that price both. A GPU costs the same in all zones of a region."""
    hosts: dict[str, list[dict[str, str]]] = {}
    for row in read_csv(prices_dir / "gcp_n1_host_prices.csv"):
        hosts.setdefault(row["machine_type"], []).append(row)
    gpus = _gpu_by_region(prices_dir)
    for name, count, host_name in combinations(facts):
        for host in hosts[host_name]:
            if gpu := gpus.get((name, host["region"])):
                yield from _sum(host, gpu, count)


def _gpu_by_region(prices_dir: Path) -> dict[tuple[str, str], dict[str, str]]:
    by_region: dict[tuple[str, str], dict[str, str]] = {}
    columns = ("ondemand_usd_per_gpu_hour", "spot_usd_per_gpu_hour", "as_of")
    for row in read_csv(prices_dir / "gcp_attached_gpu.csv"):
        first = by_region.setdefault((row["gpu"], row["region"]), row)
        if any(first[column] != row[column] for column in columns):
            raise ValueError(f"zones of {row['region']} price a {row['gpu']} differently")
    return by_region


def _sum(host: dict[str, str], gpu: dict[str, str], count: int) -> Iterator[PriceRow]:
    unmatched = ", GPU price not confirmed by a 2025 SKU" if gpu["flag"] else ""
    for market, word in ((ON_DEMAND, "ondemand"), (SPOT, "spot")):
        usd_per_h = float(host[f"{word}_usd_per_hour"]) + count * float(gpu[f"{word}_usd_per_gpu_hour"])
        yield PriceRow(
            provider="gcp",
            instance_type=combined_name(gpu["gpu"], count, host["machine_type"]),
            region=host["region"],
            market=market,
            usd_per_h=_tidy(usd_per_h),
            retrieved_at=min(host["as_of"], gpu["as_of"]),
            source=f"{ATTACHED_SOURCE} (host + GPU{unmatched})",
        )


def _tidy(usd_per_h: float) -> str:
    return f"{usd_per_h:.6f}".rstrip("0").rstrip(".")
