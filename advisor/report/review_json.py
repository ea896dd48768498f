"""A team's report as JSON (docs/json.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from advisor.report.words import finding_json, sentence, warnings_json

if TYPE_CHECKING:
    from decimal import Decimal

    from advisor.core.values import Quantiles
    from advisor.review.accuracy import Comparison, Record
    from advisor.review.billing import BilledShare, Billing
    from advisor.review.budgets import BudgetState
    from advisor.review.price_moves import Move
    from advisor.review.savings import Saving
    from advisor.review.spending import Share
    from advisor.review.team_review import TeamReview


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
        "num_runs": share.num_runs,
        "num_unknown": share.num_unknown,
        "gpu_h": share.gpu_h,
    }


def _shares(shares: Iterable[Share]) -> list[dict[str, object]]:
    return [{"name": share.name, **_share(share)} for share in shares]


def _billing(billing: Billing) -> dict[str, object]:
    return {
        "usd": _usd(billing.usd),
        "by_provider": _billed(billing.by_provider),
        "by_project": _billed(billing.by_project),
        "by_week": _billed(billing.by_week),
        "by_service": _billed(billing.by_service),
        "machines": [
            {
                "provider": machine.provider,
                "instance_type": machine.instance_type,
                "billed_usd": _usd(machine.billed_usd),
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


def _billed(shares: Iterable[BilledShare]) -> list[dict[str, object]]:
    return [{"name": one.name, "usd": _usd(one.usd), "num_charges": one.num_charges} for one in shares]


def _record(record: Record | None) -> dict[str, object] | None:
    return None if record is None else {**asdict(record), "expected_within_p90": record.expected_within_p90}


def _comparison(one: Comparison) -> dict[str, object]:
    return {
        "run": one.run.id,
        "recommendation": one.run.recommendation_id,
        "gpu": one.run.gpu,
        "num_gpus": one.run.num_gpus,
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
        "limit_usd": budget.most_usd,
        "month": f"{month.since:%Y-%m}",
        "spent_usd": _usd(month.spent_usd),
        "num_unknown": state.num_unknown,
        "forecast_usd": None
        if month.forecast is None
        else {f"p{share}": month.forecast.quantile(share / 100) for share in (10, 50, 90)},
        "p_over": state.p_over,
    }


def _move(move: Move) -> dict[str, object]:
    series = move.series
    return {
        "gpu": move.gpu,
        "provider": series.provider,
        "instance_type": series.instance_type,
        "region": series.region,
        "zone": series.zone,
        "market": series.market,
        "source": series.source,
        "first_usd_per_h": move.first_usd_per_h,
        "last_usd_per_h": move.last_usd_per_h,
        "lowest_usd_per_h": series.lowest_usd_per_h,
        "highest_usd_per_h": series.highest_usd_per_h,
        "change": series.change,
        "usd_per_h": asdict(move.usd_per_h),
        "is_used": move.is_used,
    }


def _saving(saving: Saving) -> dict[str, object]:
    from advisor.report.review_words import command_of, saving_finding

    one = saving_finding(saving)
    return {
        "project": saving.job.project,
        "script": saving.job.script,
        "num_runs": len(saving.job.runs),
        "usd_per_run": saving.job.usd,
        "plan": saving.plan.id,
        "usd": _quantiles(saving.usd),
        "time_s": _quantiles(saving.time_s),
        "deadline_s": saving.deadline_s,
        "share": saving.share,
        "period_usd": saving.period_usd,
        "command": command_of(saving),
        "words": sentence(one),
        "finding": finding_json(one),
    }
