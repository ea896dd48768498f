"""One option line by line: where its time and money go, and what both rest on."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.report.options import where
from advisor.report.text import interval_text, with_p90
from advisor.types import Offer, Option, Quantiles
from advisor.units import format_bytes, format_duration, format_usd

MOST_OPERATORS = 8


def explain(option: Option) -> str:
    """The whole text."""
    sections = [
        (f"{option.plan.id}", _headline(option)),
        ("Time", _time(option)),
        ("Money", _money(option)),
        ("One iteration", _iteration(option)),
        ("Its largest operators, and how their time was found", _operators(option)),
        ("Memory of one GPU", _memory(option)),
        ("What to change in the script", iter(option.script_changes)),
        ("Notes", iter(option.reasons)),
        ("What the estimate rests on", iter(option.estimate.assumptions)),
    ]
    blocks = []
    for title, lines in sections:
        body = [f"  {line}" for line in lines]
        if body:
            blocks.append("\n".join([title, *body]))
    return "\n\n".join(blocks)


def _headline(option: Option) -> Iterator[str]:
    plan = option.plan
    yield f"{where(option)}: {plan.num_gpus} x {plan.gpu}, {option.iterations:,} iterations"
    yield f"risk: {option.risk}"


def _line(name: str, value: str) -> str:
    return f"{name:<28}{value}"


def _time(option: Option) -> Iterator[str]:
    plan = option.plan
    wait = option.wait_s
    yield _line("wait", "unknown, counted as 0" if wait is None else _quantiles(wait))
    yield _line("start-up", format_duration(plan.startup_s))
    if plan.download_s:
        yield _line("  of it the data set", format_duration(plan.download_s))
    yield _line("training", _quantiles(option.train_s))
    yield _line("total", _quantiles(option.time_s))
    if option.p_within_deadline is not None:
        yield _line("by the deadline with p", f"{option.p_within_deadline:.2f}")


def _quantiles(quantiles: Quantiles) -> str:
    return with_p90(quantiles, format_duration)


def _money(option: Option) -> Iterator[str]:
    plan = option.plan
    if plan.usd_per_h is None:
        yield _line("rate", "unknown, counted as $0.00")
    else:
        yield _line("rate", f"{format_usd(plan.usd_per_h)} per hour")
    if plan.offer is not None:
        yield from _prices(plan.offer)
        yield _line("price from", f"{plan.offer.source}, {plan.offer.retrieved_at:%Y-%m-%d}")
        if plan.offer.includes:
            yield _line("includes", ", ".join(plan.offer.includes))
    for name, words in plan.rates.items():
        yield _line(f"rate of {name}", words)
    for name, usd in option.cost_breakdown_usd.items():
        yield _line(name, format_usd(usd))
    yield _line("total", with_p90(option.cost_usd, format_usd))
    if option.p_within_budget is not None:
        yield _line("within budget with p", f"{option.p_within_budget:.2f}")


def _prices(offer: Offer) -> Iterator[str]:
    """List, contracted and effective price, where they are not one and the same."""
    prices = {
        "list price": offer.list_usd_per_h,
        "contracted price": offer.contracted_usd_per_h,
        "effective price": offer.effective_usd_per_h,
    }
    known = {name: usd_per_h for name, usd_per_h in prices.items() if usd_per_h is not None}
    if len(known) > 1:
        yield from (_line(name, f"{format_usd(usd_per_h)} per hour") for name, usd_per_h in known.items())


def _iteration(option: Option) -> Iterator[str]:
    estimate = option.estimate
    yield _line("p10 .. p50 .. p90", interval_text(estimate.iteration_s))
    total_s = estimate.iteration_s.p50
    parts = dict(estimate.by_family)
    if estimate.communication_s:
        parts["exposed communication"] = estimate.communication_s
    for name, seconds in parts.items():
        yield _line(name, f"{format_duration(seconds)} ({seconds / total_s:.0%})")
    methods = (f"{method} {seconds / total_s:.0%}" for method, seconds in estimate.by_method.items())
    yield _line("methods", ", ".join(methods))


def _operators(option: Option) -> Iterator[str]:
    total_s = option.estimate.iteration_s.p50
    for name, seconds in list(option.estimate.by_operator.items())[:MOST_OPERATORS]:
        yield f"{name:<56}{format_duration(seconds)} ({seconds / total_s:.0%})"


def _memory(option: Option) -> Iterator[str]:
    estimate = option.estimate
    needed = estimate.memory_bytes
    yield _line("needed", "unknown" if needed is None else format_bytes(needed))
    yield _line("available", format_bytes(estimate.memory_limit_bytes))
