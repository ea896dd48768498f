"""How long an iteration waits for its samples on a machine with so many vCPUs, that reads so fast.

Workers load the next batches while the GPU computes, so an iteration takes the longer of the two; without
workers the main process loads first and computes then, so it takes the sum (docs/methods/data-loading.md).
"""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from advisor.core.findings import Finding
from advisor.core.findings.about_options import InputAssumed, InputBound
from advisor.core.values import InputWork, Interval, IterationEstimate, Method

WAITING = "waiting for data"
# Three of four machines of the catalog have as many for each GPU, or more.
ASSUMED_VCPUS_PER_GPU = 8.0


def num_cores(work: InputWork, vcpus_per_gpu: float | None) -> float:
    """Number of vCPUs that load for one GPU.

    Args:
        work: with the number of workers, which caps it.
        vcpus_per_gpu: of the machine; None if any worker has one of its own.
    """
    vcpus = vcpus_per_gpu or work.num_workers or ASSUMED_VCPUS_PER_GPU
    return vcpus if work.num_workers is None else min(vcpus, max(1, work.num_workers))


def input_s(work: InputWork, vcpus_per_gpu: float | None) -> Interval:
    """Seconds in which the samples of one iteration are made.

    A vCPU is busy for ``cpu_s``, a worker for ``cpu_s + wait_s``: whichever runs out first decides.
    """
    cores = num_cores(work, vcpus_per_gpu)
    workers = max(1, work.num_workers) if work.num_workers is not None else cores

    def seconds(cpu_s: float) -> float:
        return max(cpu_s / cores, (cpu_s + work.wait_s) / workers)

    return Interval(p10=seconds(work.cpu_s.p10), p50=seconds(work.cpu_s.p50), p90=seconds(work.cpu_s.p90))


def fed(estimate: IterationEstimate, vcpus_per_gpu: float | None) -> IterationEstimate:
    """The estimate on a machine with so many vCPUs for each GPU; None if each worker has one.

    The iteration is the larger of GPU time and input time, their sum where one process does both; the
    quantiles one by one, as if both were slow together.
    """
    work = estimate.input
    if work is None:
        return estimate
    load_s = input_s(work, vcpus_per_gpu)
    changed = _loaded(estimate, load_s)
    note = input_note(estimate, vcpus_per_gpu)
    others = (assumption for assumption in estimate.assumptions if not isinstance(assumption, InputBound))
    method = Method.MEASURED if work.kind is None else Method.ASSUMED
    parts = dict(estimate.by_method)
    parts[method] = parts.get(method, 0.0) + changed["loading_s"] - estimate.loading_s
    return replace(
        estimate,
        **changed,
        by_method={name: part_s for name, part_s in parts.items() if part_s > 0},
        assumptions=(*([] if note is None else [note]), *others),
    )


def reading(estimate: IterationEstimate, read_s: Interval) -> IterationEstimate:
    """The estimate where the samples of an iteration take so long to arrive, while others are made."""
    made_s = estimate.input_s
    changed = _loaded(estimate, read_s if made_s is None else _together(made_s, read_s, in_turn=False))
    assumed_s = estimate.by_method.get(Method.ASSUMED, 0.0) + changed["loading_s"] - estimate.loading_s
    by_method = {**estimate.by_method, **({Method.ASSUMED: assumed_s} if assumed_s > 0 else {})}
    return replace(estimate, **changed, by_method=by_method)


def _loaded(estimate: IterationEstimate, load_s: Interval) -> dict[str, Any]:
    """Fields of the estimate where its samples take so long, but for the method behind that time."""
    whole_s = _together(estimate.device_s, load_s, in_turn=estimate.loads_in_turn)
    waiting_s = whole_s.p50 - estimate.device_s.p50
    return {
        "iteration_s": whole_s,
        "input_s": load_s,
        "loading_s": waiting_s,
        "by_family": _with_waiting(estimate.by_family, waiting_s),
        "by_operator": _with_waiting(estimate.by_operator, waiting_s),
    }


def _together(device_s: Interval, load_s: Interval, *, in_turn: bool) -> Interval:
    def joined(one_s: float, other_s: float) -> float:
        return one_s + other_s if in_turn else max(one_s, other_s)

    return Interval(
        p10=joined(device_s.p10, load_s.p10),
        p50=joined(device_s.p50, load_s.p50),
        p90=joined(device_s.p90, load_s.p90),
    )


def _with_waiting(seconds: Mapping[str, float], waiting_s: float) -> Mapping[str, float]:
    if WAITING not in seconds and not waiting_s:
        return seconds
    parts = {name: part_s for name, part_s in seconds.items() if name != WAITING}
    parts |= {WAITING: waiting_s} if waiting_s else {}
    return dict(sorted(parts.items(), key=lambda item: -item[1]))


def input_note(
    estimate: IterationEstimate, vcpus_per_gpu: float | None, *, names_gpu_time: bool = False
) -> Finding | None:
    """What loading does to the iteration; None where it hides for sure.

    Args:
        estimate: on any machine.
        vcpus_per_gpu: of the machine meant; None if each worker has one.
        names_gpu_time: beside loading's; without it the finding is the same for all GPUs that wait.
    """
    work, device_s = estimate.input, estimate.device_s
    if work is None:
        return None
    load_s = input_s(work, vcpus_per_gpu)
    gpu_s, is_bound = device_s.p50 if names_gpu_time else None, load_s.p50 > device_s.p50
    if estimate.loads_in_turn:
        return InputBound(by="main-process", is_bound=is_bound, loading_s=load_s.p50, gpu_s=gpu_s)
    if not is_bound and load_s.p90 < device_s.p90:
        return None
    return InputBound(
        by="workers",
        is_bound=is_bound,
        loading_s=load_s.p50,
        samples_per_s=None if work.num_samples is None else work.num_samples / load_s.p50,
        num_workers=work.num_workers,
        # Without a number of workers the machine's vCPUs load, or as many as are assumed.
        vcpus_per_gpu=vcpus_per_gpu if work.num_workers else num_cores(work, vcpus_per_gpu),
        cpu_s=work.cpu_s.p50,
        gpu_s=gpu_s,
    )


def assumed_note(work: InputWork | None) -> Finding | None:
    """What is assumed of an input that was not measured; None where it was measured."""
    if work is None or work.kind is None or not work.num_samples:
        return None
    each = {name: seconds / work.num_samples for name, seconds in asdict(work.cpu_s).items()}
    return InputAssumed(kind=work.kind, cpu_s_per_sample=each)
