"""Prices of more clouds (Azure, Lambda, Nebius, OCI, RunPod, Vast) by the package gpuhunt, an optional extra.

https://github.com/dstackai/gpuhunt publishes a catalog a day for most providers and asks some directly.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.core.errors import ConfigError
from advisor.core.redaction import error_in_words
from advisor.core.values import Market
from advisor.pricing.sources.gpuhunt_items import Retrieval, offers_of
from advisor.pricing.sources.protocol import Capabilities, Credentials, Part, check_options
from advisor.pricing.sources.query import OfferQuery

if TYPE_CHECKING:
    from gpuhunt import Catalog


PROVIDERS = ("azure", "cloudrift", "lambdalabs", "nebius", "oci", "runpod", "vastai", "verda")
"""Asked by default: those that need no account, save the clouds that have a source of their own."""

CATALOG_DIR = "GPUHUNT_CATALOG_DIR"
NOT_INSTALLED = "gpuhunt is not installed: pip install 'gpu-advisor[gpuhunt]'"
_MOST_MESSAGES = 5

Clock = Callable[[], datetime]


class GpuhuntSource:
    """Offers of gpuhunt's catalogs, a part for each provider.

    Args:
        providers: as gpuhunt names them.
        catalog_dir: a folder of its catalogs (``azure.csv``) to read instead of downloading them.
        clock: now, for prices that are asked for directly.
    """

    name = "gpuhunt"

    def __init__(
        self, providers: Sequence[str], catalog_dir: Path | None, clock: Clock = lambda: datetime.now(UTC)
    ) -> None:
        self._providers = providers
        self._catalog_dir = catalog_dir
        self._clock = clock
        self.capabilities = Capabilities(
            providers=tuple(providers), markets=(Market.ON_DEMAND, Market.SPOT), is_live=True
        )

    def offers(self, query: OfferQuery) -> Iterator[Part]:
        """Offers that match; a provider that cannot be read fails alone."""
        wanted = [name for name in self._providers if not query.providers or name in query.providers]
        try:
            with _messages() as said, _environment(self._catalog_dir):
                catalog = _catalog(self._catalog_dir) if wanted else None
        except ImportError:
            yield from (Part(scope=name, failure=NOT_INSTALLED) for name in wanted)
            return
        except Exception as error:  # noqa: BLE001 - no trouble of a live source may stop the others
            yield from (Part(scope=name, failure=_reason(error, _about(name, said))) for name in wanted)
            return
        for name in wanted:
            yield self._part(catalog, name, query, _about(name, said))

    def freshness(self) -> tuple[()]:
        """Nothing is held here."""
        return ()

    def credentials(self) -> Credentials:
        """The published catalogs need none."""
        return Credentials.NOT_NEEDED

    def _part(self, catalog: Catalog, provider: str, query: OfferQuery, said_before: Sequence[str]) -> Part:
        try:
            with _messages() as said, _environment(self._catalog_dir):
                items = catalog.query(provider=provider, min_gpu_count=1)
            offers, gaps = offers_of(items, self._retrieval(catalog, provider))
        except Exception as error:  # noqa: BLE001 - a provider fails alone, however it does
            return Part(scope=provider, failure=_reason(error, said_before))
        said = [*said_before, *said]
        if not items:
            return Part(scope=provider, failure="; ".join(said) or "gpuhunt has no offers of this provider")
        return Part(scope=provider, offers=tuple(filter(query.matches, offers)), gaps=(*gaps, *_few(said)))

    def _retrieval(self, catalog: Catalog, provider: str) -> Retrieval:
        source = f"gpuhunt {version('gpuhunt')}"
        if self._catalog_dir is not None:
            modified_s = (self._catalog_dir / f"{provider}.csv").stat().st_mtime
            return Retrieval(at=datetime.fromtimestamp(modified_s, UTC), source=source)
        published = catalog.catalog.get(provider)
        if published is None:
            return Retrieval(at=self._clock(), source=source)
        return Retrieval(at=_day_of(published.version), source=f"{source}, catalog {published.version}")


def gpuhunt_source(options: Mapping[str, object]) -> GpuhuntSource:
    """The entry point: options ``providers`` (a list) and ``catalog_dir``, else ``GPUHUNT_CATALOG_DIR``.

    Raises:
        ConfigError: another option is given, or one of these is of the wrong kind.
    """
    check_options("gpuhunt", options, ("providers", "catalog_dir"))
    providers = options.get("providers")
    if providers is None:
        providers = PROVIDERS
    if not isinstance(providers, list | tuple) or not all(isinstance(name, str) for name in providers):
        raise ConfigError(
            f"prices.options.gpuhunt.providers must be a list such as [azure]; got {providers!r}."
        )
    folder = options.get("catalog_dir") or os.environ.get(CATALOG_DIR)
    if not isinstance(folder, str | None):
        raise ConfigError(f"prices.options.gpuhunt.catalog_dir must be a folder; got {folder!r}.")
    names = tuple(dict.fromkeys(name.lower() for name in providers))
    return GpuhuntSource(names, Path(os.path.expanduser(folder)) if folder else None)  # noqa: PTH111


def _catalog(catalog_dir: Path | None) -> Catalog:
    import gpuhunt

    # A folder is read by each query; nothing must be downloaded for it.
    return gpuhunt.default_catalog() if catalog_dir is None else gpuhunt.Catalog(auto_reload=False)


def _day_of(catalog_version: str) -> datetime:
    """Midnight of the day that a catalog's version begins with, as in ``20260720-1``.

    Raises:
        ValueError: it begins with no day, so that nobody knows how old the prices are.
    """
    return datetime.strptime(catalog_version[:8], "%Y%m%d").replace(tzinfo=UTC)


@contextmanager
def _environment(catalog_dir: Path | None) -> Iterator[None]:
    """Tells gpuhunt of a folder in the only way there is."""
    before = os.environ.get(CATALOG_DIR)
    if catalog_dir is not None:
        os.environ[CATALOG_DIR] = str(catalog_dir)
    try:
        yield
    finally:
        if catalog_dir is not None:
            os.environ.pop(CATALOG_DIR)
            if before is not None:
                os.environ[CATALOG_DIR] = before


@contextmanager
def _messages() -> Iterator[list[str]]:
    """What gpuhunt logs meanwhile; it tells in no other way of rows and providers that it skips."""
    said: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: said.append(_in_words(record))  # type: ignore[method-assign]
    logger = logging.getLogger("gpuhunt")
    logger.addHandler(handler)
    try:
        yield said
    finally:
        logger.removeHandler(handler)


def _in_words(record: logging.LogRecord) -> str:
    error = record.exc_info[1] if record.exc_info else None
    return record.getMessage() if error is None else f"{record.getMessage()} {error_in_words(error)}"


def _reason(error: Exception, said: Sequence[str]) -> str:
    return "; ".join([error_in_words(error), *_few(said)])


def _about(provider: str, said: Sequence[str]) -> list[str]:
    return [text for text in said if provider in text.lower()]


def _few(said: Sequence[str]) -> list[str]:
    more = len(said) - _MOST_MESSAGES
    return [*said[:_MOST_MESSAGES], *([f"... and {more} more messages of gpuhunt"] if more > 0 else [])]
