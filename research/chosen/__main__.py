"""``python -m research.chosen``: judge what the cheapest of dated prices come to; ``--fit`` learns anew.

Takes a minute. The records lie in a folder beside the checkout.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from research.chosen.catalogs import write_catalogs
from research.chosen.derived import derived_prices
from research.chosen.panels import aws_zones, gcp_weekly
from research.chosen.report import judge_all, table, write_report

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    """Judge, or fit; the table goes to stdout."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared", help="folder of the records")
    parser.add_argument("--fit", action="store_true", help="write the catalogs of drift and ratios")
    parser.add_argument("--report", action="store_true", help="write the page, its chart and the JSON")
    asked = parser.parse_args()
    if asked.fit:
        gcp, zones = gcp_weekly(asked.shared), aws_zones(asked.shared)
        write_catalogs(gcp, zones, derived_prices(asked.shared, zones), ROOT / "catalogs")
        return
    rows = list(judge_all(asked.shared))
    print(table(rows), end="")
    if asked.report:
        write_report(rows, ROOT / "research" / "docs" / "methods")


if __name__ == "__main__":
    main()
