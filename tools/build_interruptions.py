"""Builds catalogs/interruptions.csv from collected tables of the AWS Spot Advisor.

``python tools/build_interruptions.py --shared ../shared``. Kept are the newest snapshot's Linux rows of
the instance types in catalogs/instances.csv, outside US government regions. The same table gives the
same bytes; it is read back before it replaces anything.
"""

from __future__ import annotations

import argparse
import csv
import io
import tempfile
from collections.abc import Sequence
from pathlib import Path

from advisor.core.files import write_atomically
from advisor.pricing.instance_types import columns_of, load_instances, read_as
from advisor.pricing.spot_odds import INTERRUPTION_FILE, Interruptions
from tools.price_catalog_rows import read_csv

SOURCE = "AWS Spot Advisor by alexei-led/spotinfo"


def rows_of(table: Path) -> list[tuple[str, ...]]:
    """Rows of the catalog file in alphabetical order."""
    collected = read_csv(table)
    newest = max(row["as_of"] for row in collected)
    known = {name for provider, name in load_instances() if provider == "aws"}
    return sorted(
        (
            row["instance_type"],
            row["region"],
            row["interruption_bucket_low_pct"],
            row["interruption_bucket_high_pct"],
            row["as_of"],
            SOURCE,
        )
        for row in collected
        if row["as_of"] == newest
        and row["os"] == "Linux"
        and row["instance_type"] in known
        and not row["region"].startswith("us-gov-")
    )


def write(rows: Sequence[Sequence[str]], path: Path) -> None:
    """Reads the file back, then puts it in its place.

    Raises:
        CatalogError: a row is broken; nothing was replaced.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns_of(Interruptions))
    writer.writerows(rows)
    payload = text.getvalue().encode()
    with tempfile.TemporaryDirectory() as folder:
        trial = Path(folder) / path.name
        trial.write_bytes(payload)
        read_as(trial, Interruptions)
    write_atomically(path, payload)


def main(arguments: Sequence[str] | None = None) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="Build the table of spot interruptions.")
    parser.add_argument("--shared", type=Path, required=True, help="folder that holds prices/")
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parents[1] / "catalogs")
    options = parser.parse_args(arguments)
    rows = rows_of(options.shared / "prices" / "aws_spot_advisor.csv")
    write(rows, options.out / INTERRUPTION_FILE)
    print(f"{len(rows)} buckets of {len({row[0] for row in rows})} instance types as of {rows[0][4]}")


if __name__ == "__main__":
    main()
