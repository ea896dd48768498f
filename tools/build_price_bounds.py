"""Builds catalogs/price_bounds.csv from the shipped prices.

A GPU may cost a tenth of the least that was ever listed for it, and ten times the most. What has no price
there, consumer cards above all, may cost a hundredth of the least of all GPUs, and ten times the most.

    python tools/build_price_bounds.py
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import defaultdict
from collections.abc import Iterable
from datetime import date
from pathlib import Path

from advisor.core.values import Offer
from advisor.pricing.instance_types import columns_of
from advisor.pricing.price_checks import ANY_GPU, BOUNDS_FILE, PriceBounds
from advisor.pricing.sources.protocol import OfferQuery
from advisor.pricing.sources.snapshot import SnapshotSource

ROOT = Path(__file__).resolve().parents[1]
WIDER = 10.0
"""How far a price may be from all that were ever listed of its GPU."""
CONSUMER = 10.0
"""How much less the cheapest consumer card rents for than the cheapest card of a data centre."""


def bounds_rows(offers: Iterable[Offer]) -> list[tuple[str, ...]]:
    """A row for each GPU with a price, and one for all others."""
    by_gpu: defaultdict[str, list[Offer]] = defaultdict(list)
    for offer in offers:
        by_gpu[offer.gpu].append(offer)
    every = [offer for priced in by_gpu.values() for offer in priced]
    return [
        _row(ANY_GPU, every, WIDER * CONSUMER),
        *(_row(gpu, priced, WIDER) for gpu, priced in sorted(by_gpu.items())),
    ]


def _row(gpu: str, offers: list[Offer], below: float) -> tuple[str, ...]:
    usd_per_gpu_h = [offer.list_usd_per_h / offer.num_gpus for offer in offers]
    newest: date = max(offer.retrieved_at for offer in offers).date()
    low, high = min(usd_per_gpu_h), max(usd_per_gpu_h)
    source = f"1/{below:g} of {low:.4g} and {WIDER:g} x {high:.4g}: catalogs/prices"
    return gpu, f"{low / below:.2g}", f"{WIDER * high:.3g}", f"{source} ({len(offers)} prices)", str(newest)


def main(arguments: list[str]) -> int:
    """Write the file."""
    parser = argparse.ArgumentParser(description="Build the bounds of prices.")
    parser.add_argument("--out", type=Path, default=ROOT / "catalogs")
    folder: Path = parser.parse_args(arguments).out
    offers = [offer for part in SnapshotSource().offers(OfferQuery()) for offer in part.offers]
    with (folder / BOUNDS_FILE).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([columns_of(PriceBounds), *bounds_rows(offers)])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
