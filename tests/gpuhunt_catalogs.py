"""Small catalogs in gpuhunt's own form, and the source that reads them."""

import io
import os
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import gpuhunt
from gpuhunt._internal.storage import dump

from advisor.pricing.sources.gpuhunt import GpuhuntSource
from advisor.pricing.sources.protocol import OfferQuery, Part

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


def publish(root: Path, provider: str, version: str, *items: gpuhunt.CatalogItem, more: str = "") -> Path:
    """A provider's newest catalog as the bucket has it; returns the archive."""
    rows = write(root / "rows", provider, *items, more=more).read_bytes()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{provider}.csv", rows)
    (root / provider / version).mkdir(parents=True, exist_ok=True)
    (root / provider / "version").write_text(version + "\n")
    path = root / provider / version / "catalog.zip"
    path.write_bytes(packed.getvalue())
    return path


def parts_of(folder: Path, *providers: str, query: OfferQuery = ANY) -> list[Part]:
    """In the order in which the providers were named."""
    parts = {part.scope: part for part in GpuhuntSource(providers, folder).offers(query)}
    return [parts[name] for name in providers if name in parts]


def part_of(folder: Path, *items: gpuhunt.CatalogItem, more: str = "") -> Part:
    """Of Lambda."""
    write(folder, "lambdalabs", *items, more=more)
    (part,) = parts_of(folder, "lambda")
    return part


def gpuhunt_version() -> str:
    from importlib.metadata import version

    return version("gpuhunt")
