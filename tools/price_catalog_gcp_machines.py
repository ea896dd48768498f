"""GCP machine types as the live price source needs them: what they are billed by, and where they exist."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from price_catalog_gcp import ATTACHED_SOURCE, combinations, combined_name, local_ssd_gib
from price_catalog_rows import CatalogRows, MachineRow, read_csv

SEPARATOR = "|"
SPOT_ONLY_MARKETS = ("spot", "flex-start")
NEVER_ON_DEMAND_MARKETS = ("spot", "flex-start", "calendar", "reserved", "commit-1y", "commit-3y")


def gcp_machines(prices_dir: Path, facts: dict[str, Any], rows: CatalogRows) -> None:
    """Appends a row for each GCP machine of ``rows.instances``."""
    known = {row.instance_type for row in rows.instances if row.provider == "gcp"}
    built_in = [row for row in read_csv(prices_dir / "gcp_machine_types.csv") if row["machine_type"] in known]
    rows.machines += [_built_in(row, facts["gcp"]) for row in built_in]
    regions, as_of = _regions_of_attached(prices_dir)
    rows.machines += [
        _row(
            combined_name(gpu, count, host),
            components=[*_components(host, facts["gcp"]), f"{gpu} GPU"],
            regions=sorted(regions[gpu]),
            source=f"{ATTACHED_SOURCE} (zones of the GPU)",
            as_of=as_of,
        )
        for gpu, count, host in combinations(facts)
    ]


def _built_in(row: dict[str, str], facts: dict[str, Any]) -> MachineRow:
    name = row["machine_type"]
    column = next(column for column in row if column.startswith("regions_available_"))
    return _row(
        name,
        components=_components(name, facts),
        local_ssd_gib=local_ssd_gib(row, facts),
        markets=_markets(name, facts),
        regions=row[column].split(SEPARATOR),
        source="Cyclenerd/google-cloud-pricing-cost-calculator@dac3128",
        as_of=column.removeprefix("regions_available_"),
    )


def _row(
    name: str,
    *,
    components: list[str],
    regions: list[str],
    source: str,
    as_of: str,
    local_ssd_gib: int = 0,
    markets: tuple[str, ...] = (),
) -> MachineRow:
    return MachineRow(
        machine_type=name,
        components=SEPARATOR.join(components),
        local_ssd_gib=local_ssd_gib,
        markets=SEPARATOR.join(markets),
        regions=SEPARATOR.join(regions),
        source=source,
        as_of=as_of,
    )


def _components(name: str, facts: dict[str, Any]) -> list[str]:
    beginnings = [beginning for beginning in facts["components"] if name.startswith(beginning)]
    components: list[str] = facts["components"][max(beginnings, key=len)]
    return components


def _markets(name: str, facts: dict[str, Any]) -> tuple[str, ...]:
    if name in facts["spot_only"]:
        return SPOT_ONLY_MARKETS
    return NEVER_ON_DEMAND_MARKETS if name in facts["never_on_demand"] else ()


def _regions_of_attached(prices_dir: Path) -> tuple[dict[str, set[str]], str]:
    """Regions in which some zone has a GPU, by GPU, and the newest date of the table."""
    regions: dict[str, set[str]] = {}
    table = read_csv(prices_dir / "gcp_attached_gpu.csv")
    for row in table:
        regions.setdefault(row["gpu"], set()).add(row["region"])
    return regions, max(row["as_of"] for row in table)
