"""Who spent the money of a period, and what a run, an epoch and a million tokens cost."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from statistics import median
from typing import TYPE_CHECKING

from advisor.core.iterables import grouped
from advisor.core.units import HOUR_S
from advisor.core.values import RunStatus
from advisor.review.budgets import NOTHING, Period, Scope, exact, total
from advisor.review.spending import cost_of
from advisor.spend.charges import USD, Charge, ChargeCategory
from advisor.spend.outlays import Outlay, split

if TYPE_CHECKING:
    from advisor.config.settings import ReportSettings
    from advisor.store.ledger import LedgerEntry, Run

OTHER = "(no team)"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitCost:
    """What the runs of a script cost on average."""

    project: str
    script: str
    num_runs: int
    """Of known cost."""
    per_run_usd: Decimal
    per_epoch_usd: Decimal | None
    """None where no run tells how many epochs it did."""
    per_million_tokens_usd: Decimal | None
    """None where it is not given how many tokens a step has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Showback:
    """Who spent it; bills and runs together, each dollar once."""

    usd: Decimal
    before_usd: Decimal | None
    """In as long a time before; None where a cloud's bill does not reach back so far."""
    unallocated_usd: Decimal
    """Of ``usd``, what names no project."""
    by_team: tuple[SpentPart, ...]
    """Empty without teams."""
    by_project: tuple[SpentPart, ...]
    by_tag: Mapping[str, Mapping[str, Decimal]]
    """Amortised dollars by tag and value; "" is a charge without it."""
    jumps: tuple[Jump, ...]
    unit_costs: tuple[UnitCost, ...]


def before(period: Period) -> Period:
    """As long a time before."""
    return Period(since=period.since - (period.until - period.since), until=period.since)


def showback_of(
    spent: Sequence[Outlay],
    charges: Sequence[Charge],
    runs: Sequence[Run],
    *,
    advised: Mapping[str, LedgerEntry],
    period: Period,
    scope: Scope,
    division: ReportSettings,
) -> Showback:
    """Divide what was spent."""
    last = before(period)
    is_known = _reaches(charges, period, last)
    whole = [one for one in spent if period.holds(one.at)]
    earlier = [one for one in spent if last.holds(one.at)] if is_known else None
    ours = [one for one in whole if scope.holds(one.project)]
    ours_before = None if earlier is None else [one for one in earlier if scope.holds(one.project)]
    team_of = {project: team for team, projects in division.teams.items() for project in projects}
    sharing = Sharing(projects=frozenset(division.shared), weights=_weights(division, team_of, runs))
    by_team = parts_of(whole, earlier, lambda name: team_of.get(name, OTHER if name else ""), sharing)
    return Showback(
        usd=total(one.usd for one in ours),
        before_usd=None if ours_before is None else total(one.usd for one in ours_before),
        unallocated_usd=total(one.usd for one in ours if not one.project),
        by_team=tuple(part for part in by_team if scope.team in (None, part.name)) if division.teams else (),
        by_project=parts_of(ours, ours_before, lambda name: name),
        by_tag={tag: _by_tag(charges, tag, period, scope) for tag in division.tags},
        jumps=jumps_of((one for one in spent if scope.holds(one.project)), period.since, period.until),
        unit_costs=unit_costs_of(
            (run for run in runs if scope.holds(run.project)), advised, division.tokens_per_step
        ),
    )


def _reaches(charges: Iterable[Charge], period: Period, last: Period) -> bool:
    """Whether bills tell of the period before, too, at each cloud of which they tell now."""
    now: set[str] = set()
    then: set[str] = set()
    for charge in charges:
        if period.holds(charge.start):
            now.add(charge.provider)
        elif last.holds(charge.start):
            then.add(charge.provider)
    return now <= then


def _weights(
    division: ReportSettings, team_of: Mapping[str, str], runs: Iterable[Run]
) -> Callable[[Mapping[str, Decimal]], Mapping[str, Decimal]]:
    """Weights of teams by the key of a division, from what each spent of its own."""
    match division.shared_by:
        case "evenly":
            return lambda _: dict.fromkeys(division.teams, Decimal(1))
        case "gpu-hours":
            hours = _gpu_hours((run for run in runs if run.project not in division.shared), team_of)
            return lambda _: hours
        case "spend":
            return lambda spent: spent


def _gpu_hours(runs: Iterable[Run], team_of: Mapping[str, str]) -> Mapping[str, Decimal]:
    hours: dict[str, Decimal] = defaultdict(Decimal)
    for run in runs:
        if run.project and run.num_gpus and run.duration_s:
            hours[team_of.get(run.project, OTHER)] += exact(run.num_gpus * run.duration_s / HOUR_S)
    return hours


def _by_tag(charges: Iterable[Charge], tag: str, period: Period, scope: Scope) -> Mapping[str, Decimal]:
    sums: dict[str, Decimal] = defaultdict(Decimal)
    for charge in charges:
        counts = charge.currency == USD and charge.category is not ChargeCategory.TAX
        if counts and period.holds(charge.start) and scope.holds(charge.project):
            sums[charge.tags.get(tag, "")] += charge.amortised_cost
    return dict(sorted(sums.items(), key=lambda item: (-item[1], item[0])))


# --- What a unit costs ------------------------------------------------------------------------------------


def unit_costs_of(
    runs: Iterable[Run], advised: Mapping[str, LedgerEntry], tokens_per_step: Mapping[str, int]
) -> tuple[UnitCost, ...]:
    """Averages by script, the dearest run first; a unit counts over the runs that tell how many they did."""
    groups = grouped(
        (run for run in runs if run.script and run.cost_usd is not None),
        lambda run: (run.project, run.script),
    )
    costs = []
    for (project, script), group in groups.items():
        entries = [advised.get(run.recommendation_id or "") for run in group]
        epochs = [_epochs(run, entry) for run, entry in zip(group, entries, strict=True)]
        per_step = tokens_per_step.get(script)
        steps = [_steps(run, entry) for run, entry in zip(group, entries, strict=True)]
        tokens = [None if per_step is None or num is None else num * per_step / 1e6 for num in steps]
        cost = UnitCost(
            project=project,
            script=script,
            num_runs=len(group),
            per_run_usd=cost_of(group) / len(group),
            per_epoch_usd=_per(group, epochs),
            per_million_tokens_usd=_per(group, tokens),
        )
        costs.append(cost)
    return tuple(sorted(costs, key=lambda cost: (-cost.per_run_usd, cost.project, cost.script)))


def _per(runs: Sequence[Run], units: Sequence[float | None]) -> Decimal | None:
    told = [(run, unit) for run, unit in zip(runs, units, strict=True) if unit]
    if not told:
        return None
    return cost_of(run for run, _ in told) / total(exact(unit) for _, unit in told)


def _steps(run: Run, entry: LedgerEntry | None) -> float | None:
    """Optimizer steps that a run did: those seen, else all of the job if it finished."""
    if run.num_steps is not None:
        return run.num_steps
    return entry.num_iterations if entry is not None and run.status is RunStatus.FINISHED else None


def _epochs(run: Run, entry: LedgerEntry | None) -> float | None:
    steps = _steps(run, entry)
    if entry is None or steps is None or not entry.num_iterations or entry.command is None:
        return None
    asked = asked_epochs(entry.command)
    return None if asked is None else asked * steps / entry.num_iterations


def asked_epochs(command: str) -> float | None:
    """How many epochs a recommendation was asked for.

    >>> asked_epochs("advisor recommend train.py --epochs 90 -- --lr 0.1"), asked_epochs("advisor prices")
    (90.0, None)
    """
    try:
        words = shlex.split(command.partition(" -- ")[0])
        place = words.index("--epochs")
        return float(words[place + 1])
    except (ValueError, IndexError):
        return None


# --- Direct and shared cost by name -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SpentPart:
    """What one name spent."""

    name: str
    """Of a team or project; "" is unassigned."""
    usd: Decimal
    """Of its own."""
    shared_usd: Decimal
    """Its part of what all share."""
    before_usd: Decimal | None
    """Both in the period before; None where that is not known."""

    @property
    def total_usd(self) -> Decimal:
        """Its own and its part of what is shared."""
        return self.usd + self.shared_usd

    @property
    def change(self) -> float | None:
        """Against the period before; None where nothing was spent then, or it is not known."""
        return change_of(self.total_usd, self.before_usd)


def change_of(now_usd: Decimal, before_usd: Decimal | None) -> float | None:
    """How much more is spent than before, as a share of that.

    >>> change_of(Decimal(120), Decimal(100)), change_of(Decimal(1), Decimal(0))
    (0.2, None)
    """
    return float(now_usd / before_usd - 1) if before_usd is not None and before_usd > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """Projects whose cost all others share, and by which key."""

    projects: Collection[str] = ()
    weights: Callable[[Mapping[str, Decimal]], Mapping[str, Decimal]] = dict
    """Of names from what each spent of its own; a name without one gets no part."""


def parts_of(
    spent: Sequence[Outlay],
    before: Sequence[Outlay] | None,
    name_of: Callable[[str], str],
    sharing: Sharing | None = None,
) -> tuple[SpentPart, ...]:
    """Parts by name, which add up to the whole, the dearest first; ``before`` is None if it is not known."""
    sharing = sharing or Sharing()
    own, shared = _split(spent, name_of, sharing)
    then: dict[str, Decimal] = defaultdict(Decimal)
    for sums in () if before is None else _split(before, name_of, sharing):
        for name, usd in sums.items():
            then[name] += usd
    parts = (
        SpentPart(
            name=name,
            usd=own.get(name, NOTHING),
            shared_usd=shared.get(name, NOTHING),
            before_usd=None if before is None else then.get(name, NOTHING),
        )
        for name in {*own, *shared, *then}
    )
    return tuple(sorted(parts, key=lambda part: (-part.total_usd, part.name)))


def _split(
    spent: Iterable[Outlay], name_of: Callable[[str], str], sharing: Sharing
) -> tuple[dict[str, Decimal], dict[str, Decimal]]:
    own: dict[str, Decimal] = defaultdict(Decimal)
    common: dict[str, Decimal] = defaultdict(Decimal)
    for one in spent:
        (common if one.project in sharing.projects else own)[name_of(one.project)] += one.usd
    weights = sharing.weights({name: usd for name, usd in own.items() if name and usd > 0}) if common else {}
    if not sum(weights.values(), NOTHING):  # without shares it stays where it was spent
        return {name: own.get(name, NOTHING) + common.get(name, NOTHING) for name in {*own, *common}}, {}
    names = sorted(weights)
    parts = split(sum(common.values(), NOTHING), [weights[name] for name in names])
    return own, dict(zip(names, parts, strict=True))


# --- Days that stand out ----------------------------------------------------------------------------------

DAYS_BEFORE = 28
LEAST_DAYS = 7
"""Days with spending among those before, without which nothing is unusual."""
TIMES = 2
LEAST_USD = Decimal(10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Jump:
    """A day on which a project spent more than twice what it spent on any of the 28 days before."""

    project: str
    day: date
    usd: Decimal
    usual_usd: Decimal
    """The median of those of these days on which it spent anything."""
    maker: Outlay
    """The dearest run or charge of the day."""


def jumps_of(spent: Iterable[Outlay], since: datetime, until: datetime) -> tuple[Jump, ...]:
    """The days of a period that stand out from the four weeks before each, the dearest first."""
    days: dict[str, dict[date, list[Outlay]]] = {}
    for one in spent:
        if one.at < until:
            day = one.at.astimezone(UTC).date()
            days.setdefault(one.project, {}).setdefault(day, []).append(one)
    jumps = (jump for project, by_day in days.items() for jump in _jumps(project, by_day, since.date()))
    return tuple(sorted(jumps, key=lambda jump: (jump.usual_usd - jump.usd, jump.project, jump.day)))


def _jumps(project: str, by_day: Mapping[date, Sequence[Outlay]], first: date) -> Iterator[Jump]:
    sums = {day: sum((one.usd for one in of_day), NOTHING) for day, of_day in by_day.items()}
    for day, usd in sums.items():
        if day < first:
            continue
        ago = (day - timedelta(days=number) for number in range(1, DAYS_BEFORE + 1))
        earlier = [sums[one] for one in ago if sums.get(one, NOTHING) > 0]
        if len(earlier) >= LEAST_DAYS and usd > TIMES * max(earlier) and usd - max(earlier) >= LEAST_USD:
            maker = max(by_day[day], key=lambda one: one.usd)
            yield Jump(project=project, day=day, usd=usd, usual_usd=median(earlier), maker=maker)
