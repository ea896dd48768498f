"""What becomes of an answer when one fact is another than expected: asked of the whole ranking, anew.

``python -m benchmarks.job_moves OUT DAY RECORDS recommend ...`` runs the command as a user would, on that
day, and writes to OUT how the answer stands: whether its stated fact flips it, whether another fact of which
as much is doubtful flips it earlier, and what it costs to have followed it where a fact was wrong, or where
RECORDS (a pickle of `Records`; - for none) tell what came.
"""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import advisor.service.prices.live as live
import advisor.service.recommend.recommending as recommending
import advisor.workloads.script_versions as script_versions
from advisor.core.findings.about_answers import SummaryDoubt, Tipping
from advisor.core.values import CheckpointUse, Interval, IterationEstimate, Option, Plan, Quantiles, Trace
from advisor.core.values import Recommendation as Answer
from advisor.predict.iteration import predict_counts
from advisor.service.recommend.pipeline import Places, recommendation_of
from benchmarks.job_records import regrets_of
from recommender.outcome.bill import price_rise
from recommender.ranking.value import total_usd, worth_for

# Past a threshold by so much, and short of it.
_PAST, _SHORT = 1.03, 0.97
# Of the way to the p90 on which the stated fact flips the pick, others are moved this part.
_EARLIER = 0.95
# Plans whose totals are more than so many times the pick's cannot win where a fact is moved.
MOST_TIMES = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question whose answer is known."""

    trace: Trace
    places: Places
    answer: Answer
    chosen: Option

    @property
    def alike(self) -> frozenset[str]:
        """Plans of the same GPUs in the pick's row: what moves that row moves them alike."""
        gpus = self.chosen.plan.layout.of(self.chosen.plan.gpu)
        return frozenset(
            option.plan.id
            for option in self.answer.options
            if option.plan.layout.of(option.plan.gpu) == gpus
            and (option.folded_into == self.chosen.plan.id or option is self.chosen)
        )

    def again(self, places: Places) -> Answer:
        """The answer in other places."""
        return recommendation_of(self.trace, places)

    def moved(self, change: Callable[[Plan], Plan], ids: frozenset[str] | None = None) -> Answer:
        """The answer where plans are others: those of the pick's row if no others are named."""
        wanted = self.alike if ids is None else ids
        plans = tuple(change(plan) if plan.id in wanted else plan for plan in self.places.plans)
        return self.again(replace(self.places, plans=plans))

    def with_step(self, factor: float) -> Answer:
        """The answer where steps on the pick's GPU take so many times as long."""
        with _steps_times(self.chosen.plan.gpu, factor):
            return self.again(self.places)

    def with_job(self, **changes: Any) -> Answer:
        """The answer to another question."""
        return self.again(replace(self.places, job=replace(self.places.job, **changes)))


def _times(interval: Interval, factor: float) -> Interval:
    return Interval(p10=interval.p10 * factor, p50=interval.p50 * factor, p90=interval.p90 * factor)


def _slower(estimate: IterationEstimate, factor: float) -> IterationEstimate:
    """A step with its input: a clock tells of both together."""
    work = estimate.input
    if work is not None:
        work = replace(work, cpu_s=_times(work.cpu_s, factor), wait_s=work.wait_s * factor)
    return replace(
        estimate,
        iteration_s=_times(estimate.iteration_s, factor),
        device_s=_times(estimate.device_s, factor),
        input=work,
    )


@contextmanager
def _steps_times(gpu: str, factor: float) -> Iterator[None]:
    predicted = predict_counts

    def slower(trace: Trace, spec: Any, *rest: Any, **named: Any) -> Sequence[IterationEstimate]:
        estimates = predicted(trace, spec, *rest, **named)
        if spec.name != gpu:
            return estimates
        return [_slower(one, factor) for one in estimates]

    script_versions.predict_counts = slower  # type: ignore[assignment, attr-defined]
    try:
        yield
    finally:
        script_versions.predict_counts = predicted  # type: ignore[attr-defined]


def priced(plan: Plan, factor: float) -> Plan:
    """The plan at another price."""
    price = None if plan.price is None else plan.price.times(factor)
    return replace(plan, usd_per_h=None if plan.usd_per_h is None else plan.usd_per_h * factor, price=price)


def waited(plan: Plan, factor: float) -> Plan:
    """The plan behind a longer wait."""
    wait_s = plan.wait_s
    if wait_s is None:
        return plan
    changed = {}
    for field in fields(wait_s):
        value = getattr(wait_s, field.name)
        if field.name not in ("p_at_once", "levels"):
            changed[field.name] = (
                tuple(one * factor for one in value) if isinstance(value, tuple) else value * factor
            )
    return replace(plan, wait_s=replace(wait_s, **changed))


def regrets(asked: Asked) -> Mapping[str, float | None]:
    """By what is other than expected: what following the advice costs more than the best, as a share of that.

    Bills, hours until the job is done and work on the script count, as in the rule. None: the pick misses a
    limit of the job then.
    """
    all_ids = frozenset(plan.id for plan in asked.places.plans)
    others = all_ids - asked.alike
    worlds = {
        "steps +15 %": asked.with_step(1.15),
        "steps -15 %": asked.with_step(0.85),
        "price +20 %": asked.moved(lambda plan: priced(plan, 1.2)),
        "other prices -20 %": asked.moved(lambda plan: priced(plan, 0.8), others),
        "waits x 3": asked.moved(lambda plan: waited(plan, 3.0), all_ids),
    }
    return {name: _regret(asked, there) for name, there in worlds.items()}


def _regret(asked: Asked, there: Answer) -> float | None:
    worth = worth_for(asked.places.job)
    pick = next(option for option in there.options if option.plan.id == asked.chosen.plan.id)
    if there.chosen is None or not pick.feasible:
        return None
    best_usd = total_usd(there.chosen, worth)
    return total_usd(pick, worth) / best_usd - 1 if best_usd > 0 else 0.0


def flips(asked: Asked, fact: Tipping) -> Mapping[str, bool] | None:
    """Whether the pick stays short of the fact's threshold, and goes past it; None where nothing is moved."""
    found = _on_both_sides(asked, fact)
    if found is None:
        return None
    short, past = found
    return {"stays": short is None or _picks(short) in asked.alike, "flips": _picks(past) not in asked.alike}


def _picks(answer: Answer) -> str | None:
    return None if answer.chosen is None else answer.chosen.plan.id


def _on_both_sides(asked: Asked, fact: Tipping) -> tuple[Answer | None, Answer] | None:
    chosen = asked.chosen
    match fact.by:
        case "price":
            rate = fact.usd_per_h / (chosen.plan.usd_per_h or 1.0)
            short, past = (rate * _SHORT, rate * _PAST) if rate * _SHORT > 1 else (1.0, rate * _PAST)
            return asked.moved(lambda p: priced(p, short)), asked.moved(lambda p: priced(p, past))
        case "step":
            rate = fact.limit_s / fact.expected_s
            return (asked.with_step(rate * _SHORT) if rate * _SHORT > 1 else None), asked.with_step(
                rate * _PAST
            )
        case "wait" if chosen.expected.wait_s > 0:
            rate = fact.limit_s / chosen.expected.wait_s
            return None, asked.moved(lambda p: waited(p, rate * _PAST))
        case "value":
            past, short = (_PAST, _SHORT) if fact.is_above else (_SHORT, _PAST)
            return (
                asked.with_job(value_of_time_usd_per_h=fact.usd_per_h * short),
                asked.with_job(value_of_time_usd_per_h=fact.usd_per_h * past),
            )
        case "deadline":
            # Others may come before it between the pick's own p90 and the threshold.
            return None, asked.with_job(deadline_s=fact.limit_s * 0.999)
        case "later-deadline":
            return None, asked.with_job(deadline_s=fact.limit_s)
        case "checkpoints":
            use = CheckpointUse.RESUMES if fact.is_known else CheckpointUse.NONE
            return None, asked.with_job(checkpoints=use)
        case "quote":
            return None, asked.moved(
                lambda p: replace(p, price=None, usd_per_h=fact.usd_per_h * _SHORT),
                frozenset({fact.instead.facts["plan_id"]}),
            )
    return None


def earlier(asked: Asked, fact: Tipping) -> list[str]:
    """Other facts that flip the pick on a smaller part of their way to their p90 than the stated one does."""
    chosen = asked.chosen
    ways = _ways(chosen)
    if fact.by in ways:
        at = {
            "price": fact.usd_per_h / (chosen.plan.usd_per_h or 1.0),
            "step": fact.limit_s / (fact.expected_s or 1.0),
            "wait": fact.limit_s / (chosen.expected.wait_s or 1.0),
        }[fact.by]
        share = (at - 1) / (ways[fact.by] - 1)
    elif fact.by == "value":
        share = 1.0  # named only where no other fact flips it
    else:
        return []
    moves: dict[str, Callable[[float], Answer]] = {
        "price": lambda rate: asked.moved(lambda plan: priced(plan, rate)),
        "step": asked.with_step,
        "wait": lambda rate: asked.moved(lambda plan: waited(plan, rate)),
    }
    return [
        name
        for name, most in ways.items()
        if name != fact.by and _picks(moves[name](1 + (most - 1) * share * _EARLIER)) not in asked.alike
    ]


def _ways(chosen: Option) -> dict[str, float]:
    """Of each unsure fact its p90 over its expectation, where that is more."""
    wait_s, step_s = chosen.wait_s or Quantiles(p50=0.0, p90=0.0), chosen.estimate.iteration_s
    ways = {
        "price": price_rise(chosen.plan, chosen.expected.run_days),
        "step": step_s.p90 / step_s.p50,
        "wait": wait_s.p90 / chosen.expected.wait_s if chosen.expected.wait_s else 1.0,
    }
    return {name: most for name, most in ways.items() if most > 1}


def near(asked: Asked) -> Asked:
    """The question among plans that could win at all: an option's total follows from the option alone."""
    worth = worth_for(asked.places.job)
    most_usd = MOST_TIMES * total_usd(asked.chosen, worth)
    fact = _stated(asked)
    named = fact.instead.facts["plan_id"] if isinstance(fact, Tipping) else None
    kept = asked.alike | {
        option.plan.id
        for option in asked.answer.options
        if option.plan.id == named or (option.feasible and total_usd(option, worth) <= most_usd)
    }
    plans = tuple(plan for plan in asked.places.plans if plan.id in kept)
    return replace(asked, places=replace(asked.places, plans=plans))


def _stated(asked: Asked) -> object:
    return next(one for one in asked.answer.summary if isinstance(one, SummaryDoubt)).tipped_by


def report(asked: Asked) -> Mapping[str, object]:
    """How the answer stands."""
    fact = _stated(asked)
    found: dict[str, object] = {"regret": regrets(asked), "tipped_by": None, "flips": None, "earlier": []}
    if isinstance(fact, Tipping):
        found |= {"tipped_by": fact.by, "flips": flips(asked, fact), "earlier": earlier(asked, fact)}
    return found


def _set_day(moment: datetime) -> None:
    """Prices age, and what they are expected to be ages with them."""
    asked = live.now
    for module in list(sys.modules.values()):
        if getattr(module, "now", None) is asked:
            module.now = lambda: moment  # type: ignore[attr-defined]


def main() -> None:
    """Run the command, and write what becomes of its answer."""
    out, day, records, *words = sys.argv[1:]
    _set_day(datetime.fromisoformat(day).replace(tzinfo=UTC))
    ranked_on = recommending.ranked_on

    def ranked_and_moved(places: Places, trace: Trace, *rest: Any) -> Answer:
        answer = ranked_on(places, trace, *rest)
        if answer.chosen is not None:
            asked = Asked(trace=trace, places=places, answer=answer, chosen=answer.chosen)
            found = dict(report(near(asked)))
            if records != "-":
                kept = pickle.loads(Path(records).read_bytes())  # noqa: S301 - written by benchmarks.jobs
                found["recorded"] = regrets_of(trace, places, answer, kept)
            Path(out).write_text(json.dumps(found))
        return answer

    recommending.ranked_on = ranked_and_moved  # type: ignore[assignment]
    from advisor.__main__ import main as advise

    sys.argv = ["advisor", *words]
    advise()


if __name__ == "__main__":
    main()
