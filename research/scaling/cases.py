"""Published rates of several GPUs: efficiency is the rate of N GPUs over N times that of the smallest job.

What one GPU takes cancels, so that a row judges what GPUs cost each other. Rows of one group (a model in one
precision on one kind of GPU) serve to fit or judge together, by the hash of the group's name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from advisor.core.values import GpuSpec, Layout, Link
from advisor.predict.exchange.collective_time import ScalingConstants
from research.training.drawn import fraction_of

FITTED_SHARE = 1 / 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One row that is judged beside the smallest job of its group."""

    source: str
    """Whose table it is of."""
    group: str
    """What its rows have in common."""
    gpu: GpuSpec
    base: Layout
    """The smallest published job."""
    layout: Layout
    published: float
    """Efficiency beside it."""
    seconds: Callable[[Layout, ScalingConstants], tuple[float, float]]
    """Predicted median of an iteration in a layout, and its log-normal sigma beyond one GPU's."""
    name: str = ""
    """Of the row, where the group does not tell."""

    @property
    def is_fitted(self) -> bool:
        """Whether the group serves to fit constants; the others only judge."""
        return self.is_known and fraction_of(f"{self.source} {self.group}") < FITTED_SHARE

    @property
    def is_known(self) -> bool:
        """Whether the link has a rate that somebody could know: what a host's memory lends, nobody does."""
        return self.layout.fabric is None or self.layout.fabric.link is not Link.HOST

    @property
    def is_beside_one_gpu(self) -> bool:
        """Whether the row has all the error of several GPUs: beside several others, most of it cancels."""
        return self.base.num_gpus == 1

    @property
    def is_one_node(self) -> bool:
        """Whether no network takes part."""
        return self.layout.num_nodes == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A case with its predicted efficiency and the log-normal sigma of it."""

    case: Case
    predicted: float
    sigma: float

    @property
    def error(self) -> float:
        """In shares of perfect scaling, positive where the prediction is too good."""
        return self.predicted - self.case.published


def judged(case: Case, scaling: ScalingConstants) -> Judged:
    """The case with these constants."""
    alone_s, _ = case.seconds(case.base, scaling)
    seconds, sigma = case.seconds(case.layout, scaling)
    return Judged(case=case, predicted=alone_s / seconds, sigma=sigma)
