"""The tables of a team's report."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.core.findings import Finding
from advisor.core.findings.about_spending import SavingFound, SpendJump
from advisor.core.iterables import grouped
from advisor.core.values import Interval
from advisor.report import document as doc
from advisor.report.words import sentence
from advisor.review.budgets import NOTHING, Budget, BudgetState, Period, Scope
from advisor.review.savings import PredictionRecord, Saving, rhythm
from advisor.review.spending import BilledMachine, BilledShare, Billing, Share, cost_of
from advisor.review.who_spent import Jump, Showback, SpentPart, UnitCost

if TYPE_CHECKING:
    from advisor.review.team_review import PriceMove, TeamReview, Violation


NO_NAME, UNALLOCATED = "(none)", "(unallocated)"
CHANGE = doc.Kind("change", "{:+.1%}".format)


def whose(budget: Budget) -> str:
    """Whose budget it is, by name where it is known."""
    return budget.name or budget.owner


def heading(scope: Scope, period: Period, organisation: str = "") -> str:
    """``Report of vision, 2026-11-16 08:00 to 2026-11-23 08:00 UTC``."""
    of = scope.team or organisation or "everybody"
    if scope.projects is not None and (scope.team is None or len(scope.projects) == 1):
        of = ", ".join(sorted(scope.projects)) + (f" ({scope.team})" if scope.team else "")
    return f"Report of {of}, {period.since:%Y-%m-%d %H:%M} to {period.until:%Y-%m-%d %H:%M} UTC"


def saving_finding(saving: Saving) -> Finding:
    """What a saving is, as a finding."""
    plan, job = saving.plan, saving.job
    offer = plan.offer
    return SavingFound(
        script=job.script,
        project=job.project,
        rhythm=rhythm(job.every_s),
        share=saving.share,
        num_gpus=plan.num_gpus,
        gpu=plan.gpu,
        place=plan.provider if offer is None else f"{plan.provider} {offer.place}",
        market="" if offer is None else offer.market.value,
        usd=saving.usd.p50,
        now_usd=job.usd,
        time_p90_s=saving.time_s.p90,
        deadline_s=saving.deadline_s,
    )


def command_of(saving: Saving) -> str:
    """What a person types to see it: the same question again, of this machine and place alone."""
    plan, entry = saving.plan, saving.job.entry
    where = ["--gpu", f"{plan.gpu}:{plan.num_gpus}", "--provider", plan.provider]
    if plan.offer is not None:
        where += ["--region", plan.offer.region, "--market", plan.offer.market.value]
    asked = entry.command if entry is not None and entry.command else "advisor prices"
    flags, dashes, arguments = asked.partition(" -- ")
    return f"{flags} {shlex.join(where)}{dashes}{arguments}"


CENT = 0.01
SAVINGS = "What to do"
WIDE_PRICES = 140
"""Characters that a row of prices takes."""
_HOURS = doc.Kind("hours", "{:,.1f}".format)
_ONE_DECIMAL = doc.Kind("one decimal", "{:.1f}".format)


def in_cents(parts: Sequence[Decimal]) -> list[float]:
    """Parts rounded to cents that add up to their rounded sum."""
    by_place = {f"{place}": float(part) for place, part in enumerate(parts)}
    return [cents * CENT for cents in doc.rounded(by_place, float(sum(parts)), CENT).values()]


def spending_tables(review: TeamReview) -> Iterator[doc.Table]:
    """What was spent by what runs have in common; a bill knows neither GPU nor market."""
    spending = review.spending
    with_bills = review.billing is not None
    for name, key, shares, is_of_runs in (
        ("week", "Week of", spending.by_week, False),
        ("GPU", "GPU", spending.by_gpu, True),
        ("market", "Market", spending.by_market, True),
        ("provider", "Provider", spending.by_provider, False),
        ("user", "User", spending.by_user, False),
    ):
        if name == "user" and not any(share.name for share in shares):
            continue  # no run tells
        caption = f"{'Runs' if is_of_runs and with_bills else 'Spending'} by {name}"
        yield _spending_table(caption, key, shares, spending.all, with_spent=with_bills and not is_of_runs)


def _spending_table(
    caption: str, name: str, shares: Sequence[Share], whole: Share, *, with_spent: bool
) -> doc.Table:
    """A table of shares."""
    unknown = [share.num_unknown for share in shares] if whole.num_unknown else []
    sums = in_cents([share.usd for share in shares])
    spent = in_cents([share.spent_usd or NOTHING for share in shares]) if with_spent else []
    head = (
        doc.Column(name),
        *doc.columns(("Runs", doc.COUNT), ("GPU hours", _HOURS), wraps=False),
        *doc.columns(*(("Of runs", "Spent") if with_spent else ("Cost",)), kind=doc.CENTS, wraps=False),
        *doc.columns(("Share", doc.SHARE), *([("Cost unknown", doc.COUNT)] if unknown else []), wraps=False),
    )
    rows = []
    for place, share in enumerate(shares):
        part, all_usd = (share.spent_usd, whole.spent_usd) if with_spent else (share.usd, whole.usd)
        is_known = with_spent or not share.is_unknown
        cells = (
            share.name or NO_NAME,
            share.num_runs,
            share.gpu_h,
            None if share.is_unknown else sums[place],
            *spent[place : place + 1],
            float(part / all_usd) if part is not None and all_usd and is_known else None,
            *unknown[place : place + 1],
        )
        rows.append(doc.Row(cells))
    return doc.Table(columns=head, rows=tuple(rows), caption=caption)


def jump_finding(jump: Jump) -> Finding:
    """A day that stands out, as a finding."""
    maker = jump.maker
    return SpendJump(
        project=jump.project,
        day=f"{jump.day}",
        usd=float(jump.usd),
        usual_usd=float(jump.usual_usd),
        maker=maker.what if maker.is_run else f"{maker.provider} {maker.what}".strip(),
        maker_usd=float(maker.usd),
        is_run=maker.is_run,
    )


def showback_tables(showback: Showback) -> Iterator[doc.Table]:
    """Who spent it, bills and runs together, and what a unit costs."""
    if showback.by_team:
        yield _part_table("Who spent it: teams", "Team", showback.by_team)
    if showback.by_project:
        yield _part_table("Who spent it: projects", "Project", showback.by_project)
    for tag, by_value in showback.by_tag.items():
        head = (doc.Column(tag), doc.Column("Billed, amortised", doc.CENTS, wraps=False))
        cents = in_cents(list(by_value.values()))
        rows = tuple(doc.Row((value or NO_NAME, usd)) for value, usd in zip(by_value, cents, strict=True))
        yield doc.Table(columns=head, rows=rows, caption=f"Billed by the tag {tag}")
    if showback.unit_costs:
        yield _unit_table(showback.unit_costs)


def _part_table(caption: str, name: str, parts: Sequence[SpentPart]) -> doc.Table:
    is_shared = any(part.shared_usd for part in parts)
    own, shared = in_cents([part.usd for part in parts]), in_cents([part.shared_usd for part in parts])
    whole = sum(part.total_usd for part in parts)
    rows = []
    for part, own_usd, shared_usd in zip(parts, own, shared, strict=True):
        sums = (own_usd, shared_usd, own_usd + shared_usd) if is_shared else (own_usd,)
        before = None if part.before_usd is None else float(part.before_usd)
        share = float(part.total_usd / whole) if whole > 0 else None
        rows.append(doc.Row((part.name or UNALLOCATED, *sums, share, before, part.change)))
    head = (
        doc.Column(name),
        *doc.columns(*(("Own", "Shared", "Cost") if is_shared else ("Cost",)), kind=doc.CENTS, wraps=False),
        *doc.columns(("Share", doc.SHARE), ("Before", doc.CENTS), ("Change", CHANGE), wraps=False),
    )
    return doc.Table(columns=head, rows=tuple(rows), caption=caption)


def _unit_table(costs: Sequence[UnitCost]) -> doc.Table:
    head = (
        *doc.columns("Script", "Project"),
        doc.Column("Runs", doc.COUNT, wraps=False),
        *doc.columns("A run", "An epoch", "A million tokens", kind=doc.USD, wraps=False),
    )
    rows = []
    for one in costs:
        sums = one.per_run_usd, one.per_epoch_usd, one.per_million_tokens_usd
        cells = (None if usd is None else float(usd) for usd in sums)
        rows.append(doc.Row((one.script, one.project or NO_NAME, one.num_runs, *cells)))
    table = doc.Table(columns=head, rows=tuple(rows), caption="What a unit costs")
    return table.in_order([i for i in range(len(head)) if any(row.cells[i] is not None for row in rows)])


def billing_tables(billing: Billing) -> Iterator[doc.Table]:
    """Machines as they were billed, beside the runs that explain it, and what else was billed."""
    parts: list[BilledMachine | BilledShare] = [*billing.machines, *billing.by_service]
    usd = [part.billed_usd if isinstance(part, BilledMachine) else part.usd for part in parts]
    billed, amortised = iter(in_cents(usd)), iter(in_cents([part.amortised_usd for part in parts]))
    rows = []
    for one in billing.machines:
        name, sums = f"{one.provider} {one.instance_type}", (next(billed), next(amortised))
        cells = name, *sums, one.num_runs, float(one.explained_usd), float(one.idle_usd)
        rows.append(doc.Row(cells, doc.Tone.DOUBTFUL if one.idle_usd > 0 else doc.Tone.PLAIN))
    rows += [
        doc.Row((one.name or NO_NAME, next(billed), next(amortised), *[None] * 3))
        for one in billing.by_service
    ]
    heads = "Billed", "Amortised", ("Runs", doc.COUNT), "Of runs", "Idle"
    head = doc.Column("Of"), *doc.columns(*heads, kind=doc.CENTS, wraps=False)
    yield doc.Table(columns=head, rows=tuple(rows), caption="Billed by clouds, and what runs explain of it")
    if billing.commitments:
        yield _commitment_table(billing)


def _commitment_table(billing: Billing) -> doc.Table:
    rows = []
    for one in billing.commitments:
        cells = f"{one.provider} {one.name}".strip(), float(one.used_usd), float(one.unused_usd)
        rows.append(
            doc.Row((*cells, one.utilisation), doc.Tone.DOUBTFUL if one.unused_usd > 0 else doc.Tone.PLAIN)
        )
    sums = doc.columns("Used", "Unused", ("Utilisation", doc.SHARE), kind=doc.CENTS, wraps=False)
    head = doc.Column("Commitment"), *sums
    covered = "" if billing.coverage is None else f": they cover {billing.coverage:.0%} of what machines cost"
    return doc.Table(columns=head, rows=tuple(rows), caption=f"Commitments{covered}")


def budget_table(states: Iterable[BudgetState]) -> doc.Table:
    """Months against their limits."""
    head = (
        *doc.columns("Month", "Of", wraps=False),
        *doc.columns("Limit", "Spent", ("Used", doc.SHARE), kind=doc.CENTS, wraps=False),
        doc.Column("Forecast p10 .. p50 .. p90", doc.CENTS),
        doc.Column("Over", doc.SHARE, wraps=False),
        doc.Column("Limit in"),
    )
    table = doc.Table(columns=head, rows=tuple(map(_budget_row, states)), caption="The month and its budgets")
    # The file that holds the limit is the first to go.
    return replace(table, narrow=(table.in_order(range(len(head) - 1)),))


def _budget_row(state: BudgetState) -> doc.Row:
    forecast, p_over = state.month.forecast, state.p_over
    ahead: doc.Cell = None
    if forecast is not None:
        ahead = Interval(p10=forecast.quantile(0.1), p50=forecast.quantile(0.5), p90=forecast.quantile(0.9))
    month = f"{state.month.since:%Y-%m}", whose(state.budget), state.budget.most_usd
    rule = Path(state.budget.rule).name or None
    tone = doc.Tone.BAD if p_over is not None and p_over > 0.5 else doc.Tone.PLAIN
    return doc.Row((*month, float(state.month.spent_usd), state.used, ahead, p_over, rule), tone)


def accuracy_table(review: TeamReview) -> doc.Table:
    """How well the intervals held."""
    counts = "Runs", "Within p90", ("Expected", _ONE_DECIMAL), "Within p50"
    head = (
        doc.Column("Predicted"),
        *doc.columns(*counts, kind=doc.COUNT, wraps=False),
        doc.Column("Actual / predicted", doc.DECIMALS, wraps=False),
    )
    records: Mapping[str, PredictionRecord | None] = {
        "time": review.accuracy.time,
        **{f"time on {gpu}": record for gpu, record in review.accuracy.by_gpu.items()},
        "cost": review.accuracy.cost,
    }
    rows = (
        doc.Row((name, r.num, r.num_within_p90, r.expected_within_p90, r.num_within_p50, r.median_ratio))
        for name, r in records.items()
        if r is not None
    )
    return doc.Table(columns=head, rows=tuple(rows), caption="Predicted and actual")


def price_table(moves: Sequence[PriceMove]) -> doc.Table:
    """How prices moved over the period."""
    names = doc.columns("GPU", "Machine", "Place", "Market", wraps=False)
    figures = "First", "Last", "Lowest", "Highest", ("Change", doc.SHARE), "p10 .. p50 .. p90"
    return doc.Table(
        columns=(*names, *doc.columns(*figures, kind=doc.USD_PER_H, wraps=False)),
        rows=tuple(doc.Row((*_price_names(m), *_prices(m), m.series.change, m.usd_per_h)) for m in moves),
        caption="Prices of what the team uses, USD per hour",
        narrow=(_narrow_prices(moves),),
        narrow_below=WIDE_PRICES,
    )


def _narrow_prices(moves: Sequence[PriceMove]) -> doc.Table:
    figures = "First,\nlast", "Lowest,\nhighest", ("Change", doc.SHARE), "p10,\np90"
    names = doc.columns("GPU,\nmachine", "Place,\nmarket")
    head = *names, *doc.columns(*figures, kind=doc.USD_PER_H, wraps=False)
    rows = []
    for move in moves:
        where, prices = _price_names(move), _prices(move)
        band = move.usd_per_h.p10, move.usd_per_h.p90
        rows.append(doc.Row((where[:2], where[2:], prices[:2], prices[2:], move.series.change, band)))
    return doc.Table(columns=head, rows=tuple(rows))


def _price_names(move: PriceMove) -> tuple[str, str, str, str]:
    series = move.series
    machine = f"{series.provider} {series.instance_type}"
    return move.gpu, machine, series.zone or series.region, series.market


def _prices(move: PriceMove) -> tuple[float, float, float, float]:
    series = move.series
    return (move.first_usd_per_h, move.last_usd_per_h, series.lowest_usd_per_h, series.highest_usd_per_h)


def saving_table(savings: Sequence[Saving]) -> doc.Table:
    """What to do: jobs that cost less elsewhere, each with the command that shows it."""
    head = (
        doc.Column(SAVINGS),
        doc.Column("Saves in this period", doc.CENTS, wraps=False),
        doc.Column("See for yourself"),
    )
    rows = (
        doc.Row((sentence(saving_finding(one)), one.period_usd, command_of(one)), doc.Tone.GOOD)
        for one in savings
    )
    return doc.Table(columns=head, rows=tuple(rows), caption=SAVINGS)


def violation_table(violations: Sequence[Violation]) -> doc.Table:
    """Rules that runs did not keep."""
    by_rule = grouped(violations, lambda one: one.rule)
    rows = (
        doc.Row((rule, len(group), float(cost_of(one.run for one in group)), group[0].run.id), doc.Tone.BAD)
        for rule, group in by_rule.items()
    )
    sums = doc.columns(("Runs", doc.COUNT), ("Cost", doc.CENTS), wraps=False)
    head = (doc.Column("Rule"), *sums, doc.Column("Such as"))
    return doc.Table(columns=head, rows=tuple(rows), caption="Rules that runs did not keep")


def finding_tables(name: str, findings: Sequence[Finding]) -> tuple[doc.Table, ...]:
    """Their sentences below a name; no table where there are none."""
    rows = tuple(doc.Row((sentence(one),)) for one in findings)
    return (doc.Table(columns=(doc.Column(name),), rows=rows, caption=name),) if rows else ()


def run_table(review: TeamReview) -> doc.Table:
    """A row a run, for spreadsheets: what was predicted, and what it was."""
    head = (
        *doc.columns(
            "started_at", "project", "script", "provider", "instance_type", "region", "market", "gpu"
        ),
        *doc.columns("num_gpus", "status"),
        *doc.columns("duration_s", "predicted_p50_s", "predicted_p90_s", kind=doc.PLAIN),
        *doc.columns("cost_usd", "predicted_p50_usd", "predicted_p90_usd", kind=doc.PLAIN),
        *doc.columns("recommendation", "run"),
    )
    rows = []
    for run in review.runs:
        entry = review.advised.get(run.recommendation_id or "")
        time_s = (None, None) if entry is None else (entry.time_s.p50, entry.time_s.p90)
        cost = (None, None) if entry is None else (entry.cost_usd.p50, entry.cost_usd.p90)
        where = run.provider, run.instance_type, run.region, run.market, run.gpu, f"{run.num_gpus}"
        names = run.started_at.isoformat(), run.project, run.script, *where, run.status
        ids = run.recommendation_id, run.id
        rows.append(doc.Row((*names, run.duration_s, *time_s, run.cost_usd, *cost, *ids)))
    return doc.Table(columns=head, rows=tuple(rows))
