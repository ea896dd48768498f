"""A machine whose memory cannot hold what trains on its GPUs is left out, and says why."""

from dataclasses import replace

import pytest

from advisor.core.findings.about_options import MemoryTight, RemovedByHostMemory
from advisor.core.values import InputWork, Interval, IterationEstimate, MemoryEstimate, MemoryPart
from recommender.outcome.reasons import host_bytes, host_memory_notes
from tests.builders import make_estimate
from tests.unit.recommender.outcome.test_reading import machine

NEED = Interval(p10=1e9, p50=1e9, p90=1e9)
WORK = InputWork(cpu_s=Interval(p10=0, p50=0, p90=0), wait_s=0.0, num_workers=4)


def estimate(weights_gb: float, num_workers: int | None = 4, num_gpus: int = 1) -> IterationEstimate:
    memory = MemoryEstimate(parts={MemoryPart.WEIGHTS: round(weights_gb * 1e9)}, need_bytes=NEED)
    work = replace(WORK, num_workers=num_workers)
    return replace(make_estimate("X", 0.1, num_gpus=num_gpus), memory=memory, input=work)


@pytest.mark.parametrize(
    ("instance_type", "weights_gb", "finding"),
    [
        ("g5.xlarge", 14.0, RemovedByHostMemory),  # a bf16 model of 7 B on 16 GiB, where the GPU has 24
        ("g5.xlarge", 8.0, MemoryTight),
        ("g5.2xlarge", 14.0, MemoryTight),
        ("g5.4xlarge", 14.0, None),
        ("nobody.knows", 1e6, None),
    ],
)
def test_the_weights_go_through_the_hosts_memory(instance_type, weights_gb, finding):
    notes = list(host_memory_notes(machine(instance_type), estimate(weights_gb)))
    assert [type(note) for note in notes] == ([] if finding is None else [finding])


def test_each_gpu_has_a_process_with_its_own_copy_and_workers():
    one, eight = host_bytes(estimate(14.0)), host_bytes(estimate(14.0, num_gpus=8))
    assert one is not None
    assert eight is not None
    assert one.p50 == pytest.approx(1e9 + 3e9 + 4 * 0.4e9 + 14e9)
    assert eight.p50 - 1e9 == pytest.approx(8 * (one.p50 - 1e9))


def test_what_is_unknown_widens_the_need_or_leaves_it_unknown():
    known, unknown = host_bytes(estimate(1.0)), host_bytes(estimate(1.0, num_workers=None))
    assert known is not None
    assert unknown is not None
    assert unknown.p10 < known.p10 < known.p90 < unknown.p90
    assert host_bytes(replace(estimate(1.0), memory=None)) is None
