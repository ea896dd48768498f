"""Speed of prices: ``python -m benchmarks.prices``.

``advisor prices`` beside a history of 200,000 rows, as a whole process; the expected prices of 200,000
offers; and a query of the dated snapshot beside gpuhunt's on the very same rows, both reading their files
first, then both warm.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from advisor.core.values import Market, Offer, PricePoint
from advisor.pricing.answers import load_offers
from advisor.pricing.expected_prices import likely_prices
from advisor.pricing.sources.protocol import OfferQuery
from advisor.pricing.sources.snapshot import SnapshotSource, shipped_prices
from advisor.store.database import open_store
from advisor.store.pulls import save_part
from benchmarks.timing import ratio

NUM_POINTS = 200_000
AIM_S = 0.5
ROUNDS = 15
GPU = "A100-SXM-80GB"
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def main() -> None:
    """Run all."""
    _expected_prices()
    with tempfile.TemporaryDirectory() as folder:
        _prices(Path(folder))
        _beside_gpuhunt(Path(folder))


def _offers() -> list[Offer]:
    return [offer for part in SnapshotSource().offers(OfferQuery()) for offer in part.offers]


def _expected_prices() -> None:
    shipped, catalog = _offers(), shipped_prices()

    def seconds(offers: list[Offer]) -> float:
        return _seconds(
            lambda: likely_prices(offers, now=NOW, on_demand=catalog.on_demand, spot=catalog.spot)
        )

    copies = NUM_POINTS // len(shipped) + 1
    many = [replace(offer) for offer in shipped] * copies
    seconds(shipped)
    pairs = [(seconds(many), seconds(shipped)) for _ in range(3)]
    times = statistics.median(a / b for a, b in pairs)
    median_s = statistics.median(a for a, _ in pairs)
    print(
        f"expected prices of {len(many):,} offers: {median_s:.2f} s (aim: under 2 s on an idle core),"
        f" {times / copies:.2f} x linear"
    )


def _prices(folder: Path) -> None:
    url = f"sqlite:///{folder / 'prices.db'}"
    num_points = fill(url, _offers())
    own = {"ADVISOR_STORE__URL": url, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    os.environ.update(own)
    command = [sys.executable, "-m", "advisor", "prices", "--gpu", GPU]
    times, seconds = ratio(command, [sys.executable, "-c", "pass"])
    print(
        f"advisor prices beside {num_points:,} rows of history: {seconds:.2f} s (aim: under {AIM_S} s on an"
        f" idle core), {times:.1f} x a bare interpreter"
    )


def fill(url: str, offers: Sequence[Offer]) -> int:
    """Fill a database with the offers as live ones and ``NUM_POINTS`` rows of history; the number written."""
    spot = [offer for offer in offers if offer.market is Market.SPOT]
    each = NUM_POINTS // len(spot) + 1
    history = [
        PricePoint(
            provider=offer.provider, instance_type=offer.instance_type, region=offer.region, zone=offer.zone,
            market=offer.market, usd_per_h=offer.list_usd_per_h * (1 + i % 7 / 50),
            observed_at=NOW - timedelta(hours=20 * (each - i)),
        )
        for offer in spot
        for i in range(each)
    ]  # fmt: skip
    store = open_store(url)
    assert store is not None
    with store:
        for provider in sorted({offer.provider for offer in offers}):
            own = [offer for offer in offers if offer.provider == provider]
            past = [point for point in history if point.provider == provider]
            save_part(store, provider, "all", own, past, (), NOW)
    return len(history)


def _beside_gpuhunt(folder: Path) -> None:
    from gpuhunt import Catalog

    _write_gpuhunt(folder, _offers())
    os.environ["GPUHUNT_CATALOG_DIR"] = str(folder)
    theirs = Catalog(auto_reload=False)
    query = OfferQuery(gpus=(GPU,), markets=(Market.SPOT,))

    def ask_theirs() -> None:
        theirs.query(provider=["aws", "gcp"], gpu_name=GPU, spot=True)

    def ask_ours_cold() -> None:
        from advisor.pricing.sources import snapshot

        snapshot._read_all.cache_clear()
        load_offers(query, now=NOW)

    assert len(theirs.query(provider=["aws", "gcp"], gpu_name=GPU, spot=True)) == len(
        load_offers(query, now=NOW).offers
    )
    cold = _compared(ask_ours_cold, ask_theirs)
    print(f"a query of the snapshot, files read first: {cold:.2f} x gpuhunt's on the same rows")
    del os.environ["GPUHUNT_CATALOG_DIR"]
    _load_theirs(theirs, folder)
    warm = _compared(lambda: load_offers(query, now=NOW), ask_theirs)
    print(f"a query of the snapshot, all in memory:    {warm:.2f} x gpuhunt's on the same rows")


def _write_gpuhunt(folder: Path, offers: Sequence[Offer]) -> None:
    from gpuhunt import AcceleratorVendor, CatalogItem
    from gpuhunt._internal import storage

    for provider in ("aws", "gcp"):
        items = [
            CatalogItem(
                provider=provider, instance_name=o.instance_type, location=o.zone or o.region,
                price=o.list_usd_per_h, cpu=o.num_vcpus or 1, memory=1.0, gpu_count=o.num_gpus,
                gpu_name=o.gpu, gpu_memory=80.0, spot=o.market is Market.SPOT, disk_size=None,
                gpu_vendor=AcceleratorVendor.NVIDIA,
            )
            for o in offers
            if o.provider == provider
        ]  # fmt: skip
        storage.dump(items, str(folder / f"{provider}.csv"))


def _load_theirs(catalog: object, folder: Path) -> None:
    from gpuhunt._internal import storage
    from gpuhunt._internal.catalog import ProviderCatalog

    for provider in ("aws", "gcp"):
        with (folder / f"{provider}.csv").open(encoding="utf-8") as file:
            items = list(storage.load(file, provider=provider))
        catalog.catalog[provider] = ProviderCatalog(version="x", items=items)  # type: ignore[attr-defined]
    catalog.loaded_at = time.monotonic()  # type: ignore[attr-defined]


def _compared(ours: Callable[[], object], theirs: Callable[[], object]) -> float:
    """The median of ratios of pairs, so that a slow moment hits both."""
    ours()
    theirs()
    return statistics.median(_seconds(ours) / _seconds(theirs) for _ in range(ROUNDS))


def _seconds(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
