"""Which one fact would change the advice, worked out from the chosen option and those it goes before.

Each fact that is unsure (a price, a wait, the time of a step) is moved from its expectation to its p90, all
else as expected. It tips the choice if another row goes before the chosen one on the way there. Facts that
only the user knows (``unsaid``) have a range as well. Of several the one that tips the choice on most of its
range is named; where none does, the worth of an hour that does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from advisor.core.findings import Code, Finding, finding
from advisor.core.units import HOUR_S
from advisor.core.values import Job, Option, PickName
from recommender.outcome.rent import price_rise
from recommender.ranking.tip import Tip, tip_of
from recommender.ranking.unsaid import by_data_place, by_deadline, by_later_deadline
from recommender.ranking.value import (
    Worth,
    even_usd_per_h,
    is_guess,
    least_total,
    preference,
    total_usd,
    worth_for,
)

# Parts of a bill that do not follow the price of the machine.
_NOT_RENT = ("storage", "data transfer", "moving the data")


def what_tips(options: Sequence[Option], chosen: Option, job: Job, late: Sequence[Option] = ()) -> Finding:
    """The fact that would change the advice.

    Args:
        options: feasible ones, folded; the same GPUs elsewhere would not change much.
        chosen: what is recommended.
        job: with what an hour is worth.
        late: options that nothing but the deadline removes.
    """
    worth = worth_for(job)
    ending = sorted(
        (option for option in options if option is not chosen and _ends(option)),
        key=lambda option: preference(option, worth),
    )
    rivals = [option for option in ending if not _is_spoken_for(option, chosen)]
    is_best_value = job.pick in (None, PickName.BEST_VALUE)
    later = list(by_later_deadline(list(filter(_ends, late)), chosen, job, worth)) if is_best_value else []
    if not rivals or not _ends(chosen):
        return later[0].fact if later else finding(Code.NOTHING_TIPS)
    if not is_best_value:
        best = least_total([chosen, *rivals], worth)
        return finding(Code.NOTHING_TIPS) if best is chosen else tip_of(Code.TIPPED_BY_OBJECTIVE, best)
    tips = [
        *_tips(rivals, chosen, worth),
        *by_deadline(ending, rivals, chosen, job),
        *by_data_place(ending, chosen, job, worth),
        *later,
    ]
    tips = [tip for tip in tips if tip.spared <= 1]
    if tips:
        return min(tips, key=lambda tip: tip.spared).fact
    return _by_value(rivals, chosen, worth)


def _is_spoken_for(option: Option, chosen: Option) -> bool:
    """Folded into the chosen row, and of its GPUs: what changes that row changes this one alike."""
    same = _gpus(option) == _gpus(chosen)
    return option.folded_into == chosen.plan.id and same


def _gpus(option: Option) -> str:
    return option.plan.layout.of(option.plan.gpu)


def _ends(option: Option) -> bool:
    """In every draw, so that it has a total."""
    return math.isfinite(option.expected.time_s) and math.isfinite(option.expected.cost_usd)


def _tips(rivals: Sequence[Option], chosen: Option, worth: Worth) -> Iterator[Tip]:
    next_best = least_total(rivals, worth)
    yield from _by_price(next_best, chosen, worth)
    yield from _by_quote(rivals, chosen, worth)
    yield from _by_wait(next_best, chosen, worth)
    yield from _by_step(rivals, chosen, worth)


def _gap_usd(rival: Option, chosen: Option, worth: Worth) -> float:
    return total_usd(rival, worth) - total_usd(chosen, worth)


def _by_price(rival: Option, chosen: Option, worth: Worth) -> Iterator[Tip]:
    """Its rent may rise; where nobody quoted it, the p90 counts already."""
    rent_usd, rise = _rent_usd(chosen), price_rise(chosen.plan, chosen.expected.run_days)
    if is_guess(chosen) or rise <= 1 or rent_usd <= 0:
        return
    gap_usd = _gap_usd(rival, chosen, worth)
    usd_per_h = (chosen.plan.usd_per_h or 0.0) * (1 + gap_usd / rent_usd)
    way = gap_usd / (rent_usd * (rise - 1))
    yield Tip(spared=way, fact=tip_of(Code.TIPPED_BY_PRICE, rival, usd_per_h=usd_per_h))


def _by_quote(rivals: Sequence[Option], chosen: Option, worth: Worth) -> Iterator[Tip]:
    """A rival that counts at its p90 may be quoted lower."""
    ways = [
        (_gap_usd(rival, chosen, worth) / less_usd, rival)
        for rival in filter(is_guess, rivals)
        if (less_usd := _counted_more_usd(rival)) > 0 and _rent_usd(rival) > 0
    ]
    if not ways:
        return
    way, rival = min(ways, key=lambda item: (item[0], item[1].plan.id))
    more = (1 - way) * _counted_more_usd(rival) / _rent_usd(rival)
    usd_per_h = (rival.plan.usd_per_h or 0.0) * (1 + more)
    yield Tip(spared=way, fact=tip_of(Code.TIPPED_BY_QUOTE, rival, usd_per_h=usd_per_h))


def _counted_more_usd(option: Option) -> float:
    """By how much its cost counts above what is expected."""
    return option.expected.counted_usd - option.expected.cost_usd


def _by_wait(rival: Option, chosen: Option, worth: Worth) -> Iterator[Tip]:
    """An unknown wait counts as nothing: it may well be as long as the job."""
    wait_s, expected = chosen.wait_s, chosen.expected
    longer_s = expected.time_s if wait_s is None else wait_s.p90 - expected.wait_s
    if longer_s <= 0:
        return
    more_s = _gap_usd(rival, chosen, worth) / worth.hour_usd * HOUR_S
    fact = tip_of(Code.TIPPED_BY_WAIT, rival, wait_s=expected.wait_s + more_s, is_known=wait_s is not None)
    yield Tip(spared=more_s / longer_s, fact=fact)


def _by_step(rivals: Sequence[Option], chosen: Option, worth: Worth) -> Iterator[Tip]:
    """What is wrong in a prediction is wrong wherever that GPU is."""
    others = [rival for rival in rivals if rival.plan.gpu != chosen.plan.gpu]
    step_s, expected = chosen.estimate.iteration_s, chosen.expected
    rise = step_s.p90 / step_s.p50 - 1
    train_s = expected.time_s - expected.wait_s - chosen.plan.startup_s
    run_s = train_s + chosen.plan.startup_s
    if not others or rise <= 0 or run_s <= 0:
        return
    longer_usd = worth.hour_usd * train_s / HOUR_S + _rent_usd(chosen) * train_s / run_s
    rival = least_total(others, worth)
    share = _gap_usd(rival, chosen, worth) / longer_usd
    yield Tip(
        spared=share / rise,
        fact=tip_of(Code.TIPPED_BY_STEP, rival, step_s=step_s.p50 * (1 + share), expected_s=step_s.p50),
    )


def _rent_usd(option: Option) -> float:
    others = sum(option.cost_breakdown_usd.get(name, 0.0) for name in _NOT_RENT)
    return option.cost_usd.p50 - others


def _by_value(rivals: Iterable[Option], chosen: Option, worth: Worth) -> Finding:
    """The worth of an hour at which another goes before, the nearest to today's in ratio."""
    tips = [
        (abs(math.log(usd_per_h / worth.hour_usd)), usd_per_h, rival)
        for rival in rivals
        if (usd_per_h := even_usd_per_h(rival, chosen, worth)) > 0
    ]
    if not tips:
        return finding(Code.NOTHING_TIPS)
    _, usd_per_h, rival = min(tips, key=lambda tip: (tip[0], tip[2].plan.id))
    is_above = usd_per_h > worth.hour_usd
    return tip_of(Code.TIPPED_BY_VALUE, rival, value_usd_per_h=usd_per_h, is_above=is_above)
