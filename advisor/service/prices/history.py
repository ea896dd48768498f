"""The history of prices, and doubts about them, from the database of the settings."""

from collections.abc import Mapping, Sequence

from advisor.config.layers import PricingSettings
from advisor.core.errors import NoOfferError
from advisor.core.globs import is_any
from advisor.core.units import DAY_S
from advisor.core.values import PricePoint
from advisor.pricing.price_checks import DoubtfulPrice
from advisor.pricing.price_history import PriceSeries, seen_from, series_of
from advisor.pricing.sources.protocol import OfferQuery
from advisor.service.listening import Listener
from advisor.service.prices.book import PriceBook
from advisor.service.prices.daily import current_answers
from advisor.service.prices.live import moment_ago
from advisor.service.prices.offers import check_names, wanted_counts
from advisor.service.prices.query_limits import OfferFilter, is_wanted
from advisor.store.database import existing_store

# Prices are doubted beside those of so long.
DOUBTED_S = 90 * DAY_S


def price_history(
    gpus: Sequence[str], since_s: float, pricing: PricingSettings, listener: Listener
) -> tuple[PriceSeries, ...]:
    """How prices of these GPUs changed, each source, machine and place by itself.

    Raises:
        InputError: nothing has a name that is asked for.
        UnknownGpuError: a name that no GPU and no family has.
        NoOfferError: nothing is remembered of them.
    """
    book = PriceBook(settings=pricing)
    wanted = wanted_counts(gpus, listener)
    points = _points(book, wanted, since_s, listener)
    asked = OfferFilter(gpus=gpus, wanted=wanted)
    check_names(book, asked, listener, {point.region for point in points})
    series = series_of(points)
    if not series:
        raise NoOfferError(
            "no prices of these are remembered: `advisor prices refresh` pulls live ones and remembers them;"
            f" a longer {listener.name_of('since')} or other limits may show more."
        )
    return tuple(series)


def doubtful_prices(
    gpus: Sequence[str], pricing: PricingSettings, listener: Listener
) -> tuple[DoubtfulPrice, ...]:
    """What looks wrong among the live prices, beside the snapshot and the history of 90 days.

    Raises:
        UnknownGpuError: a name that no GPU and no family has.
        NoOfferError: no live price is remembered.
    """
    from advisor.pricing.price_checks import doubtful_prices

    book = PriceBook(settings=pricing)
    wanted = wanted_counts(gpus, listener)
    query = OfferQuery(providers=book.providers, regions=pricing.cloud.regions, gpus=tuple(wanted))
    check_names(book, OfferFilter(gpus=gpus, wanted=wanted), listener)
    answers = current_answers(book, query, listener, may_refresh=False)
    live = [offer for answer in answers if answer.is_live for offer in answer.offers]
    dated = [offer for answer in answers if answer.source == "snapshot" for offer in answer.offers]
    if not live:
        raise NoOfferError("no live prices are remembered: `advisor prices refresh` pulls them.")
    kept = [o for o in live if query.matches(o) and is_wanted(wanted, o.gpu, o.num_gpus)]
    return doubtful_prices(kept, dated, _points(book, wanted, DOUBTED_S, listener))


def _points(
    book: PriceBook, wanted: Mapping[str, set[int]], since_s: float, listener: Listener
) -> tuple[PricePoint, ...]:
    from advisor.store.pulls import price_points

    cloud = book.settings.cloud
    start = moment_ago(since_s)
    with existing_store(book.settings.store.url) as store:
        if store is None:
            return ()
        points = price_points(
            store, gpus=tuple(wanted), providers=book.providers, markets=cloud.markets, since=start
        )
    points = seen_from(points, start)
    there = [point for point in points if is_any(cloud.regions, point.region)]
    return _of_counts(book, wanted, there, listener)


def _of_counts(
    book: PriceBook, wanted: Mapping[str, set[int]], points: Sequence[PricePoint], listener: Listener
) -> tuple[PricePoint, ...]:
    """Points of machines of the sizes asked for; current offers tell the size, since the history does not."""
    if not any(wanted.values()):
        return tuple(points)
    answers = book.known(OfferQuery(gpus=tuple(wanted)))
    machines = {
        (offer.provider, offer.instance_type): is_wanted(wanted, offer.gpu, offer.num_gpus)
        for answer in answers
        for offer in answer.offers
    }
    unknown = sorted({p.instance_type for p in points if (p.provider, p.instance_type) not in machines})
    if unknown:
        listener.note(f"{', '.join(unknown)}: no longer offered, so the number of GPUs is unknown: left out")
    return tuple(point for point in points if machines.get((point.provider, point.instance_type)))
