"""Seconds of single operators as the product predicts them; the one place that knows how it does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from advisor.core.values import GpuSpec, Op
from advisor.predict.constants import constants_for
from advisor.predict.knowledge import Knowledge
from advisor.predict.methods import op_times
from benchmarks.accuracy.kernels import KernelErrors, kernel_errors, mean_of_seeds
from research.bare_trace import bare_trace
from research.training.overhead import Floors
from research.training.samples import Samples


def kernel_times(
    ops: Sequence[Op], gpu: GpuSpec, knowledge: Knowledge
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Median seconds of one call of each operator, and the log-normal sigma of each; FP32 without TF32.

    Equal operators are timed once.
    """
    distinct = {id(op): op for op in ops}
    times = op_times(bare_trace(tuple(distinct.values())), gpu, constants_for(gpu, knowledge), knowledge)
    place = {key: i for i, key in enumerate(distinct)}
    where = np.array([place[id(op)] for op in ops], dtype=np.intp)
    return times.time_s[where], times.sigma[where]


def errors_of_seeds(samples: Samples, members: Iterable[Knowledge], floors_s: Floors) -> list[KernelErrors]:
    """Errors on measured kernels, the mean over several seeds."""
    return mean_of_seeds(
        [kernel_errors(samples, partial(kernel_times, knowledge=member), floors_s) for member in members]
    )
