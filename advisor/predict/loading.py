"""What the samples of an iteration take: measured where it was profiled, else assumed by their kind."""

from __future__ import annotations

from dataclasses import replace

from advisor.core.values import InputWork, Interval, Trace
from advisor.predict.interval import SIGMA_LOADING, spread
from advisor.predict.samples import assumed_cpu_s, num_copied

# Below this a single run tells more about the machine's other work than about loading.
SHORTEST_S = 1e-3


def input_work(trace: Trace) -> InputWork | None:
    """What the samples of one GPU's iteration take: measured, else assumed by their kind.

    None where loading is too short to time, or nothing is copied to the GPU.
    """
    measured = _measured(trace)
    if measured is not None:
        return measured if measured.cpu_s.p50 + measured.wait_s >= SHORTEST_S else None
    assumed = assumed_cpu_s(trace)
    if assumed is None:
        return None
    kind, cpu_s = assumed
    return InputWork(
        cpu_s=cpu_s, wait_s=0.0, num_workers=trace.num_workers, num_samples=_num_samples(trace), kind=kind
    )


def _measured(trace: Trace) -> InputWork | None:
    whole_s, each_s, count = trace.data_loading_s, trace.loader_cpu_s_per_sample, _num_samples(trace)
    if each_s is not None and count is not None:
        cpu_s = each_s * count
    elif whole_s is not None:
        cpu_s = whole_s  # a trace of before CPUs were measured
    else:
        return None
    return InputWork(
        cpu_s=spread(cpu_s, SIGMA_LOADING),
        wait_s=max(0.0, (whole_s or 0.0) - cpu_s),
        num_workers=trace.num_workers,
        num_samples=count,
    )


def _num_samples(trace: Trace) -> int | None:
    return trace.batch_size or num_copied(trace)


def work_beside_measured(trace: Trace, iteration_s: float) -> InputWork | None:
    """The same where the iteration was measured on this GPU: it has waited for its data already.

    Another machine's vCPUs may be fewer. The measured ones, one a worker, made all samples in that time.
    """
    work = None if trace.num_workers == 0 else input_work(trace)
    if work is None or work.kind is None or work.num_workers is None:
        return work
    most_s = work.num_workers * iteration_s
    cpu_s = Interval(
        p10=min(work.cpu_s.p10, most_s), p50=min(work.cpu_s.p50, most_s), p90=min(work.cpu_s.p90, most_s)
    )
    return replace(work, cpu_s=cpu_s)


def is_uncounted(trace: Trace, device_s: float) -> bool:
    """Whether loading was too short to time for an iteration that is as short."""
    return 0 < (trace.data_loading_s or 0.0) < SHORTEST_S and device_s < SHORTEST_S
