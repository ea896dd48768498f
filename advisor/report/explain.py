"""One option as a document: where its time and money go, and what both rest on."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.core.units import format_duration, format_usd
from advisor.core.values import Fabric, Offer, Option, Recommendation
from advisor.report.breakdown import iteration, money, operators, time
from advisor.report.document import BLANK, Block, Document, Fact, Section
from advisor.report.memory_parts import memory_facts
from advisor.report.options import gpus, has_figures, option_facts, status, where
from advisor.report.words import rule_text, sentence, sentences


def option_document(option: Option, recommendation: Recommendation) -> Document:
    """The whole of it; in Time, Money and iterations lines add up to their last."""
    has_any = has_figures(option)
    sections = [
        Section(option.plan.id, tuple(_headline(option, recommendation))),
        Section("Odds", tuple(_odds(option, recommendation)) if has_any else ()),
        Section("Time, medians (h:mm:ss)", (time(option),) if has_any else ()),
        Section("Money, medians", (money(option),) if has_any else ()),
        Section("Rates", tuple(_rates(option))),
        Section("One iteration", iteration(option) if has_any else ()),
        Section(
            "Its largest operators, and how their time was found", (operators(option),) if has_any else ()
        ),
        Section("Memory of one GPU", tuple(memory_facts(option.estimate))),
        Section("What to change in the script", tuple(sentences(option.script_changes))),
        Section("Notes", tuple(sentences(option.reasons))),
        Section("What the estimate rests on", tuple(sentences(option.estimate.assumptions))),
    ]
    blocks: list[Block] = []
    for section in sections:
        if section.entries:
            blocks += [BLANK, section] if blocks else [section]
    return Document(facts=option_facts(option, recommendation), blocks=tuple(blocks), title=where(option))


def _headline(option: Option, recommendation: Recommendation) -> Iterator[str]:
    yield f"{where(option)}: {gpus(option)}, {option.iterations:,} iterations"
    state = status(option, recommendation)
    if state == "recommended":
        state = f"recommended: {rule_text(recommendation)}"
    if option.folded_into is not None:
        state = (
            f"{state or 'feasible'}; in the table {option.folded_into} speaks for it, since it gains little"
        )
    yield f"status: {state or 'feasible, but another is both faster and cheaper'}"
    yield f"risk: {sentence(option.risk)}"
    if option.plan.num_nodes > 1:
        yield f"network: {_network(option.plan.layout.fabric)}"


def _network(fabric: Fabric | None) -> str:
    """Over what the nodes exchange."""
    if fabric is None or fabric.network is None:
        return "unknown"
    if fabric.network_bytes_per_s is None:
        return f"{fabric.network}, at an unknown rate"
    return f"{fabric.network}, {fabric.network_bytes_per_s * 8 / 1e9:,.4g} Gbit/s a node by its data sheet"


def _odds(option: Option, recommendation: Recommendation) -> Iterator[Fact]:
    job = recommendation.job
    needed = f"{job.confidence:.2f} is asked for"
    if job.budget_usd is not None and option.p_within_budget is not None:
        yield Fact(f"within {format_usd(job.budget_usd)}", f"p {option.p_within_budget:.2f}, {needed}")
    if job.deadline_s is not None and option.p_within_deadline is not None:
        yield Fact(
            f"done within {format_duration(job.deadline_s)}", f"p {option.p_within_deadline:.2f}, {needed}"
        )


def _rates(option: Option) -> Iterator[Fact]:
    plan = option.plan
    if plan.usd_per_h is None:
        yield Fact("rate", "unknown, counted as $0.00")
    else:
        each = f"{plan.num_nodes} nodes at {format_usd(plan.usd_per_h / plan.num_nodes)} each"
        yield Fact("rate", f"{format_usd(plan.usd_per_h)} per hour", each if plan.num_nodes > 1 else "")
    if plan.offer is not None:
        yield from _prices(plan.offer)
        yield Fact("price from", f"{plan.offer.source}, {plan.offer.retrieved_at:%Y-%m-%d}")
        if plan.offer.includes:
            name = "includes" if plan.num_nodes == 1 else "each includes"
            yield Fact(name, ", ".join(plan.offer.includes))
    for name, words in plan.rates.items():
        yield Fact(f"rate of {name}", words)


def _prices(offer: Offer) -> Iterator[Fact]:
    """List, contracted and effective price, where they are not one and the same."""
    prices = {
        "list price": offer.list_usd_per_h,
        "contracted price": offer.contracted_usd_per_h,
        "effective price": offer.effective_usd_per_h,
    }
    known = {name: usd_per_h for name, usd_per_h in prices.items() if usd_per_h is not None}
    if len(known) > 1:
        yield from (Fact(name, f"{format_usd(usd_per_h)} per hour") for name, usd_per_h in known.items())
