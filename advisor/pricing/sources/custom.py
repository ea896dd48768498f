"""Own rates: machines of one's own, negotiated prices, providers that nobody else lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from advisor.core.errors import ConfigError
from advisor.core.values import Market, Offer
from advisor.pricing.sources.protocol import (
    Capabilities,
    Credentials,
    Freshness,
    Part,
    check_options,
    freshness_of,
)
from advisor.pricing.sources.query import OfferQuery
from advisor.pricing.sources.rate_files import find_files, read_rates


class CustomSource:
    """Rates from YAML and CSV files.

    Args:
        patterns: of their paths, as `find_files` takes them.
    """

    name = "custom"
    capabilities = Capabilities(providers=(), markets=tuple(Market))

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = patterns

    def offers(self, query: OfferQuery) -> Iterator[Part]:
        """Offers that match, a part for each file.

        Raises:
            ConfigError: a file is missing or a row is wrong; all faults at once.
        """
        for path, offers in self._rates.items():
            yield Part(scope=str(path), offers=tuple(filter(query.matches, offers)))

    def freshness(self) -> tuple[Freshness, ...]:
        """Age of what is held, by provider.

        Raises:
            ConfigError: as `offers`.
        """
        return freshness_of([offer for offers in self._rates.values() for offer in offers])

    def credentials(self) -> Credentials:
        """Files need none."""
        return Credentials.NOT_NEEDED

    @cached_property
    def _rates(self) -> Mapping[Path, tuple[Offer, ...]]:
        return read_rates(find_files(self._patterns))


def custom_source(options: Mapping[str, object]) -> CustomSource:
    """The entry point: option ``files`` lists the files of rates; without it there are none.

    Raises:
        ConfigError: another option is given, or ``files`` is no list of texts.
    """
    check_options("custom", options, ("files",))
    files = options.get("files") or ()
    if (
        not isinstance(files, Sequence)
        or isinstance(files, str)
        or not all(isinstance(f, str) for f in files)
    ):
        raise ConfigError(f"prices.options.custom.files must be a list such as [rates.yaml]; got {files!r}.")
    return CustomSource(tuple(files))
