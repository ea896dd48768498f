"""The catalogs that gpuhunt publishes, a day's for each provider: fetched within our limits, and unpacked.

``URL/PROVIDER/version`` names the newest, ``URL/PROVIDER/VERSION/catalog.zip`` holds ``PROVIDER.csv``. What
gpuhunt itself downloads is limited in neither time nor size; so it reads what lies in a folder.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

from advisor.core.units import MB
from advisor.pricing.sources.public_files import PublicFileError, download
from advisor.pricing.sources.replies import Allowance

CATALOG_URL = "https://dstack-gpu-pricing.s3.eu-west-1.amazonaws.com/v3"
"""gpuhunt's bucket: the default of its own variable, `URL_VARIABLE`."""

URL_VARIABLE = "GPUHUNT_CATALOG_URL"
UNPACKED_BYTES = 128 * MB
"""Most that one catalog may hold: a provider's rows are a few MB."""
_VERSION = re.compile(r"\d{8}(-[\w.-]{1,32})?")
_CHUNK_BYTES = 2**20


def fetch_catalog(provider: str, url: str, folder: Path, allowance: Allowance) -> str:
    """Put the newest catalog of a provider, by gpuhunt's name, into a folder; returns its version.

    Raises:
        PublicFileError: there is none, or none that can be read.
        OSError: the folder cannot be written.
    """
    version = download(f"{url}/{provider}/version", allowance).decode("utf-8", "replace").strip()
    if _day(version) is None:
        raise PublicFileError(
            f"its version is {version[:40]!r}, which names no day: nobody knows how old its prices are"
        )
    packed = download(f"{url}/{provider}/{version}/catalog.zip", allowance)
    (folder / f"{provider}.csv").write_bytes(_unpacked(packed, f"{provider}.csv"))
    return version


def day_of(version: str) -> datetime:
    """Midnight of the day that a version begins with, as in ``20260720-1``."""
    day = _day(version)
    if day is None:
        raise ValueError(f"{version!r} names no day")
    return day


def _day(version: str) -> datetime | None:
    if not _VERSION.fullmatch(version):
        return None
    try:
        return datetime.strptime(version[:8], "%Y%m%d").replace(tzinfo=UTC)
    except ValueError:
        return None


def _unpacked(packed: bytes, name: str) -> bytes:
    """One file of an archive; its own word of how long it is does not count."""
    content = bytearray()
    try:
        with zipfile.ZipFile(BytesIO(packed)) as archive, archive.open(name) as file:
            while chunk := file.read(_CHUNK_BYTES):
                content += chunk
                if len(content) > UNPACKED_BYTES:
                    raise PublicFileError(f"its archive unpacks to more than {UNPACKED_BYTES // MB} MB")
    except KeyError:
        raise PublicFileError(f"its archive holds no {name}: update gpuhunt and advisor") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError):
        raise PublicFileError(
            "its archive cannot be unpacked: it was cut off, or is none. Try again"
        ) from None
    return bytes(content)
