"""What could be rented or used for a job, what it leads to, and what to take."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import ClassVar

from advisor.core.findings import Finding, removals
from advisor.core.notebook import html_of
from advisor.core.units import DAY_S
from advisor.core.values.estimate import WHOLE, Interval, IterationEstimate, Layout, Quantiles, Split
from advisor.core.values.trace import CheckpointUse
from advisor.core.values.workload import Scaling, Script, Work, works_of

# How a run ended, and how its cost is known.


class RunStatus(StrEnum):
    """How a run ended."""

    FINISHED = "finished"
    FAILED = "failed"  # it ended with an exit code other than 0
    INTERRUPTED = "interrupted"  # by a signal, such as Ctrl-C or a spot machine that goes away
    LOST = "lost"  # its end was not seen


class CostKind(StrEnum):
    """How the cost of a run came to be known."""

    BILLED = "billed"
    ESTIMATED = "estimated"  # price x time
    STATED = "stated"  # by a person


# Where a job's data set lies.


@dataclass(frozen=True, slots=True, kw_only=True)
class DataPlace:
    """Where a data set lies: in a region of a cloud, or with its owner."""

    name: str
    """As it was given: ``s3://bucket``, ``us-east-1``, ``local``."""
    provider: str | None = None
    """The cloud that bills what leaves; None where the data lies with its owner."""
    region: str | None = None
    """None where unknown, or where there is none."""

    def is_at(self, provider: str, region: str | None) -> bool:
        """Whether a machine there reads the data without moving it."""
        return self.region is not None and (self.provider, self.region) == (provider, region)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """A data set: how large it is, and where it lies if anybody said."""

    gib: float
    place: DataPlace | None = None


# What is for rent, on what terms and for how much.


class PriceOrder(StrEnum):
    """By what offers are sorted: then by price and place, so that the order is always the same."""

    PRICE = "price"
    GPU_PRICE = "gpu-price"
    AGE = "age"
    PLACE = "place"


class Market(StrEnum):
    """On what terms a machine is rented."""

    ON_DEMAND = "on-demand"
    SPOT = "spot"
    FLEX_START = "flex-start"
    CAPACITY_BLOCK = "capacity-block"
    CALENDAR = "calendar"
    RESERVED = "reserved"
    COMMIT_1Y = "commit-1y"
    COMMIT_3Y = "commit-3y"

    @classmethod
    def _missing_(cls, value: object) -> Market | None:
        """Letter case does not count: flags, settings and programs may all write ``Spot``."""
        name = value.strip().lower() if isinstance(value, str) else value
        return next((market for market in cls if market.value == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A machine for rent at a dated price.

    List, contracted and effective price are FOCUS terms (https://focus.finops.org).
    """

    provider: str
    instance_type: str
    region: str
    zone: str | None
    """An AWS zone ID (``use1-az4``), since zone names differ by account; None for the whole region."""
    gpu: str
    """Name in our catalog, or the provider's own where the catalog lacks it."""
    num_gpus: int
    market: Market
    list_usd_per_h: float
    """The provider's published price of the whole machine."""
    contracted_usd_per_h: float | None = None
    """After negotiated discounts, None without any."""
    effective_usd_per_h: float | None = None
    """After commitments and savings plans as well, None without any."""
    spot_usd_per_h: Interval | None = None
    """Quantiles of recent spot prices, None if no history is at hand."""
    includes: tuple[str, ...] = ()
    """What the price covers besides GPUs, in words."""
    minimum_billed_s: float = 60.0
    """Least time billed, however short the run."""
    billed_step_s: float = 1.0
    """Time is billed in whole multiples of it."""
    num_vcpus: int | None = None
    """Of the whole machine, None if unknown."""
    architecture: str | None = None
    """Of the host's CPU, ``x86_64`` or ``arm64``; None if unknown."""
    retrieved_at: datetime
    """When the price was true, with a time zone; midnight UTC where only the day is known."""
    source: str

    @property
    def place(self) -> str:
        """``us-east-1 use1-az4``, or ``us-central1`` for a whole region."""
        own = self.zone is None or self.region in self.zone
        return self.zone or self.region if own else f"{self.region} {self.zone}"

    @property
    def usd_per_h(self) -> float:
        """What is paid: the effective price where there is one, else the contracted, else the list price."""
        prices = (self.effective_usd_per_h, self.contracted_usd_per_h, self.list_usd_per_h)
        return next(price for price in prices if price is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PricePoint:
    """What a machine cost from a moment on."""

    provider: str
    instance_type: str
    region: str
    zone: str | None
    """As in ``Offer``; None for the whole region."""
    market: Market
    usd_per_h: float
    observed_at: datetime
    """When the price began, or was first seen, with a time zone."""
    source: str = ""
    """The name of the price source that it is from, as the store knows it; "" before it is kept."""


class QuoteKind(StrEnum):
    """How a price came to be known, the surest first."""

    AGREED = "agreed"
    LIVE = "live"
    DATED = "dated"
    FLOOR = "floor"
    DERIVED = "derived"


_DOUBT_OF = {kind: doubt for doubt, kind in enumerate(QuoteKind)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What an hour of an offer will cost, and the quote that says so."""

    RUN_DAYS: ClassVar[tuple[float, ...]] = (7.0, 30.0, 90.0)
    """Lengths of runs over which the mean of a price is known."""

    usd_per_h: Interval
    """Of the whole machine, when a run starts."""
    kind: QuoteKind
    """Agreed with the owner, quoted (live, dated, or at the provider's floor), or derived."""
    age_days: float
    """Of the quote, in whole days."""
    run_p90_usd_per_h: tuple[float, ...] = ()
    """P90 of the mean over a run of each of `RUN_DAYS`, during which the price moves on; empty where it
    stays."""
    is_near_floor: bool = False
    """Whether it was quoted near the least that the provider asks."""
    most_usd_per_h: float = math.inf
    """What no draw of it exceeds; infinite where nothing is known to limit it."""

    @property
    def is_guess(self) -> bool:
        """Whether it was never paid: it was never quoted, or quoted where no one was bidding."""
        return self.kind in (QuoteKind.DERIVED, QuoteKind.FLOOR)

    @property
    def doubt(self) -> tuple[int, float]:
        """Of equal prices the surer and newer one comes first."""
        return _DOUBT_OF[self.kind], self.age_days

    @property
    def counted_usd_per_h(self) -> float:
        """What counts when it is compared with others: the median, or the p90 of a guess."""
        return self.usd_per_h.p90 if self.is_guess else self.usd_per_h.p50

    def times(self, factor: float) -> Price:
        """So many times as much, as of so many equal machines, whose prices move together."""
        usd = self.usd_per_h
        return replace(
            self,
            usd_per_h=Interval(p10=usd.p10 * factor, p50=usd.p50 * factor, p90=usd.p90 * factor),
            run_p90_usd_per_h=tuple(p90 * factor for p90 in self.run_p90_usd_per_h),
            most_usd_per_h=self.most_usd_per_h * factor,
        )

    @property
    def p90s(self) -> tuple[float, ...]:
        """p90 at the start, and of the mean over each of `RUN_DAYS`."""
        p90 = self.usd_per_h.p90
        return p90, *(self.run_p90_usd_per_h or (p90,) * len(self.RUN_DAYS))

    def p90_over(self, run_days: float) -> float:
        """p90 of the mean over a run, on the log scale straight between `RUN_DAYS`, beyond them no wider."""
        days, usd = 0.0, self.usd_per_h.p90
        for next_days, next_usd in zip(self.RUN_DAYS, self.run_p90_usd_per_h, strict=False):
            if run_days < next_days:
                return usd * math.pow(next_usd / usd, (run_days - days) / (next_days - days))
            days, usd = next_days, next_usd
        return usd


class Tier(StrEnum):
    """Whose machine it is."""

    LOCAL = "local"
    CLUSTER = "cluster"
    CLOUD = "cloud"


class Recovery(StrEnum):
    """What a job does when its spot machine is taken away."""

    WAIT = "wait"
    MOVE = "move"
    WAIT_OR_ON_DEMAND = "wait-or-on-demand"
    MOVE_OR_ON_DEMAND = "move-or-on-demand"

    @property
    def moves(self) -> bool:
        """Into another zone, if that has a machine sooner."""
        return self in (Recovery.MOVE, Recovery.MOVE_OR_ON_DEMAND)

    @property
    def falls_back(self) -> bool:
        """On demand, once the deadline asks for it."""
        return self in (Recovery.WAIT_OR_ON_DEMAND, Recovery.MOVE_OR_ON_DEMAND)


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """Where in its region a job could go on when its spot machine is taken away."""

    num_zones: int = 0
    """Other zones that rent the machine on spot."""
    usd_per_h: float = 0.0
    """The mean of their rents as they count, of the whole plan."""
    on_demand: Plan | None = None
    """The same machine on demand; None if it is not for rent."""

    @property
    def on_demand_usd_per_h(self) -> float | None:
        """Of the plan on demand, if there is one."""
        return None if self.on_demand is None else self.on_demand.usd_per_h

    @property
    def on_demand_wait_s(self) -> Quantiles | None:
        """Until that machine is there."""
        return None if self.on_demand is None else self.on_demand.wait_s


class Limited(StrEnum):
    """What a limit of a scheduler counts."""

    GPUS = "gpus"
    NODES = "nodes"
    TIME = "time"
    """Seconds that a job may run."""
    GPU_TIME = "gpu-time"
    """GPU seconds."""
    JOBS = "jobs"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLimit:
    """What a scheduler allows a job, or several jobs at once."""

    of: str
    """Who sets it, in words: ``QOS normal``."""
    name: str
    """In the scheduler's word: ``MaxWall``."""
    what: Limited
    most: float
    in_use: float | None = None
    """Of several jobs, what others have now; None of one job alone, or unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to rent or use. Prices and counts are of the whole plan."""

    id: str
    tier: Tier
    provider: str
    gpu: str
    layout: Layout
    offer: Offer | None
    usd_per_h: float | None
    """The median of what is paid; None if the owner of a private machine configured no cost."""
    wait_s: Quantiles | None
    """Time until the machine is ours; None if neither configured nor measured."""
    startup_s: float
    """Boot, installation and download of the data set; billed on a cloud."""
    minimum_billed_s: float
    billed_step_s: float = 0.0
    """Time is billed in whole multiples of it; 0 bills the exact time."""
    download_s: float = 0.0
    """The part of ``startup_s`` in which the data set arrives."""
    storage_usd_per_h: float = 0.0
    """Disks, paid from start to end, also while a spot machine is away."""
    egress_usd: float = 0.0
    """What bringing the result home costs."""
    transfer_usd: float = 0.0
    """What the data set's cloud asks for letting it go."""
    transfer_gib: float = 0.0
    """Of the data set that moves; 0 where it is there already."""
    read_gib: float = 0.0
    """Of the data set that each epoch reads, over the machine's network or from its own disks."""
    copied_s: float = 0.0
    """The part of ``download_s`` in which the data set is copied to the machine's own disks, which each epoch
    reads then, or read into its memory; 0 where each epoch reads it anew."""
    kept_share: float = 0.0
    """What the machine's memory keeps of it between two epochs."""
    rates: Mapping[str, str] = field(default_factory=dict)
    """In words, the rates behind lines of the bill (``"storage"``, ``"data transfer"``), with source and
    date."""
    price: Price | None = None
    """How sure that is; None where it is exact."""
    notes: tuple[Finding, ...] = ()
    """What else to know of the place, such as who uses it."""
    blocked: Finding | None = None
    """Why the account may not start it, such as a quota; None if nothing is known to."""
    lacks_quota: bool = False
    """Whether the account is known to need more quota first: of equals it comes last."""
    num_vcpus: int | None = None
    """Of one machine of one's own; an offer tells those of a rented one. None if unknown."""
    elsewhere: Elsewhere | None = None
    """Of a spot machine, where the job could go on; None if nothing is known."""
    queue_limits: tuple[QueueLimit, ...] = ()
    """Of a cluster's scheduler; none if none are known."""
    walltime_s: float | None = None
    """What its scheduler will be asked for at least; None if unknown."""

    @property
    def num_gpus(self) -> int:
        """Of all nodes together."""
        return self.layout.num_gpus

    @property
    def gpus(self) -> str:
        """``8 x L4``, in words."""
        return self.layout.of(self.gpu)

    @property
    def num_nodes(self) -> int:
        """Equal machines, each at its offer's price."""
        return self.layout.num_nodes

    @property
    def vcpus_per_gpu(self) -> float | None:
        """Hardware threads for each GPU of the plan; None if unknown."""
        vcpus = self.num_vcpus if self.offer is None else self.offer.num_vcpus
        return None if vcpus is None else vcpus / self.layout.gpus_per_node


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What to expect of an option, over all draws; infinite where some draw never ends."""

    wait_s: float
    time_s: float
    cost_usd: float
    counted_usd: float
    """The cost where options are compared: that of a guessed price at its p90."""
    own_share: float = 1.0
    """The part of the rent at the plan's own price; the rest is of other zones, or on demand."""

    @property
    def run_days(self) -> float:
        """Days from when the machine is there to the end."""
        return (self.time_s - self.wait_s) / DAY_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A plan with its time, cost and risk for one job.

    ``time_s`` is wait + start-up + training; ``cost_breakdown_usd`` adds up to ``cost_usd.p50``.
    """

    plan: Plan
    estimate: IterationEstimate
    iterations: int
    wait_s: Quantiles | None
    train_s: Quantiles
    time_s: Quantiles
    cost_usd: Quantiles
    counted_usd: float
    """The median cost where options are compared: that of a guessed price at its p90."""
    expected: Means
    """Means of what ``time_s`` and ``cost_usd`` are quantiles of."""
    cost_breakdown_usd: Mapping[str, float]
    p_within_budget: float | None
    p_within_deadline: float | None
    risk: Finding
    script_changes: tuple[Finding, ...]
    reasons: tuple[Finding, ...]
    """What to know of it; those that remove it among them."""
    what_if: str | None = None
    """The change to the script that the option supposes, such as ``"bf16"``; None for the script as it is."""
    tie_with: str | None = None
    """Id of the frontier's plan that is within 5 % of this one in both time and cost, if any."""
    folded_into: str | None = None
    """Id of the plan whose row speaks for this one, which gains little over it; None for a row of its own."""

    @property
    def work(self) -> tuple[Work, ...]:
        """What must be done to the script first; nothing for one that runs there as it is."""
        return works_of(self.script_changes)

    @property
    def removed_by(self) -> tuple[str, ...]:
        """What it failed; empty for a feasible one."""
        return removals(self.reasons)

    @property
    def feasible(self) -> bool:
        """Whether nothing removes it."""
        return not self.removed_by


class PickName(StrEnum):
    """What an option can be the best at."""

    CHEAPEST = "cheapest"
    FASTEST = "fastest"
    BEST_VALUE = "best-value"
    SAFEST = "safest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What the user wants done: exactly one of ``epochs`` and ``iterations`` is set."""

    epochs: float | None = None
    iterations: int | None = None
    """Optimizer steps of the script as it was profiled; other numbers of GPUs take as many samples."""
    budget_usd: float | None = None
    deadline_s: float | None = None
    confidence: float = 0.9
    """Least probability with which budget and deadline must hold."""
    iterations_per_epoch: int | None = None
    """Steps of the same kind; overrides the trace's, for data without a length."""
    value_of_time_usd_per_h: float | None = None
    """What an hour until the job is done is worth; None if unknown."""
    change_usd: float | None = None
    """What it costs to change the script by more than a line; None if unknown."""
    risk_counts: bool = False
    """What is safer than all that is faster and cheaper stays on the frontier, too."""
    scaling: Scaling | None = None
    """What the script holds when GPUs are added; None for what was seen of it, else weak, or unshared where
    no DataLoader was seen either."""
    data: DataSet | None = None
    """The data set, which the plans are priced for; None without one."""
    pick: PickName | None = None
    """What to recommend; None for the best value."""
    split: Split = WHOLE
    """How the script is supposed to divide its model; by default each GPU has all of it."""
    checkpoints: CheckpointUse | None = None
    """What the script does with them; None for what its text shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """The plan that is the best at something, and why."""

    name: PickName
    plan_id: str
    reason: Finding


class Merit(StrEnum):
    """Why someone could want an option: the reason for its row on one screen."""

    RECOMMENDED = "recommended"
    AS_IT_IS = "as-it-is"
    WITH_WORK = "with-work"
    CHEAPEST = "cheapest"
    FASTEST = "fastest"
    SAFEST = "safest"
    OWN = "own"
    NEAREST = "nearest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A row of the short list: an option, and its merits, one at least.

    It is one of the answer's, but for a plan as the script is whose better way takes work.
    """

    option: Option
    merits: tuple[Merit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeGain:
    """What one change of the script brings on the machine that is recommended."""

    change: str
    """Its name, such as ``"bf16"``."""
    option: Option | None = None
    """The machine with the changed script; None where the change does not apply."""
    instead: Option | None = None
    """What would be recommended then, if it is another machine."""
    saved_s: float | None = None
    """Of the training's time, in the median; negative where it takes longer."""
    saved_usd: float | None = None
    """The rent of that time; None where the price is unknown."""
    saved_share: Interval | None = None
    """Of the time of a sample, as far as anybody can tell."""
    p_faster: float | None = None
    """Odds that a sample takes less time."""
    why_not: Finding | None = None
    """Why the change brings nothing there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """The answer: every option, the ids of the frontier in order of time, the one to take and why."""

    script: Script
    """What the options are for."""
    job: Job
    options: tuple[Option, ...]
    frontier: tuple[str, ...]
    recommended: str | None
    rule: Finding | None
    warnings: tuple[Finding, ...]
    what_ifs: tuple[Option, ...] = ()
    """Options of a changed script, which never count for the frontier nor the choice."""
    gains: tuple[ChangeGain, ...] = ()
    """Of the changes that were asked for, what surely saves most first."""
    picks: tuple[Pick, ...] = ()
    summary: tuple[Finding, ...] = ()
    """What to take; its cost and time; what to do first, if anything; what would change the advice."""
    shortlist: tuple[Listed, ...] = ()
    """The options that someone could want, at most six; the recommended one first."""
    as_it_is: Option | None = None
    """The best option for the script without any work on it; None where there is none. Where a spot machine
    is the better with checkpoints, it may be the same plan restarted from zero."""
    with_work: Option | None = None
    """The best option among those that need work; None where there is none."""
    batch_held: Option | None = None
    """The recommended plan with the script's batch held, where its steps grow larger."""

    @property
    def chosen(self) -> Option | None:
        """The option to take; None where nothing is feasible."""
        return None if self.recommended is None else self.option(self.recommended)

    def option(self, plan_id: str) -> Option | None:
        """The option of this plan, if it was ranked."""
        return next((option for option in self.options if option.plan.id == plan_id), None)

    def _repr_html_(self) -> str | None:
        """A table in a notebook."""
        return html_of(self)
