"""How often spot machines are preempted and how long a start waits, by class of machine."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from functools import cache

from advisor.core.gpus import catalog_path, load_gpus
from advisor.core.units import HOURS_PER_MONTH
from advisor.core.values import Market, StartWait
from advisor.pricing.instance_types import read_as

INTERRUPTION_FILE = "interruptions.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruptions:
    """The bucket of an AWS instance type in a region."""

    instance_type: str
    region: str
    low_pct: int
    """At least this share of machines was taken back within a month, in percent."""
    high_pct: int
    """At most this share."""
    as_of: date
    source: str

    @property
    def least_preemptions_per_h(self) -> float:
        """Per running hour, from the lower end of the bucket: a floor, 0 for the lowest bucket."""
        return preemptions_per_h(self.low_pct)


def preemptions_per_h(monthly_pct: float) -> float:
    """The constant rate per hour at which this share is taken back within a month.

    With p the share, ``L = -ln(1 - p) / 730 h``.

    Args:
        monthly_pct: 0 or more and below 100.

    Raises ValueError: no rate takes so many.

    >>> f"{preemptions_per_h(5):.1e}"
    '7.0e-05'
    """
    if not 0 <= monthly_pct < 100:
        raise ValueError(f"{monthly_pct!r} % in a month has no rate: it must be from 0 to below 100")
    return 0.0 - math.log1p(-monthly_pct / 100) / HOURS_PER_MONTH  # never -0.0


@cache
def load_interruptions() -> Mapping[tuple[str, str], Interruptions]:
    """The shipped table by instance type and region. Raises CatalogError: the file is missing or broken."""
    buckets = read_as(catalog_path(INTERRUPTION_FILE), Interruptions)
    return {(bucket.instance_type, bucket.region): bucket for bucket in buckets}


SPOT_ODDS_FILE = "spot_odds.csv"
START_ODDS_FILE = "start_odds.csv"
# The youngest GPU in the traces had been announced 2.7 years before.
NEW_FOR_DAYS = 3 * 365


class Size(StrEnum):
    """Whether one GPU is asked for or several at once."""

    ONE = "one"
    SEVERAL = "several"


class Age(StrEnum):
    """Whether a GPU is newer than any that was watched."""

    KNOWN = "known"
    NEW = "new"


class Basis(StrEnum):
    """Where the figures of a class come from."""

    FITTED = "fitted"
    JUDGED = "judged"


MachineClass = tuple[Size, Age]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotOdds:
    """How machines of a class go away and come back, and how much that differs by place; a row of a file."""

    size: Size
    age: Age
    preemptions_per_h: float
    """Per running hour; the median over places."""
    sigma_rate: float
    """Standard deviation of its logarithm from place to place."""
    most_per_h: float
    """Above it a rate is not believed."""
    outage_h: float
    """Mean time away; the median over places."""
    sigma_outage: float
    """As ``sigma_rate``."""
    most_away_h: float
    """Above it hours away for each running hour are not believed: the most of any trace."""
    drift_rate: float
    """The same within one place, from one time to the next."""
    drift_outage: float
    """As ``drift_rate``."""
    dispersion_up: float
    """Variance of the time until a preemption over its squared mean; 1 if it had no memory."""
    dispersion_down: float
    """The same of the time away."""
    basis: Basis
    num_traces: int
    as_of: date
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StartOdds:
    """How long the start of a rented machine of a class waits, as in `StartWait`; a row of the file."""

    market: Market
    size: Size
    age: Age
    p_at_once: float
    at_once_s: float
    later_p50_s: float
    later_p90_s: float
    basis: Basis
    num_traces: int
    as_of: date
    source: str

    @property
    def wait_s(self) -> StartWait:
        """With its own quantiles."""
        return StartWait.of(
            p_at_once=self.p_at_once,
            at_once_s=self.at_once_s,
            later_p50_s=self.later_p50_s,
            later_p90_s=self.later_p90_s,
        )


def class_of(gpu: str, num_gpus: int, as_of: date) -> MachineClass:
    """The class of a machine at a date; a GPU that the catalog does not know counts as new."""
    spec = load_gpus().get(gpu)
    is_new = spec is None or (as_of - spec.released).days < NEW_FOR_DAYS
    return Size.ONE if num_gpus == 1 else Size.SEVERAL, Age.NEW if is_new else Age.KNOWN


@cache
def spot_odds(gpu: str, num_gpus: int) -> SpotOdds:
    """What is assumed of a spot machine. Raises CatalogError: the file is missing or broken."""
    table = _spot_table()
    wanted = class_of(gpu, num_gpus, table[0].as_of)
    return next(odds for odds in table if (odds.size, odds.age) == wanted)


@cache
def start_odds(gpu: str, num_gpus: int, market: Market) -> StartOdds:
    """What is assumed of a start; of other markets as on demand. Raises CatalogError: as `read_as`."""
    table = _starts_of(market)
    wanted = class_of(gpu, num_gpus, table[0].as_of)
    return next(odds for odds in table if (odds.size, odds.age) == wanted)


@cache
def rarest_start(market: Market) -> StartOdds:
    """Of the class of machines that starts least often: what is assumed where there may be none."""
    return min(_starts_of(market), key=lambda odds: odds.wait_s.p_at_once)


@cache
def _spot_table() -> tuple[SpotOdds, ...]:
    return read_as(catalog_path(SPOT_ODDS_FILE), SpotOdds)


@cache
def _starts_of(market: Market) -> list[StartOdds]:
    # Terms on which a provider rents out spare machines.
    asked = Market.SPOT if market in (Market.SPOT, Market.FLEX_START) else Market.ON_DEMAND
    return [odds for odds in read_as(catalog_path(START_ODDS_FILE), StartOdds) if odds.market is asked]
