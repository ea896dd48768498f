"""Facts that only the user knows and nobody gave, where one would change the advice."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from advisor.core.findings import Code
from advisor.core.units import HOUR_S, MINUTE_S
from advisor.core.values import Job, Means, Option, Quantiles
from recommender.ranking.tip import Tip, tip_of
from recommender.ranking.value import Worth, least_total, total_usd

# A deadline is named where this part of those between the median time and the p90 leads to one other option.
LEAST_OF_DEADLINES = 0.5
# The odds that a p90 has. With others a deadline is not held by it.
_CONFIDENCE_OF_P90 = 0.9


def by_deadline(
    options: Sequence[Option], rivals: Sequence[Option], chosen: Option, job: Job
) -> Iterator[Tip]:
    """A deadline between the median time, which reads as if it would do, and the p90, from which on it does.

    What is recommended within a deadline is the best of what is done by then at p90. So on the way down from
    the chosen one's p90 one option follows the other. The one that holds for most of the way is named.

    Args:
        options: that are preferred less, the most preferred first.
        rivals: those of them that may be named.
        chosen: what is recommended without a deadline.
        job: with its limits.
    """
    range_s = chosen.time_s.p90 - chosen.time_s.p50
    if job.deadline_s is not None or job.confidence != _CONFIDENCE_OF_P90 or range_s <= 0:
        return
    may_be_named = {option.plan.id for option in rivals}
    spans = [
        (slower.time_s.p90 - max(then.time_s.p90, chosen.time_s.p50), then, slower.time_s.p90)
        for slower, then in pairwise(_ever_faster(options, chosen))
        if then.plan.id in may_be_named
    ]
    if not spans:
        return
    span_s, then, below_s = max(spans, key=lambda span: span[0])
    if span_s >= LEAST_OF_DEADLINES * range_s:
        yield Tip(spared=1 - span_s / range_s, fact=tip_of(Code.TIPPED_BY_DEADLINE, then, below_s=below_s))


def by_later_deadline(late: Sequence[Option], chosen: Option, job: Job, worth: Worth) -> Iterator[Tip]:
    """A deadline up to twice as late, from which on what misses the given one alone would be recommended.

    Args:
        late: options that nothing but the deadline removes.
        chosen: what is recommended within the deadline.
        job: with its limits.
        worth: what counts besides the bill.
    """
    if job.deadline_s is None or job.confidence != _CONFIDENCE_OF_P90:
        return
    in_reach = [option for option in late if option.time_s.p90 <= 2 * job.deadline_s]
    if not in_reach:
        return
    best = least_total(in_reach, worth)
    if total_usd(best, worth) < total_usd(chosen, worth):
        # To the minute, and never too early.
        from_s = math.ceil(best.time_s.p90 / MINUTE_S) * MINUTE_S
        spared = best.time_s.p90 / job.deadline_s - 1
        yield Tip(spared=spared, fact=tip_of(Code.TIPPED_BY_LATER_DEADLINE, best, from_s=from_s))


def _ever_faster(options: Sequence[Option], chosen: Option) -> Iterator[Option]:
    """The chosen one, and behind it each that is done earlier at p90 than all before it."""
    done_s = chosen.time_s.p90
    yield chosen
    for option in options:
        if option.time_s.p90 < done_s:
            done_s = option.time_s.p90
            yield option


def by_data_place(options: Sequence[Option], chosen: Option, job: Job, worth: Worth) -> Iterator[Tip]:
    """A region of a cloud: if the data lies there, it need not be copied to that region's machines.

    What the data's cloud asks for letting it go elsewhere is left out: it would speak for the same region.
    """
    if job.data is None or job.data.place is not None:
        return
    beside = [_beside_data(option) for option in options if option.plan.offer is not None]
    if not beside:
        return
    best = least_total(beside, worth)
    offer = best.plan.offer
    if offer is not None and total_usd(best, worth) < total_usd(chosen, worth):
        place = {"data_provider": offer.provider, "data_region": offer.region}
        # Nobody said anything of it, so that no part of its range is likelier than another.
        yield Tip(spared=0.0, fact=tip_of(Code.TIPPED_BY_DATA_PLACE, best, **place))


def _beside_data(option: Option) -> Option:
    """The option without the time and the rent of copying the data."""
    copying_s, expected = option.plan.download_s, option.expected
    usd = (option.plan.usd_per_h or 0.0) * copying_s / HOUR_S
    time_s, cost_usd = option.time_s, option.cost_usd
    return replace(
        option,
        time_s=Quantiles(p50=time_s.p50 - copying_s, p90=time_s.p90 - copying_s),
        cost_usd=Quantiles(p50=cost_usd.p50 - usd, p90=cost_usd.p90 - usd),
        expected=Means(
            wait_s=expected.wait_s,
            time_s=expected.time_s - copying_s,
            cost_usd=expected.cost_usd - usd,
            counted_usd=expected.counted_usd - usd,
        ),
    )
