"""Ways to feed a GPU faster, each as the trace that the script would give then."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from advisor.core.findings import Code
from advisor.core.values import Trace
from advisor.predict.loading import input_work
from advisor.predict.samples import ARRAY, copied_batches, load_loader_priors


@dataclass(frozen=True, slots=True, kw_only=True)
class Feeding:
    """A change of the input pipeline.

    Attributes:
        name: in a word.
        trace: of the changed script.
        step: what to change.
    """

    name: str
    trace: Trace
    step: Code


def faster_feeding(trace: Trace) -> Iterator[Feeding]:
    """More workers, samples stored as training wants them, and disks that never keep a worker waiting."""
    work = input_work(trace)
    if work is None:
        return
    if trace.num_workers is not None:
        yield Feeding(name="workers", trace=replace(trace, num_workers=None), step=Code.USE_WORKERS)
    packed_s = _packed_s(trace)
    if packed_s is not None and work.num_samples and packed_s < work.cpu_s.p50:
        each_s = packed_s / work.num_samples
        packed = replace(trace, loader_cpu_s_per_sample=each_s, data_loading_s=None)
        yield Feeding(name="packed", trace=packed, step=Code.PACK_DATA)
    if work.wait_s:
        quick = replace(trace, data_loading_s=work.cpu_s.p50)
        yield Feeding(name="nvme", trace=quick, step=Code.USE_NVME)


def _packed_s(trace: Trace) -> float | None:
    """CPU seconds to read and collate an iteration's samples where nothing is decoded; None without any."""
    copies = copied_batches(trace)
    each_s = load_loader_priors()[ARRAY].cpu_s.p50
    return each_s * sum(op.count * prod(op.inputs[0].shape) for op in copies) if copies else None
