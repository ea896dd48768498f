"""Times some steps of a small script on this machine's CPU, which is then a place to train."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.core.errors import AdvisorError
from advisor.core.values import Trace
from advisor.service.listening import Listener
from advisor.service.recommend.pipeline import Places
from advisor.service.recommend.question import RecommendRequest
from advisor.service.traces import holds_data, steps_on_cpu

if TYPE_CHECKING:
    from advisor.config.layers import Config

# At 100 GFLOP/s, which a few cores reach, such a step takes 5 s: of larger ones too few end in time.
MOST_FLOPS = 5e11
# Others work here, too.
MOST_OF_MEMORY = 0.5


def with_cpu(
    places: Places, trace: Trace, request: RecommendRequest, config: Config, listener: Listener
) -> Places:
    """The places with this CPU among them, where the script runs on it within seconds."""
    source = request.trace.source
    if not config.settings.local.cpu or request.gpus or not isinstance(source, Path) or holds_data(source):
        return places
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if not _is_small(trace, memory_bytes):
        return places
    from advisor.workloads.cpu import CPU, CpuSteps

    try:
        times_s = steps_on_cpu(request.trace, config.settings.profile, listener)
    except AdvisorError:
        return places  # it wants a GPU, or takes too long
    steps = CpuSteps(
        cpu=_name(), times_s=times_s, memory_bytes=memory_bytes, num_vcpus=len(os.sched_getaffinity(0))
    )
    return replace(
        places, plans=(*places.plans, steps.plan), gpus={**places.gpus, CPU: steps.spec}, cpu=steps
    )


def _is_small(trace: Trace, memory_bytes: int) -> bool:
    peak_bytes = trace.memory.peak_bytes or memory_bytes
    is_alone = trace.world_size is None and not trace.is_sharded
    return is_alone and trace.flops <= MOST_FLOPS and peak_bytes <= MOST_OF_MEMORY * memory_bytes


def _name() -> str:
    import platform

    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()
