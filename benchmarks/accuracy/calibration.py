"""``advisor calibrate`` on published kernels: what a minute on a new GPU would change."""

from __future__ import annotations

from dataclasses import replace

from advisor.core.values import GpuSpec
from advisor.formats.recording_files import Measurement
from advisor.predict.calibrating import learned_offsets
from advisor.predict.knowledge import Knowledge
from research.bare_trace import TRUE_FP32
from research.training.overhead import Floors, call_s
from research.training.samples import Samples


def calibrated(knowledge: Knowledge, gpu: GpuSpec, samples: Samples, floors_s: Floors) -> Knowledge:
    """The knowledge with corrections for one GPU, fitted to a few of its kernels.

    Args:
        knowledge: what was trained without the GPU.
        gpu: the GPU.
        samples: a few of its kernels.
        floors_s: what launching and timing them cost.
    """
    kernels = [
        Measurement(
            case=str(i),
            op=replace(op, measured_s=call_s(time_s, floors_s[str(name), str(kind)])),
            precision=TRUE_FP32,
            spread=0.0,
            num_samples=1,
        )
        for i, (op, time_s, name, kind) in enumerate(
            zip(samples.ops, samples.time_s.tolist(), samples.gpus, samples.kinds, strict=True)
        )
    ]
    reached = {
        constant.name.partition(".")[2]: constant.after
        for constant in learned_offsets(kernels, gpu, knowledge)
    }
    return replace(knowledge, corrections={**knowledge.corrections, gpu.name: reached})
