"""What a place that prices come from must be able to do; plug-ins implement ``PriceSource``.

A source is registered under the entry point group ``advisor.price_sources`` as a function that takes its
own options (``prices.options.NAME`` of the settings) and returns the source. docs/plugins.md has an example.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from advisor.core.deadlines import within
from advisor.core.errors import ConfigError, InputError, did_you_mean
from advisor.core.globs import is_any
from advisor.core.plugins import error_in_words, held_back
from advisor.core.values import Market, Offer, PricePoint
from advisor.pricing.instance_types import InstanceType

ANYWHERE = "any"
"""Region of an offer that holds in every region."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferQuery:
    """Offers to keep; an empty tuple or None sets no limit. All limits must hold.

    Raises InputError: a market is unknown.
    """

    providers: tuple[str, ...] = ()
    """Names such as ``"aws"``; lower case, whatever was given."""
    regions: tuple[str, ...] = ()
    """Names or globs such as ``"us-*"``, letter case aside."""
    gpus: tuple[str, ...] = ()
    """Catalog names (``"A100-SXM-80GB"``); `load_offers` also takes aliases and families."""
    num_gpus: tuple[int, ...] = ()
    """Numbers of GPUs a machine may have."""
    markets: tuple[Market, ...] = ()
    """On what terms; texts in any case will do."""
    max_usd_per_h: float | None = None
    """Most that the whole machine may cost."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "providers", tuple(name.lower() for name in self.providers))
        object.__setattr__(self, "markets", tuple(map(_market, self.markets)))

    def matches(self, offer: Offer) -> bool:
        """Whether the offer is within every limit."""
        return (
            (not self.providers or offer.provider.lower() in self.providers)
            and self.wants(offer)
            and (not self.markets or offer.market in self.markets)
            and (self.max_usd_per_h is None or offer.usd_per_h <= self.max_usd_per_h)
            and self.covers(offer.region)
        )

    def wants(self, machine: Offer | InstanceType) -> bool:
        """Whether the GPUs are wanted, whatever place, terms and price."""
        return (not self.gpus or machine.gpu in self.gpus) and (
            not self.num_gpus or machine.num_gpus in self.num_gpus
        )

    def covers(self, region: str) -> bool:
        """Whether offers of a region are wanted, there being any or not."""
        return not self.regions or region == ANYWHERE or is_any(self.regions, region)


def _market(name: str) -> Market:
    try:
        return Market(name)
    except ValueError:
        hint = did_you_mean(name, [market.value for market in Market])
        raise InputError(f"there is no market {name!r}: choose of {', '.join(Market)}.{hint}") from None


GROUP = "advisor.price_sources"
DERIVED = "derived from"
"""How the source of a price begins that was computed from others and never quoted."""
# A service of the machine or a program of the user may be asked for them.
CREDENTIALS_WITHIN_S = 10.0
Place = tuple[str, str, Market]
"""Provider, region, market."""


class Credentials(StrEnum):
    """Whether a source found what it needs to be let in; never what it found."""

    NOT_NEEDED = "not needed"
    FOUND = "found"
    MISSING = "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a source can answer."""

    providers: tuple[str, ...]
    """Whose machines; empty if that depends on its data."""
    markets: tuple[Market, ...]
    """On what terms."""
    is_live: bool = False
    """It asks someone over the network. Only a refresh does, and the store keeps the answers; other sources
    are read each time."""
    knows_all: bool = True
    """What it does not name in a place where it names something is not for rent there. A list that leaves
    machines out says nothing of them, and prices of other sources stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """How old the prices of one provider are."""

    provider: str
    num_offers: int
    oldest: datetime
    newest: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A share of a source's offers that is known or unknown as a whole, such as a region's spot prices."""

    scope: str
    """What it covers, such as ``"us-east-1 spot"``; the same at each refresh, and no two parts of a source
    share one. A part replaces what its scope held before."""
    offers: tuple[Offer, ...] = ()
    """All of the scope that match the query."""
    history: tuple[PricePoint, ...] = ()
    """Earlier prices of it, where the source knows them."""
    gaps: tuple[str, ...] = ()
    """What is missing from it and why, in words."""
    place: Place | None = None
    """Provider, region and market that the scope is, whole: what is not named is not for rent there, even
    where nothing is named. None where a scope is something else; then this holds of the places of its
    offers."""
    unpriced: tuple[str, ...] = ()
    """Instance types that are for rent in the place, but whose price could not be learned; older ones of
    sources that are not live stand in for them."""
    troubles: tuple[str, ...] = ()
    """Those of the gaps that come from trouble, such as a call that failed, and not from what is for rent;
    who refreshes hears of them at once."""
    failure: str | None = None
    """Why nothing could be learned, in words and with what to do; then there are no offers, and what was
    known of the scope stays as it was, with its age."""


class PriceSource(Protocol):
    """A place prices come from."""

    @property
    def name(self) -> str:
        """What ``advisor prices sources`` calls it: its entry point's name."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What it can answer."""
        ...

    def offers(self, query: OfferQuery) -> Iterable[Part]:
        """Offers that match the query, part by part as they are known.

        A live source raises nothing that one region's or one call's trouble causes: it tells of it in
        ``Part.failure``, without secrets, and goes on with the rest.

        Raises:
            CatalogError: the data of a source that is not live cannot be read.
            ConfigError: the same of files that the user wrote.
        """
        ...

    def freshness(self) -> Sequence[Freshness]:
        """How old what it holds is, by provider; empty for a live source, which holds nothing."""
        ...

    def credentials(self) -> Credentials:
        """Whether it would be let in, as far as is known without asking."""
        ...


def credentials_of(source: PriceSource) -> tuple[Credentials, str | None]:
    """What a source says of its credentials; where it fails or hangs they are missing, with a reason."""
    try:
        with held_back():
            return Credentials(within(CREDENTIALS_WITHIN_S, source.credentials)), None
    except Exception as error:  # noqa: BLE001 - a plug-in may raise anything
        return Credentials.MISSING, f"its credentials cannot be looked for: {error_in_words(error)}"


def freshness_of(offers: Sequence[Offer]) -> tuple[Freshness, ...]:
    """Oldest and newest price by provider, providers in alphabetical order."""
    times: dict[str, list[datetime]] = {}
    for offer in offers:
        times.setdefault(offer.provider, []).append(offer.retrieved_at)
    return tuple(
        Freshness(provider=provider, num_offers=len(moments), oldest=min(moments), newest=max(moments))
        for provider, moments in sorted(times.items())
    )


def check_options(name: str, options: Mapping[str, object], allowed: Collection[str]) -> None:
    """Refuse options that a source does not have. Raises ConfigError: names it, and those there are."""
    for option in options:
        if option not in allowed:
            known = ", ".join(allowed) or "none"
            raise ConfigError(
                f"the price source {name!r} has no option {option!r}.{did_you_mean(option, allowed)}"
                f" prices.options.{name} may hold: {known}."
            )
