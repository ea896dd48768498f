"""Prices of many clouds without an account, by gpuhunt: https://github.com/dstackai/gpuhunt.

It publishes a catalog a day for most providers; a few, such as Vast, it asks directly.
"""

from __future__ import annotations

import dataclasses
import importlib
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.core.deadlines import LateError, completed, within
from advisor.core.errors import ConfigError, did_you_mean
from advisor.core.files import temporary_folder
from advisor.core.redaction import error_in_words
from advisor.core.values import Market
from advisor.pricing.catalog.renters import Access, Renter, load_renters
from advisor.pricing.sources.gpuhunt_catalogs import CATALOG_URL, URL_VARIABLE, day_of, fetch_catalog
from advisor.pricing.sources.gpuhunt_items import Retrieval, offers_of
from advisor.pricing.sources.protocol import Capabilities, Credentials, Part, check_options
from advisor.pricing.sources.public_files import PublicFileError
from advisor.pricing.sources.query import OfferQuery
from advisor.pricing.sources.replies import Allowance

if TYPE_CHECKING:
    from gpuhunt import CatalogItem

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
        providers: as `load_renters` names them.
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
        fetched = [name for name in wanted if self._is_fetched(load_renters()[name])]
        with temporary_folder("prices") as temporary:
            folder = self._catalog_dir or temporary
            allowance = Allowance()
            jobs = [partial(self._fetched, name, folder, allowance) for name in fetched]
            for name, catalog, failure in completed(jobs, num_threads=_NUM_THREADS, name=NAME):
                if failure is None:
                    yield self._part(load_renters()[name], folder, catalog, query)
                else:
                    yield Part(scope=name, failure=failure)
            # Those that gpuhunt asks itself take the longest, and come last.
            for name in (name for name in wanted if name not in fetched):
                yield self._part(load_renters()[name], folder, None, query)

    def freshness(self) -> tuple[()]:
        """Nothing is held here."""
        return ()

    def credentials(self) -> Credentials:
        """The published catalogs need none."""
        return Credentials.NOT_NEEDED

    def _is_fetched(self, renter: Renter) -> bool:
        return self._catalog_dir is None and renter.access is Access.PUBLISHED

    def _fetched(self, provider: str, folder: Path, allowance: Allowance) -> _Fetched:
        """Put a provider's catalog into the folder."""
        name = load_renters()[provider].gpuhunt_name
        try:
            return provider, fetch_catalog(name, self._url, folder, allowance), None
        except PublicFileError as error:
            return provider, None, f"gpuhunt's catalog of {provider}: {error}"
        except OSError as error:
            return provider, None, f"gpuhunt's catalog of {provider} cannot be kept: {error.strerror}"

    def _part(self, renter: Renter, folder: Path, catalog: str | None, query: OfferQuery) -> Part:
        try:
            with _messages() as messages, _environment(folder):
                items = _items(renter)
            offers, gaps = offers_of(items, renter, self._retrieval(renter, folder, catalog))
        except Exception as error:  # noqa: BLE001 - a provider fails alone, however it does
            return Part(scope=renter.provider, failure=_reason(error))
        if not offers:
            why = "; ".join((*_few(messages), *gaps)) or "it names no machine with a GPU"
            return Part(scope=renter.provider, failure=f"no price of {renter.provider} could be read: {why}")
        return Part(
            scope=renter.provider, offers=tuple(filter(query.matches, offers)), gaps=(*gaps, *_few(messages))
        )

    def _retrieval(self, renter: Renter, folder: Path, catalog: str | None) -> Retrieval:
        source = f"gpuhunt {version('gpuhunt')}"
        if catalog is not None:
            return Retrieval(at=day_of(catalog), source=f"{source}, catalog {catalog}")
        if renter.access is Access.ASKED:
            return Retrieval(at=self._clock(), source=f"{source}, asked directly")
        modified_s = (folder / f"{renter.gpuhunt_name}.csv").stat().st_mtime
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
    known = load_renters()
    ours = {renter.gpuhunt_name: name for name, renter in known.items()} | {name: name for name in known}
    for name in names:
        if name.lower() not in ours:
            raise ConfigError(
                f"gpuhunt has no prices of {name!r} (prices.options.gpuhunt.providers)."
                f"{did_you_mean(name, known)} It has those of {', '.join(known)}."
            )
    return tuple(dict.fromkeys(ours[name.lower()] for name in names))


def _items(renter: Renter) -> list[CatalogItem]:
    """Rows with a GPU of a provider: of the folder that the environment names, or asked for directly."""
    import gpuhunt

    catalog = gpuhunt.Catalog(auto_reload=False)
    if renter.access is Access.ASKED:
        module = importlib.import_module(f"gpuhunt.providers.{renter.gpuhunt_name}")
        kinds = [kind for kind in vars(module).values() if getattr(kind, "NAME", "") == renter.gpuhunt_name]
        catalog.add_provider(kinds[0].from_env())
    query = partial(catalog.query, provider=renter.gpuhunt_name, min_gpu_count=1)
    items: list[CatalogItem] = within(ASKED_WITHIN_S, query) if renter.access is Access.ASKED else query()
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
