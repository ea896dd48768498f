"""The answer in three findings: what to take, what it takes, and which fact would change either."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import PurePath
from typing import Any

from advisor.core.findings import Finding, Removal, about_answers
from advisor.core.findings.about_options import RestartsFromZero
from advisor.core.units import HOUR_S, MINUTE_S
from advisor.core.values import CheckpointUse, Job, Option, PickName, Quantiles, Script
from recommender.outcome.bill import MOVING, RESULT, STORAGE, is_guessed, price_rise
from recommender.outcome.evaluate import Judged
from recommender.ranking import value
from recommender.ranking.checkpoint_ways import if_it_resumed, if_it_saved_none, use_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Tip:
    """What to say of a fact, and which part of its range leaves the choice as it is.

    A price may be anything from what is expected to its p90, say: where the last quarter of that way changes
    the choice, ``spared`` is 0.75. Above 1 nothing within the range changes it.
    """

    spared: float
    fact: Finding


def tip_of(by: about_answers.TippedBy, instead: Option, **facts: Any) -> about_answers.Tipping:
    """The fact, and the median time and cost of what would be recommended."""
    usd = None if instead.plan.usd_per_h is None else instead.cost_usd.p50
    return about_answers.Tipping(
        by=by,
        instead=machine(instead),
        time_s=instead.time_s.p50,
        cost_usd=usd,
        work=list(instead.work),
        **facts,
    )


def machine(option: Option) -> Finding:
    """What an option is, for a sentence about it."""
    plan, offer = option.plan, option.plan.offer
    return about_answers.Machine(
        plan_id=plan.id,
        gpu=plan.gpu,
        num_gpus=plan.num_gpus,
        num_nodes=plan.num_nodes,
        tier=plan.tier,
        provider=plan.provider,
        instance_type=None if offer is None else offer.instance_type,
        place=None if offer is None else offer.place,
        market=None if offer is None else offer.market,
    )


def why_removed(option: Option) -> Finding:
    """The first reason that removes it, of an option that is not feasible."""
    return next(reason for reason in option.reasons if isinstance(reason, Removal))


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
    """
    range_s = chosen.time_s.p90 - chosen.time_s.p50
    if job.deadline_s is not None or job.confidence != _CONFIDENCE_OF_P90 or range_s <= 0:
        return
    may_be_named = {option.plan.id for option in rivals}
    ever_faster = [chosen]
    for option in options:
        if option.time_s.p90 < ever_faster[-1].time_s.p90:
            ever_faster.append(option)
    spans = [
        (slower.time_s.p90 - max(then.time_s.p90, chosen.time_s.p50), then, slower.time_s.p90)
        for slower, then in pairwise(ever_faster)
        if then.plan.id in may_be_named
    ]
    if not spans:
        return
    span_s, then, below_s = max(spans, key=lambda span: span[0])
    if span_s >= LEAST_OF_DEADLINES * range_s:
        yield Tip(spared=1 - span_s / range_s, fact=tip_of("deadline", then, limit_s=below_s))


def by_later_deadline(late: Sequence[Option], chosen: Option, job: Job, worth: value.Worth) -> Iterator[Tip]:
    """A deadline up to twice as late, from which on what misses the given one alone is recommended."""
    if job.deadline_s is None or job.confidence != _CONFIDENCE_OF_P90:
        return
    in_reach = [option for option in late if option.time_s.p90 <= 2 * job.deadline_s]
    if not in_reach:
        return
    best = value.least_total(in_reach, worth)
    if value.total_usd(best, worth) < value.total_usd(chosen, worth):
        # To the minute, and never too early.
        from_s = math.ceil(best.time_s.p90 / MINUTE_S) * MINUTE_S
        spared = best.time_s.p90 / job.deadline_s - 1
        yield Tip(spared=spared, fact=tip_of("later-deadline", best, limit_s=from_s))


# Odds of one in ten that a script's text was misread, as those of a p90.
_SPARED_BY_TEXT = 0.9


def by_checkpoints(judged: Sequence[Judged], chosen: Option, job: Job, script: Script) -> Iterator[Tip]:
    """What the script does with checkpoints: it is unknown, or its text shows it and could be misread."""
    use = use_of(script)
    if use is CheckpointUse.RESUMES or script.is_checkpoint_use_given or job.pick is not None:
        return
    if use is None:
        options = [way for item in judged for way in if_it_saved_none(item)]
    else:
        options = [if_it_resumed(item) for item in judged]
    then = value.least_total(options, value.worth_for(job)) if options else chosen
    if then.plan.id != chosen.plan.id:
        fact = tip_of("checkpoints", then, script=PurePath(script.name).name, is_known=use is not None)
        yield Tip(spared=0.0 if use is None else _SPARED_BY_TEXT, fact=fact)


def by_data_place(options: Sequence[Option], chosen: Option, job: Job, worth: value.Worth) -> Iterator[Tip]:
    """A region of a cloud: if the data lies there, it need not be copied to that region's machines.

    What the data's cloud asks for letting it go elsewhere is left out: it would speak for the same region.
    """
    if job.data is None or job.data.place is not None:
        return
    beside = [_beside_data(option) for option in options if option.plan.offer is not None]
    if not beside:
        return
    best = value.least_total(beside, worth)
    offer = best.plan.offer
    if offer is not None and value.total_usd(best, worth) < value.total_usd(chosen, worth):
        place = {"data_provider": offer.provider, "data_region": offer.region}
        # Nothing is known of it, so that no part of its range is likelier than another.
        yield Tip(spared=0.0, fact=tip_of("data-place", best, **place))


def _beside_data(option: Option) -> Option:
    """The option without the time and the rent of copying the data."""
    copying_s, expected = option.plan.download_s, option.expected
    usd = (option.plan.usd_per_h or 0.0) * copying_s / HOUR_S
    time_s, cost_usd = option.time_s, option.cost_usd
    means = {"time_s": copying_s, "cost_usd": usd, "counted_usd": usd}
    return replace(
        option,
        time_s=Quantiles(p50=time_s.p50 - copying_s, p90=time_s.p90 - copying_s),
        cost_usd=Quantiles(p50=cost_usd.p50 - usd, p90=cost_usd.p90 - usd),
        expected=replace(expected, **{name: getattr(expected, name) - less for name, less in means.items()}),
    )


# Each fact that is unsure (a price, a wait, the time of a step) is moved from its expectation to its p90,
# all else as expected. It tips the choice if another row goes before the chosen one on the way there. Facts
# that only the user knows (``unsaid``) have a range as well. Of several the one that tips the choice on
# most of its range is named; where none does, the worth of an hour that does.


def what_tips(
    options: Sequence[Option],
    chosen: Option,
    job: Job,
    late: Sequence[Option] = (),
    others: Iterable[Tip] = (),
    ways: Iterable[Option] = (),
) -> Finding | None:
    """The fact that would change the advice.

    Args:
        options: feasible ones, folded; the same GPUs elsewhere would not change much.
        late: options that nothing but the deadline removes.
        others: tips that follow from more than the options, such as what the script does.
        ways: the other way of each plan, taken where a deadline leaves no time for the option's.
    """
    worth = value.worth_for(job)
    ending = sorted(
        (option for option in options if option is not chosen and _ends(option)),
        key=lambda option: value.preference(option, worth),
    )
    # Folded into the chosen row, and of its GPUs: what changes that row changes them alike.
    alike = {o.plan.id for o in ending if o.folded_into == chosen.plan.id and o.plan.gpus == chosen.plan.gpus}
    rivals = [option for option in ending if option.plan.id not in alike]
    is_best_value = job.pick in (None, PickName.BEST_VALUE)
    # Where an hour is worth nothing, medians of cost decide and no totals.
    decides = is_best_value and worth.hour_usd > 0
    later = list(by_later_deadline(list(filter(_ends, late)), chosen, job, worth)) if decides else []
    if not rivals or not _ends(chosen):
        return later[0].fact if later else None
    if not is_best_value:
        best = value.least_total([chosen, *rivals], worth)
        return None if best is chosen else tip_of("objective", best)
    if not decides:
        return _by_value(rivals, chosen, worth)
    next_best = value.least_total(rivals, worth)
    tips = [
        *others,
        *_by_price(next_best, chosen, worth),
        *_by_quote(rivals, chosen, worth),
        *_by_wait(next_best, chosen, worth),
        *_by_step(rivals, chosen, worth),
        *by_deadline(sorted([*ending, *ways], key=lambda o: value.preference(o, worth)), rivals, chosen, job),
        *by_data_place(ending, chosen, job, worth),
        *later,
    ]
    best_tip = min(tips, key=lambda tip: tip.spared, default=None)
    if best_tip is not None and best_tip.spared <= 1:
        return best_tip.fact
    return _by_value(rivals, chosen, worth)


def _ends(option: Option) -> bool:
    """In every draw, so that it has a total."""
    return math.isfinite(option.expected.time_s) and math.isfinite(option.expected.cost_usd)


def _gap_usd(rival: Option, chosen: Option, worth: value.Worth) -> float:
    return value.total_usd(rival, worth) - value.total_usd(chosen, worth)


def _by_price(rival: Option, chosen: Option, worth: value.Worth) -> Iterator[Tip]:
    """Its rent may rise; where it was not quoted, the p90 counts already."""
    # Its mean: with preemptions a run may be billed for far longer than the median one.
    rent_usd = _rent_usd(chosen) + chosen.expected.cost_usd - chosen.cost_usd.p50
    # Other zones and on demand have prices of their own.
    rent_usd *= chosen.expected.own_share
    rise = price_rise(chosen.plan, chosen.expected.run_days)
    if is_guessed(chosen.plan) or rise <= 1 or rent_usd <= 0:
        return
    gap_usd = _gap_usd(rival, chosen, worth)
    now_usd_per_h = chosen.plan.usd_per_h or 0.0
    usd_per_h = now_usd_per_h * (1 + gap_usd / rent_usd)
    way = gap_usd / (rent_usd * (rise - 1))
    yield Tip(spared=way, fact=tip_of("price", rival, usd_per_h=usd_per_h, quoted_usd_per_h=now_usd_per_h))


def _by_quote(rivals: Sequence[Option], chosen: Option, worth: value.Worth) -> Iterator[Tip]:
    """A rival that counts at its p90 may be quoted lower."""
    ways = [
        (_gap_usd(rival, chosen, worth) / less_usd, rival)
        for rival in rivals
        if is_guessed(rival.plan) and (less_usd := _counted_more_usd(rival)) > 0 and _rent_usd(rival) > 0
    ]
    if not ways:
        return
    way, rival = min(ways, key=lambda item: (item[0], item[1].plan.id))
    more = (1 - way) * _counted_more_usd(rival) / _rent_usd(rival)
    usd_per_h = (rival.plan.usd_per_h or 0.0) * (1 + more)
    yield Tip(spared=way, fact=tip_of("quote", rival, usd_per_h=usd_per_h))


def _counted_more_usd(option: Option) -> float:
    return option.expected.counted_usd - option.expected.cost_usd


def _by_wait(rival: Option, chosen: Option, worth: value.Worth) -> Iterator[Tip]:
    """An unknown wait counts as nothing: it may well be as long as the job."""
    if not worth.hour_usd:
        return
    wait_s, expected = chosen.wait_s, chosen.expected
    longer_s = expected.time_s if wait_s is None else wait_s.p90 - expected.wait_s
    if longer_s <= 0:
        return
    more_s = _gap_usd(rival, chosen, worth) / worth.hour_usd * HOUR_S
    fact = tip_of("wait", rival, limit_s=expected.wait_s + more_s, is_known=wait_s is not None)
    yield Tip(spared=more_s / longer_s, fact=fact)


def _by_step(rivals: Sequence[Option], chosen: Option, worth: value.Worth) -> Iterator[Tip]:
    """What is wrong in a prediction is wrong wherever that GPU is."""
    others = [rival for rival in rivals if rival.plan.gpu != chosen.plan.gpu]
    step_s, expected = chosen.estimate.iteration_s, chosen.expected
    rise = step_s.p90 / step_s.p50 - 1
    train_s = expected.time_s - expected.wait_s - chosen.plan.startup_s
    run_s = train_s + chosen.plan.startup_s
    if not others or rise <= 0 or run_s <= 0:
        return
    longer_usd = worth.hour_usd * train_s / HOUR_S + _rent_usd(chosen) * train_s / run_s
    if longer_usd <= 0:
        return  # own machines without a price, and hours that are worth nothing
    rival = value.least_total(others, worth)
    share = _gap_usd(rival, chosen, worth) / longer_usd
    fact = tip_of("step", rival, limit_s=step_s.p50 * (1 + share), expected_s=step_s.p50)
    yield Tip(spared=share / rise, fact=fact)


def _rent_usd(option: Option) -> float:
    """Without the parts of the bill that do not follow the price of the machine."""
    others = sum(option.cost_breakdown_usd.get(name, 0.0) for name in (STORAGE, RESULT, MOVING))
    return option.cost_usd.p50 - others


def _by_value(rivals: Iterable[Option], chosen: Option, worth: value.Worth) -> Finding | None:
    """The worth of an hour at which another goes before, the nearest to today's in ratio."""
    tips = [
        (abs(math.log(usd_per_h / worth.hour_usd)) if worth.hour_usd else usd_per_h, usd_per_h, rival)
        for rival in rivals
        if (usd_per_h := value.even_usd_per_h(rival, chosen, worth)) > 0
    ]
    if not tips:
        return None
    _, usd_per_h, rival = min(tips, key=lambda tip: (tip[0], tip[2].plan.id))
    return tip_of("value", rival, usd_per_h=usd_per_h, is_above=usd_per_h > worth.hour_usd)


def summary_of(
    chosen: Option, job: Job, *, script: Script, tipped_by: Finding | None = None, is_whole: bool = True
) -> tuple[Finding, ...]:
    """Of the chosen option, on which ``script`` runs, and what would tip the choice.

    ``is_whole`` is False where the job does more than the steps that were profiled.
    """
    time_s, usd, offer = chosen.time_s, chosen.cost_usd, chosen.plan.offer
    choice = about_answers.SummaryChoice(
        machine=machine(chosen),
        is_rented=offer is not None,
        priced_on=None if offer is None else offer.retrieved_at.date().isoformat(),
        price_age_days=None if chosen.plan.price is None else chosen.plan.price.age_days,
    )
    cost_and_time = about_answers.SummaryCostAndTime(
        cost_p50_usd=usd.p50,
        cost_p90_usd=usd.p90,
        time_p50_s=time_s.p50,
        time_p90_s=time_s.p90,
        num_iterations=chosen.iterations,
        iteration_s=chosen.estimate.iteration_s.p50,
        is_cost_known=chosen.plan.usd_per_h is not None,
        is_whole=is_whole,
        restarts=any(isinstance(reason, RestartsFromZero) for reason in chosen.reasons),
    )
    # What must be done to the script first, and what that counts as beside the bill.
    work = about_answers.SummaryWork(
        work=list(chosen.work),
        work_s=value.change_s(chosen),
        work_usd=value.change_usd(chosen, value.worth_for(job)),
        script=PurePath(script.name).name,
        saves=use_of(script) is CheckpointUse.SAVES,
    )
    doubt = about_answers.SummaryDoubt(tipped_by=tipped_by)
    return choice, cost_and_time, *([work] if chosen.work else []), doubt
