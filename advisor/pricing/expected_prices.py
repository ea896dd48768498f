"""What an hour will cost, expected from a quote, its age, and how prices moved and compared in the past."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from functools import cache
from statistics import median

import numpy as np
from numpy.typing import NDArray

from advisor.core.gpus import catalog_path
from advisor.core.iterables import grouped
from advisor.core.units import DAY_S
from advisor.core.values import Interval, Market, Offer, Price, QuoteKind
from advisor.pricing.instance_types import load_instances, read_as
from advisor.pricing.providers import load_providers
from advisor.pricing.sources.protocol import DERIVED

OnDemand = Mapping[tuple[str, str, str], float]
"""USD per hour by provider, instance type and region."""
SpotQuotes = Mapping[tuple[str, str], Mapping[tuple[str, str], float]]
"""USD per hour by provider and instance type, then by region and zone (empty where there is none)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceList:
    """Prices of a catalog, not of the offers: what else is offered must not move a price."""

    on_demand: OnDemand = field(default_factory=dict)
    spot: SpotQuotes = field(default_factory=dict)

    def with_estimates(self, offers: Iterable[Offer]) -> Mapping[tuple[str, str, str], float]:
        """List prices by provider, instance type and region, also where none is listed.

        Some machines are rented as spot alone. Their list price is the median of the machine's other regions,
        else that of its GPUs in other machines of the region, else of its GPUs anywhere. What has neither is
        left out.
        """
        # Wherever spot of an offer's machine was quoted, offered or not.
        missing = {
            (offer.provider, offer.instance_type, region): offer
            for offer in offers
            if _key(offer) not in self.on_demand
            for region in (offer.region, *(at for at, _ in self.spot.get(_key(offer)[:2], {})))
            if (offer.provider, offer.instance_type, region) not in self.on_demand
        }
        if not missing:
            return self.on_demand
        # Of a machine; of one GPU in a region, and anywhere.
        known: dict[tuple[str, ...], list[float]] = defaultdict(list)
        for (provider, name, region), usd in self.on_demand.items():
            known[provider, name].append(usd)
            if (machine := load_instances().get((provider, name))) is not None:
                for where in (("in", region), ("in",)):
                    known[provider, machine.gpu, *where].append(usd / machine.num_gpus)
        estimated = {}
        for (provider, name, region), offer in missing.items():
            alike = (provider, name), (provider, offer.gpu, "in", region), (provider, offer.gpu, "in")
            found = next((key for key in alike if key in known), None)
            if found is not None:
                num_gpus = 1 if found == alike[0] else offer.num_gpus
                estimated[provider, name, region] = median(known[found]) * num_gpus
        return {**estimated, **self.on_demand}

    def places_of(self, offer: Offer, listed: OnDemand) -> Sequence[tuple[float, tuple[str, str]]]:
        """Spot prices of the machine in all its places, ascending: logarithms over their list prices.

        Over nothing where the offer's own list price is unknown.
        """
        provider, name, _ = _key(offer)
        places = self.spot.get((provider, name), {}).items()
        if _key(offer) not in listed:
            return sorted((math.log(usd), place) for place, usd in places)
        return sorted(
            (math.log(usd / base), place)
            for place, usd in places
            if (base := listed.get((provider, name, place[0]))) is not None
        )


def _key(offer: Offer) -> tuple[str, str, str]:
    return offer.provider, offer.instance_type, offer.region


Array = NDArray[np.float64]

DRIFT_FILE, RATIO_FILE = "price_drift.csv", "spot_ratios.csv"
ANY = "*"
_RUN_STEPS = 8
AT_FLOOR, NEAR_FLOOR = 1.001, 1.2
"""Times the provider's floor. At it a quote says that no one is bidding. Near it that may be so as well:
Google discounts GPUs and host each by itself; eight H100 at 91 % off with a host at 75 % off are at 1.2."""
USUAL_FLOOR = 0.1
"""Of on-demand, where a provider states none: AWS's."""
MOST_OF_FAMILY, NEAR = "family", "near-floor"


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceDrift:
    """How far quotes of a market are off by age, what is between two ages interpolated."""

    age_days: tuple[float, ...] = (0.0,)
    """Ages in ascending order, from 0."""
    weight: tuple[float, ...] = (1.0,)
    """At each age, how much the quote still says beside its family: 1 at first, never rising."""
    down: tuple[float, ...] = (0.0,)
    """Logarithm of what the cheapest quotes came to over what was expected, at p10; never rising."""
    up: tuple[float, ...] = (0.0,)
    """The same at p90; never falling."""

    def up_over(self, age_days: Array, run_days: float) -> Array:
        """``up`` of quotes of these ages in the mean over a run, during which they grow older."""
        shares = [step / _RUN_STEPS for step in range(_RUN_STEPS + 1)]
        # One by one: numpy's sum of a column depends on how many columns there are.
        ups = [np.interp(age_days + run_days * share, self.age_days, self.up) for share in shares]
        return np.asarray(sum(ups[1:], ups[0]) / len(ups))


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceModel:
    """All that is known of prices beside the quote itself."""

    ratios: Mapping[tuple[str, str], Interval] = field(default_factory=dict)
    """Spot over on-demand by provider and GPU; `ANY` for the others of the provider, and of all."""
    drift: Mapping[tuple[str, str], PriceDrift] = field(default_factory=dict)
    """By provider and market; `ANY` for other providers."""
    most_weight: Mapping[QuoteKind, float] = field(default_factory=dict)
    """Of what was not plainly quoted, by kind."""
    moves: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """How far spot prices move beside those of all GPUs, by provider and GPU; 1 of others."""
    near_floor_weight: float = 1.0
    """Of a quote near the provider's floor."""
    family_places: float = 1.0
    """How many other places of a machine the record of its GPU counts for."""

    def ratio_of(self, provider: str, gpu: str) -> Interval | None:
        """Of the GPU at this provider, else of the provider, else of any; None where nothing is known."""
        keys = ((provider, gpu), (provider, ANY), (ANY, ANY))
        return next((self.ratios[key] for key in keys if key in self.ratios), None)

    def drift_of(self, provider: str, market: str) -> PriceDrift:
        """Of the market at this provider, else at any; none where nothing is known."""
        keys = ((provider, market), (ANY, market))
        return next((self.drift[key] for key in keys if key in self.drift), PriceDrift())

    def most_weights(self, kind: QuoteKind) -> tuple[float, float, float]:
        """The most that a quote may say beside its family: at the floor, near it, and above."""
        plain = self.most_weight.get(kind, 1.0)
        if kind in (QuoteKind.AGREED, QuoteKind.LIVE):
            return plain, plain, plain
        at_floor = min(plain, self.most_weight.get(QuoteKind.FLOOR, 1.0))
        return at_floor, min(plain, max(at_floor, self.near_floor_weight)), plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """Spot over on-demand of a GPU at a provider, quantiles of ``n`` places; a row of the file."""

    provider: str
    gpu: str
    p10: float
    p50: float
    p90: float
    n: int
    moves: float
    """How far its price moves, up or down, beside those of the provider's other GPUs."""
    source: str
    as_of: date


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftRow:
    """What a quote of a kind says at an age, and what it came to over what was expected; of ``n`` quotes."""

    provider: str
    market: str
    kind: str
    age_days: float
    weight: float
    p10: float
    p90: float
    n: int
    source: str
    as_of: date


@cache
def load_price_model() -> PriceModel:
    """The shipped model. Raises CatalogError: a file is missing or broken."""
    ratios, rows = read_as(catalog_path(RATIO_FILE), Ratio), read_as(catalog_path(DRIFT_FILE), DriftRow)
    dated = grouped(
        (row for row in rows if row.kind == QuoteKind.DATED), lambda row: (row.provider, row.market)
    )
    drift = {
        of: PriceDrift(
            age_days=(0.0, *(row.age_days for row in group)),
            weight=(1.0, *(row.weight for row in group)),
            down=(0.0, *(math.log(row.p10) for row in group)),
            up=(0.0, *(math.log(row.p90) for row in group)),
        )
        for of, group in dated.items()
    }
    weights = {row.kind: row.weight for row in rows if row.kind != QuoteKind.DATED}
    return PriceModel(
        ratios={(one.provider, one.gpu): Interval(p10=one.p10, p50=one.p50, p90=one.p90) for one in ratios},
        moves={(one.provider, one.gpu): one.moves for one in ratios},
        drift=drift,
        most_weight={QuoteKind(kind): w for kind, w in weights.items() if kind not in (MOST_OF_FAMILY, NEAR)},
        near_floor_weight=weights[NEAR],
        family_places=1 / weights[MOST_OF_FAMILY] - 1,
    )


LIVE_DAYS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotes:
    """Quotes and what is known of their families: arrays [n], logarithms of USD per hour."""

    quoted: Array
    family: Array
    """P10, p50 and p90 [3, n]."""
    weight: Array
    """Of the quote beside its family."""
    kept: Array
    """Of what set a quote apart from its family, how much is left at its age: 1 at first."""
    down: Array
    """How far quotes of this age are off at p10, 0 or below."""
    up: Array
    """The same at p90, 0 or above [1 + runs, n]: when a run starts, and in the mean over a run of each of
    `Price.RUN_DAYS`."""
    least: Array
    """What no price falls below; the provider's floor."""
    most: Array
    """What no price exceeds, the quote or above; infinite where nothing is known to limit it."""


def quantiles_of(quotes: Quotes) -> Array:
    """p10, p50, p90 of the price's logarithm, and p90 of the mean over `Price.RUN_DAYS` [3 + runs, n]."""
    own = 1 - quotes.weight
    low, mid, high = quotes.family
    shrunk = quotes.weight * quotes.quoted + own * mid
    p50 = np.maximum(quotes.quoted, shrunk)
    # Prices that return to their family with correlation w spread by sqrt(1 - w^2) of what sets them apart.
    apart = np.sqrt(1 - quotes.kept**2) * np.maximum(mid - quotes.quoted, 0.0)
    p90 = p50 + np.hypot(np.hypot(own * (high - mid), apart), quotes.up)
    p10 = shrunk - np.hypot(own * (mid - low), quotes.down)
    return np.asarray(np.clip((np.minimum(p10, p50), p50, *p90), quotes.least, quotes.most))


def likely_prices(
    offers: Sequence[Offer],
    *,
    now: datetime,
    on_demand: OnDemand,
    spot: SpotQuotes | None = None,
    model: PriceModel | None = None,
) -> tuple[Price, ...]:
    """What an hour of each offer will cost at ``now``.

    What was agreed (own rates, contracts) is exact. A spot offer's own history stands in for the record of
    its GPU, and counts from the first day.

    Args:
        now: when the job runs, with a time zone.
        on_demand: of a catalog, not of the offers: what else is offered must not move a price.
        spot: what a catalog quotes for spot machines in all their places.
        model: what is known of drift and families; the shipped one if None.
    """
    if not offers:
        return ()
    model = model or load_price_model()
    age_s = np.array([(now - offer.retrieved_at).total_seconds() for offer in offers]).clip(0)
    # Whole days: an answer is the same all day.
    age_days = np.floor(age_s / DAY_S)
    known = _Known(offers, PriceList(on_demand=on_demand, spot=spot or {}))
    quoted = np.array([offer.list_usd_per_h for offer in offers])
    over_floor = quoted / (known.floor_share * np.exp(known.base))
    is_low, is_near = over_floor <= AT_FLOOR, over_floor <= NEAR_FLOOR
    kinds = [_kind_of(*one) for one in zip(offers, age_days.tolist(), is_low.tolist(), strict=True)]
    standing = np.where(is_low, 0, np.where(is_near, 1, 2))
    quotes = _quotes(known, kinds, age_days, np.log(quoted), standing, model)
    logs = quantiles_of(quotes)
    # What spot cost before it may cost again, on the first day as well.
    for i, past in _histories(offers):
        logs[0, i] = min(logs[0, i], math.log(past.p10))
        logs[2:, i] = np.maximum(logs[2:, i], math.log(past.p90))
    over_quote = np.exp(np.vstack((logs, np.maximum(quotes.most, logs.max(axis=0)))) - quotes.quoted)
    usd_per_h = over_quote * np.array([offer.usd_per_h for offer in offers])
    return tuple(
        Price(
            usd_per_h=Interval(p10=p10, p50=p50, p90=p90),
            kind=kind,
            age_days=age,
            run_p90_usd_per_h=tuple(of_runs) if of_runs[-1] > p90 else (),
            is_near_floor=near and offer.market is Market.SPOT,
            most_usd_per_h=most,
        )
        for offer, kind, age, near, (p10, p50, p90, *of_runs, most) in zip(
            offers, kinds, age_days.tolist(), is_near.tolist(), usd_per_h.T.tolist(), strict=True
        )
    )


def _deciles(ordered: Sequence[float]) -> Array:
    """p10, p50 and p90 of ascending values, as numpy has them; it takes a tenth of the time at these few."""
    found = []
    for place in (level * (len(ordered) - 1) for level in (0.1, 0.5, 0.9)):
        below, above = ordered[int(place)], ordered[min(int(place) + 1, len(ordered) - 1)]
        found.append(below + (place - int(place)) * (above - below))
    return np.array(found)


class _Known:
    """What a catalog says of offers."""

    def __init__(self, offers: Sequence[Offer], prices: PriceList) -> None:
        self.offers, self.prices = offers, prices
        self._list = prices.with_estimates(offers)
        keys = [*map(_key, offers)]
        self.base = np.log([self._list.get(key, math.nan) for key in keys])
        """Logarithms of their list prices [n], estimated where none is listed; NaN where nothing is known."""
        self.listed = np.log([prices.on_demand.get(key, math.nan) for key in keys])
        """The same without the estimates."""
        floors = {name: one.spot_floor_share for name, one in load_providers().items()}
        shares = [floors.get(offer.provider) for offer in offers]
        self._has_floor = np.array([share is not None for share in shares])
        self.floor_share = np.array([USUAL_FLOOR if share is None else share for share in shares])
        """Of on-demand, below which no spot price falls [n]; the usual one where none is stated."""
        self._known_base = np.nan_to_num(self.base)
        self._kept: dict[object, tuple[int, Array] | None] = {}
        self._places: dict[object, Sequence[tuple[float, tuple[str, str]]]] = {}

    def floors(self, members: Sequence[int]) -> Array:
        """Logarithms of the least that a price may be [n]: of those offers whose provider states a floor."""
        least = np.full_like(self.base, -np.inf)
        least[members] = np.where(self._has_floor, np.log(self.floor_share) + self.base, -np.inf)[members]
        return np.nan_to_num(least, nan=-np.inf, neginf=-np.inf)

    def other_places(self, i: int) -> tuple[int, Array] | None:
        """How many other places of the i-th offer's machine have a price, and the quantiles of it [3].

        Logarithms of USD per hour; None where no other place has one.
        """
        offer = self.offers[i]
        key = offer.provider, offer.instance_type, offer.region, offer.zone
        if key not in self._kept:
            machine = offer.provider, offer.instance_type, math.isnan(self.base[i])
            if machine not in self._places:
                self._places[machine] = self.prices.places_of(offer, self._list)
            own = offer.region, offer.zone or ""
            logs = [log for log, place in self._places[machine] if place != own]
            self._kept[key] = (len(logs), _deciles(logs)) if logs else None
        ratios = self._kept[key]
        return ratios and (ratios[0], ratios[1] + self._known_base[i])


def _kind_of(offer: Offer, age_days: float, is_low: bool) -> QuoteKind:
    if offer.contracted_usd_per_h is not None or offer.effective_usd_per_h is not None:
        return QuoteKind.AGREED
    if offer.source.startswith(DERIVED):
        return QuoteKind.DERIVED
    if age_days < LIVE_DAYS:
        return QuoteKind.LIVE
    return QuoteKind.FLOOR if is_low and offer.market is Market.SPOT else QuoteKind.DATED


def _quotes(
    known: _Known,
    kinds: Sequence[QuoteKind],
    age_days: Array,
    quoted: Array,
    standing: NDArray[np.int64],
    model: PriceModel,
) -> Quotes:
    """Offers of one market at a time, since these have their drift in common, then those of one family.

    ``standing`` [n] is 0 for a quote at the provider's floor, 1 near it, 2 above.
    """
    offers = known.offers
    most = np.full_like(quoted, np.inf)
    weight, kept, down = np.ones_like(quoted), np.ones_like(quoted), np.zeros_like(quoted)
    up = np.zeros((1 + len(Price.RUN_DAYS), len(quoted)))
    unsure = [i for i, kind in enumerate(kinds) if kind is not QuoteKind.AGREED]
    for (provider, market), members in grouped(
        unsure, lambda i: (offers[i].provider, offers[i].market)
    ).items():
        drift, ages = model.drift_of(provider, market), age_days[members]
        down[members] = np.interp(ages, drift.age_days, drift.down)
        up[:, members] = [drift.up_over(ages, run_days) for run_days in (0.0, *Price.RUN_DAYS)]
        weight[members] = kept[members] = np.interp(ages, drift.age_days, drift.weight)
        if market == Market.SPOT:
            moves = [model.moves.get((provider, offers[i].gpu), 1.0) for i in members]
            down[members] *= moves
            up[:, members] *= moves
    for kind, members in grouped(unsure, lambda i: kinds[i]).items():
        weight[members] = np.minimum(weight[members], np.take(model.most_weights(kind), standing[members]))
    kept[standing == 0] = 1.0  # what says nothing is not set apart
    spot = [i for i in unsure if offers[i].market is Market.SPOT]
    most[spot] = np.nan_to_num(known.listed[spot], nan=np.inf)
    family = _families(known, spot, quoted, model)
    unsold = [i for i in spot if kinds[i] is QuoteKind.DERIVED and not standing[i] and not weight[i]]
    unsold = [i for i in unsold if math.isfinite(known.listed[i])]
    # Where the savings are the most there can be and say nothing, there is no demand. A family is of machines
    # that are sold. Of one that is not it gives the lower half: all that is known above is that spot never
    # costs more than on-demand.
    listed = known.listed[unsold]
    family[1:, unsold] = np.array([(family[1, unsold] + listed) / 2, listed])
    least, most = known.floors([i for i in spot if kinds[i] is not QuoteKind.LIVE]), np.maximum(most, quoted)
    return Quotes(
        quoted=quoted, family=family, weight=weight, kept=kept, down=down, up=up, least=least, most=most
    )


def _families(known: _Known, spot: Sequence[int], quoted: Array, model: PriceModel) -> Array:
    """Quantiles [3, n] of the spot prices that a price is shrunk towards; of other offers the quote itself.

    Those of the machine's other places, beside the record of its GPU or the offer's own history.
    """
    offers, family = known.offers, np.tile(quoted, (3, 1))
    for (provider, gpu), members in grouped(spot, lambda i: (offers[i].provider, offers[i].gpu)).items():
        if (ratio := model.ratio_of(provider, gpu)) is not None:
            logs, listed = np.log([[ratio.p10], [ratio.p50], [ratio.p90]]), known.base[members]
            # An unknown on-demand price makes the quote a lucky one.
            of_list = np.where(np.isnan(listed), quoted[members] - logs[0], listed)
            family[:, members] = logs + of_list
    for i, past in _histories(offers):
        family[:, i] = np.log((past.p10, past.p50, past.p90))
    for i in spot:
        if (others := known.other_places(i)) is not None:
            num_places, at = others
            share = num_places / (num_places + model.family_places)
            family[:, i] = share * at + (1 - share) * family[:, i]
    return family


def _histories(offers: Sequence[Offer]) -> Iterator[tuple[int, Interval]]:
    """Places of offers with quantiles of their own past, and these."""
    for i, offer in enumerate(offers):
        if offer.spot_usd_per_h is not None and offer.market is Market.SPOT:
            yield i, offer.spot_usd_per_h
