"""Kernels recorded by ``advisor measure`` as samples."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from advisor.core.errors import RecordingError
from advisor.formats.recording_files import Measurement, read_recording
from advisor.operators.family import base_name, wanted_rate
from advisor.operators.registry import family_of
from advisor.predict.learned import shape_of
from research.training.samples import DataSet, Samples

_FLAG = "recording"


def read_calls(path: Path) -> Samples:
    """What networks learn from: kernels that one of them knows at the rate they ran at.

    Raises:
        RecordingError: missing, broken, not of a GPU of the catalog, or nothing in it can be used.
    """
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
        kinds=np.array([f"recorded {base_name(kernel.op.name)}" for kernel in used]),
        splits=np.full(len(used), "train"),
        sources=np.full(len(used), _FLAG),
    )


def _is_usable(kernel: Measurement) -> bool:
    """TF32 counts as unknown: the operator does not tell it from FP32."""
    asked = wanted_rate(kernel.op, family_of(kernel.op), kernel.precision)
    return asked != "tf32" and shape_of(kernel.op, asked) is not None


def _cite(samples: Samples) -> str:
    return f"recordings of {', '.join(sorted(set(samples.gpus.tolist())))}"


RECORDINGS = DataSet(
    name="advisor measure", flag=_FLAG, metavar="FILE", read=read_calls, cite=_cite, is_timed_on_device=True
)
