"""What rules say of plans and options, the preferred tier, the month, and which rule must give way."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from advisor.core.errors import PolicyViolationError
from advisor.core.findings import quoted
from advisor.core.findings.about_options import RemovedByMemory, RemovedByPolicy
from advisor.core.values import Layout, Market, Means, Option, Plan, Quantiles, Tier
from advisor.pricing.spot_odds import spot_odds
from advisor.report.words import sentence
from advisor.site_files.policy_files import check_policies, read_policies
from recommender.conditions import Spent, facts_of_option, start_of_month
from recommender.outcome.spot import ASSUMED_TERMS, SpotTerms
from recommender.policy import judge
from recommender.policy.merge import Policy
from recommender.policy.model import LOCKABLE
from recommender.policy.rules import Effect
from tests.builders import HOUR_S, make_estimate, make_offer, make_plan
from tests.findings import sample
from tests.unit.recommender.policy.files import policy_of, write

NOTHING_SPENT = Spent(all_usd=0.0, project_usd=0.0)


def rented(
    gpu: str = "A100-SXM-40GB", usd_per_h: float = 32.0, *, num_gpus: int = 8, **of_offer: Any
) -> Plan:
    """A machine of a cloud."""
    facts = {"instance_type": "p4d.24xlarge", "region": "us-east-1"} | of_offer
    offer = make_offer(gpu, usd_per_h, num_gpus=num_gpus, **facts)
    name = f"{offer.provider}/{offer.instance_type}/{offer.region}/{offer.market}"
    return make_plan(gpu, usd_per_h, num_gpus=num_gpus, offer=offer, provider=offer.provider, id=name)


TWO_NODES = replace(rented(), layout=Layout(gpus_per_node=8, num_nodes=2), usd_per_h=64.0)


def option(
    plan: Plan, cost_p90: float = 100.0, *, wait_s: float | None = 0.0, feasible: bool = True
) -> Option:
    """Half the cost is expected; the wait is as long at the median as at p90."""
    return Option(
        plan=plan,
        estimate=make_estimate(plan.gpu, num_gpus=plan.num_gpus),
        iterations=1,
        wait_s=None if wait_s is None else Quantiles(p50=wait_s, p90=wait_s),
        train_s=Quantiles(p50=1.0, p90=1.0),
        time_s=Quantiles(p50=1.0, p90=1.0 + (wait_s or 0.0)),
        cost_usd=Quantiles(p50=cost_p90 / 2, p90=cost_p90),
        counted_usd=cost_p90 / 2,
        expected=Means(wait_s=wait_s or 0.0, time_s=1.0, cost_usd=cost_p90 / 2, counted_usd=cost_p90 / 2),
        cost_breakdown_usd={},
        p_within_budget=None,
        p_within_deadline=None,
        risk=quoted(""),
        script_changes=(),
        reasons=() if feasible else (sample(RemovedByMemory),),
    )


def judge_option(job: Option, policy: Policy, spent: Spent = NOTHING_SPENT) -> judge.Verdict:
    """Of the option alone, whatever others there are."""
    return judge.judge_facts(facts_of_option(job, ASSUMED_TERMS, spent), policy)


SPOT = {"market": Market.SPOT}
NO_CHECKPOINTS = "it saves no checkpoints (spot.checkpoint_interval)"
LOCAL = make_plan("L4", None, tier=Tier.LOCAL, provider="local", num_gpus=2)
LAB = make_plan("T4", 0.4, tier=Tier.CLUSTER, provider="lab", num_gpus=4)


@pytest.mark.parametrize(
    ("body", "plan", "detail"),
    [
        ("deny: {regions: [us-*]}", rented(), "region us-east-1 is among them"),
        ("deny: {regions: [us-gov-*]}", rented(), None),
        ("deny: {regions: [US-EAST-1]}", rented(), "region us-east-1 is among them"),
        ("deny: {regions: ['*']}", LOCAL, None),
        ("allow: {regions: [eu-*]}", rented(), "region us-east-1 is not among them"),
        ("allow: {regions: [eu-*, us-east-1*]}", rented(), None),
        ("allow: {regions: [eu-*]}", LAB, None),
        ("allow: {markets: [on-demand]}", rented(**SPOT), "market spot is not among them"),
        ("allow: {markets: [on-demand]}", LOCAL, None),
        ("allow: {instance_types: [p5*]}", rented(), "instance type p4d.24xlarge is not among them"),
        ("allow: {instance_types: [p5*]}", LAB, None),
        ("allow: {providers: [aws]}", LOCAL, "provider local is not among them"),
        ("deny: {providers: [lab]}", LAB, "provider lab is among them"),
        ("allow: {providers: [aws, l*]}", LAB, None),
        ("allow: {gpus: [A100]}", rented(), None),
        ("deny: {gpus: [A100]}", rented(), "GPU A100-SXM-40GB is among them"),
        ("deny: {gpus: [A100-80GB]}", rented(), None),
        ("deny: {gpus: [L4]}", LOCAL, "GPU L4 is among them"),
        ("deny: {gpus: [B2*]}", rented("B2001 of a cloud"), "GPU B2001 of a cloud is among them"),
        ("allow: {gpus: [A100]}", rented("B2001 of a cloud"), "GPU B2001 of a cloud is not among them"),
        ("limits: {usd_per_hour: 31.99}", rented(), "it costs $32.00/h"),
        ("limits: {usd_per_hour: 32}", rented(), None),
        ("limits: {usd_per_hour: 31.9999999}", rented(), None),
        ("limits: {usd_per_hour: 0}", LOCAL, None),
        ("limits: {usd_per_hour: 0.39}", LAB, "it costs $0.40/h"),
        ("limits: {gpus_per_job: 4}", rented(), "it has 8 GPUs"),
        ("limits: {gpus_per_job: 8}", rented(), None),
        ("limits: {gpus_per_job: 15}", TWO_NODES, "it has 16 GPUs"),
        ("limits: {nodes_per_job: 1}", TWO_NODES, "it has 2 nodes"),
        ("limits: {nodes_per_job: 2, gpus_per_job: 16, usd_per_hour: 64}", TWO_NODES, None),
        ("limits: {nodes_per_job: 1}", rented(), None),
        ("limits: {usd_per_hour: 63}", TWO_NODES, "it costs $64.00/h"),
        ("spot: {allowed: false}", rented(**SPOT), "it is a spot machine"),
        ("spot: {allowed: false}", rented(), None),
        ("spot: {allowed: false}", LOCAL, None),
        ("spot: {allowed: true}", rented(**SPOT), None),
        ("spot: {needs_checkpoints: true}", rented(**SPOT), NO_CHECKPOINTS),
        ("spot: {needs_checkpoints: true}", rented(), None),
        ("spot: {needs_checkpoints: false}", rented(**SPOT), None),
        ("spot: {preemptions_per_h_at_most: 0.2}", rented(**SPOT), "0.3 preemptions per hour are assumed"),
        ("spot: {preemptions_per_h_at_most: 0.3}", rented(**SPOT), None),
        ("spot: {preemptions_per_h_at_most: 0}", rented(), None),
        ("spot: {jobs_under: 1h}", rented(**SPOT), None),
        ("limits: {usd_per_job: 0, usd_per_month: 0}", rented(), None),  # nothing is computed yet
        ("prefer: {tier: local}\napproval: [{over_usd_per_job: 0, by: me}]", rented(), None),
        ("objective: {pick: safest}", rented(), None),
        ("runs: {guard: required}", rented(), None),
    ],
)  # fmt: skip
def test_plans(tmp_path, body, plan, detail):
    policy = policy_of(tmp_path, org=body)
    removals = judge.judge_plan(plan, policy, SpotTerms(checkpoint_interval_h=None, preemptions_per_h=0.3))
    if detail is None:
        assert removals == ()
        return
    (rule,) = policy.rules
    assert removals == (RemovedByPolicy(rule=rule.text, file=f"{tmp_path / 'org'}.yaml:4", detail=detail),)


@pytest.mark.parametrize(
    ("plan", "train_s", "detail"),
    [
        (rented(**SPOT), 24 * HOUR_S - 1, None),
        (rented(**SPOT), 24 * HOUR_S, "it trains for 1 d there"),
        (rented(**SPOT), math.inf, "it never ends"),
        (rented(), 48 * HOUR_S, None),
        (LAB, 48 * HOUR_S, None),
    ],
)
def test_long_jobs_are_kept_off_spot(tmp_path, plan, train_s, detail):
    policy = policy_of(tmp_path, org="spot: {jobs_under: 24h}")
    long = replace(option(plan), train_s=Quantiles(p50=train_s, p90=train_s))
    removals = judge_option(long, policy).removals
    assert [removal.facts["detail"] for removal in removals] == ([] if detail is None else [detail])


def test_every_rule_that_removes_is_named_with_its_file_and_line(tmp_path):
    policy = policy_of(
        tmp_path,
        org="deny:\n  providers: [gcp]\n  regions:\n  - us-gov-*\n  - us-east-*",
        team="limits:\n  usd_per_hour: 5",
    )
    assert [sentence(removal) for removal in judge.judge_plan(rented(), policy)] == [
        f"deny.regions: us-east-* ({tmp_path / 'org'}.yaml:8): region us-east-1 is among them",
        f"limits.usd_per_hour: 5 ({tmp_path / 'team'}.yaml:5): it costs $32.00/h",
    ]


def test_spot_machines_save_checkpoints_by_default(tmp_path):
    policy = policy_of(tmp_path, org="spot: {needs_checkpoints: true}")
    assert judge.judge_plan(rented(**SPOT), policy) == ()


def test_a_rate_that_nobody_gave_is_that_of_the_machines_class(tmp_path):
    known, new = (rented(gpu=gpu, **SPOT) for gpu in ("V100-SXM-16GB", "a GPU of tomorrow"))
    rates = [spot_odds(plan.gpu, plan.num_gpus).preemptions_per_h for plan in (known, new)]
    policy = policy_of(tmp_path, org=f"spot: {{preemptions_per_h_at_most: {sum(rates) / 2}}}")
    assert rates[0] < rates[1]
    assert judge.judge_plan(known, policy) == ()
    assert "preemptions per hour are assumed" in sentence(judge.judge_plan(new, policy)[0])


@pytest.mark.parametrize(
    ("limits", "cost_p90", "spent", "detail"),
    [
        ("usd_per_job: 99", 100.0, (0, 0), "the job costs $100.00 at p90"),
        ("usd_per_job: 100", 100.0, (0, 0), None),
        ("usd_per_job: 60", 100.0, (0, 0), "the job costs $100.00 at p90"),  # p50 is 50
        ("usd_per_job: 1000000", float("inf"), (0, 0), "the job costs unbounded at p90"),
        ("usd_per_month: 150", 100.0, (50, 0), None),
        (
            "usd_per_month: 150", 100.0, (51, 0),
            "$51.00 spent this month by all projects, and the job costs $100.00 at p90",
        ),
    ],
)  # fmt: skip
def test_costs(tmp_path, limits, cost_p90, spent, detail):
    policy = policy_of(tmp_path, org=f"limits: {{{limits}}}")
    verdict = judge_option(option(rented(), cost_p90), policy, Spent(all_usd=spent[0], project_usd=spent[1]))
    assert [removal.detail for removal in verdict.removals] == ([] if detail is None else [detail])


def test_a_project_counts_its_own_runs_and_the_organisation_all(tmp_path):
    policy = policy_of(tmp_path, org="limits: {usd_per_month: 1000}", project="limits: {usd_per_month: 300}")
    job = option(rented(), 100.0)

    def removed_by(all_usd: float, project_usd: float) -> list[str]:
        verdict = judge_option(job, policy, Spent(all_usd=all_usd, project_usd=project_usd))
        return [Path(removal.file.rpartition(":")[0]).stem for removal in verdict.removals]

    assert removed_by(800, 150) == []
    assert removed_by(800, 250) == ["project"]
    assert removed_by(950, 150) == ["org"]
    assert removed_by(950, 250) == ["org", "project"]


def test_only_the_monthly_limit_asks_the_ledger(tmp_path):
    policy = policy_of(tmp_path, org="limits: {usd_per_month: 1000, usd_per_job: 100, usd_per_hour: 9}")
    monthly = {rule.key: getattr(rule, "is_monthly", False) for rule in policy.rules}
    assert [key for key, is_monthly in monthly.items() if is_monthly] == ["limits.usd_per_month"]


def test_both_limits_of_a_month_hold(tmp_path):
    policy = policy_of(tmp_path, org="limits: {usd_per_month: 500}", project="limits: {usd_per_month: 260}")
    spent = Spent(all_usd=350.0, project_usd=150.0)
    assert judge_option(option(rented(), 110.0), policy, spent).removals == ()
    over = judge_option(option(rented(), 111.0), policy, spent).removals
    assert [removal.detail for removal in over] == [
        "$150.00 spent this month by this project, and the job costs $111.00 at p90"
    ]
    assert len(judge_option(option(rented(), 151.0), policy, spent).removals) == 2


def test_a_month_with_runs_of_unknown_cost_is_over_its_limit_or_unknown(tmp_path):
    policy = policy_of(tmp_path, org="limits: {usd_per_month: 500}", project="limits: {usd_per_month: 260}")
    spent = Spent(all_usd=350.0, project_usd=150.0, all_num_unknown=2)
    verdict = judge_option(option(rented(), 110.0), policy, spent)
    assert verdict.removals == ()
    judged = judge.explain(facts_of_option(option(rented(), 110.0), SpotTerms(), spent), policy)
    assert [(judgement.effect, judgement.detail) for _, judgement in judged] == [
        (Effect.UNKNOWN, "the cost of 2 of this month's runs is not known"),
        (Effect.KEEPS, "$150.00 spent this month by this project, and the job costs $110.00 at p90"),
    ]
    over = judge_option(option(rented(), 151.0), policy, spent)
    assert len(over.removals) == 2


@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=-7))])
def test_the_month_begins_at_midnight_of_the_first(zone):
    now = datetime(2026, 11, 21, 18, 5, 3, 7, tzinfo=zone)
    assert start_of_month(now) == datetime(2026, 11, 1, tzinfo=zone)
    assert start_of_month(start_of_month(now)) == start_of_month(now)


def test_approvals_mark_and_do_not_remove(tmp_path):
    policy = policy_of(
        tmp_path,
        org="approval:\n- {over_usd_per_job: 500, by: head of risk}",
        team="approval:\n- {over_usd_per_job: 99, by: team lead}\n- {over_usd_per_job: 100, by: nobody}",
    )
    verdict = judge_option(option(rented(), 100.0), policy)
    assert verdict.removals == ()
    (approval,) = verdict.approvals
    assert sentence(approval) == (
        f"needs approval by team lead: the job costs $100.00 at p90 ({tmp_path / 'team'}.yaml:5)"
    )
    dear = judge_option(option(rented(), 501.0), policy)
    assert [need.by for need in dear.approvals] == ["head of risk", "team lead", "nobody"]


def test_rules_of_plans_hold_for_options_as_well(tmp_path):
    policy = policy_of(tmp_path, org="deny: {regions: [us-*]}")
    assert judge_option(option(rented()), policy).removals == judge.judge_plan(rented(), policy)


def removed_tiers(folder: Path, body: str, options: list[Option]) -> set[Tier]:
    verdicts = judge.judge_options(options, policy_of(folder, org=body), NOTHING_SPENT)
    assert set(verdicts) == {o.plan.id for o in options}
    return {o.plan.tier for o in options if verdicts[o.plan.id].removals}


@pytest.mark.parametrize(
    ("body", "wait_h", "feasible", "removed"),
    [
        ("prefer: {tier: cluster}", 100, True, {Tier.CLOUD, Tier.LOCAL}),
        ("prefer: {tier: cluster}", None, True, {Tier.CLOUD, Tier.LOCAL}),
        ("prefer: {tier: cluster}", 0, False, set()),
        ("prefer: {tier: cluster, if: {wait_p90_under: 6h}}", 5.9, True, {Tier.CLOUD, Tier.LOCAL}),
        ("prefer: {tier: cluster, if: {wait_p90_under: 6h}}", 6, True, set()),
        ("prefer: {tier: cluster, if: {wait_p90_under: 6h}}", None, True, set()),
        ("prefer: {tier: cluster, if: {wait_p90_under: 6h}}", 1, False, set()),
        ("prefer: {tier: cluster, if: {wait_p90_under: 6h, wait_p50_under: 1h}}", 2, True, set()),
        ("prefer: {tier: cloud}", 0, True, {Tier.CLUSTER, Tier.LOCAL}),
        ("prefer: {tier: cluster}\ndeny: {providers: [lab]}", 0, True, {Tier.CLUSTER}),
        ("prefer: {tier: cluster}\nlimits: {usd_per_job: 50}", 0, True, {Tier.CLUSTER, Tier.CLOUD}),
        ("limits: {usd_per_job: 100}", 0, True, set()),
    ],
)
def test_the_preferred_tier(tmp_path, body, wait_h, feasible, removed):
    wait_s = None if wait_h is None else wait_h * HOUR_S
    options = [option(LOCAL, 0.0), option(LAB, wait_s=wait_s, feasible=feasible), option(rented())]
    assert removed_tiers(tmp_path, body, options) == removed


def test_a_preference_names_the_option_that_goes_first(tmp_path):
    policy = policy_of(tmp_path, org="prefer: {tier: cluster, if: {wait_p90_under: 6h}}")
    slow = option(make_plan("K80", 0.1, tier=Tier.CLUSTER, id="cluster/lab/K80"), wait_s=5 * HOUR_S)
    verdicts = judge.judge_options(
        [slow, option(LAB, wait_s=2 * HOUR_S), option(rented())], policy, NOTHING_SPENT
    )
    (removal,) = verdicts[rented().id].removals
    assert removal.detail == f"{LAB.id} is feasible and waits 2 h at p90"
    assert removal.rule == "prefer: cluster if wait_p90_under 6h"
    assert not verdicts["cluster/lab/K80"].removals


def removal(rule: str) -> RemovedByPolicy:
    return RemovedByPolicy(rule=rule, file="org.yaml:7", detail="")


@pytest.mark.parametrize(
    ("removed", "expected"),
    [
        ({"p": ("a",), "q": ("b",), "r": ("b",)}, (("b",), 2)),
        ({"p": ("a",), "q": ("b",)}, (("a",), 1)),
        ({"p": ("a", "b"), "q": ("b", "a"), "r": ("a", "c")}, (("a", "b"), 2)),
        ({"p": ("a", "b"), "q": ("a", "b"), "r": ("c",)}, (("c",), 1)),
        ({"p": ("a", "a")}, (("a",), 1)),
        ({"p": (), "q": ("b",)}, (("b",), 1)),
    ],
)
def test_the_smallest_set_that_leaves_most(removed, expected):
    removals = {plan: [removal(rule) for rule in rules] for plan, rules in removed.items()}
    rules, num_plans = expected
    assert judge.would_give_way(removals) == (tuple(f"{rule} (org.yaml:7)" for rule in rules), num_plans)


def test_everything_removed_is_exit_code_3_and_names_the_rule(tmp_path):
    policy = policy_of(tmp_path, org="deny:\n  regions: [us-*]\nlimits: {usd_per_hour: 10}")
    plans = [rented(usd_per_h=9.0), rented(usd_per_h=9.0, region="us-west-2"), rented(region="eu-west-1")]
    removals = {plan.id: judge.judge_plan(plan, policy) for plan in plans}
    error = judge.everything_removed(removals)
    assert isinstance(error, PolicyViolationError)
    assert error.exit_code == 3
    assert str(error) == (
        f"the policy removes all 3 plans. 2 plans would be left without deny.regions: us-*"
        f" ({tmp_path / 'org'}.yaml:5): ask the owner of the file, or look for other machines."
    )


@pytest.mark.parametrize("removals", [{}, {"p": []}])
def test_without_a_removal_no_rule_is_named(removals):
    assert str(judge.everything_removed(removals)) == "the policy leaves no plan."


def test_one_plan():
    only = judge.everything_removed({"p": [removal("a"), removal("b")]})
    assert str(only) == (
        "the policy removes this plan: a (org.yaml:7) and b (org.yaml:7) would have to give way."
    )


def texts(policy: Policy) -> list[str]:
    return [rule.text for rule in policy.rules]


def fault_of(folder: Path, **bodies: str) -> str:
    (fault,) = check_policies(write(folder, **bodies)).faults
    return str(fault)


def test_lists_of_all_layers_are_in_force(tmp_path):
    policy = policy_of(
        tmp_path,
        project="deny: {gpus: [K80]}",
        org="allow: {regions: [eu-*]}\ndeny: {gpus: [V100*]}",
        team="allow: {regions: [eu-west-*]}",
    )
    assert texts(policy) == [
        "allow.regions: eu-*", "deny.gpus: V100*", "allow.regions: eu-west-*", "deny.gpus: K80",
    ]  # fmt: skip
    assert policy.overruled == ()


@pytest.mark.parametrize(
    ("key", "values", "winner"),
    [
        ("limits.usd_per_hour", ("40", "30", "50"), "team"),
        ("limits.usd_per_job", ("1", "2", "3"), "org"),
        ("limits.gpus_per_job", ("8", "8", "4"), "project"),
        ("limits.gpus_per_job", ("8", "8", "8"), "org"),
        ("limits.nodes_per_job", ("4", "2", "3"), "team"),
        ("spot.allowed", ("true", "false", "true"), "team"),
        ("spot.needs_checkpoints", ("false", "true", "false"), "team"),
        ("spot.preemptions_per_h_at_most", ("0.3", "0.2", "0.1"), "project"),
        ("spot.jobs_under", ("1d", "12h", "2d"), "team"),
        ("runs.guard", ("required", "required", "required"), "org"),
        ("objective.pick", ("safest", "fastest", "cheapest"), "project"),
        ("objective.value_of_time_usd_per_h", ("1", "9", "5"), "project"),
    ],
)
def test_which_of_three_wins(tmp_path, key, values, winner):
    section, _, name = key.partition(".")
    layers = ("org", "team", "project")
    bodies = {layer: f"{section}: {{{name}: {value}}}" for layer, value in zip(layers, values, strict=True)}
    policy = policy_of(tmp_path, **bodies)
    (rule,) = policy.rules
    assert (rule.text, Path(rule.origin.file).stem) == (f"{key}: {values[layers.index(winner)]}", winner)
    assert [Path(loser.origin.file).stem for loser, _ in policy.overruled] == [
        layer for layer in layers if layer != winner
    ]
    assert {id(by) for _, by in policy.overruled} == {id(rule)}


def test_the_preference_nearest_to_the_project_wins_as_a_whole(tmp_path):
    policy = policy_of(
        tmp_path, org="prefer: {tier: cluster, if: {wait_p90_under: 6h}}", project="prefer: {tier: local}"
    )
    assert texts(policy) == ["prefer: local"]
    assert policy.prefer is not None
    assert policy.prefer.setting.if_.wait_p90_under is None


def test_keys_of_an_objective_are_taken_one_by_one(tmp_path):
    policy = policy_of(
        tmp_path,
        org="objective: {pick: safest, value_of_time_usd_per_h: 5}",
        team="objective: {pick: fastest}",
    )
    assert (policy.pick, policy.value_of_time_usd_per_h) == ("fastest", 5.0)


def test_a_monthly_limit_of_a_project_stands_beside_that_of_all(tmp_path):
    limits = {"org": 9000, "team": 5000, "project": 7000}
    policy = policy_of(tmp_path, **{name: f"limits: {{usd_per_month: {n}}}" for name, n in limits.items()})
    assert texts(policy) == ["limits.usd_per_month: 5000", "limits.usd_per_month: 7000"]


def test_the_order_of_the_files_does_not_matter(tmp_path):
    paths = write(
        tmp_path,
        org="limits: {usd_per_job: 5}\nobjective: {pick: safest}",
        team="limits: {usd_per_job: 4}",
        project="deny: {regions: [us-*]}\nobjective: {pick: fastest}",
    )
    policies = [read_policies(order) for order in permutations(paths)]
    assert all(texts(policy) == texts(policies[0]) for policy in policies)
    assert texts(policies[0]) == ["limits.usd_per_job: 4", "deny.regions: us-*", "objective.pick: fastest"]


@pytest.mark.parametrize(
    ("lock", "body", "key"),
    [
        ("limits.usd_per_job", "limits: {usd_per_job: 1}", "limits.usd_per_job"),
        ("limits", "limits: {gpus_per_job: 1}", "limits.gpus_per_job"),
        ("deny.regions", "deny: {regions: [a, b]}", "deny.regions"),
        ("allow", "allow: {providers: [aws]}", "allow.providers"),
        ("spot", "spot: {allowed: false}", "spot.allowed"),
        ("prefer", "prefer: {tier: local}", "prefer"),
        ("approval", "approval: [{over_usd_per_job: 1, by: me}]", "approval"),
        ("objective.pick", "objective: {pick: safest}", "objective.pick"),
    ],
)
@pytest.mark.parametrize("lower", ["team", "project"])
def test_what_is_locked_cannot_be_set_below(tmp_path, lock, body, key, lower):
    fault = fault_of(
        tmp_path,
        org=f"lock:\n- prefer\n- {lock}" if lock != "prefer" else "lock:\n\n- prefer",
        **{lower: body},
    )
    assert fault == (
        f"{tmp_path / lower}.yaml:4: {key} is locked by the organisation ({tmp_path / 'org'}.yaml:6), so a"
        f" {lower} cannot set it: remove it here, or have the lock lifted there"
    )


def test_a_lock_leaves_other_keys_and_the_locking_layer_alone(tmp_path):
    policy = policy_of(
        tmp_path,
        org="limits: {usd_per_job: 5}\nlock: [limits.usd_per_job]",
        org_2="limits: {usd_per_job: 4}",
        team="limits: {usd_per_hour: 3}\nlock: [deny]",
    )
    assert texts(policy) == ["limits.usd_per_job: 4", "limits.usd_per_hour: 3"]


def test_a_team_locks_the_project_and_not_the_organisation(tmp_path):
    assert policy_of(tmp_path, org="spot: {allowed: false}", team="lock: [spot]").rules
    fault = fault_of(tmp_path, team="lock: [spot]", project="spot: {allowed: false}")
    assert "spot.allowed is locked by the team" in fault


@pytest.mark.parametrize("key", LOCKABLE)
def test_every_key_can_be_locked(tmp_path, key):
    assert policy_of(tmp_path, org=f"lock: [{key}]").sources[0].content.lock == (key,)


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ("prefer: {tier: local}", "prefer: {tier: cloud}", "prefer: cloud contradicts prefer: local"),
        (
            "prefer: {tier: cluster, if: {wait_p90_under: 6h}}",
            "prefer: {tier: cluster}",
            "prefer: cluster contradicts prefer: cluster if wait_p90_under 6h",
        ),
        ("objective: {pick: safest}", "objective: {pick: fastest}", "objective.pick: fastest contradicts"),
    ],
)
def test_two_files_of_one_layer_must_not_want_different_things(tmp_path, first, second, words):
    fault = fault_of(tmp_path, team=first, team_2=second)
    assert words in fault
    assert fault.startswith(f"{tmp_path / 'team_2'}.yaml:4: ")
    assert f"({tmp_path / 'team'}.yaml:4)" in fault
    assert policy_of(tmp_path, team=first, team_2=first).rules
    assert policy_of(tmp_path, team=first, project=second).rules


@pytest.mark.parametrize(
    ("key", "upper", "lower"),
    [
        ("regions", "[eu-*]", "[us-*, ap-*]"),
        ("providers", "[aws]", "[gcp]"),
        ("markets", "[on-demand]", "[spot, commit-*]"),
        ("gpus", "[A100]", "[H100, L4]"),
        ("instance_types", "['p4d.*']", "['p5.*']"),
    ],
)
def test_allow_lists_must_have_something_in_common(tmp_path, key, upper, lower):
    fault = fault_of(tmp_path, org=f"allow: {{{key}: {upper}}}", team=f"allow: {{{key}: {lower}}}")
    assert fault.startswith(f"{tmp_path / 'team'}.yaml:4: allow.{key}: ")
    assert f"({tmp_path / 'org'}.yaml:4) have nothing in common" in fault


@pytest.mark.parametrize(
    ("key", "upper", "lower"),
    [
        ("regions", "[eu-*]", "['*-west-1']"),
        ("gpus", "[A100]", "[A100-SXM-40GB]"),
        ("gpus", "['A100*']", "['*-80GB']"),
        ("providers", "[AWS]", "[aws]"),
    ],
)
def test_allow_lists_that_overlap_are_fine(tmp_path, key, upper, lower):
    assert (
        len(policy_of(tmp_path, org=f"allow: {{{key}: {upper}}}", team=f"allow: {{{key}: {lower}}}").rules)
        == 2
    )


def test_every_contradiction_is_told_beside_the_faults_of_files(tmp_path):
    faults = check_policies(
        write(
            tmp_path,
            org="lock: [spot]\nallow: {regions: [eu-*]}",
            team="spot: {allowed: true}\nallow: {regions: [us-*]}\nprefer: {tier: local}",
            team_2="prefer: {tier: cloud}",
            project="limits: {x: 1}",
        )
    ).faults
    assert [Path(fault.file).stem for fault in faults] == ["project", "team", "team_2", "team"]
