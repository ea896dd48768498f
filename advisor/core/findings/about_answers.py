"""What is found of a whole answer: the pick, what would change it, two plans or scripts compared."""

from collections.abc import Sequence
from typing import Literal

from advisor.core.findings import Caution, Fault, Finding, Note

# Why an option was picked.


class BestOfTotal(Note):
    value_usd_per_h: float
    cost_usd: float
    time_s: float
    change_s: float
    change_usd: float
    work: Sequence[str]
    is_price_derived: bool


class Cheapest(Note):
    is_cost_known: bool
    is_guess_below: bool
    is_rent_below: bool
    work: Sequence[str]
    change_usd: float


class CostOfPickUnknown(Caution):
    rule: Finding


class Fastest(Note):
    work: Sequence[str]


class ObjectiveOfPolicy(Note):
    reason: Finding


class Safest(Note):
    limits: Sequence[str]
    p_met: float
    is_preemptible: bool
    cost_p90_usd: float
    is_cost_known: bool


# The answer in short, and which fact would change it.


class Machine(Note):
    plan_id: str
    gpu: str
    num_gpus: int
    num_nodes: int
    tier: str
    provider: str
    instance_type: str | None
    place: str | None
    market: str | None


class SummaryChoice(Note):
    machine: Finding
    is_rented: bool
    priced_on: str | None
    price_age_days: float | None = None


class SummaryCostAndTime(Note):
    cost_p50_usd: float
    cost_p90_usd: float
    time_p50_s: float
    time_p90_s: float
    num_iterations: int
    iteration_s: float
    is_cost_known: bool
    is_whole: bool
    restarts: bool


class SummaryWork(Note):
    work: Sequence[str]
    work_s: float
    work_usd: float
    script: str
    saves: bool


class SummaryDoubt(Note):
    tipped_by: Finding | None


TippedBy = Literal[
    "checkpoints", "data-place", "deadline", "later-deadline", "objective", "price", "quote", "step",
    "value", "wait",
]  # fmt: skip


class Tipping(Note):
    by: TippedBy
    instead: Finding
    time_s: float
    cost_usd: float | None
    usd_per_h: float = 0.0
    limit_s: float = 0.0
    expected_s: float = 0.0
    is_known: bool = True
    is_above: bool = True
    data_provider: str | None = None
    data_region: str | None = None
    script: str = ""
    work: Sequence[str] = ()
    quoted_usd_per_h: float = 0.0


# What a change of the script does to its job.


class ChangeCosts(Note):
    machine: Finding
    measure: str
    relative: float
    base_usd: float | None
    base_p90_usd: float | None
    base_s: float
    head_usd: float | None
    head_p90_usd: float | None
    head_s: float


class ChangeEndsAll(Caution):
    machine: Finding | None


class ChangeMoves(Note):
    was_possible: bool
    machine: Finding
    head_usd: float | None
    head_p90_usd: float | None
    head_s: float


class ChangeOfMemory(Note):
    base_bytes: int
    head_bytes: int
    no_longer: Sequence[str]
    newly: Sequence[str]


class ChangeRulesOut(Caution):
    machine: Finding
    why: Finding | None
    instead: Finding
    measure: str
    relative: float
    base_usd: float | None
    base_p90_usd: float | None
    base_s: float
    head_usd: float | None
    head_p90_usd: float | None
    head_s: float


# What decides between two plans, and where more GPUs of one stop paying.


class Compared(Note):
    by: Literal["both", "time-alone", "trade"]
    faster: str
    slower: str
    times_faster: float | None
    less_s: float
    p_sooner: float
    times_in_cost: float | None = None
    cost_differs_by_usd: float | None = None
    change_usd: float | None = None
    even_usd_per_h: float | None = None
    value_usd_per_h: float | None = None
    take: str | None = None
    unpriced: Sequence[str] = ()


class ComparedNeither(Caution):
    why_a: Finding
    why_b: Finding


class ComparedOne(Note):
    take: str
    other: str
    why: Finding


class ComparedSame(Note):
    usd: float
    time_s: float


class CurveOfNone(Caution): ...


class CurveStops(Note):
    machine: Finding
    next_num_gpus: int | None
    usd_per_h_saved: float | None
    change_usd: float
    value_usd_per_h: float


# What a recommendation leaves out.


class AssumedOfOptions(Caution):
    what: Literal["cloud-wait", "rates"]
    num_assumed: int
    num_options: int


class DataRegionUnknown(Caution):
    place: str
    provider: str


class OptInRegions(Note):
    num_offers: int
    regions: Sequence[str]


# What is missing or wrong in what was asked: an error carries it.


class EpochLengthUnknown(Fault):
    script: str
    is_of_profiler: bool
    has_loader: bool


class NothingToChooseFrom(Fault): ...


class TooManyEpochs(Fault):
    epochs: float
    iterations_per_epoch: int
    most_iterations: int
