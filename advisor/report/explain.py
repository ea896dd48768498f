"""One option line by line: where its time, its cost and its memory come from."""

import math
from collections.abc import Callable, Iterator, Mapping

from advisor.core.units import format_duration, format_usd
from advisor.core.values import Fabric, Option, Quantiles, Recommendation
from advisor.predict.exchange.data_parallel import COMMUNICATION
from advisor.report import document as doc
from advisor.report.estimates import memory_facts, throughput_facts
from advisor.report.option_facts import gpus, has_figures, numbered, option_facts, status, where
from advisor.report.words import rule_text, sentence, sentences
from recommender.outcome.spot import is_spot

MOST_OPERATORS = 8
# A median of a sum is not the sum of medians; the line says so by its name.
_TOGETHER = "wait and run together"
_TIME_NOTES = {
    "preemptions": "checkpoints, repeated work, waiting for a machine",
    _TOGETHER: "the median of a sum is not the sum of medians",
}


def time(option: Option) -> doc.Sum:
    """Wait, boot, download, training and preemptions in seconds, then their total."""
    plan, total = option.plan, option.time_s
    train_s = {"training": option.train_s.p50}
    if is_spot(plan):
        work_s = min(option.iterations * option.estimate.iteration_s.p50, option.train_s.p50)
        train_s = {"training": work_s, "preemptions": option.train_s.p50 - work_s}
    parts = {"wait": 0.0 if option.wait_s is None else option.wait_s.p50}
    parts["boot"] = plan.startup_s - plan.download_s
    if plan.download_s:
        parts["download of the data set"] = plan.download_s
    parts |= train_s
    unit, words = doc.clock(total.p50)
    if math.isfinite(total.p50):
        parts = doc.with_rest(parts, total.p50, unit, _TOGETHER)
    notes = {
        "wait": "unknown, counted as 0" if option.wait_s is None else _p90(option.wait_s, format_duration),
        "training": f"{option.iterations:,} iterations x {format_duration(option.estimate.iteration_s.p50)}",
        **_TIME_NOTES,
        "total": _p90(total, format_duration),
    }
    return _sum(parts, total.p50, notes, grid=(unit, words), in_words=format_duration)


def money(option: Option) -> doc.Sum:
    """What each cause costs, then the total."""
    plan, total = option.plan, option.cost_usd
    parts: dict[str, float] = {}
    for name, usd in option.cost_breakdown_usd.items():
        if name == "start-up":
            share = plan.download_s / plan.startup_s if plan.startup_s else 0.0
            parts["boot"] = usd * (1 - share)
            parts |= {"download of the data set": usd * share} if share else {}
        else:
            parts[name] = usd
    unit, words = doc.dollars(total.p50)
    if math.isfinite(total.p50):
        parts = doc.with_rest(parts, total.p50, unit, "rest")
    notes = _money_notes(option) | {"total": _p90(total, format_usd)}
    return _sum(parts, total.p50, notes, grid=(unit, words), in_words=format_usd)


def _money_notes(option: Option) -> dict[str, str]:
    plan = option.plan
    notes = {
        "preemptions": "repeated or saved work, waiting, dearer zones or on demand",
        "price rise": "hours that get dearer than the median, as past prices did",
        "billing minimum": f"{format_duration(plan.minimum_billed_s)} are billed at least",
        "billing step": f"whole steps of {format_duration(plan.billed_step_s)} are billed",
    }
    if plan.usd_per_h is None:
        return notes | dict.fromkeys(("training", "boot"), "rate unknown, counted as $0.00")
    work_s = option.iterations * option.estimate.iteration_s.p50
    at = f"at {format_usd(plan.usd_per_h)} per hour"
    seconds = {
        "training": work_s,
        "boot": plan.startup_s - plan.download_s,
        "download of the data set": plan.download_s,
    }
    return notes | {name: f"{format_duration(s)} {at}" for name, s in seconds.items() if s}


def iteration(option: Option) -> tuple[doc.Sum | doc.Fact, ...]:
    """Seconds by operator family, then those of the whole, its interval and the methods behind it."""
    estimate = option.estimate
    total_s = estimate.iteration_s.p50
    methods = (f"{method} {seconds / total_s:.0%}" for method, seconds in estimate.by_method.items())
    return (
        _shares(estimate.by_family, option),
        doc.Fact("p10 .. p50 .. p90", doc.interval_text(estimate.iteration_s)),
        doc.Fact("methods", ", ".join(methods)),
        *throughput_facts(estimate),
    )


def operators(option: Option) -> doc.Sum:
    """The largest operators with the method of each, the others as one, and the whole."""
    times = list(option.estimate.by_operator.items())
    parts = dict(times[:MOST_OPERATORS])
    others = times[MOST_OPERATORS:]
    if others:
        parts[f"{len(others)} others"] = sum(seconds for _, seconds in others)
    return _shares(parts, option, width=56)


def _shares(parts: Mapping[str, float], option: Option, *, width: int = 28) -> doc.Sum:
    """Seconds of one iteration, with their share of its median."""
    total_s = option.estimate.iteration_s.p50
    if option.estimate.communication_s:
        parts = {**parts, COMMUNICATION: option.estimate.communication_s}
    unit, words = doc.short_times(total_s)
    parts = doc.with_rest(parts, total_s, unit, "rest")
    notes = {name: f"{seconds / total_s:.0%}" for name, seconds in parts.items()}
    return _sum(parts, total_s, notes, grid=(unit, words), in_words=format_duration, width=width)


def _p90(quantiles: Quantiles, words: Callable[[float], str]) -> str:
    p50, p90 = words(quantiles.p50), words(quantiles.p90)
    return "" if p50 == p90 else f"p90 {p90}"


def _sum(
    parts: Mapping[str, float],
    total: float,
    notes: Mapping[str, str],
    *,
    grid: tuple[float, doc.Words],
    in_words: Callable[[float], str],
    width: int = 28,
) -> doc.Sum:
    """A fact a part and one of the total; what never ends is reported in words."""
    unit, words = grid
    if math.isfinite(total):
        cells = {name: words(units) for name, units in doc.rounded(parts, total, unit).items()}
        cells["total"] = words(round(total / unit))
    else:
        cells = {name: in_words(value) for name, value in {**parts, "total": total}.items()}
    return doc.Sum(tuple(doc.Fact(name, cell, notes.get(name, "")) for name, cell in cells.items()), width)


def option_document(option: Option, recommendation: Recommendation) -> doc.Document:
    """The whole of it; in Time, Money and iterations lines add up to their last."""
    has_any = has_figures(option)
    sections = [
        doc.Section(option.plan.id, tuple(_headline(option, recommendation))),
        doc.Section("Odds", tuple(_odds(option, recommendation)) if has_any else ()),
        doc.Section("Time, medians (h:mm:ss)", (time(option),) if has_any else ()),
        doc.Section("Money, medians", (money(option),) if has_any else ()),
        doc.Section("Rates", tuple(_rates(option))),
        doc.Section("One iteration", iteration(option) if has_any else ()),
        doc.Section(
            "Its largest operators, and how their time was found", (operators(option),) if has_any else ()
        ),
        doc.Section("Memory of one GPU", tuple(memory_facts(option.estimate))),
        doc.Section("What to change in the script", tuple(sentences(option.script_changes))),
        doc.Section("Notes", tuple(sentences(option.reasons))),
        doc.Section("What the estimate rests on", tuple(sentences(option.estimate.assumptions))),
    ]
    blocks: list[doc.Block] = []
    for section in sections:
        if section.entries:
            blocks += [doc.BLANK, section] if blocks else [section]
    return doc.Document(facts=option_facts(option, recommendation), blocks=tuple(blocks), title=where(option))


def _headline(option: Option, recommendation: Recommendation) -> Iterator[str]:
    yield f"{where(option)}: {gpus(option)}, {option.iterations:,} iterations"
    state = status(option, recommendation)
    if state == "recommended":
        state = f"recommended: {rule_text(recommendation)}"
    if option.folded_into is not None:
        state = f"{state or 'feasible'}; in the table it is counted with {option.folded_into}, nearly as good"
    yield f"status: {state or 'feasible, but another is both faster and cheaper'}"
    by_id = numbered(recommendation)
    if option.plan.id in by_id:
        yield f"rank: {by_id[option.plan.id][0]:,} of {len(by_id):,}, the # of tables"
    yield f"risk: {sentence(option.risk)}"
    if option.plan.num_nodes > 1:
        yield f"network: {_network(option.plan.layout.fabric)}"


def _network(fabric: Fabric | None) -> str:
    if fabric is None or fabric.network is None:
        return "unknown"
    if fabric.network_bytes_per_s is None:
        return f"{fabric.network}, at an unknown rate"
    return f"{fabric.network}, {fabric.network_bytes_per_s * 8 / 1e9:,.4g} Gbit/s a node by its data sheet"


def _odds(option: Option, recommendation: Recommendation) -> Iterator[doc.Fact]:
    job = recommendation.job
    needed = f"{job.confidence:.2f} is asked for"
    if job.budget_usd is not None and option.p_within_budget is not None:
        yield doc.Fact(f"within {format_usd(job.budget_usd)}", f"p {option.p_within_budget:.2f}, {needed}")
    if job.deadline_s is not None and option.p_within_deadline is not None:
        yield doc.Fact(
            f"done within {format_duration(job.deadline_s)}", f"p {option.p_within_deadline:.2f}, {needed}"
        )


def _rates(option: Option) -> Iterator[doc.Fact]:
    plan = option.plan
    if plan.usd_per_h is None:
        yield doc.Fact("rate", "unknown, counted as $0.00")
    else:
        each = f"{plan.num_nodes} nodes at {format_usd(plan.usd_per_h / plan.num_nodes)} each"
        yield doc.Fact("rate", f"{format_usd(plan.usd_per_h)} per hour", each if plan.num_nodes > 1 else "")
    if plan.offer is not None:
        prices = {
            "list price": plan.offer.list_usd_per_h,
            "contracted price": plan.offer.contracted_usd_per_h,
            "effective price": plan.offer.effective_usd_per_h,
        }
        known = {name: usd_per_h for name, usd_per_h in prices.items() if usd_per_h is not None}
        if len(known) > 1:
            yield from (
                doc.Fact(name, f"{format_usd(usd_per_h)} per hour") for name, usd_per_h in known.items()
            )
        yield doc.Fact("price from", f"{plan.offer.source}, {plan.offer.retrieved_at:%Y-%m-%d}")
        if plan.offer.includes:
            name = "includes" if plan.num_nodes == 1 else "each includes"
            yield doc.Fact(name, ", ".join(plan.offer.includes))
    for name, words in plan.rates.items():
        yield doc.Fact(f"rate of {name}", words)
