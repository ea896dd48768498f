"""Seconds of single operators as the product predicts them; the one place that knows how it does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from advisor.predict.knowledge import Knowledge
from advisor.predict.methods import op_times
from advisor.predict.training.overhead import Floors
from advisor.predict.training.samples import Samples
from advisor.types import GpuSpec, MemoryUse, Op, Precision, Trace
from benchmarks.accuracy.kernels import KernelErrors, kernel_errors, mean_of_seeds

_UNKNOWN_MEMORY = MemoryUse(
    parameter_bytes=None, gradient_bytes=None, optimizer_bytes=None, activation_bytes=None, peak_bytes=None
)
TRUE_FP32 = Precision(amp_dtype=None, tf32_matmul=False, tf32_cudnn=False)


def kernel_times(
    ops: Sequence[Op],
    gpu: GpuSpec,
    knowledge: Knowledge,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Median seconds of one call of each operator, and the log-normal sigma of each; FP32 without TF32.

    Equal operators are timed once.
    """
    distinct = {id(op): op for op in ops}
    times = op_times(_trace(tuple(distinct.values())), gpu, knowledge)
    place = {key: i for i, key in enumerate(distinct)}
    where = np.array([place[id(op)] for op in ops], dtype=np.intp)
    p50_s = np.array([time.time_s for time in times])
    sigma = np.array([time.sigma for time in times])
    return p50_s[where], sigma[where]


def errors_of_seeds(samples: Samples, members: Iterable[Knowledge], floors_s: Floors) -> list[KernelErrors]:
    """Errors on measured kernels, the mean over several seeds."""
    return mean_of_seeds(
        [kernel_errors(samples, partial(kernel_times, knowledge=member), floors_s) for member in members]
    )


def _trace(ops: tuple[Op, ...]) -> Trace:
    return Trace(
        schema_version=1,
        script="",
        arguments=(),
        backend="fake",
        origin_gpu=None,
        versions={},
        precision=TRUE_FP32,
        batch_size=None,
        samples_per_epoch=None,
        iterations_per_epoch=None,
        accumulation=1,
        ops=ops,
        iteration_s=None,
        data_loading_s=None,
        num_workers=None,
        memory=_UNKNOWN_MEMORY,
        collectives=(),
        warnings=(),
    )
