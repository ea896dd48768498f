"""The sources of prices that the settings ask for, and which of them a recommendation may pull from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from advisor.config.layers import Config
    from advisor.config.settings import PriceSettings
    from advisor.pricing.answer.known import Sources
    from advisor.pricing.sources.protocol import PriceSource

_ALL = "*"


def sources_for(config: Config, names: Sequence[str] = ()) -> Sources:
    """The sources of the settings in order of trust, or those named.

    Raises:
        ConfigError: a source that the settings name is not there or refuses its options.
    """
    from advisor.pricing.answer.known import sources_of

    settings = price_settings(config)
    if names:
        settings = settings.model_copy(update={"sources": tuple(dict.fromkeys(names))})
    return sources_of(settings)


def pulled_unasked(config: Config, sources: Sequence[PriceSource]) -> list[PriceSource]:
    """Live sources that a recommendation may ask by itself: by an account, or as the settings name them."""
    from advisor.pricing.answer.known import is_pulled_unasked

    settings = price_settings(config)
    live = [source for source in sources if source.capabilities.is_live]
    return [source for source in live if is_pulled_unasked(source.name, settings)]


def price_settings(config: Config) -> PriceSettings:
    """The settings of sources; gpuhunt reads the catalogs of those whom ``cloud.providers`` names, too."""
    settings = config.settings.prices
    named = [name.lower() for name in config.settings.cloud.providers if name != _ALL]
    if not named or is_of_untrusted_project(config):
        return settings
    from advisor.pricing.catalog.renters import load_renters
    from advisor.pricing.sources.gpuhunt import NAME, PROVIDERS

    options = settings.options.get(NAME, {})
    added = [name for name in named if name in load_renters() and name not in PROVIDERS]
    if not added or "providers" in options:
        return settings
    providers = (*PROVIDERS, *dict.fromkeys(added))
    return settings.model_copy(
        update={"options": {**settings.options, NAME: {**options, "providers": providers}}}
    )


def is_of_untrusted_project(config: Config) -> bool:
    """Whether an untrusted project named the providers: it may narrow them, and add none."""
    project = config.project
    origin = config.origins.get("cloud.providers")
    return project is not None and not project.is_trusted and origin == str(project.path)
