"""A team's report as a document: charts, JSON, and what to do first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from decimal import Decimal
from typing import TYPE_CHECKING

from advisor.core.values import Quantiles
from advisor.report import review_page as page
from advisor.report import review_tables
from advisor.report.document import BLANK, Block, Document, Late, Lines, Section, Table, facts_of
from advisor.report.words import finding_json, sentence, warnings_json
from advisor.review.budgets import BudgetState
from advisor.review.savings import Comparison, Record, Saving
from advisor.review.spending import BilledShare, Billing, Share
from advisor.review.who_spent import Showback
from advisor.spend.showback import Part

if TYPE_CHECKING:
    from advisor.review.team_review import Move, TeamReview


def review_json(review: TeamReview) -> Mapping[str, object]:
    """All facts; money as numbers of US dollars before tax, parts of which add up to their whole."""
    spending, scope = review.spending, review.scope
    return {
        "since": review.period.since.isoformat(),
        "until": review.period.until.isoformat(),
        "team": scope.team,
        "projects": None if scope.projects is None else sorted(scope.projects),
        "num_recommendations": len(review.recommendations),
        "recommended_usd": sum(entry.cost_usd.p50 for entry in review.recommendations),
        "spending": {
            **_share(spending.all),
            "by_project": _shares(spending.by_project),
            "by_gpu": _shares(spending.by_gpu),
            "by_market": _shares(spending.by_market),
            "by_provider": _shares(spending.by_provider),
            "by_user": _shares(spending.by_user),
            "by_week": _shares(spending.by_week),
        },
        "billing": None if review.billing is None else _billing(review.billing),
        "accuracy": {
            "time": _record(review.accuracy.time),
            "cost": _record(review.accuracy.cost),
            "time_by_gpu": {gpu: _record(record) for gpu, record in review.accuracy.by_gpu.items()},
            "num_elsewhere": review.accuracy.num_elsewhere,
            "runs": list(map(_comparison, review.accuracy.comparisons)),
        },
        "budgets": list(map(_budget, review.budgets)),
        "showback": _showback(review.showback),
        "violations": [{"run": one.run.id, "rule": one.rule} for one in review.violations],
        "prices": list(map(_move, review.moves.moves)),
        "savings": [_saving(one) for one in review.savings],
        "leaks": list(map(sentence, review.leaks)),
        "leak_findings": list(map(finding_json, review.leaks)),
        **warnings_json(review.unknown),
    }


def _usd(amount: Decimal) -> float:
    return float(amount)


def _share(share: Share) -> dict[str, object]:
    return {
        "usd": None if share.is_unknown else _usd(share.usd),
        **facts_of(share, "num_runs num_unknown gpu_h"),
        "spent_usd": None if share.spent_usd is None else _usd(share.spent_usd),
    }


def _shares(shares: Iterable[Share]) -> list[dict[str, object]]:
    return [{"name": share.name, **_share(share)} for share in shares]


def _billing(billing: Billing) -> dict[str, object]:
    return {
        "usd": _usd(billing.usd),
        "amortised_usd": _usd(billing.amortised_usd),
        "left_out_usd": _usd(billing.left_out_usd),
        "coverage": billing.coverage,
        "commitments": [
            {
                **facts_of(one, "provider name utilisation"),
                "used_usd": _usd(one.used_usd),
                "unused_usd": _usd(one.unused_usd),
            }
            for one in billing.commitments
        ],
        "by_provider": _billed(billing.by_provider),
        "by_project": _billed(billing.by_project),
        "by_week": _billed(billing.by_week),
        "by_service": _billed(billing.by_service),
        "machines": [
            {
                **facts_of(machine, "provider instance_type"),
                "billed_usd": _usd(machine.billed_usd),
                "amortised_usd": _usd(machine.amortised_usd),
                "explained_usd": _usd(machine.explained_usd),
                "idle_usd": _usd(machine.idle_usd),
                "num_runs": machine.num_runs,
            }
            for machine in billing.machines
        ],
        "tax_usd": _usd(billing.tax_usd),
        "untagged_usd": _usd(billing.untagged_usd),
        "other_currencies": {name: float(amount) for name, (amount, _) in billing.other_currencies.items()},
    }


def _showback(showback: Showback) -> dict[str, object]:
    found = list(map(review_tables.jump_finding, showback.jumps))
    return {
        **_dollars(showback, "usd before_usd unallocated_usd"),
        "by_team": list(map(_part, showback.by_team)),
        "by_project": list(map(_part, showback.by_project)),
        "by_tag": {
            tag: {value: _usd(usd) for value, usd in by_value.items()}
            for tag, by_value in showback.by_tag.items()
        },
        "unit_costs": [
            {
                **facts_of(one, "project script num_runs"),
                **_dollars(one, "per_run_usd per_epoch_usd per_million_tokens_usd"),
            }
            for one in showback.unit_costs
        ],
        "unusual": list(map(sentence, found)),
        "unusual_findings": list(map(finding_json, found)),
    }


def _part(part: Part) -> dict[str, object]:
    return {"name": part.name, **_dollars(part, "usd shared_usd before_usd")}


def _dollars(value: object, names: str) -> dict[str, object]:
    """Exact amounts as numbers; None stays."""
    facts = facts_of(value, names).items()
    return {name: float(usd) if isinstance(usd, Decimal) else None for name, usd in facts}


def _billed(shares: Iterable[BilledShare]) -> list[dict[str, object]]:
    return [
        {**facts_of(one, "name num_charges"), "usd": _usd(one.usd), "amortised_usd": _usd(one.amortised_usd)}
        for one in shares
    ]


def _record(record: Record | None) -> dict[str, object] | None:
    return None if record is None else {**asdict(record), "expected_within_p90": record.expected_within_p90}


def _comparison(one: Comparison) -> dict[str, object]:
    return {
        "run": one.run.id,
        "recommendation": one.run.recommendation_id,
        **facts_of(one.run, "gpu num_gpus"),
        "predicted_s": _quantiles(one.predicted_s),
        "actual_s": one.actual_s,
        "predicted_usd": _quantiles(one.predicted_usd),
        "actual_usd": one.actual_usd,
    }


def _quantiles(quantiles: Quantiles) -> dict[str, float]:
    return {"p50": quantiles.p50, "p90": quantiles.p90}


def _budget(state: BudgetState) -> dict[str, object]:
    budget, month = state.budget, state.month
    return {
        "rule": budget.rule or None,
        "owner": budget.owner,
        "name": budget.name,
        "limit_usd": budget.most_usd,
        "month": f"{month.since:%Y-%m}",
        "spent_usd": _usd(month.spent_usd),
        "num_unknown": state.num_unknown,
        "forecast_usd": None
        if month.forecast is None
        else {f"p{share}": month.forecast.quantile(share / 100) for share in (10, 50, 90)},
        "used": state.used,
        "p_over": state.p_over,
    }


def _move(move: Move) -> dict[str, object]:
    series = move.series
    return {
        "gpu": move.gpu,
        **facts_of(series, "provider instance_type region zone market source"),
        **facts_of(move, "first_usd_per_h last_usd_per_h"),
        **facts_of(series, "lowest_usd_per_h highest_usd_per_h change"),
        **facts_of(move, "usd_per_h is_used"),
    }


def _saving(saving: Saving) -> dict[str, object]:
    one = review_tables.saving_finding(saving)
    return {
        **facts_of(saving.job, "project script"),
        "num_runs": len(saving.job.runs),
        "usd_per_run": saving.job.usd,
        "plan": saving.plan.id,
        "usd": _quantiles(saving.usd),
        "time_s": _quantiles(saving.time_s),
        **facts_of(saving, "deadline_s share period_usd"),
        "command": review_tables.command_of(saving),
        "words": sentence(one),
        "finding": finding_json(one),
    }


FIRST_STEPS = (
    "Nothing is recorded yet, so there is nothing to report. A first report needs three steps:",
    "  advisor recommend train.py --epochs 90 --record    keeps what was planned",
    "  advisor run -- python train.py                     keeps what really happened, and what it cost",
    "  advisor report --bills FILE                        adds what your cloud billed (docs/report.md)",
)


def first_document() -> Document:
    """What to do where nothing was ever recorded."""
    facts: dict[str, object] = {"is_first": True, "next_steps": list(FIRST_STEPS), "warnings": []}
    return Document(facts=facts, blocks=(Lines(FIRST_STEPS),), title="Report")


def review_document(review: TeamReview) -> Document:
    """All of a report; what has nothing to show is left out."""
    title = review_tables.heading(review.scope, review.period, review.organisation)
    return Document(
        facts=Late(lambda: {"is_first": False, **review_json(review)}),
        blocks=(Lines((title,)), *_titled(_tables(review), review)),
        sheet=lambda: review_tables.run_table(review),
        title=title,
        subject=page.subject_of(review),
        page=lambda: tuple(_page(review)),
        layout=lambda: page.report_layout(review),
        is_letter=True,
        # Forecasts and time-weighted prices move with each minute.
        of_moment=frozenset({"since", "until", "budgets", "prices"}),
    )


def _titled(tables: Iterator[Table], review: TeamReview) -> Iterator[Block]:
    """Tables below their captions, which a terminal does not show; sentences read better as a list."""
    for table in tables:
        yield BLANK
        if table.caption == review_tables.SAVINGS:
            yield from _savings(review)
        elif len(table.columns) == 1:
            yield Section(table.caption, tuple(str(row.cells[0]) for row in table.rows))
        else:
            yield Lines((table.caption,))
            yield table


def _savings(review: TeamReview) -> Iterator[Block]:
    """Each saving with its command on a line of its own, for copying."""
    for number, saving in enumerate(review.savings):
        yield Section(
            "" if number else review_tables.SAVINGS, (sentence(review_tables.saving_finding(saving)),)
        )
        yield Lines((f"    {review_tables.command_of(saving)}",))


def _tables(review: TeamReview) -> Iterator[Table]:
    yield page.in_short(review)
    if review.savings:
        yield review_tables.saving_table(review.savings)
    yield review_tables.budget_table(review.budgets)
    yield from _of_leaks(review)
    if review.showback.jumps:
        yield review_tables.sentence_table(
            "Unusual days", map(sentence, map(review_tables.jump_finding, review.showback.jumps))
        )
    yield from review_tables.showback_tables(review.showback)
    if review.runs:
        yield from review_tables.spending_tables(review)
    if review.billing is not None and review.billing.charges:
        yield review_tables.billing_table(review.billing)
        if review.billing.commitments:
            yield review_tables.commitment_table(review.billing)
    if review.accuracy.time is not None:
        yield review_tables.accuracy_table(review)
    if review.moves.moves:
        yield review_tables.price_table(review.moves.moves)
    if review.unknown:
        yield review_tables.sentence_table("Not known", map(sentence, review.unknown))


def _of_leaks(review: TeamReview) -> Iterator[Table]:
    if review.leaks:
        yield review_tables.sentence_table("Where money leaks", map(sentence, review.leaks))
    if review.violations:
        yield review_tables.violation_table(review.violations)


def _page(review: TeamReview) -> Iterator[Block]:
    """The same tables, each below the chart of it."""
    tables = {table.caption: table for table in _tables(review)}
    for caption, table in tables.items():
        if caption == "Spending by week":
            yield page.weeks_chart(review)
        elif caption.startswith("The month"):
            yield from map(page.budget_chart, review.budgets)
        elif caption == "Predicted and actual":
            yield page.accuracy_chart(review.accuracy.comparisons)
        elif caption.startswith("Prices"):
            yield from page.price_charts(review.moves.moves, review.period.until.timestamp())
        yield table
