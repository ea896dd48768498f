"""Options under a policy: what it removes is no longer feasible, and says by which rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from advisor.core.findings import Code, Finding, finding
from advisor.core.values import Option
from recommender.outcome.spot import SpotTerms
from recommender.policy.facts import Spent
from recommender.policy.judge import NeededApproval, Removal, Verdict, everything_removed, judge_options
from recommender.policy.merge import Policy


def under_policy(
    options: Sequence[Option], policy: Policy, spent: Spent, spot: SpotTerms
) -> tuple[Option, ...]:
    """The options in the same order, with the rules that remove them and the approvals they need as reasons.

    Args:
        options: evaluated ones.
        policy: merged from all its files.
        spent: what this month's runs have cost so far.
        spot: for rules about preemptions and checkpoints.

    Raises:
        PolicyViolationError: the policy removes every option; names the rules that would have to give way.
    """
    verdicts = judge_options(options, policy, spent, spot)
    if options and all(verdicts[option.plan.id].removals for option in options):
        raise everything_removed({plan_id: verdict.removals for plan_id, verdict in verdicts.items()})
    return tuple(_judged(option, verdicts[option.plan.id]) for option in options)


def _judged(option: Option, verdict: Verdict) -> Option:
    reasons = (*map(_removal, verdict.removals), *map(_approval, verdict.approvals))
    return replace(option, reasons=(*reasons, *option.reasons)) if reasons else option


def _removal(removal: Removal) -> Finding:
    return finding(Code.POLICY, rule=removal.rule, file=removal.file, detail=removal.detail)


def _approval(approval: NeededApproval) -> Finding:
    return finding(Code.APPROVAL_NEEDED, by=approval.by, file=approval.file, detail=approval.detail)
