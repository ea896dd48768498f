"""Small recordings for tests: everything has a default, each test names only what it is about."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from advisor.core.values import Op, Phase, Precision, TensorSpec
from advisor.formats.recording_files import Entry, Header, Measurement, append_entry, start_recording
from advisor.operators.registry import cost_of

SQUARE = (4096, 4096)


def make_header(**changes: Any) -> Header:
    """An L4 with all versions."""
    facts: dict[str, Any] = {
        "backend": "cuda",
        "device_name": "NVIDIA L4",
        "gpu": "L4",
        "compute_capability": "8.9",
        "versions": {"torch": "2.13.0", "cuda": "13.0", "cudnn": "91000", "driver": "580.1"},
        "sm_clock_hz": 1.5e9,
        "max_sm_clock_hz": 2.04e9,
        "power_limit_w": 72.0,
        "recorded_on": "2026-11-21",
    }
    return Header(**(facts | changes))


def make_measurement(
    name: str = "aten::mm",
    *,
    time_s: float = 1e-3,
    dtype: str = "float32",
    shape: tuple[int, ...] = SQUARE,
    tf32: bool = False,
    case: str = "0123456789abcdef",
) -> Measurement:
    """A product or another operator of square matrices, with the cost that the profiler gives it."""
    tensor = TensorSpec(shape=shape, dtype=dtype, stride=(shape[1], 1) if len(shape) == 2 else None)
    inputs = (tensor,) * (3 if "attention" in name else 1 if "softmax" in name else 2)
    cost = cost_of(name, inputs, (tensor,), {})
    op = Op(
        name=name, phase=Phase.FORWARD, inputs=inputs, outputs=(tensor,), attributes={}, flops=cost.flops,
        bytes=cost.bytes, count=1, measured_s=time_s,
    )  # fmt: skip
    precision = Precision(amp_dtype=None, tf32_matmul=tf32, tf32_cudnn=tf32)
    return Measurement(case=case, op=op, precision=precision, spread=0.01, num_samples=7)


def write_recording(path: Path, entries: Sequence[Entry], **header: Any) -> Path:
    """A file that holds these."""
    start_recording(path, make_header(**header))
    for entry in entries:
        append_entry(path, entry)
    return path
