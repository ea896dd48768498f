"""Prices of many clouds without an account, by gpuhunt: https://github.com/dstackai/gpuhunt."""

from __future__ import annotations

import dataclasses
import importlib
import logging
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.core.deadlines import LateError, completed, within
from advisor.core.errors import ConfigError, did_you_mean
from advisor.core.files import temporary_folder
from advisor.core.redaction import error_in_words
from advisor.core.units import MB
from advisor.core.values import Market
from advisor.pricing.providers import Access, Provider, load_providers
from advisor.pricing.sources.downloads import Allowance, PublicFileError, download
from advisor.pricing.sources.gpuhunt_items import Retrieval, offers_of
from advisor.pricing.sources.protocol import Capabilities, Credentials, OfferQuery, Part, check_options

if TYPE_CHECKING:
    from gpuhunt import CatalogItem

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


NAME = "gpuhunt"
PROVIDERS = ("aws", "gcp")
"""Whose catalogs are read unless the settings name others."""

CATALOG_DIR = "GPUHUNT_CATALOG_DIR"
ASKED_WITHIN_S = 30.0
"""For one provider that gpuhunt asks itself."""
_NUM_THREADS = 8
_MOST_MESSAGES = 3
Clock = Callable[[], datetime]
_Fetched = tuple[str, str | None, str | None]  # provider, version of its catalog, failure


class GpuhuntSource:
    """Offers of gpuhunt's catalogs, a part for each provider.

    Args:
        providers: as `load_providers` names them.
        catalog_dir: a folder of its catalogs (``azure.csv``) to read instead of downloading them.
        url: where the catalogs are published.
        clock: now, for prices that are asked for directly.
    """

    name = NAME

    def __init__(
        self,
        providers: Sequence[str],
        catalog_dir: Path | None = None,
        url: str = CATALOG_URL,
        clock: Clock = lambda: datetime.now(UTC),
    ) -> None:
        self._providers = providers
        self._catalog_dir = catalog_dir
        self._url = url
        self._clock = clock
        self.capabilities = Capabilities(
            providers=tuple(providers),
            markets=(Market.ON_DEMAND, Market.SPOT),
            is_live=True,
            knows_all=False,
        )

    def offers(self, query: OfferQuery) -> Iterator[Part]:
        """Offers that match, of all regions; a provider that cannot be read fails alone.

        A catalog is one scope: narrowed to some regions, it would replace what was known of all others.
        """
        query = dataclasses.replace(query, regions=())
        wanted = [name for name in self._providers if not query.providers or name in query.providers]
        fetched = [name for name in wanted if self._is_fetched(load_providers()[name])]
        with temporary_folder("prices") as temporary:
            folder = self._catalog_dir or temporary
            allowance = Allowance()
            jobs = [partial(self._fetched, name, folder, allowance) for name in fetched]
            for name, catalog, failure in completed(jobs, num_threads=_NUM_THREADS, name=NAME):
                if failure is None:
                    yield self._part(load_providers()[name], folder, catalog, query)
                else:
                    yield Part(scope=name, failure=failure)
            # Those that gpuhunt asks itself take the longest, and come last.
            for name in (name for name in wanted if name not in fetched):
                yield self._part(load_providers()[name], folder, None, query)

    def freshness(self) -> tuple[()]:
        """Nothing is held here."""
        return ()

    def credentials(self) -> Credentials:
        """The published catalogs need none."""
        return Credentials.NOT_NEEDED

    def _is_fetched(self, provider: Provider) -> bool:
        return self._catalog_dir is None and provider.access is Access.PUBLISHED

    def _fetched(self, provider: str, folder: Path, allowance: Allowance) -> _Fetched:
        """Put a provider's catalog into the folder."""
        name = load_providers()[provider].gpuhunt_name
        try:
            return provider, fetch_catalog(name, self._url, folder, allowance), None
        except PublicFileError as error:
            return provider, None, f"gpuhunt's catalog of {provider}: {error}"
        except OSError as error:
            return provider, None, f"gpuhunt's catalog of {provider} cannot be kept: {error.strerror}"

    def _part(self, provider: Provider, folder: Path, catalog: str | None, query: OfferQuery) -> Part:
        try:
            with _messages() as messages, _environment(folder):
                items = _items(provider)
            offers, gaps = offers_of(items, provider, self._retrieval(provider, folder, catalog))
        except Exception as error:  # noqa: BLE001 - a provider fails alone, however it does
            return Part(scope=provider.name, failure=_reason(error))
        if not offers:
            why = "; ".join((*_few(messages), *gaps)) or "it names no machine with a GPU"
            return Part(scope=provider.name, failure=f"no price of {provider.name} could be read: {why}")
        return Part(
            scope=provider.name, offers=tuple(filter(query.matches, offers)), gaps=(*gaps, *_few(messages))
        )

    def _retrieval(self, provider: Provider, folder: Path, catalog: str | None) -> Retrieval:
        source = f"gpuhunt {version('gpuhunt')}"
        if catalog is not None:
            return Retrieval(at=day_of(catalog), source=f"{source}, catalog {catalog}")
        if provider.access is Access.ASKED:
            return Retrieval(at=self._clock(), source=f"{source}, asked directly")
        modified_s = (folder / f"{provider.gpuhunt_name}.csv").stat().st_mtime
        return Retrieval(at=datetime.fromtimestamp(modified_s, UTC), source=source)


def gpuhunt_source(options: Mapping[str, object]) -> GpuhuntSource:
    """The entry point: options ``providers`` (a list), and ``catalog_dir`` or ``url`` of the catalogs.

    Raises:
        ConfigError: another option is given, one of these is of the wrong kind, or nobody knows a provider.
    """
    check_options(NAME, options, ("providers", "catalog_dir", "url"))
    folder = _text(options, "catalog_dir", "a folder", os.environ.get(CATALOG_DIR))
    url = _text(options, "url", "an address", os.environ.get(URL_VARIABLE)) or CATALOG_URL
    return GpuhuntSource(
        _provider_names(options.get("providers")),
        Path(os.path.expanduser(folder)) if folder else None,  # noqa: PTH111
        url.rstrip("/"),
    )


def _text(options: Mapping[str, object], name: str, what: str, default: str | None) -> str | None:
    value = options.get(name) or default
    if not isinstance(value, str | None):
        raise ConfigError(f"prices.options.gpuhunt.{name} must be {what}; got {value!r}.")
    return value


def _provider_names(names: object) -> tuple[str, ...]:
    """Our names of providers, each once; gpuhunt's will do."""
    if names is None:
        return PROVIDERS
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ConfigError(f"prices.options.gpuhunt.providers must be a list such as [azure]; got {names!r}.")
    known = load_providers()
    ours = {provider.gpuhunt_name: name for name, provider in known.items()} | {name: name for name in known}
    for name in names:
        if name.lower() not in ours:
            raise ConfigError(
                f"gpuhunt has no prices of {name!r} (prices.options.gpuhunt.providers)."
                f"{did_you_mean(name, known)} It has those of {', '.join(known)}."
            )
    return tuple(dict.fromkeys(ours[name.lower()] for name in names))


def _items(provider: Provider) -> list[CatalogItem]:
    """Rows with a GPU of a provider: of the folder that the environment names, or asked for directly."""
    import gpuhunt

    catalog = gpuhunt.Catalog(auto_reload=False)
    if provider.access is Access.ASKED:
        module = importlib.import_module(f"gpuhunt.providers.{provider.gpuhunt_name}")
        kinds = [kind for kind in vars(module).values() if getattr(kind, "NAME", "") == provider.gpuhunt_name]
        catalog.add_provider(kinds[0].from_env())
    query = partial(catalog.query, provider=provider.gpuhunt_name, min_gpu_count=1)
    items: list[CatalogItem] = within(ASKED_WITHIN_S, query) if provider.access is Access.ASKED else query()
    return items


@contextmanager
def _environment(catalog_dir: Path) -> Iterator[None]:
    """Tells gpuhunt of a folder in the only way there is."""
    before = os.environ.get(CATALOG_DIR)
    os.environ[CATALOG_DIR] = str(catalog_dir)
    try:
        yield
    finally:
        os.environ.pop(CATALOG_DIR)
        if before is not None:
            os.environ[CATALOG_DIR] = before


@contextmanager
def _messages() -> Iterator[list[str]]:
    """What gpuhunt logs meanwhile; it tells in no other way of rows that it skips."""
    messages: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("gpuhunt")
    logger.addHandler(handler)
    try:
        yield messages
    finally:
        logger.removeHandler(handler)


def _reason(error: Exception) -> str:
    if isinstance(error, LateError):
        return f"{error}: try again later"
    if isinstance(error, FileNotFoundError):
        return f"there is no {Path(error.filename).name} in {str(Path(error.filename).parent)!r}"
    return error_in_words(error)


def _few(messages: Sequence[str]) -> list[str]:
    more = len(messages) - _MOST_MESSAGES
    return [*messages[:_MOST_MESSAGES], *([f"... and {more} more messages of gpuhunt"] if more > 0 else [])]
