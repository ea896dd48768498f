"""GCP machine types as the live price source needs them: what they are billed by, and where they exist."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

from advisor.core.values import Market
from advisor.pricing.instance_types import InstanceType
from advisor.pricing.sources.gcp.skus import PROVIDER, MachineType, needs_of
from tools.price_catalog_gcp import ATTACHED_SOURCE, combinations, combined_name, local_ssd_gib
from tools.price_catalog_rows import CatalogRows, read_csv

SEPARATOR = "|"
SPOT_ONLY_MARKETS = (Market.SPOT, Market.FLEX_START)
NEVER_ON_DEMAND_MARKETS = (
    Market.SPOT, Market.FLEX_START, Market.CALENDAR, Market.RESERVED, Market.COMMIT_1Y, Market.COMMIT_3Y,
)  # fmt: skip


def gcp_machines(prices_dir: Path, facts: dict[str, Any], rows: CatalogRows) -> None:
    """Appends a row for each GCP machine of ``rows.instances``."""
    known = {row.instance_type: row for row in rows.instances if row.provider == PROVIDER}
    for row in read_csv(prices_dir / "gcp_machine_types.csv"):
        if row["machine_type"] in known:
            rows.machines.append(_built_in(row, known[row["machine_type"]], facts["gcp"]))
    regions, as_of = _regions_of_attached(prices_dir)
    for gpu, count, host in combinations(facts):
        instance = known[combined_name(gpu, count, host)]
        rows.machines.append(
            MachineType(
                instance=instance,
                needs=needs_of([*_components(host, facts["gcp"]), f"{gpu} GPU"], instance, 0),
                local_ssd_gib=0,
                markets=tuple(Market),
                regions=tuple(sorted(regions[gpu])),
                source=f"{ATTACHED_SOURCE} (zones of the GPU)",
                as_of=as_of,
            )
        )


def _built_in(row: dict[str, str], instance: InstanceType, facts: dict[str, Any]) -> MachineType:
    name, ssd_gib = instance.instance_type, local_ssd_gib(row, facts)
    column = next(column for column in row if column.startswith("regions_available_"))
    return MachineType(
        instance=instance,
        needs=needs_of(_components(name, facts), instance, ssd_gib),
        local_ssd_gib=ssd_gib,
        markets=_markets(name, facts),
        regions=tuple(row[column].split(SEPARATOR)),
        source="Cyclenerd/google-cloud-pricing-cost-calculator@dac3128",
        as_of=date.fromisoformat(column.removeprefix("regions_available_")),
    )


def _components(name: str, facts: dict[str, Any]) -> list[str]:
    beginnings = [beginning for beginning in facts["components"] if name.startswith(beginning)]
    components: list[str] = facts["components"][max(beginnings, key=len)]
    return components


def _markets(name: str, facts: dict[str, Any]) -> tuple[Market, ...]:
    if name in facts["spot_only"]:
        return SPOT_ONLY_MARKETS
    return NEVER_ON_DEMAND_MARKETS if name in facts["never_on_demand"] else tuple(Market)


def _regions_of_attached(prices_dir: Path) -> tuple[dict[str, set[str]], date]:
    """Regions in which some zone has a GPU, by GPU, and the newest date of the table."""
    regions: dict[str, set[str]] = {}
    table = read_csv(prices_dir / "gcp_attached_gpu.csv")
    for row in table:
        regions.setdefault(row["gpu"], set()).add(row["region"])
    return regions, date.fromisoformat(max(row["as_of"] for row in table))
