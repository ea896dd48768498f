"""Builds catalogs/instances.csv, gcp_machine_types.csv and prices/*.csv from collected figures.

``python tools/build_price_catalog.py --shared ../shared``. The folder holds ``prices/`` with the
CSV files that its README describes. The result is a function of these files and of
``price_catalog.toml`` alone, is read back and checked before it replaces anything, and is summed up
on stdout together with what was left out and why.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from advisor.core.gpus import load_gpus
from advisor.core.values import Market
from advisor.pricing.instance_types import INSTANCE_FILE, InstanceType, columns_of, read_instances
from advisor.pricing.sources.gcp.skus import (
    MACHINE_COLUMNS,
    MACHINE_FILE,
    SEPARATOR,
    MachineType,
    read_machines,
)
from advisor.pricing.sources.snapshot import PRICE_COLUMNS, PRICE_FILES, read_offers
from tools.price_catalog_aws import aws_instances, aws_prices
from tools.price_catalog_gcp import drop_unrentable, gcp_instances, gcp_prices
from tools.price_catalog_gcp_machines import gcp_machines
from tools.price_catalog_rows import CatalogRows, PriceRow, check_prices

TOOLS = Path(__file__).resolve().parent


def build(shared: Path, facts: dict[str, Any]) -> CatalogRows:
    """Rows of all catalogs from the collected figures, checked; nothing is written."""
    prices_dir = shared / "prices"
    rows = CatalogRows()
    aws_instances(prices_dir, facts, rows)
    gcp_instances(prices_dir, facts, rows)
    gcp_machines(prices_dir, facts, rows)
    aws_prices(prices_dir, rows)
    gcp_prices(prices_dir, facts, rows)
    check_prices(rows)
    drop_unrentable(facts["gcp"]["spot_only"], rows)
    rows.instances.sort(key=lambda row: (row.provider, row.instance_type))
    rows.machines.sort(key=lambda row: row.instance.instance_type)
    rows.prices.sort(key=lambda row: (row.provider, row.instance_type, row.region, row.market, row.zone))
    return rows


def write(rows: CatalogRows, out: Path) -> None:
    """Writes all files to a folder beside ``out``, reads them back, then replaces.

    Raises:
        CatalogError: what was written cannot be read as a catalog; nothing was replaced.
    """
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out) as folder:
        temporary = Path(folder)
        write_instances(temporary / INSTANCE_FILE, rows.instances)
        write_machines(temporary / MACHINE_FILE, rows.machines)
        for name in PRICE_FILES:
            prices = [row for row in rows.prices if row.provider == Path(name).stem]
            _write_prices(temporary / name, prices)
        known = read_instances(temporary / INSTANCE_FILE)
        if unknown := {instance.gpu for instance in known.values()} - set(load_gpus()):
            raise SystemExit(f"GPUs that the catalog lacks: {', '.join(sorted(unknown))}")
        read_machines(temporary / MACHINE_FILE, known)
        for name in PRICE_FILES:
            read_offers(temporary / name, known)
        for name in (INSTANCE_FILE, MACHINE_FILE, *PRICE_FILES):
            (out / name).parent.mkdir(exist_ok=True)
            (temporary / name).replace(out / name)


def write_instances(path: Path, instances: Iterable[InstanceType]) -> None:
    """Write a file that `read_instances` reads; what is unknown is empty."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns := columns_of(InstanceType))
        writer.writerows([_text(getattr(i, column)) for column in columns] for i in instances)


def _text(value: object) -> object:
    if isinstance(value, tuple):
        return ", ".join(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def write_machines(path: Path, machines: Iterable[MachineType]) -> None:
    """Write a file that `read_machines` reads; terms that are not limited are left empty."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(MACHINE_COLUMNS)
        for machine in machines:
            markets = () if machine.markets == tuple(Market) else machine.markets
            lists = (SEPARATOR.join(markets), SEPARATOR.join(machine.regions))
            billed = (machine.instance.instance_type, SEPARATOR.join(machine.needs), machine.local_ssd_gib)
            writer.writerow([*billed, *lists, machine.source, machine.as_of])


def _write_prices(path: Path, rows: Iterable[PriceRow]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(PRICE_COLUMNS)
        writer.writerows([getattr(row, column) for column in PRICE_COLUMNS] for row in rows)


def summary(rows: CatalogRows) -> str:
    """Rows by provider and market, priceless instance types, and everything left out."""
    by_market = Counter((row.provider, row.market) for row in rows.prices)
    lines = [f"{len(rows.instances)} instance types, {len(rows.prices)} prices"]
    lines += [f"  {provider} {market}: {n}" for (provider, market), n in sorted(by_market.items())]
    priced = {(row.provider, row.instance_type) for row in rows.prices}
    without = [r for r in rows.instances if r.key not in priced]
    lines.append("instance types without any price: " + _names(r.instance_type for r in without))
    lines.append("left out:")
    by_reason: dict[str, list[str]] = {}
    for what, reason in rows.dropped:
        by_reason.setdefault(reason, []).append(what)
    lines += [f"  {len(what):4} {reason}: {_names(what)}" for reason, what in sorted(by_reason.items())]
    return "\n".join(lines)


def _names(names: Iterable[str], most: int = 8) -> str:
    unique = sorted(set(names))
    rest = f" and {len(unique) - most} more" if len(unique) > most else ""
    return (", ".join(unique[:most]) or "none") + rest


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="Build the instance and price catalogs.")
    parser.add_argument("--shared", type=Path, required=True, help="folder that holds prices/")
    parser.add_argument("--out", type=Path, default=TOOLS.parent / "catalogs")
    options = parser.parse_args(arguments)
    facts = tomllib.loads((TOOLS / "price_catalog.toml").read_text(encoding="utf-8"))
    rows = build(options.shared, facts)
    write(rows, options.out)
    print(summary(rows))


if __name__ == "__main__":
    main()
