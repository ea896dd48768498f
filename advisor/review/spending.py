"""Runs -> what they cost together and apart: by project, GPU, market, provider and week."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from advisor.core.units import HOUR_S
from advisor.review.money import exact, total
from advisor.review.period import Period, monday_of

if TYPE_CHECKING:
    from advisor.store.ledger import Run

OWN = "own machines"
OF_CLOUDS = "of a cloud, terms unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What the runs of one name cost together.

    Attributes:
        name: of a project, GPU, market or provider, or the Monday of a week; "" is not known.
        usd: of the runs whose cost is known.
        num_unknown: runs whose cost is not known.
        gpu_h: hours of single GPUs; None where the length of a run is not known.
    """

    name: str
    usd: Decimal
    num_runs: int
    num_unknown: int
    gpu_h: float | None

    @property
    def is_unknown(self) -> bool:
        """Whether it has runs, and the cost of none of them is known."""
        return 0 < self.num_runs == self.num_unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """What runs cost, in all and by what they have in common, the dearest first; weeks in their order."""

    all: Share
    by_project: tuple[Share, ...]
    by_gpu: tuple[Share, ...]
    by_market: tuple[Share, ...]
    by_provider: tuple[Share, ...]
    by_week: tuple[Share, ...]


def spending_of(runs: Sequence[Run], period: Period, is_own: Callable[[Run], bool]) -> Spending:
    """What the runs of a period cost.

    Args:
        runs: that started within the period.
        period: whose weeks are all named, those without a run, too.
        is_own: whether a run used a machine of one's own, which has no market.
    """

    def market(run: Run) -> str:
        return run.market or (OWN if is_own(run) else OF_CLOUDS if run.provider else "")

    weeks: Mapping[str, list[Run]] = {f"{monday}": [] for monday in period.weeks()}
    for run in runs:
        weeks[f"{monday_of(run.started_at)}"].append(run)
    return Spending(
        all=_share("", runs),
        by_project=_shares(runs, lambda run: run.project),
        by_gpu=_shares(runs, lambda run: run.gpu),
        by_market=_shares(runs, market),
        by_provider=_shares(runs, lambda run: run.provider),
        by_week=tuple(_share(name, group) for name, group in weeks.items()),
    )


def cost_of(runs: Iterable[Run]) -> Decimal:
    """What runs of known cost cost together."""
    return total(exact(run.cost_usd) for run in runs if run.cost_usd is not None)


def _shares(runs: Iterable[Run], name_of: Callable[[Run], str]) -> tuple[Share, ...]:
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(name_of(run), []).append(run)
    shares = (_share(name, group) for name, group in groups.items())
    return tuple(sorted(shares, key=lambda share: (-share.usd, share.name)))


def _share(name: str, runs: Sequence[Run]) -> Share:
    lengths = [run.duration_s for run in runs]
    gpu_h = sum(run.num_gpus * (run.duration_s or 0.0) for run in runs) / HOUR_S
    return Share(
        name=name,
        usd=cost_of(runs),
        num_runs=len(runs),
        num_unknown=sum(run.cost_usd is None for run in runs),
        gpu_h=None if None in lengths else gpu_h,
    )
