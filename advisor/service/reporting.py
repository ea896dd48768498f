"""A team's report: what was planned, what it cost, what prices did, where money leaks and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.core.errors import CloudError, InputError, NoOfferError, ThresholdExceededError, did_you_mean
from advisor.core.iterables import grouped
from advisor.core.limits import EARLIEST
from advisor.core.units import HOUR_S
from advisor.core.values import Offer, Plan, PricePoint, Quantiles, Tier
from advisor.review.budgets import MOST_WEEKS, Budget, BudgetState, Owner, Period, Scope, month_of
from advisor.review.savings import Recurring, TodaysMarket, recurring_jobs
from advisor.review.who_spent import DAYS_BEFORE, before
from advisor.service.listening import Listener
from advisor.service.prices.live import now
from advisor.service.recommend.pipeline import load_numpy
from advisor.spend.charges import Bill
from advisor.store.database import existing_store
from advisor.store.handle import Store

if TYPE_CHECKING:
    from advisor.config.layers import Config
    from advisor.config.settings import PriceSettings, ReportSettings, Settings, StoreSettings
    from advisor.review.team_review import Records, TeamReview, Violation
    from advisor.store.ledger import LedgerEntry, Run
    from recommender.conditions import Facts
    from recommender.outcome.spot import SpotTerms
    from recommender.policy.merge import Policy

WEEK_S = 7 * 86400.0
_ASKED_DAYS = 390


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRequest:
    """What to report on."""

    since: datetime | float = WEEK_S
    """A moment with a time zone, or seconds before the end."""
    until: datetime | float | None = None
    """The end, which does not belong to the period: a moment, or seconds before now; None is now."""
    team: str | None = None
    """Of the settings; None for everybody."""
    project: str | None = None
    """None for all."""
    policies: tuple[Path, ...] = ()
    """Files of rules, besides those of the settings."""
    bills: tuple[Path, ...] = ()
    """Files of what clouds billed, besides those of the settings."""


def report_of(request: ReportRequest, config: Config, listener: Listener) -> TeamReview | None:
    """The review of a period; None if nothing was ever recorded and nothing billed.

    Raises:
        InputError: an empty period, an unknown team or project, one of another team, a file that is no bill.
        AdvisorError: the database, policies or prices cannot be read.
    """
    from advisor.review.team_review import Records, review, runs_of
    from advisor.service.bookkeeping import check_project
    from advisor.service.recommend.policy_in_force import policy_of

    period = _period(request, listener)
    scope = _scope(request, config.settings.report, listener)
    policy = policy_of(config.settings.policy, request.policies)
    bills = bills_of(config.settings.report, config.settings.prices, request.bills, period, listener)
    recorded = records_of(config.settings.store, period, scope)
    if recorded is None and not bills:
        return None
    report, charges = config.settings.report, (charge for bill in bills for charge in bill.charges)
    of_teams = (name for team in report.teams.values() for name in team)
    billed = (charge.project for charge in charges)
    check_project(request.project, config.settings.store, listener, *of_teams, *billed)
    records = recorded or Records(advised={}, prices={})
    runs = runs_of(records.runs, period, scope)
    jobs = recurring_jobs(runs, records.advised)
    own = {"local", *(cluster.name for cluster in config.settings.clusters)}

    def is_own(run: Run) -> bool:
        return run.provider in own

    from recommender.policy.model import Layer

    sources = () if policy is None else policy.sources
    names = (source.content.name for source in sources if source.layer is Layer.ORGANISATION)
    return review(
        records,
        period=period,
        scope=scope,
        bills=bills,
        budgets=() if policy is None else tuple(_budgets(policy, config.settings.report)),
        organisation=config.settings.report.organisation or next(names, ""),
        division=config.settings.report,
        violations=() if policy is None else tuple(_violations(runs, policy, is_own)),
        jobs=jobs,
        market=todays_prices_for(jobs, policy, config, listener),
        is_own=is_own,
    )


def check_budgets(states: Sequence[BudgetState], most: float) -> None:
    """Refuse a month of which too much is spent.

    Args:
        most: the share of a limit that may be spent, such as 0.8.

    Raises ThresholdExceededError: names every budget that is above.
    """
    over = [state for state in states if state.exceeds(most)]
    if over:
        rows = (
            f"{state.budget.name or state.budget.owner} spent ${state.month.spent_usd:,.2f} of"
            f" ${state.budget.most_usd:,.2f}{'' if state.used is None else f' ({state.used:.0%})'}"
            for state in over
        )
        raise ThresholdExceededError(f"above {most:.0%} of the monthly limit: {'; '.join(rows)}.")


def _period(request: ReportRequest, listener: Listener) -> Period:
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


def _budgets(policy: Policy, settings: ReportSettings) -> Iterator[Budget]:
    """The monthly limit of every file: in a report none overrules another.

    A team's or project's file counts what its ``name`` says, if that is one of ``report.teams``.
    """
    from recommender.policy.model import Layer

    owners = {Layer.ORGANISATION: Owner.EVERYBODY, Layer.TEAM: Owner.TEAM, Layer.PROJECT: Owner.PROJECT}
    known = {
        Owner.TEAM: settings.teams,
        Owner.PROJECT: {project: (project,) for team in settings.teams.values() for project in team},
    }
    for source in policy.sources:
        most_usd, owner = source.content.limits.usd_per_month, owners[source.layer]
        if most_usd is not None:
            projects = known.get(owner, {}).get(source.content.name)
            yield Budget(
                rule=str(source.origin("limits", "usd_per_month")),
                owner=owner,
                most_usd=most_usd,
                name=source.content.name,
                projects=None if projects is None else frozenset(projects),
            )


def _violations(runs: Sequence[Run], policy: Policy, is_own: Callable[[Run], bool]) -> Iterator[Violation]:
    """Rules that runs did not keep, by what is known of them; a monthly limit is a budget."""
    from advisor.review.team_review import Violation
    from recommender.policy.judge import explain
    from recommender.policy.rules import Effect

    for run in runs:
        for rule, judgement in explain(_facts(run, own=is_own(run)), policy):
            if judgement.effect is Effect.REMOVES and rule.key != "limits.usd_per_month":
                yield Violation(rule=f"{rule.text} ({rule.origin})", run=run)


def _facts(run: Run, *, own: bool) -> Facts:
    from recommender.conditions import Facts

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
        train_s=run.duration_s,
    )


def bills_of(
    report: ReportSettings, prices: PriceSettings, files: Sequence[Path], period: Period, listener: Listener
) -> tuple[Bill, ...]:
    """Every bill that is given; Cost Explorer is asked for the period, its month, and as long a time before.

    Raises:
        BillError: a file cannot be read, or is no bill.
        ConfigError: an option of AWS is wrong.
    """
    from advisor.service.bookkeeping import read_bills

    bills = read_bills(report, files, listener)
    if report.cost_explorer:
        from advisor.pricing.sources.aws.aws_calls import read_options
        from advisor.spend.cost_explorer import NAME, ask_cost_explorer

        options = read_options(prices.options.get("aws", {}))
        with listener.step("asking AWS Cost Explorer", at_once=True):
            # AWS remembers little more than a year.
            remembered = max(before(period).since, period.until - timedelta(days=_ASKED_DAYS))
            since = min(period.since, month_of(period.until).since, remembered)
            try:
                bills.append(ask_cost_explorer(options, since, period.until, report.project_tag))
            except CloudError as error:  # the rest of the report is worth reading without it
                bills.append(Bill(name=NAME, trouble=str(error)))
    return tuple(bills)


def records_of(database: StoreSettings, period: Period, scope: Scope) -> Records | None:
    """What the store holds of a period; None if there is no store, or nothing was ever recorded."""
    from advisor.review.team_review import Records, runs_of
    from advisor.store.ledger import (
        impossible_recommendations,
        impossible_runs,
        recommendation_ids,
        recommendations,
        runs,
    )

    looked_back = period.until - timedelta(weeks=MOST_WEEKS), period.since - timedelta(days=DAYS_BEFORE)
    earliest = min(before(period).since, month_of(period.until).since, *looked_back)
    with existing_store(database.url) as store:
        if store is None:
            return None
        recorded = runs(store, since=max(earliest, EARLIEST))
        given = recommendations(store, since=period.since)
        impossible = (*impossible_runs(store, since=period.since), *impossible_recommendations(store))
        if not (recorded or given or impossible) and not (
            recommendation_ids(store) or runs(store, since=EARLIEST)
        ):
            return None
        ours = runs_of(recorded, period, scope)
        return Records(
            runs=recorded,
            recommendations=tuple(entry for entry in given if period.holds(entry.at)),
            advised=_advised(store, ours, given),
            prices=_prices(store, ours, period),
            impossible=impossible,
        )


def _advised(store: Store, runs: Sequence[Run], given: Sequence[LedgerEntry]) -> Mapping[str, LedgerEntry]:
    from advisor.store.ledger import find_recommendation

    advised = {entry.id: entry for entry in given}
    older = {run.recommendation_id for run in runs if run.recommendation_id is not None} - advised.keys()
    for entry_id in sorted(older):
        entry = find_recommendation(store, entry_id)
        if entry is not None:
            advised[entry.id] = entry
    return advised


def _prices(store: Store, runs: Sequence[Run], period: Period) -> Mapping[str, Sequence[PricePoint]]:
    from advisor.pricing.price_history import seen_from
    from advisor.store.pulls import price_points

    rented = grouped((run for run in runs if run.market is not None), lambda run: run.gpu)
    return {
        gpu: tuple(
            point
            for point in seen_from(
                price_points(
                    store,
                    gpus=(gpu,),
                    providers=sorted({run.provider for run in group}),
                    markets=sorted({run.market for run in group if run.market is not None}),
                    since=period.since,
                ),
                period.since,
            )
            if point.observed_at < period.until
        )
        for gpu, group in rented.items()
    }


Z90 = 1.2816
"""Nine of ten draws of a standard normal distribution are below."""


def todays_prices_for(
    jobs: Sequence[Recurring], policy: Policy | None, config: Config, listener: Listener
) -> TodaysMarket:
    """Machines with the GPUs that the jobs' recommendations name, at today's prices (pulled if due).

    Raises AdvisorError: prices cannot be read.
    """
    from advisor.service.prices.book import PriceBook
    from advisor.service.prices.offers import query_offers
    from advisor.service.prices.query_limits import OfferFilter
    from advisor.service.recommend.plan_sources import spot_terms

    wanted: dict[str, set[int]] = {}
    for job in jobs:
        for one in () if job.entry is None else job.entry.alternatives:
            wanted.setdefault(one.gpu, set()).add(one.num_gpus)
    try:
        book, asked = PriceBook(settings=config.pricing), OfferFilter(wanted=wanted)
        offers = query_offers(book, asked, listener, to_rent=True).offers if wanted else ()
    except NoOfferError:  # the report names the jobs that cannot be priced
        offers = ()
    spot = spot_terms(config.settings.spot)
    plans = _plans(offers, config.settings, spot) if offers else ()
    return TodaysMarket(plans=plans, is_allowed=_judge(policy, spot), lasting=partial(_lasting, spot))


def _plans(offers: Sequence[Offer], settings: Settings, spot: SpotTerms) -> Sequence[Plan]:
    from advisor.service.prices.offers import prices_of
    from advisor.service.recommend.plan_sources import cloud_terms, quotas_of, rates_of
    from recommender.plans.candidates import plans_of_offers

    return plans_of_offers(
        offers,
        terms=cloud_terms(settings.cloud, None, spot.history),
        catalog=rates_of(settings.rates),
        quotas=quotas_of(settings.quotas),
        prices=prices_of(offers),
    )


def _judge(policy: Policy | None, spot: SpotTerms) -> Callable[[Plan], bool]:
    if policy is None:
        return lambda _: True
    from recommender.policy.judge import judge_plan

    return lambda plan: not judge_plan(plan, policy, spot)


def _lasting(spot: SpotTerms, plan: Plan, train_s: Quantiles) -> tuple[Quantiles, Quantiles]:
    """Until done, and billed: spot machines go away, at p90 as often as nine of ten of their class."""
    load_numpy()
    import numpy as np

    from recommender.outcome.spot import drawn_hours, is_spot, terms_of_plans

    if not is_spot(plan):
        return train_s, train_s
    terms, z = terms_of_plans(spot, None)(plan), np.array([0.0, Z90])
    work_h = np.array([train_s.p50, train_s.p90]) / HOUR_S
    rate, away = terms.preemptions_per_h * np.exp(terms.sigma_rate * z), np.full(2, terms.reacquire_h)
    done_h, billed_h = drawn_hours(work_h, terms, rate_per_h=rate, reacquire_h=away, z=z)
    done, billed = ((hours * HOUR_S).tolist() for hours in (done_h, billed_h))
    return Quantiles(p50=done[0], p90=done[1]), Quantiles(p50=billed[0], p90=billed[1])
