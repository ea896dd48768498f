"""Who spent it: direct and shared cost by name, its change, and days that stand out."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from statistics import median

from advisor.spend.outlays import Outlay, split

_NOTHING = Decimal(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
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
) -> tuple[Part, ...]:
    """Parts by name, which add up to the whole, the dearest first; ``before`` is None if it is not known."""
    sharing = sharing or Sharing()
    own, shared = _split(spent, name_of, sharing)
    then: dict[str, Decimal] = defaultdict(Decimal)
    for sums in () if before is None else _split(before, name_of, sharing):
        for name, usd in sums.items():
            then[name] += usd
    parts = (
        Part(
            name=name,
            usd=own.get(name, _NOTHING),
            shared_usd=shared.get(name, _NOTHING),
            before_usd=None if before is None else then.get(name, _NOTHING),
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
    if not sum(weights.values(), _NOTHING):  # without shares it stays where it was spent
        return {name: own.get(name, _NOTHING) + common.get(name, _NOTHING) for name in {*own, *common}}, {}
    names = sorted(weights)
    parts = split(sum(common.values(), _NOTHING), [weights[name] for name in names])
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
    sums = {day: sum((one.usd for one in of_day), _NOTHING) for day, of_day in by_day.items()}
    for day, usd in sums.items():
        if day < first:
            continue
        ago = (day - timedelta(days=number) for number in range(1, DAYS_BEFORE + 1))
        earlier = [sums[one] for one in ago if sums.get(one, _NOTHING) > 0]
        if len(earlier) >= LEAST_DAYS and usd > TIMES * max(earlier) and usd - max(earlier) >= LEAST_USD:
            maker = max(by_day[day], key=lambda one: one.usd)
            yield Jump(project=project, day=day, usd=usd, usual_usd=median(earlier), maker=maker)
