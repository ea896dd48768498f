"""The price book of the settings: which sources it is read from, and the database behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from advisor.store.database import existing_store

if TYPE_CHECKING:
    from advisor.config.layers import PricingSettings
    from advisor.config.settings import PriceSettings
    from advisor.pricing.answers import Answer
    from advisor.pricing.source_registry import Sources
    from advisor.pricing.sources.protocol import OfferQuery

ANY = "*"
"""Among the providers or regions of the settings: no limit."""


@dataclass(frozen=True, kw_only=True)
class PriceBook:
    """The prices that the settings mean; who needs prices opens it once and hands it down."""

    settings: PricingSettings

    @cached_property
    def sources(self) -> Sources:
        """In order of trust.

        Raises ConfigError: a source that the settings name is not there or refuses its options.
        """
        return self.named_sources(())

    def named_sources(self, names: Sequence[str]) -> Sources:
        """The sources of these names, all of the settings without any; errors as of ``sources``."""
        from advisor.pricing.source_registry import sources_of

        settings = self._source_settings()
        if names:
            settings = settings.model_copy(update={"sources": tuple(dict.fromkeys(names))})
        return sources_of(settings)

    def _source_settings(self) -> PriceSettings:
        """Gpuhunt reads the catalogs of those whom ``cloud.providers`` names, too."""
        settings = self.settings.prices
        named = [name.lower() for name in self.settings.cloud.providers if name != ANY]
        if not named or not self.settings.may_add_providers:
            return settings
        from advisor.pricing.providers import load_providers
        from advisor.pricing.sources.gpuhunt import NAME, PROVIDERS

        options = settings.options.get(NAME, {})
        added = [name for name in named if name in load_providers() and name not in PROVIDERS]
        if not added or "providers" in options:
            return settings
        providers = (*PROVIDERS, *dict.fromkeys(added))
        return settings.model_copy(
            update={"options": {**settings.options, NAME: {**options, "providers": providers}}}
        )

    def known(self, query: OfferQuery) -> list[Answer]:
        """What the sources know; nothing is pulled and nothing said.

        Raises:
            ConfigError: as of ``sources``.
            CatalogError: the data of a source cannot be read.
            StoreError: the database cannot be.
        """
        from advisor.pricing.source_registry import answers_of

        with existing_store(self.settings.store.url) as store:
            return answers_of(self.sources.sources, query, store)

    @property
    def providers(self) -> tuple[str, ...]:
        """Those to ask for; empty for all."""
        providers = self.settings.cloud.providers
        return () if ANY in providers else providers

    @property
    def regions(self) -> tuple[str, ...]:
        """Those to ask for; empty for all."""
        regions = self.settings.cloud.regions
        return () if ANY in regions else regions
