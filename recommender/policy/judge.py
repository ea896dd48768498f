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


def explain(facts: Facts, policy: Policy) -> tuple[tuple[Rule, Judgement], ...]:
    """Every rule in force with what it says; what is not known of the plan is said to be unknown."""
    return tuple((rule, rule.judge(facts)) for rule in policy.rules)


def judge_facts(facts: Facts, policy: Policy) -> Verdict:
    """Removals and approvals of what is known; what is unknown removes nothing."""
    judgements = explain(facts, policy)
    return Verdict(
        removals=tuple(
            _removal(rule, judgement.detail)
            for rule, judgement in judgements
            if judgement.effect is Effect.REMOVES
        ),
        approvals=tuple(
            ApprovalNeeded(by=rule.setting.by, file=str(rule.origin), detail=judgement.detail)
            for rule, judgement in judgements
            if isinstance(rule, ApprovalRule) and judgement.effect is Effect.ASKS
        ),
    )


def judge_plan(plan: Plan, policy: Policy, spot: SpotTerms = ASSUMED_TERMS) -> tuple[RemovedByPolicy, ...]:
    """Why a plan need not be computed: names, price per hour, number of GPUs, spot rules."""
    return judge_facts(facts_of_plan(plan, spot), policy).removals


def judge_options(
    options: Sequence[Option], policy: Policy, spent: Spent, spot: SpotTerms = ASSUMED_TERMS
) -> Mapping[str, Verdict]:
    """By plan id, the verdict on each option: also of its cost at p90, this month and the preferred tier.

    While an option of that tier is feasible, not removed, and meets the condition, the other tiers go.
    """
    verdicts = {one.plan.id: judge_facts(facts_of_option(one, spot, spent), policy) for one in options}
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


def would_give_way(removals: Mapping[str, Sequence[RemovedByPolicy]]) -> tuple[tuple[str, ...], int] | None:
    """The smallest set of rules whose lifting leaves plans, and how many; of those, the one that leaves most.

    A plan is left once every rule that removes it is lifted, so the smallest set is that of some plan.
    Removals are by plan id. None if nothing was removed.
    """
    by_plan = filter(None, removals.values())
    sets = [tuple(sorted({f"{one.rule} ({one.file})" for one in several})) for several in by_plan]
    fewest = min(map(len, sets), default=0)
    counts = Counter(rules for rules in sets if len(rules) == fewest)
    return min(counts.items(), key=lambda item: (-item[1], item[0]), default=None)


def everything_removed(removals: Mapping[str, Sequence[RemovedByPolicy]]) -> PolicyViolationError:
    """The error for a policy that leaves no plan: which rule would have to give way, and what that leaves."""
    giving_way = would_give_way(removals)
    if giving_way is None:
        return PolicyViolationError("the policy leaves no plan.")
    rules, count = " and ".join(giving_way[0]), giving_way[1]
    if len(removals) == 1:
        return PolicyViolationError(f"the policy removes this plan: {rules} would have to give way.")
    left = f"{count} plans" if count > 1 else "1 plan"
    return PolicyViolationError(
        f"the policy removes all {len(removals)} plans. {left} would be left without {rules}:"
        " ask the owner of the file, or look for other machines."
    )


def _removal(rule: Rule, detail: str) -> RemovedByPolicy:
    return RemovedByPolicy(rule=rule.text, file=str(rule.origin), detail=detail)


def under_policy(
    options: Sequence[Option], spot: SpotTerms, *, policy: Policy, spent: Spent
) -> tuple[Option, ...]:
    """The options in their order, with the rules that remove them, and approvals they need, as reasons."""
    verdicts = judge_options(options, policy, spent, spot)
    found = ((one, (*verdicts[one.plan.id].removals, *verdicts[one.plan.id].approvals)) for one in options)
    return tuple(replace(one, reasons=(*said, *one.reasons)) if said else one for one, said in found)


def check_any_left(options: Sequence[Option]) -> None:
    """Refuse a policy that removes every option; they are those of ``under_policy``.

    Raises PolicyViolationError: names the rules that would have to give way.
    """
    if options and all(RemovedByPolicy.code in option.removed_by for option in options):
        reasons = {option.plan.id: option.reasons for option in options}
        raise everything_removed(
            {name: [one for one in why if isinstance(one, RemovedByPolicy)] for name, why in reasons.items()}
        )
