"""Data loading: how long each iteration waits for its samples.

Workers load the next batches while the GPU computes, so an iteration takes the longer of the two; without
workers the main process loads first and computes then, so it takes the sum (docs/decisions/0006).
"""

from __future__ import annotations

import math

from advisor.core.findings import Code, Finding, finding
from advisor.core.values import Interval, IterationEstimate, Trace
from advisor.predict.interval import SIGMA_LOADING, spread

# Below this a single run tells more about the machine's other work than about loading.
SHORTEST_S = 1e-3
WAITING = "waiting for data"


def loading_s(trace: Trace) -> float:
    """Seconds in which the script's workers, or its main process, load one iteration's samples."""
    whole_s = trace.data_loading_s or 0.0
    return whole_s / max(1, trace.num_workers or 0) if whole_s >= SHORTEST_S else 0.0


def waiting_s(trace: Trace, device_s: float) -> float:
    """Seconds by which loading makes an iteration longer that takes the device ``device_s``."""
    if not trace.num_workers:
        return loading_s(trace)
    return max(0.0, loading_s(trace) - device_s)


def with_loading(trace: Trace, device_s: float, variance: float) -> Interval:
    """The iteration's interval: the device's, of this variance, and loading's together."""
    load_s = loading_s(trace)
    if trace.num_workers and load_s:
        device, load = spread(device_s, math.sqrt(variance) / device_s), spread(load_s, SIGMA_LOADING)
        return Interval(
            p10=max(device.p10, load.p10), p50=max(device.p50, load.p50), p90=max(device.p90, load.p90)
        )
    total_s = device_s + load_s
    return spread(total_s, math.hypot(math.sqrt(variance), SIGMA_LOADING * load_s) / total_s)


def input_note(trace: Trace, estimate: IterationEstimate, *, names_gpu_time: bool = True) -> Finding | None:
    """What loading does to the iteration; None where it hides for sure or is unknown.

    Args:
        trace: tells how long loading takes.
        estimate: of the iteration.
        names_gpu_time: beside loading's; without it the finding is the same for all GPUs that wait.
    """
    load_s = loading_s(trace)
    device_s = estimate.iteration_s.p50 - estimate.loading_s
    if not load_s or (not trace.num_workers and not estimate.loading_s):
        return None
    if not trace.num_workers:
        code = Code.INPUT_BOUND_ALONE if load_s > device_s else Code.INPUT_IN_TURN
    elif estimate.loading_s:
        code = Code.INPUT_BOUND
    elif spread(load_s, SIGMA_LOADING).p90 >= estimate.iteration_s.p90:
        code = Code.INPUT_NEARLY_BOUND
    else:
        return None
    gpu_s = device_s if names_gpu_time else None
    if not trace.num_workers:
        return finding(code, loading_s=load_s, gpu_s=gpu_s)
    return finding(
        code, loading_s=load_s, num_workers=trace.num_workers, cpu_s=trace.data_loading_s, gpu_s=gpu_s
    )


def is_uncounted(trace: Trace, device_s: float) -> bool:
    """Whether loading was too short to time for an iteration that is as short."""
    return 0 < (trace.data_loading_s or 0.0) < SHORTEST_S and device_s < SHORTEST_S


def cpu_note(trace: Trace, estimate: IterationEstimate, num_vcpus: int | None) -> Finding | None:
    """Whether a machine has too few cores for the workers of all its GPUs; None if not."""
    num_workers = (trace.num_workers or 0) * estimate.num_gpus
    if not num_vcpus or num_workers <= num_vcpus:
        return None
    shared_s = loading_s(trace) * num_workers / num_vcpus
    if shared_s <= estimate.iteration_s.p50:
        return None
    return finding(Code.TOO_FEW_CPUS, num_workers=num_workers, num_vcpus=num_vcpus, loading_s=shared_s)
