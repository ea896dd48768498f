"""The policy of the settings and flags, and what the ledger says of this month."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.core.errors import InputError, PolicyViolationError
from advisor.formats.user_files import at_home
from advisor.service.listening import Listener
from advisor.store.database import existing_store

if TYPE_CHECKING:
    from advisor.config.settings import ChoiceSettings, PolicySettings, ReportSettings, StoreSettings
    from advisor.core.values import DataSet, Job, Plan
    from advisor.pricing.storage_rates import StorageRate
    from advisor.store.ledger import Run
    from recommender.conditions import Spent
    from recommender.outcome.spot import SpotTerms
    from recommender.plans.candidates import OwnMachine
    from recommender.policy.merge import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What the settings say of every job, with what their files hold; read once."""

    policy: Policy | None
    """Keeps a denied place from hiding an allowed dearer one."""
    spot: SpotTerms
    machines: Sequence[OwnMachine]
    rates: Sequence[StorageRate]
    data: DataSet | None
    """The job's data set; None without one."""
    report: ReportSettings
    """Teams, and files of what was billed."""
    database: StoreSettings


def policy_of(settings: PolicySettings, more: Sequence[Path] = ()) -> Policy | None:
    """The merged policy of ``policy.files`` and of more files; None without any.

    A flag can add rules and never takes an organisation's away.

    Raises PolicyError: a file cannot be read or contradicts another; all faults at once.
    """
    files = tuple(dict.fromkeys([*settings.files, *more]))
    if not files:
        return None
    from advisor.site_files.policy_files import read_policies

    return read_policies([at_home(path) for path in files])


def check_guarded(settings: PolicySettings, what: str) -> None:
    """Whether a job without a limit of its cost or time may be started.

    Args:
        what: is to be done instead, as a sentence.

    Raises PolicyViolationError: the policy demands one.
    """
    policy = policy_of(settings)
    if policy is not None and (rule := policy.guard) is not None:
        raise PolicyViolationError(f"the policy demands a limit ({rule.text}, {rule.origin}). {what}")


def with_objective(job: Job, policy: Policy | None, settings: ChoiceSettings) -> Job:
    """The job with what is recommended: by what was typed, else by the policy, else by the settings.

    A value that was typed goes before the policy's pick.
    """
    if job.change_usd is None:
        job = replace(job, change_usd=settings.change_usd)
    if job.value_of_time_usd_per_h is not None:
        return job
    if policy is None:
        return replace(job, value_of_time_usd_per_h=settings.value_of_time_usd_per_h)
    hour_usd = policy.value_of_time_usd_per_h
    hour_usd = settings.value_of_time_usd_per_h if hour_usd is None else hour_usd
    return replace(job, value_of_time_usd_per_h=hour_usd, pick=policy.pick)


def check_project_of(project: str, site: Site, listener: Listener) -> None:
    """Refuse a project whose name is nearly that of one in the ledger, a policy or a team.

    Raises InputError: it is.
    """
    if not project:
        return
    from advisor.service.bookkeeping import check_new_project
    from recommender.policy.model import Layer

    of_teams = (name for team in site.report.teams.values() for name in team)
    sources = () if site.policy is None else site.policy.sources
    of_files = (source.content.name for source in sources if source.layer is Layer.PROJECT)
    check_new_project(project, site.database, listener, *of_teams, *site.report.shared, *of_files)


def spent_of(site: Site, project: str, listener: Listener) -> Spent | None:
    """What bills and runs together tell since the first of the month; None if no rule asks.

    Raises:
        BillError: a bill of the settings cannot be read.
        InputError: a project's month is limited, and it is not given which project this is.
        StoreError: the database cannot be read, so that it is unknown whether a monthly limit holds.
    """
    if site.policy is None:
        return None
    from recommender.policy.rules import LimitRule

    monthly = [rule for rule in site.policy.rules if isinstance(rule, LimitRule) and rule.is_monthly]
    if not monthly:
        return None
    if not project and any(rule.is_of_project for rule in monthly):
        raise InputError(
            "the policy limits what a project spends in a month: name it with"
            f" {listener.name_of('project')}, as its runs were recorded."
        )
    from advisor.review import budgets
    from advisor.service.bookkeeping import read_bills
    from advisor.service.prices.live import now
    from recommender.conditions import Spent, start_of_month

    present, since = now(), start_of_month(now())
    recorded, num_unknown, num_ours = _runs_since(site.database, since, project)
    bills = read_bills(site.report, (), listener)
    charges = [charge for bill in bills for charge in bill.charges if charge.start >= since]
    outlays = budgets.spent_of(recorded, charges, present)
    if num_unknown:
        few = f"{num_unknown} of this month's runs have no known cost"
        listener.warn([f"{few}: monthly limits count the others (`advisor run list` shows all)"])
    if site.report.cost_explorer:
        listener.warn(["monthly limits count runs and report.bills, not what AWS Cost Explorer would tell"])
    return Spent(
        all_usd=float(sum(one.usd for one in outlays)),
        project_usd=float(sum(one.usd for one in outlays if one.project == project)),
        all_num_unknown=num_unknown,
        project_num_unknown=num_ours,
    )


def _runs_since(settings: StoreSettings, since: datetime, project: str) -> tuple[tuple[Run, ...], int, int]:
    """Runs, and how many of all and of a project have no known cost, or one that cannot be true."""
    from advisor.store.ledger import impossible_runs, runs

    with existing_store(settings.url) as store:
        if store is None:
            return (), 0, 0
        recorded = runs(store, since=since)
        untrue, ours = (impossible_runs(store, since=since, project=one) for one in (None, project))
    unknown = [run.project for run in recorded if run.cost_usd is None]
    return recorded, len(unknown) + len(untrue), unknown.count(project) + len(ours)


def places_by_verdict(
    plans: Iterable[Plan], policy: Policy | None, spot: SpotTerms, *, everywhere: bool
) -> list[Plan]:
    """Places of each machine, all or the cheapest, with where else each could go on.

    Those that are allowed, those that need more quota and the others stand apart. Otherwise a denied cheapest
    region would hide an allowed dearer one, and a job would go on where it may not.
    """
    from recommender.plans.candidates import cheapest_plans, with_elsewhere

    def is_removed(plan: Plan) -> bool:
        if plan.blocked is not None or policy is None:
            return plan.blocked is not None
        from recommender.policy.judge import judge_plan

        return bool(judge_plan(plan, policy, spot))

    allowed: list[Plan] = []
    lacking: list[Plan] = []
    removed: list[Plan] = []
    for plan in plans:
        (removed if is_removed(plan) else lacking if plan.lacks_quota else allowed).append(plan)
    return [
        plan
        for kind in (allowed, lacking, removed)
        for plan in with_elsewhere(kind if everywhere else cheapest_plans(kind), among=kind)
    ]
