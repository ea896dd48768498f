"""Kernels recorded by ``advisor measure`` as samples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from advisor.core.errors import RecordingError
from advisor.formats.recording_files import Measurement, read_recording
from advisor.operators.families import Family, base_name, family_of
from advisor.predict.learned.shapes import shape_of
from advisor.predict.roofline import wanted_rate
from training.samples import RECORDED, Samples

_COMPUTE = (Family.GEMM, Family.CONV)


def read_recordings(paths: Sequence[Path]) -> list[Samples]:
    """What networks learn from, of each file: products and convolutions in true FP32, all else.

    Raises:
        RecordingError: missing, broken, not of a GPU of the catalog, or nothing in it can be used.
    """
    return [_samples(path) for path in paths]


def _samples(path: Path) -> Samples:
    recording = read_recording(path)
    gpu = recording.header.gpu
    if recording.header.backend != "cuda" or gpu is None:
        raise RecordingError(f"{str(path)!r} is not of a GPU of the catalog: nothing to train on.")
    used = [kernel for kernel in recording.measurements if _is_usable(kernel)]
    if not used:
        raise RecordingError(f"{str(path)!r} holds no kernel that a network learns from.")
    return Samples(
        ops=tuple(kernel.op for kernel in used),
        gpus=np.full(len(used), gpu),
        time_s=np.array([kernel.time_s for kernel in used]),
        kinds=np.array([f"{RECORDED}{base_name(kernel.op.name)}" for kernel in used]),
        splits=np.full(len(used), "train"),
    )


def _is_usable(kernel: Measurement) -> bool:
    family = family_of(kernel.op)
    if shape_of(kernel.op) is None:
        return False
    return family not in _COMPUTE or wanted_rate(kernel.op, family, kernel.precision) == "fp32"
