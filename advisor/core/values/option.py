"""What could be rented or used for a job, what it leads to, and what to take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from advisor.core.findings import Code, Finding, removals
from advisor.core.notebook import html_of
from advisor.core.units import DAY_S
from advisor.core.values.estimate import IterationEstimate
from advisor.core.values.interval import Interval, Quantiles
from advisor.core.values.layout import Layout
from advisor.core.values.place import DataSet
from advisor.core.values.price import Offer, Price
from advisor.core.values.split import WHOLE, Split
from advisor.core.values.workload import Scaling, Script


class Tier(StrEnum):
    """Whose machine it is."""

    LOCAL = "local"
    CLUSTER = "cluster"
    CLOUD = "cloud"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to rent or use. Prices and counts are of the whole plan.

    Attributes:
        usd_per_h: the median of what is paid; None if the owner of a private machine configured no cost.
        price: how sure that is; None where it is exact.
        wait_s: time until the machine is ours; None if nobody configured or measured it.
        startup_s: boot, installation and download of the data set; billed on a cloud.
        billed_step_s: time is billed in whole multiples of it; 0 bills the exact time.
        download_s: the part of ``startup_s`` in which the data set arrives.
        storage_usd_per_h: disks, paid from start to end, also while a spot machine is away.
        egress_usd: what bringing the result home costs.
        transfer_usd: what the data set's cloud asks for letting it go.
        transfer_gib: of the data set that moves; 0 where it is there already.
        read_gib: of the data set that each epoch reads, over the machine's network or from its own disks.
        copied_s: the part of ``download_s`` in which the data set is copied to the machine's own disks, which
            each epoch reads then; 0 where it reads over the network.
        rates: in words, the rates behind lines of the bill (``"storage"``, ``"data transfer"``), with source
            and date.
        notes: what else to know of the place, such as who uses it.
        blocked: why the account may not start it, such as a quota; None if nothing is known to.
        num_vcpus: of one machine of one's own; an offer tells those of a rented one. None if unknown.
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
    rates: Mapping[str, str] = field(default_factory=dict)
    price: Price | None = None
    notes: tuple[Finding, ...] = ()
    blocked: Finding | None = None
    num_vcpus: int | None = None

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
    """

    wait_s: float
    time_s: float
    cost_usd: float
    counted_usd: float

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
    def removed_by(self) -> tuple[Code, ...]:
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
        value_of_time_usd_per_h: what an hour until the job is done is worth; None if nobody said.
        change_usd: what it costs to change the script by more than a line; None if nobody said.
        risk_counts: what is safer than all that is faster and cheaper stays on the frontier, too.
        scaling: what the script holds when GPUs are added; None for what was seen of it, else weak, or
            unshared where no DataLoader was seen either.
        data: the data set, which the plans are priced for; None without one.
        pick: what to recommend; None for the best value.
        split: how the script is supposed to divide its model; by default each GPU has all of it.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """The plan that is the best at something, and why."""

    name: PickName
    plan_id: str
    reason: Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeGain:
    """What one change of the script brings on the machine that is recommended.

    Attributes:
        change: its name, such as ``"bf16"``.
        option: the machine with the changed script; None where the change does not apply.
        instead: what would be recommended then, if it is another machine.
        saved_s: of the training's time, in the median; negative where it takes longer.
        saved_usd: the rent of that time; None where nobody knows the price.
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
        summary: what to take; its cost and time; what could go wrong, and what would change the advice.
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
