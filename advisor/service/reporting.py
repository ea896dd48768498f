"""A team's report: what was planned, what it cost, what prices did, where money leaks and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.core.errors import InputError, did_you_mean
from advisor.core.limits import EARLIEST
from advisor.core.values import Tier
from advisor.service.prices.live import now

if TYPE_CHECKING:
    from advisor.config.layers import Config
    from advisor.config.settings import ClusterSettings, ReportSettings
    from advisor.review.budgets import Budget
    from advisor.review.period import Period, Scope
    from advisor.review.team_review import TeamReview, Violation
    from advisor.service.listening import Listener
    from advisor.store.ledger import Run
    from recommender.policy import Policy
    from recommender.policy.facts import Facts

WEEK_S = 7 * 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRequest:
    """What to report on.

    Attributes:
        since: a moment with a time zone, or seconds before the end.
        until: the end, which does not belong to the period: a moment, or seconds before now; None is now.
        team: of the settings; None for everybody.
        project: None for all.
        policies: files of rules, besides those of the settings.
        bills: files of what clouds billed, besides those of the settings.
    """

    since: datetime | float = WEEK_S
    until: datetime | float | None = None
    team: str | None = None
    project: str | None = None
    policies: tuple[Path, ...] = ()
    bills: tuple[Path, ...] = ()


def report_of(request: ReportRequest, config: Config, listener: Listener) -> TeamReview | None:
    """The review of a period; None if nothing was ever recorded and nothing billed.

    Raises:
        InputError: an empty period, an unknown team, a project of another team, a file that is no bill.
        AdvisorError: the database, policies, prices or Cost Explorer cannot be read.
    """
    from advisor.review.savings import recurring_jobs
    from advisor.review.team_review import Records, review, runs_of
    from advisor.service.bills import bills_of
    from advisor.service.recommend.rules import policy_of
    from advisor.service.report_records import records_of
    from advisor.service.todays_prices import todays_prices_for

    period = _period(request, listener)
    scope = _scope(request, config.settings.report, listener)
    policy = policy_of(config.settings.policy, request.policies)
    bills = bills_of(config.settings.report, config.settings.prices, request.bills, period, listener)
    recorded = records_of(config.settings.store, period, scope)
    if recorded is None and not bills:
        return None
    records = recorded or Records(advised={}, prices={})
    runs = runs_of(records.runs, period, scope)
    jobs = recurring_jobs(runs, records.advised)
    is_own = _is_own(config.settings.clusters)
    return review(
        records,
        period=period,
        scope=scope,
        bills=bills,
        budgets=() if policy is None else tuple(_budgets(policy)),
        violations=() if policy is None else tuple(_violations(runs, policy, is_own)),
        jobs=jobs,
        market=todays_prices_for(jobs, policy, config, listener),
        is_own=is_own,
    )


def _period(request: ReportRequest, listener: Listener) -> Period:
    from advisor.review.period import Period

    present = now()
    until = _moment(request.until, present)
    since = _moment(request.since, until)
    if until > present:
        raise InputError(
            f"{listener.name_of('until')} {until.isoformat()} lies in the future: leave it out,"
            " to report until now."
        )
    if since >= until:
        raise InputError(
            f"{listener.name_of('since')} {since.isoformat()} is not before {listener.name_of('until')}"
            f" {until.isoformat()}, so the period is empty: give an earlier one, such as 7d."
        )
    return Period(since=max(since, EARLIEST), until=until)


def _moment(given: datetime | float | None, end: datetime) -> datetime:
    if isinstance(given, datetime):
        return given.astimezone(UTC)
    # Nothing was recorded before 1970.
    return end - timedelta(seconds=min(given or 0.0, end.timestamp()))


def _scope(request: ReportRequest, settings: ReportSettings, listener: Listener) -> Scope:
    from advisor.review.period import Scope

    if request.team is None:
        return Scope(projects=None if request.project is None else frozenset({request.project}))
    teams = settings.teams
    flag = listener.name_of("team")
    if request.team not in teams:
        known = f"There are {', '.join(sorted(teams))}." if teams else "No team is configured."
        raise InputError(
            f"{flag}: no team is called {request.team!r}.{did_you_mean(request.team, teams)} {known}"
            " Teams are settings: report.teams: {vision: [resnet, detr]}."
        )
    projects = frozenset(teams[request.team])
    if request.project is None:
        return Scope(team=request.team, projects=projects)
    if request.project not in projects:
        raise InputError(
            f"{listener.name_of('project')}: {request.project!r} is no project of the team {request.team}"
            f" ({', '.join(sorted(projects))}).{did_you_mean(request.project, projects)} Leave {flag} out, or"
            " name one of these."
        )
    return Scope(team=request.team, projects=frozenset({request.project}))


def _is_own(clusters: Iterable[ClusterSettings]) -> Callable[[Run], bool]:
    own = {"local", *(cluster.name for cluster in clusters)}
    return lambda run: run.provider in own


def _budgets(policy: Policy) -> Iterator[Budget]:
    from advisor.review.budgets import Budget, Owner
    from recommender.policy.model import Layer
    from recommender.policy.rules import LimitRule

    owners = {Layer.ORGANISATION: Owner.EVERYBODY, Layer.TEAM: Owner.TEAM, Layer.PROJECT: Owner.PROJECT}
    for rule in policy.rules:
        if isinstance(rule, LimitRule) and rule.is_monthly:
            yield Budget(rule=str(rule.origin), owner=owners[rule.origin.layer], most_usd=rule.most)


def _violations(runs: Sequence[Run], policy: Policy, is_own: Callable[[Run], bool]) -> Iterator[Violation]:
    """Rules that runs did not keep, by what is known of them; a monthly limit is a budget."""
    from advisor.review.team_review import Violation
    from recommender.policy import explain
    from recommender.policy.rules import Effect

    for run in runs:
        for rule, judgement in explain(_facts(run, own=is_own(run)), policy):
            if judgement.effect is Effect.REMOVES and rule.key != "limits.usd_per_month":
                yield Violation(rule=f"{rule.text} ({rule.origin})", run=run)


def _facts(run: Run, *, own: bool) -> Facts:
    from recommender.policy.facts import Facts

    tier = Tier.CLOUD
    if own:
        tier = Tier.LOCAL if run.provider == "local" else Tier.CLUSTER
    return Facts(
        tier=tier,
        provider=run.provider or None,
        instance_type=run.instance_type,
        region=run.region,
        market=run.market,
        gpu=run.gpu or None,
        num_gpus=run.num_gpus or None,
        usd_per_h=run.usd_per_h,
        usd_per_job=run.cost_usd,
    )
