"""What a policy says of plans, before anything is computed, and of options, after; pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from advisor.core.errors import PolicyViolationError
from advisor.core.findings.about_options import ApprovalNeeded, RemovedByPolicy
from advisor.core.values import Option, Plan
from recommender.conditions import Facts, Spent, facts_of_option, facts_of_plan
from recommender.outcome.spot import ASSUMED_TERMS, SpotTerms
from recommender.policy.merge import Policy
from recommender.policy.rules import ApprovalRule, Effect, Judgement, Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a policy says of an option: removed if there is any removal."""

    removals: tuple[RemovedByPolicy, ...] = ()
    approvals: tuple[ApprovalNeeded, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveWay:
    """The smallest set of rules without which plans would be left, and how many."""

    rules: tuple[str, ...]
    num_plans: int


def explain(facts: Facts, policy: Policy) -> tuple[tuple[Rule, Judgement], ...]:
    """Every rule in force with what it says; what is not known of the plan is said to be unknown."""
    return tuple((rule, rule.judge(facts)) for rule in policy.rules)


def judge_facts(facts: Facts, policy: Policy) -> Verdict:
    """Removals and approvals of what is known; what is unknown removes nothing.

    Raises InputError: the policy is none of `read_policies`.
    """
    judgements = explain(facts, policy)
    return Verdict(
        removals=tuple(
            _removal(rule, judgement.detail)
            for rule, judgement in judgements
            if judgement.effect is Effect.REMOVES
        ),
        approvals=tuple(
            ApprovalNeeded(by=rule.by, file=str(rule.origin), detail=judgement.detail)
            for rule, judgement in judgements
            if isinstance(rule, ApprovalRule) and judgement.effect is Effect.ASKS
        ),
    )


def judge_plan(plan: Plan, policy: Policy, spot: SpotTerms | None = None) -> tuple[RemovedByPolicy, ...]:
    """Why a plan need not be computed: names, price per hour, number of GPUs, spot rules.

    Args:
        policy: from `read_policies`.
        spot: how spot machines behave; assumptions of the recommender if None.

    Raises InputError: the policy is none of `read_policies`.
    """
    return judge_facts(facts_of_plan(plan, spot or ASSUMED_TERMS), policy).removals


def judge_option(option: Option, policy: Policy, spent: Spent, spot: SpotTerms | None = None) -> Verdict:
    """The same with the cost of the job at p90, what was spent this month, and approvals.

    A preferred tier depends on the other options: `judge_options`.

    Raises InputError: the policy is none of `read_policies`.
    """
    return judge_facts(facts_of_option(option, spot or ASSUMED_TERMS, spent), policy)


def judge_options(
    options: Sequence[Option], policy: Policy, spent: Spent, spot: SpotTerms | None = None
) -> Mapping[str, Verdict]:
    """By plan id, the verdict on each option, the preferred tier included.

    While an option of that tier is feasible, not removed, and meets the condition, the other tiers go.

    Raises InputError: the policy is none of `read_policies`.
    """
    verdicts = {option.plan.id: judge_option(option, policy, spent, spot) for option in options}
    prefer = policy.prefer
    if prefer is None:
        return verdicts
    preferred = [o for o in options if prefer.holds_for(o) and not verdicts[o.plan.id].removals]
    if not preferred:
        return verdicts
    removal = _removal(prefer, prefer.detail(min(preferred, key=lambda option: option.time_s.p90)))
    others = (option.plan.id for option in options if option.plan.tier is not prefer.tier)
    return verdicts | {
        plan_id: replace(verdicts[plan_id], removals=(*verdicts[plan_id].removals, removal))
        for plan_id in others
    }


def would_give_way(removals: Mapping[str, Sequence[RemovedByPolicy]]) -> GiveWay | None:
    """The smallest set of rules whose lifting leaves a plan; of those, the one that leaves most.

    A plan is left once every rule that removes it is lifted, so the smallest set is that of some plan.

    Args:
        removals: by plan id, of the removed plans.

    Returns:
        None if nothing was removed.
    """
    sets = [
        frozenset(f"{one.rule} ({one.file})" for one in several) for several in removals.values() if several
    ]
    if not sets:
        return None
    fewest = min(map(len, sets))
    counts = Counter(tuple(sorted(rules)) for rules in sets if len(rules) == fewest)
    rules, num_plans = min(counts.items(), key=lambda item: (-item[1], item[0]))
    return GiveWay(rules=rules, num_plans=num_plans)


def everything_removed(removals: Mapping[str, Sequence[RemovedByPolicy]]) -> PolicyViolationError:
    """The error for a policy that leaves no plan: which rule would have to give way, and what that leaves.

    Args:
        removals: by plan id, of every plan; none may be empty.
    """
    giving_way = would_give_way(removals)
    if giving_way is None:
        return PolicyViolationError("the policy leaves no plan.")
    rules, count = " and ".join(giving_way.rules), giving_way.num_plans
    if len(removals) == 1:
        return PolicyViolationError(f"the policy removes this plan: {rules} would have to give way.")
    left = f"{count} plans" if count > 1 else "1 plan"
    return PolicyViolationError(
        f"the policy removes all {len(removals)} plans. {left} would be left without {rules}:"
        " ask the owner of the file, or look for other machines."
    )


def _removal(rule: Rule, detail: str) -> RemovedByPolicy:
    return RemovedByPolicy(rule=rule.text, file=str(rule.origin), detail=detail)


# --- Options under a policy: what it removes is no longer feasible, and says by which rule ---------------


def under_policy(
    options: Sequence[Option], policy: Policy, spent: Spent, spot: SpotTerms
) -> tuple[Option, ...]:
    """The options in their order, with the rules that remove them, and approvals they need, as reasons."""
    verdicts = judge_options(options, policy, spent, spot)
    return tuple(_judged(option, verdicts[option.plan.id]) for option in options)


def check_any_left(options: Sequence[Option]) -> None:
    """Refuse a policy that removes every option; they are those of ``under_policy``.

    Raises PolicyViolationError: names the rules that would have to give way.
    """
    if options and all(RemovedByPolicy.code in option.removed_by for option in options):
        raise everything_removed(
            {
                option.plan.id: [reason for reason in option.reasons if isinstance(reason, RemovedByPolicy)]
                for option in options
            }
        )


def _judged(option: Option, verdict: Verdict) -> Option:
    reasons = (*verdict.removals, *verdict.approvals)
    return replace(option, reasons=(*reasons, *option.reasons)) if reasons else option
