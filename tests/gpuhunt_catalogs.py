"""Small catalogs in gpuhunt's own form, and the source that reads them."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import gpuhunt
from gpuhunt._internal.storage import dump

from advisor.pricing.sources.gpuhunt import GpuhuntSource
from advisor.pricing.sources.protocol import Part
from advisor.pricing.sources.query import OfferQuery

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
WRITTEN = datetime(2026, 11, 20, 6, tzinfo=UTC)
ANY = OfferQuery()


def item(instance_name: str = "gpu_1x_a10", price: float = 0.75, **changes: Any) -> gpuhunt.CatalogItem:
    facts = {
        "provider": "lambdalabs", "location": "us-west-1", "cpu": 30, "memory": 200.0, "gpu_count": 1,
        "gpu_name": "A10", "gpu_memory": 24.0, "spot": False, "disk_size": 1400.0,
        "gpu_vendor": gpuhunt.AcceleratorVendor.NVIDIA,
    }  # fmt: skip
    return gpuhunt.CatalogItem(instance_name=instance_name, price=price, **(facts | changes))


def write(folder: Path, provider: str, *items: gpuhunt.CatalogItem, more: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{provider}.csv"
    dump(items, str(path))
    path.write_text(path.read_text() + more)
    os.utime(path, (WRITTEN.timestamp(), WRITTEN.timestamp()))
    return path


def parts_of(folder: Path, *providers: str, query: OfferQuery = ANY) -> list[Part]:
    return list(GpuhuntSource(providers, folder).offers(query))


def part_of(folder: Path, *items: gpuhunt.CatalogItem, more: str = "") -> Part:
    write(folder, "lambdalabs", *items, more=more)
    (part,) = parts_of(folder, "lambdalabs")
    return part


def gpuhunt_version() -> str:
    from importlib.metadata import version

    return version("gpuhunt")
