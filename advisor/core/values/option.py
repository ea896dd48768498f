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
    """Where a data set lies: in a region of a cloud, or with its owner.

    Attributes:
        name: as it was given: ``s3://bucket``, ``us-east-1``, ``local``.
        provider: the cloud that bills what leaves; None where the data lies with its owner.
        region: None where unknown, or where there is none.
    """

    name: str
    provider: str | None = None
    region: str | None = None

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

    Attributes:
        zone: an AWS zone ID (``use1-az4``), since zone names differ by account; None for the whole region.
        gpu: name in our catalog, or the provider's own where the catalog lacks it.
        list_usd_per_h: the provider's published price of the whole machine.
        contracted_usd_per_h: after negotiated discounts, None without any.
        effective_usd_per_h: after commitments and savings plans as well, None without any.
        spot_usd_per_h: quantiles of recent spot prices, None if no history is at hand.
        includes: what the price covers besides GPUs, in words.
        minimum_billed_s: least time billed, however short the run.
        billed_step_s: time is billed in whole multiples of it.
        num_vcpus: of the whole machine, None if unknown.
        architecture: of the host's CPU, ``x86_64`` or ``arm64``; None if unknown.
        retrieved_at: when the price was true, with a time zone; midnight UTC where only the day is known.
    """

    provider: str
    instance_type: str
    region: str
    zone: str | None
    gpu: str
    num_gpus: int
    market: Market
    list_usd_per_h: float
    contracted_usd_per_h: float | None = None
    effective_usd_per_h: float | None = None
    spot_usd_per_h: Interval | None = None
    includes: tuple[str, ...] = ()
    minimum_billed_s: float = 60.0
    billed_step_s: float = 1.0
    num_vcpus: int | None = None
    architecture: str | None = None
    retrieved_at: datetime
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
    """What a machine cost from a moment on.

    Attributes:
        zone: as in ``Offer``; None for the whole region.
        observed_at: when the price began, or was first seen, with a time zone.
        source: the name of the price source that it is from, as the store knows it; "" before it is kept.
    """

    provider: str
    instance_type: str
    region: str
    zone: str | None
    market: Market
    usd_per_h: float
    observed_at: datetime
    source: str = ""


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
    """What an hour of an offer will cost, and the quote that says so.

    Attributes:
        RUN_DAYS: lengths of runs over which the mean of a price is known.
        usd_per_h: of the whole machine, when a run starts.
        kind: agreed with the owner, quoted (live, dated, or at the provider's floor), or derived.
        age_days: of the quote, in whole days.
        run_p90_usd_per_h: p90 of the mean over a run of each of `RUN_DAYS`, during which the price moves on;
            empty where it stays.
        is_near_floor: whether it was quoted near the least that the provider asks.
    """

    RUN_DAYS: ClassVar[tuple[float, ...]] = (7.0, 30.0, 90.0)

    usd_per_h: Interval
    kind: QuoteKind
    age_days: float
    run_p90_usd_per_h: tuple[float, ...] = ()
    is_near_floor: bool = False

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

    def times(self, num_nodes: int) -> Price:
        """Of so many equal machines, whose prices move together."""
        usd = self.usd_per_h
        return replace(
            self,
            usd_per_h=Interval(p10=usd.p10 * num_nodes, p50=usd.p50 * num_nodes, p90=usd.p90 * num_nodes),
            run_p90_usd_per_h=tuple(p90 * num_nodes for p90 in self.run_p90_usd_per_h),
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
    """Where in its region a job could go on when its spot machine is taken away.

    Attributes:
        num_zones: other zones that rent the machine on spot.
        usd_per_h: the mean of their rents as they count, of the whole plan.
        on_demand: the same machine on demand; None if it is not for rent.
    """

    num_zones: int = 0
    usd_per_h: float = 0.0
    on_demand: Plan | None = None

    @property
    def on_demand_usd_per_h(self) -> float | None:
        """Of the plan on demand, if there is one."""
        return None if self.on_demand is None else self.on_demand.usd_per_h

    @property
    def on_demand_wait_s(self) -> Quantiles | None:
        """Until that machine is there."""
        return None if self.on_demand is None else self.on_demand.wait_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to rent or use. Prices and counts are of the whole plan.

    Attributes:
        usd_per_h: the median of what is paid; None if the owner of a private machine configured no cost.
        price: how sure that is; None where it is exact.
        wait_s: time until the machine is ours; None if neither configured nor measured.
        startup_s: boot, installation and download of the data set; billed on a cloud.
        billed_step_s: time is billed in whole multiples of it; 0 bills the exact time.
        download_s: the part of ``startup_s`` in which the data set arrives.
        storage_usd_per_h: disks, paid from start to end, also while a spot machine is away.
        egress_usd: what bringing the result home costs.
        transfer_usd: what the data set's cloud asks for letting it go.
        transfer_gib: of the data set that moves; 0 where it is there already.
        read_gib: of the data set that each epoch reads, over the machine's network or from its own disks.
        copied_s: the part of ``download_s`` in which the data set is copied to the machine's own disks, which
            each epoch reads then, or read into its memory; 0 where each epoch reads it anew.
        kept_share: what the machine's memory keeps of it between two epochs.
        rates: in words, the rates behind lines of the bill (``"storage"``, ``"data transfer"``), with source
            and date.
        notes: what else to know of the place, such as who uses it.
        blocked: why the account may not start it, such as a quota; None if nothing is known to.
        lacks_quota: whether the account is known to need more quota first: of equals it comes last.
        num_vcpus: of one machine of one's own; an offer tells those of a rented one. None if unknown.
        elsewhere: of a spot machine, where the job could go on; None if nothing is known.
    """

    id: str
    tier: Tier
    provider: str
    gpu: str
    layout: Layout
    offer: Offer | None
    usd_per_h: float | None
    wait_s: Quantiles | None
    startup_s: float
    minimum_billed_s: float
    billed_step_s: float = 0.0
    download_s: float = 0.0
    storage_usd_per_h: float = 0.0
    egress_usd: float = 0.0
    transfer_usd: float = 0.0
    transfer_gib: float = 0.0
    read_gib: float = 0.0
    copied_s: float = 0.0
    kept_share: float = 0.0
    rates: Mapping[str, str] = field(default_factory=dict)
    price: Price | None = None
    notes: tuple[Finding, ...] = ()
    blocked: Finding | None = None
    lacks_quota: bool = False
    num_vcpus: int | None = None
    elsewhere: Elsewhere | None = None

    @property
    def num_gpus(self) -> int:
        """Of all nodes together."""
        return self.layout.num_gpus

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
    """What to expect of an option, over all draws; infinite where some draw never ends.

    Attributes:
        counted_usd: the cost where options are compared: that of a guessed price at its p90.
        own_share: the part of the rent at the plan's own price; the rest is of other zones, or on demand.
    """

    wait_s: float
    time_s: float
    cost_usd: float
    counted_usd: float
    own_share: float = 1.0

    @property
    def run_days(self) -> float:
        """Days from when the machine is there to the end."""
        return (self.time_s - self.wait_s) / DAY_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A plan with its time, cost and risk for one job.

    ``time_s`` is wait + start-up + training; ``cost_breakdown_usd`` adds up to ``cost_usd.p50``.

    Attributes:
        counted_usd: the median cost where options are compared: that of a guessed price at its p90.
        expected: means of what ``time_s`` and ``cost_usd`` are quantiles of.
        reasons: what to know of it; those that remove it among them.
        tie_with: id of the frontier's plan that is within 5 % of this one in both time and cost, if any.
        folded_into: id of the plan whose row speaks for this one, which gains little over it; None for a row
            of its own.
        what_if: the change to the script that the option supposes, such as ``"bf16"``; None for the script as
            it is.
    """

    plan: Plan
    estimate: IterationEstimate
    iterations: int
    wait_s: Quantiles | None
    train_s: Quantiles
    time_s: Quantiles
    cost_usd: Quantiles
    counted_usd: float
    expected: Means
    cost_breakdown_usd: Mapping[str, float]
    p_within_budget: float | None
    p_within_deadline: float | None
    risk: Finding
    script_changes: tuple[Finding, ...]
    reasons: tuple[Finding, ...]
    what_if: str | None = None
    tie_with: str | None = None
    folded_into: str | None = None

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
    """What the user wants done: exactly one of ``epochs`` and ``iterations`` is set.

    Attributes:
        iterations: optimizer steps of the script as it was profiled; other numbers of GPUs take as many
            samples.
        iterations_per_epoch: steps of the same kind; overrides the trace's, for data without a length.
        confidence: least probability with which budget and deadline must hold.
        value_of_time_usd_per_h: what an hour until the job is done is worth; None if unknown.
        change_usd: what it costs to change the script by more than a line; None if unknown.
        risk_counts: what is safer than all that is faster and cheaper stays on the frontier, too.
        scaling: what the script holds when GPUs are added; None for what was seen of it, else weak, or
            unshared where no DataLoader was seen either.
        data: the data set, which the plans are priced for; None without one.
        pick: what to recommend; None for the best value.
        split: how the script is supposed to divide its model; by default each GPU has all of it.
        checkpoints: what the script does with them; None for what its text shows.
    """

    epochs: float | None = None
    iterations: int | None = None
    budget_usd: float | None = None
    deadline_s: float | None = None
    confidence: float = 0.9
    iterations_per_epoch: int | None = None
    value_of_time_usd_per_h: float | None = None
    change_usd: float | None = None
    risk_counts: bool = False
    scaling: Scaling | None = None
    data: DataSet | None = None
    pick: PickName | None = None
    split: Split = WHOLE
    checkpoints: CheckpointUse | None = None


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
    """What one change of the script brings on the machine that is recommended.

    Attributes:
        change: its name, such as ``"bf16"``.
        option: the machine with the changed script; None where the change does not apply.
        instead: what would be recommended then, if it is another machine.
        saved_s: of the training's time, in the median; negative where it takes longer.
        saved_usd: the rent of that time; None where the price is unknown.
        saved_share: of the time of a sample, as far as anybody can tell.
        p_faster: odds that a sample takes less time.
        why_not: why the change brings nothing there.
    """

    change: str
    option: Option | None = None
    instead: Option | None = None
    saved_s: float | None = None
    saved_usd: float | None = None
    saved_share: Interval | None = None
    p_faster: float | None = None
    why_not: Finding | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """The answer: every option, the ids of the frontier in order of time, the one to take and why.

    Attributes:
        script: what the options are for.
        what_ifs: options of a changed script, which never count for the frontier nor the choice.
        gains: of the changes that were asked for, what surely saves most first.
        summary: what to take; its cost and time; what to do first, if anything; what would change the advice.
        shortlist: the options that someone could want, at most six; the recommended one first.
        as_it_is: the best option for the script without any work on it; None where there is none. Where a
            spot machine is the better with checkpoints, it may be the same plan restarted from zero.
        with_work: the best option among those that need work; None where there is none.
        batch_held: the recommended plan with the script's batch held, where its steps grow larger.
    """

    script: Script
    job: Job
    options: tuple[Option, ...]
    frontier: tuple[str, ...]
    recommended: str | None
    rule: Finding | None
    warnings: tuple[Finding, ...]
    what_ifs: tuple[Option, ...] = ()
    gains: tuple[ChangeGain, ...] = ()
    picks: tuple[Pick, ...] = ()
    summary: tuple[Finding, ...] = ()
    shortlist: tuple[Listed, ...] = ()
    as_it_is: Option | None = None
    with_work: Option | None = None
    batch_held: Option | None = None

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
