"""The history of prices, and doubts about them, from the database of the settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from advisor.cli.common import note
from advisor.core.units import DAY_S
from advisor.report.printing import Format, print_document
from advisor.service.live import current_answers, known_answers, moment_ago, now

if TYPE_CHECKING:
    from advisor.config.layers import Config
    from advisor.core.values import PricePoint
    from advisor.pricing.catalog.doubts import Finding


def show_history(config: Config, gpus: Sequence[str], since: str, *, plot: bool, output: Format) -> None:
    """Series of the GPUs asked for, or of all, as a table or a plot.

    Raises:
        InputError: ``since`` is no duration, a plot is wanted in another format, or nothing has a name.
        UnknownGpuError: a name that no GPU and no family has.
        NoOfferError: nothing is remembered of them.
        StoreError: the database cannot be read.
    """
    from advisor.cli.filters import Asked
    from advisor.core.errors import InputError, NoOfferError
    from advisor.core.units import parse_duration_s
    from advisor.pricing.refresh.price_history import series_of
    from advisor.report.history import history_document
    from advisor.service.offers import check_names, wanted_counts

    if plot and output is not Format.TABLE:
        raise InputError("--plot draws in the terminal: leave --format and --json out.")
    try:
        since_s = parse_duration_s(since)
    except ValueError as error:
        raise InputError(f"--since: {error}.") from error
    wanted = wanted_counts(gpus)
    points = _points(config, wanted, since_s)
    check_names(config, Asked(gpus=gpus, wanted=wanted), {point.region for point in points})
    series = series_of(points)
    if not series:
        raise NoOfferError(
            "no prices of these are remembered: `advisor prices refresh` pulls live ones and remembers them;"
            " a longer --since or other limits may show more."
        )
    print_document(history_document(series, now(), plot=plot), output)


def doubts(config: Config, gpus: Sequence[str]) -> tuple[Finding, ...]:
    """What looks wrong among the live prices, beside the snapshot and the history of 90 days.

    Raises:
        UnknownGpuError: a name that no GPU and no family has.
        NoOfferError: no live price is remembered.
        StoreError: the database cannot be read.
    """
    from advisor.cli.filters import Asked, is_wanted
    from advisor.core.errors import NoOfferError
    from advisor.pricing.catalog.doubts import findings
    from advisor.pricing.sources.query import OfferQuery
    from advisor.service.offers import check_names, wanted_counts

    cloud = config.settings.cloud
    wanted = wanted_counts(gpus)
    query = OfferQuery(
        providers=() if "*" in cloud.providers else cloud.providers,
        regions=cloud.regions,
        gpus=tuple(wanted),
    )
    check_names(config, Asked(gpus=gpus, wanted=wanted))
    answers = current_answers(config, query, may_refresh=False)
    live = [offer for answer in answers if answer.is_live for offer in answer.offers]
    dated = [offer for answer in answers if answer.source == "snapshot" for offer in answer.offers]
    if not live:
        raise NoOfferError("no live prices are remembered: `advisor prices refresh` pulls them.")
    kept = [o for o in live if query.matches(o) and is_wanted(wanted, o.gpu, o.num_gpus)]
    return findings(kept, dated, _points(config, wanted, 90 * DAY_S))


def _points(config: Config, wanted: Mapping[str, set[int]], since_s: float) -> tuple[PricePoint, ...]:
    from advisor.core.globs import is_any
    from advisor.pricing.refresh.price_history import seen_from
    from advisor.store.database import open_store
    from advisor.store.pulls import price_points

    cloud = config.settings.cloud
    start = moment_ago(since_s)
    store = open_store(config.settings.store.url, must_exist=True)
    if store is None:
        return ()
    with store:
        found = price_points(
            store,
            gpus=tuple(wanted),
            providers=() if "*" in cloud.providers else cloud.providers,
            markets=cloud.markets,
            since=start,
        )
    found = seen_from(found, start)
    return _of_counts(config, wanted, [point for point in found if is_any(cloud.regions, point.region)])


def _of_counts(
    config: Config, wanted: Mapping[str, set[int]], points: Sequence[PricePoint]
) -> tuple[PricePoint, ...]:
    """Points of machines of the sizes asked for; current offers tell the size, since the history does not."""
    if not any(wanted.values()):
        return tuple(points)
    from advisor.cli.filters import is_wanted
    from advisor.pricing.sources.query import OfferQuery

    answers = known_answers(config, OfferQuery(gpus=tuple(wanted)))
    machines = {
        (offer.provider, offer.instance_type): is_wanted(wanted, offer.gpu, offer.num_gpus)
        for answer in answers
        for offer in answer.offers
    }
    unknown = sorted({p.instance_type for p in points if (p.provider, p.instance_type) not in machines})
    if unknown:
        note(
            f"nobody offers {', '.join(unknown)} any more, so how many GPUs they have is not known: left out"
        )
    return tuple(point for point in points if machines.get((point.provider, point.instance_type)))
