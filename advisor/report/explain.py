"""One option line by line: where its time and money go, and what both rest on."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from advisor.core.units import format_bytes, format_duration, format_usd
from advisor.core.values import Offer, Option, Recommendation
from advisor.report.breakdown import iteration, line, money, operators, time
from advisor.report.options import gpus, status, where
from advisor.report.plain import shown
from advisor.report.words import rule_text, sentence, sentences

INDENT = "  "
# Where a value begins: its further lines do, too.
HANGING = " " * 30


def explain(option: Option, recommendation: Recommendation, *, width: int) -> str:
    """The whole text, lines broken where the terminal ends; in Time, Money and iterations lines add up."""
    sections = [
        (option.plan.id, _headline(option, recommendation)),
        ("Odds", _odds(option, recommendation)),
        ("Time, medians (h:mm:ss)", time(option)),
        ("Money, medians", money(option)),
        ("Rates", _rates(option)),
        ("One iteration", iteration(option)),
        ("Its largest operators, and how their time was found", operators(option)),
        ("Memory of one GPU", _memory(option)),
        ("What to change in the script", iter(sentences(option.script_changes))),
        ("Notes", iter(sentences(option.reasons))),
        ("What the estimate rests on", iter(sentences(option.estimate.assumptions))),
    ]
    blocks = []
    for title, lines in sections:
        body = [_folded(shown(text), width) for text in lines]
        if body:
            blocks.append("\n".join([shown(title), *body]))
    return "\n\n".join(blocks)


def _folded(text: str, width: int) -> str:
    if len(INDENT + text) <= width:
        return INDENT + text
    indent = HANGING if "   " in text else INDENT * 2
    return textwrap.fill(
        text,
        max(width, len(HANGING) + 20),
        initial_indent=INDENT,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _headline(option: Option, recommendation: Recommendation) -> Iterator[str]:
    yield f"{where(option)}: {gpus(option)}, {option.iterations:,} iterations"
    state = status(option, recommendation)
    if state == "recommended":
        state = f"recommended: {rule_text(recommendation)}"
    yield f"status: {state or 'feasible, but another is both faster and cheaper'}"
    yield f"risk: {sentence(option.risk)}"


def _odds(option: Option, recommendation: Recommendation) -> Iterator[str]:
    job = recommendation.job
    needed = f"{job.confidence:.2f} is asked for"
    if job.budget_usd is not None and option.p_within_budget is not None:
        yield line(f"within {format_usd(job.budget_usd)}", f"p {option.p_within_budget:.2f}, {needed}")
    if job.deadline_s is not None and option.p_within_deadline is not None:
        yield line(
            f"done within {format_duration(job.deadline_s)}", f"p {option.p_within_deadline:.2f}, {needed}"
        )


def _rates(option: Option) -> Iterator[str]:
    plan = option.plan
    if plan.usd_per_h is None:
        yield line("rate", "unknown, counted as $0.00")
    else:
        yield line("rate", f"{format_usd(plan.usd_per_h)} per hour")
    if plan.offer is not None:
        yield from _prices(plan.offer)
        yield line("price from", f"{plan.offer.source}, {plan.offer.retrieved_at:%Y-%m-%d}")
        if plan.offer.includes:
            yield line("includes", ", ".join(plan.offer.includes))
    for name, words in plan.rates.items():
        yield line(f"rate of {name}", words)


def _prices(offer: Offer) -> Iterator[str]:
    """List, contracted and effective price, where they are not one and the same."""
    prices = {
        "list price": offer.list_usd_per_h,
        "contracted price": offer.contracted_usd_per_h,
        "effective price": offer.effective_usd_per_h,
    }
    known = {name: usd_per_h for name, usd_per_h in prices.items() if usd_per_h is not None}
    if len(known) > 1:
        yield from (line(name, f"{format_usd(usd_per_h)} per hour") for name, usd_per_h in known.items())


def _memory(option: Option) -> Iterator[str]:
    estimate = option.estimate
    needed = estimate.memory_bytes
    yield line("needed", "unknown" if needed is None else format_bytes(needed))
    yield line("available", format_bytes(estimate.memory_limit_bytes))
