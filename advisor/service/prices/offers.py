"""Settings and what is asked for -> offers, listed and sorted, and the history of their prices."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from advisor.config.layers import PricingSettings
from advisor.config.settings import CloudSettings
from advisor.core.errors import NoOfferError, StoreError
from advisor.core.findings import Finding, quoted
from advisor.core.findings.about_answers import OptInRegions
from advisor.core.globs import is_any, same_name
from advisor.core.gpus import load_gpus, parse_gpu_request
from advisor.core.limits import MAX_MEMORY_GIB, MAX_USD_PER_H, check_number
from advisor.core.units import DAY_S, GIB
from advisor.core.values import Offer, Price, PriceOrder, PricePoint
from advisor.pricing.answers import Answer, Offers, PricedOffer, cheapest_places
from advisor.pricing.contracts import contracted, idle_rules, in_force
from advisor.pricing.expected_prices import likely_prices
from advisor.pricing.instance_types import load_instances
from advisor.pricing.price_checks import DoubtfulPrice
from advisor.pricing.price_history import PriceSeries, seen_from, series_of
from advisor.pricing.providers import load_regions
from advisor.pricing.sources.protocol import OfferQuery
from advisor.pricing.sources.snapshot import shipped_prices
from advisor.service.listening import Listener
from advisor.service.prices import query_limits as limits
from advisor.service.prices.book import PriceBook
from advisor.service.prices.daily import current_answers
from advisor.service.prices.live import moment_ago, now
from advisor.service.prices.query_limits import OfferFilter, is_wanted
from advisor.store.database import existing_store


def is_open(cloud: CloudSettings, answers: Iterable[Answer] = ()) -> Callable[[Offer], bool]:
    """Whether an offer's region needs no enabling, is named by the user, or is enabled in the account.

    A cloud's own live source asks in regions that the account has enabled and in no others.

    Args:
        cloud: names regions, one by one or as enabled; a pattern such as ``eu-*`` names none.
    """
    closed = {region.name: region.provider for region in load_regions().values() if region.is_opt_in}
    enabled = {
        (place[0], place[1])
        for answer in answers
        if answer.is_live
        for place in answer.asked_at
        if same_name(answer.source, place[0])
    }

    def opens(offer: Offer) -> bool:
        return (
            closed.get(offer.region) != offer.provider
            or (offer.provider, offer.region) in enabled
            or is_any(cloud.opt_in_regions, offer.region)
            or any(same_name(name, offer.region) for name in cloud.regions)
        )

    return opens


def query_offers(
    book: PriceBook, asked: limits.OfferFilter, listener: Listener, *, to_rent: bool = False
) -> Offers:
    """Offers of the clouds in the settings, of the GPUs and counts asked for (``wanted_counts``) or of all.

    Prices are those of the organisation's contracts.

    Args:
        book: which clouds, regions and markets, and how old prices may be.
        to_rent: pull live prices first where they are due, and leave out regions that the account must enable
            first, with a warning.

    Raises:
        UnknownGpuError: a name that no GPU and no family has.
        InputError: a provider, a region or a number of GPUs that nothing has.
        NoOfferError: each of them exists, and no offer is within all; says which limit has to give way.
        StaleCatalogError: prices older than ``prices.max_age``.
    """
    from advisor.service.prices.daily import current_answers

    cloud = book.settings.cloud
    query = OfferQuery(
        providers=book.providers,
        regions=cloud.regions,
        gpus=tuple(asked.wanted),
        markets=cloud.markets,
        max_usd_per_h=asked.max_usd_per_h,
    )
    answers = current_answers(book, query, listener, may_refresh=to_rent)
    if query.providers:
        limits.check_providers(
            book.settings, {provider for answer in answers for provider in answer.providers}, listener
        )
    offers = _at_own_prices(book, query, answers, max_age_s=book.settings.prices.max_age)
    small = [o for o in offers.offers if asked.max_gpus is None or o.num_gpus <= asked.max_gpus]
    counts = asked.node_counts(small)
    kept = tuple(o for o in small if counts.of(o) and all(floor.keeps(o) for floor in asked.floors))
    closed: tuple[Finding, ...] = ()
    if to_rent:
        asked = replace(asked, opens=is_open(cloud, answers))
        kept, closed = _only_open(kept, asked)
    _check_against_all(book, asked, kept, listener)
    idle = map(quoted, idle_in_words(book, answers))
    return replace(offers, offers=kept, warnings=(*offers.warnings, *closed, *idle))


def _only_open(
    offers: Sequence[Offer], asked: limits.OfferFilter
) -> tuple[tuple[Offer, ...], tuple[Finding, ...]]:
    kept = tuple(offer for offer in offers if asked.opens is None or asked.opens(offer))
    if len(kept) == len(offers):
        return kept, ()
    regions = sorted({offer.region for offer in offers} - {offer.region for offer in kept})
    return kept, (OptInRegions(num_offers=len(offers) - len(kept), regions=regions),)


def _at_own_prices(
    book: PriceBook, query: OfferQuery, answers: Sequence[Answer], *, max_age_s: float | None
) -> Offers:
    """What the answers hold for a query, at contracted prices; a warning for contracts that have ended."""
    from advisor.pricing.answers import load_offers

    rules, ended = in_force(book.settings.contracts, now().date())
    answers = [replace(answer, offers=contracted(answer.offers, rules)) for answer in answers]
    fresh_s = book.settings.prices.refresh_after
    offers = load_offers(query, now=now(), max_age_s=max_age_s, fresh_s=fresh_s, answers=answers)
    return replace(offers, warnings=(*offers.warnings, *map(quoted, ended)))


def prices_of(offers: Sequence[Offer]) -> tuple[Price, ...]:
    """What an hour of each offer will cost now, by the shipped record of prices.

    Raises CatalogError: a shipped file is missing or broken.
    """
    shipped = shipped_prices()
    return likely_prices(offers, now=now(), on_demand=shipped.on_demand, spot=shipped.spot)


def _check_against_all(
    book: PriceBook, asked: limits.OfferFilter, kept: Sequence[Offer], listener: Listener
) -> None:
    """Refuse what no offer has at all, and say why none is left; all are read only where one may miss."""

    @cache
    def everything() -> tuple[Offer, ...]:
        query = OfferQuery()
        return _at_own_prices(book, query, book.known(query), max_age_s=None).offers

    limits.check_regions(
        book.settings, lambda: (o.region for o in everything()), listener, {offer.region for offer in kept}
    )
    limits.check_counts(asked, everything, kept)
    if not kept:
        raise limits.nothing_left(book.settings, asked, everything(), listener)


def check_names(
    book: PriceBook, asked: limits.OfferFilter, listener: Listener, regions: Collection[str] = ()
) -> None:
    """Refuse what nothing has, for who looks at other prices than the current ones.

    Args:
        regions: at hand, which need no other proof.

    Raises:
        InputError: a provider, a region or a number of GPUs that nothing has.
        AdvisorError: as ``PriceBook.known``.
    """

    @cache
    def answers() -> Sequence[Answer]:
        return book.known(OfferQuery())

    def offers() -> Iterator[Offer]:
        return (offer for answer in answers() for offer in answer.offers)

    if book.providers:
        known = {provider for answer in answers() for provider in answer.providers}
        limits.check_providers(book.settings, known, listener)
    limits.check_regions(book.settings, lambda: (offer.region for offer in offers()), listener, regions)
    limits.check_counts(asked, offers)


def idle_in_words(book: PriceBook, answers: Sequence[Answer] = ()) -> list[str]:
    """A line for each contract and quota of the settings that is about nothing that is for rent.

    Args:
        book: the rules, and which sources there are.
        answers: what was asked for; what else is known is looked at only for rules that it does not match.

    Raises:
        ConfigError: a source that the settings name is not there or refuses its options.
        CatalogError: the data of a source cannot be read.
    """
    current, _ = in_force(book.settings.contracts, now().date())
    rules = {
        f"contracts, entry {number}": rule
        for number, rule in enumerate(book.settings.contracts, start=1)
        if rule in current
    } | {f"quotas, entry {number}": rule for number, rule in enumerate(book.settings.quotas, start=1)}

    def idle(answers: Sequence[Answer]) -> list[str]:
        return idle_rules(rules, (offer for answer in answers for offer in answer.offers))

    try:
        return idle(book.known(OfferQuery())) if idle(answers) else []
    except StoreError:  # reported where prices were asked for; without them it is unknown
        return []


def wanted_counts(texts: Sequence[str], listener: Listener) -> dict[str, set[int]]:
    """GPU name -> counts asked for (empty: any) of texts such as ``A100:1..8``; families are noted."""
    wanted: dict[str, set[int]] = {}
    for request in map(parse_gpu_request, texts):
        if len(request.gpus) > 1:
            listener.note(f"{request.text!r} means {', '.join(spec.name for spec in request.gpus)}")
        for spec in request.gpus:
            wanted.setdefault(spec.name, set()).update(request.counts)
    return wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class PricesRequest:
    """Which offers to list, within the clouds, regions and markets of the settings."""

    gpus: tuple[str, ...] = ()
    """GPUs or families with counts, such as ``A100:8``; none for any."""
    max_usd_per_h: float | None = None
    """Of the whole machine."""
    min_memory_gib: float | None = None
    """Of one GPU."""
    min_vcpus: int | None = None
    """Of the whole machine."""
    min_host_memory_gib: float | None = None
    """Of the whole machine, beside its GPUs."""
    order: PriceOrder = PriceOrder.PRICE
    every_zone: bool = False
    """Also zones that cost more than the cheapest of their region."""


def list_prices(request: PricesRequest, pricing: PricingSettings, listener: Listener) -> Offers:
    """Offers at the prices of the organisation's contracts, sorted, with warnings about them.

    Raises:
        InputError: a provider, a region or a number of GPUs that nothing has.
        UnknownGpuError: a name that no GPU and no family has.
        NoOfferError: no offer is within all limits; says which has to give way.
        StaleCatalogError: prices older than ``prices.max_age``.
    """
    from advisor.service.prices.daily import pull_due

    most = request.max_usd_per_h
    if most is not None:
        check_number(listener.name_of("max_usd_per_h"), most, above=0, most=MAX_USD_PER_H)
    asked = limits.OfferFilter(
        gpus=request.gpus,
        wanted=wanted_counts(request.gpus, listener),
        max_usd_per_h=most,
        floors=tuple(_floors(request, listener)),
    )
    book = PriceBook(settings=pricing)
    pull_due(book, listener)
    answer = query_offers(book, asked, listener)
    priced = list(zip(answer.offers, prices_of(answer.offers), strict=True))
    shown = _sorted(priced if request.every_zone else cheapest_places(priced), request.order)
    return replace(
        answer, offers=tuple(offer for offer, _ in shown), prices=tuple(price for _, price in shown)
    )


def _floors(request: PricesRequest, listener: Listener) -> Iterator[limits.Floor]:
    gpus, machines = load_gpus(), load_instances()

    def gpu_gib(offer: Offer) -> float | None:
        return gpus[offer.gpu].memory_bytes / GIB if offer.gpu in gpus else None

    def host_gib(offer: Offer) -> float | None:
        machine = machines.get((offer.provider, offer.instance_type))
        return None if machine is None or machine.memory_bytes is None else machine.memory_bytes / GIB

    of: dict[str, Callable[[Offer], float | None]] = {
        "min_memory_gib": gpu_gib,
        "min_vcpus": lambda offer: offer.num_vcpus,
        "min_host_memory_gib": host_gib,
    }
    for argument, has in of.items():
        least = getattr(request, argument)
        if least is not None:
            check_number(listener.name_of(argument), least, least=0, most=MAX_MEMORY_GIB)
            yield limits.Floor(argument=argument, least=least, of=has)


def _sorted(priced: Iterable[PricedOffer], order: PriceOrder) -> list[PricedOffer]:
    def key(one: PricedOffer) -> tuple[object, ...]:
        offer, price = one
        place = (offer.provider, offer.region, offer.zone or "", offer.instance_type)
        first: dict[PriceOrder, tuple[object, ...]] = {
            PriceOrder.PRICE: (),
            PriceOrder.GPU_PRICE: (price.counted_usd_per_h / offer.num_gpus,),
            PriceOrder.AGE: (-offer.retrieved_at.timestamp(),),
            PriceOrder.PLACE: place,
        }
        return (*first[order], price.counted_usd_per_h, *place)

    return sorted(priced, key=key)


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
