"""The figures of two plans, line by line: what stands in the table, the spreadsheet and JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from advisor.core.units import format_usd
from advisor.core.values import Option
from advisor.predict.step_time import computing_s, waits_s
from advisor.report.cells import BYTES, COUNT, DURATION, TEXT, USD, Kind
from advisor.report.options import STATUS_OF_REMOVAL, gpus
from advisor.report.quotes import quote_text
from advisor.report.words import sentence
from recommender.comparison import PlanComparison

PROBABILITY = Kind("probability", "{:.2f}".format)
Figure = str | float | None
_FITS = {True: "yes", False: "no", None: "unknown"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One figure of both plans.

    Attributes:
        key: as programs name it, with its unit.
        name: as people read it.
        a: a number, or words; None where it is unknown or there is none.
        b: the same of the other plan.
        kind: how a number is written.
    """

    key: str
    name: str
    a: Figure
    b: Figure
    kind: Kind = TEXT

    @property
    def difference(self) -> float | None:
        """B less A; None where one is no number, or never ends."""
        if isinstance(self.a, str) or isinstance(self.b, str) or self.a is None or self.b is None:
            return None
        less = self.b - self.a
        return less if math.isfinite(less) else None

    @property
    def ratio(self) -> float | None:
        """B over A; None where there is no difference, or A is nothing."""
        difference = self.difference
        if difference is None or isinstance(self.a, str) or not self.a:
            return None
        return 1 + difference / self.a


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Lines that belong together."""

    title: str
    lines: tuple[Line, ...]


_Rows = Iterable[tuple[str, str, Kind, Callable[[Option], Figure]]]

_PLACE: _Rows = (
    ("id", "Plan", TEXT, lambda o: o.plan.id),
    ("gpus", "GPUs", TEXT, gpus),
    ("num_nodes", "Nodes", COUNT, lambda o: o.plan.num_nodes),
    ("status", "Does the job", TEXT, lambda o: _status(o)),
)
_ITERATION: _Rows = (
    ("iteration_s_p50", "Time of one, median", DURATION, lambda o: o.estimate.iteration_s.p50),
    ("iteration_s_p10", "Time of one, p10", DURATION, lambda o: o.estimate.iteration_s.p10),
    ("iteration_s_p90", "Time of one, p90", DURATION, lambda o: o.estimate.iteration_s.p90),
    ("computing_s", "computing", DURATION, lambda o: computing_s(o.estimate)),
)
_MEMORY: _Rows = (
    ("binds", "What binds", TEXT, lambda o: o.estimate.binds.value),
    ("memory_bytes", "Memory needed", BYTES, lambda o: o.estimate.memory_bytes),
    ("memory_limit_bytes", "Memory of a GPU", BYTES, lambda o: o.estimate.memory_limit_bytes),
    ("fits_memory", "Fits", TEXT, lambda o: _FITS[o.estimate.fits_memory]),
)
_TIME: _Rows = (
    ("iterations", "Iterations", COUNT, lambda o: o.iterations),
    ("train_s_p50", "Training, median", DURATION, lambda o: o.train_s.p50),
    ("wait_s_p50", "Wait, median", DURATION, lambda o: None if o.wait_s is None else o.wait_s.p50),
    ("wait_s_p90", "Wait, p90", DURATION, lambda o: None if o.wait_s is None else o.wait_s.p90),
    ("startup_s", "Start-up", DURATION, lambda o: o.plan.startup_s),
    ("time_s_p50", "Until done, median", DURATION, lambda o: o.time_s.p50),
    ("time_s_p90", "Until done, p90", DURATION, lambda o: o.time_s.p90),
)
_RENT: _Rows = (
    ("usd_per_h", "Rent of an hour", USD, lambda o: o.plan.usd_per_h),
    ("price", "Price", TEXT, lambda o: None if o.plan.price is None else quote_text(o.plan.price)),
    ("price_source", "Price from", TEXT, lambda o: _source(o)),
)
_COST: _Rows = (
    ("cost_usd_p50", "Cost, median", USD, lambda o: _if_known(o, o.cost_usd.p50)),
    ("cost_usd_p90", "Cost, p90", USD, lambda o: _if_known(o, o.cost_usd.p90)),
)
_RISK: _Rows = (
    ("p_within_budget", "Within the budget", PROBABILITY, lambda o: o.p_within_budget),
    ("p_within_deadline", "Within the deadline", PROBABILITY, lambda o: o.p_within_deadline),
    ("risk", "Risk", TEXT, lambda o: sentence(o.risk)),
)


def groups_of(comparison: PlanComparison) -> Iterator[Group]:
    """All figures in the order in which they follow from each other."""
    both = comparison.a, comparison.b
    yield Group(title="Machine", lines=tuple(_lines(both, _PLACE)))
    iteration = (*_lines(both, _ITERATION), *_waits(both), *_lines(both, _MEMORY))
    yield Group(title="One iteration", lines=iteration)
    yield Group(title="Time", lines=tuple(_lines(both, _TIME)))
    money = (*_lines(both, _RENT), *_causes(both), *_lines(both, _COST))
    yield Group(title="Money", lines=money)
    odds = [line for line in _lines(both, _RISK) if (line.a, line.b) != (None, None)]
    yield Group(title="Odds and risk", lines=(*_odds(comparison), *odds))
    yield Group(title="What decides", lines=tuple(_whole(comparison)))


def _lines(both: tuple[Option, Option], rows: _Rows) -> Iterator[Line]:
    a, b = both
    for key, name, kind, figure in rows:
        yield Line(key=key, name=name, a=figure(a), b=figure(b), kind=kind)


def _waits(both: tuple[Option, Option]) -> Iterator[Line]:
    a, b = (waits_s(option.estimate) for option in both)
    for name in a:
        yield Line(key=f"{name} (s)", name=name, a=a[name], b=b[name], kind=DURATION)


def _causes(both: tuple[Option, Option]) -> Iterator[Line]:
    """The parts of the cost, which add up to its median."""
    a, b = (option.cost_breakdown_usd for option in both)
    for name in {**a, **b}:
        yield Line(key=f"{name} (USD)", name=name, a=a.get(name, 0.0), b=b.get(name, 0.0), kind=USD)


def _odds(comparison: PlanComparison) -> Iterator[Line]:
    pairs = {"cheaper": comparison.p_a_cheaper, "sooner": comparison.p_a_sooner}
    for name, p in pairs.items():
        if p is not None:
            yield Line(key=f"p_{name}", name=f"Is the {name} one", a=p, b=1 - p, kind=PROBABILITY)


def _whole(comparison: PlanComparison) -> Iterator[Line]:
    a, b = comparison.whole
    if a.change_s or b.change_s:
        yield Line(key="change_s", name="Changing the script", a=a.change_s, b=b.change_s, kind=DURATION)
        yield Line(key="change_usd", name="Its cost", a=a.change_usd, b=b.change_usd, kind=USD)
    yield Line(key="whole_s", name="Expected time in all", a=a.time_s, b=b.time_s, kind=DURATION)
    yield Line(key="whole_usd", name="Expected cost in all", a=a.usd, b=b.usd, kind=USD)
    hour = format_usd(comparison.worth.hour_usd)
    yield Line(key="total_usd", name=f"Both, an hour at {hour}", a=a.total_usd, b=b.total_usd, kind=USD)


def _status(option: Option) -> str:
    return "no: " + STATUS_OF_REMOVAL[option.removed_by[0]] if option.removed_by else "yes"


def _source(option: Option) -> str | None:
    offer = option.plan.offer
    return None if offer is None else f"{offer.source}, {offer.retrieved_at:%Y-%m-%d}"


def _if_known(option: Option, usd: float) -> float | None:
    return None if option.plan.usd_per_h is None else usd
