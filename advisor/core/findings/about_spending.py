"""What is found of prices, and of what a team spends."""

from collections.abc import Mapping, Sequence
from typing import Literal

from advisor.core.findings import Caution, Change, Note

# What to know of prices.


class GpuFamily(Note):
    name: str
    gpus: Sequence[str]


class PricesComputed(Caution):
    num_computed: int
    num_prices: int
    source_begins: str


class PricesImplausible(Caution):
    num_prices: int
    source: str
    examples: str
    is_kept: bool


class PricesNotLive(Caution):
    num_dated: int
    num_prices: int
    ages: Sequence[Mapping[str, str | int]]
    is_public: bool


class PricesStale(Caution):
    examples: Sequence[str]
    num_machines: int
    num_prices: int
    sources: Sequence[str]
    is_kept: bool


# What a team's report says: what would cost less, and where money leaks.


class SavingFound(Change, code="saving"):
    script: str
    project: str
    rhythm: str
    share: float
    num_gpus: int
    gpu: str
    place: str
    market: str
    usd: float
    now_usd: float
    time_p90_s: float
    deadline_s: float | None


class Leak(Caution):
    of: Literal["above-p90", "failed", "idle", "interrupted", "lost", "unadvised", "unused"]
    usd: float
    num_runs: int = 0
    num_unknown: int = 0
    scripts: Sequence[str] = ()
    provider: str | None = None
    instance_type: str | None = None
    amortised_usd: float = 0.0
    share_of_commitments: float = 0.0
    num_commitments: int = 0
    commitments: Sequence[str] = ()


class SpendJump(Caution):
    project: str
    day: str
    usd: float
    usual_usd: float
    maker: str
    maker_usd: float
    is_run: bool


# What a report does not know, or counts nowhere.


class LeftOut(Caution):
    where: str
    num_left_out: int
    num_read: int | None
    usd: float | None = None
    num_unknown: int = 0
    first: Sequence[str]


class ChargesDoubtful(Caution):
    why: Literal["other-currency", "overlap", "untagged"]
    usd: float | None = None
    currency: str | None = None
    amount: float = 0.0
    num_charges: int = 0
    bills: Sequence[str] = ()
    provider: str | None = None
    num_days: int = 0


class ReportGap(Note):
    what: Literal[
        "bill", "estimated", "forecast", "long-charges", "machines", "odd-cells", "prices", "runs",
        "unpriced-jobs",
    ]  # fmt: skip
    num: int = 0
    names: Sequence[str] = ()


class RunCostsUnknown(Caution):
    num_runs: int
    runs: Sequence[str]
