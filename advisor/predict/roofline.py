"""Operator time from FLOPs, bytes and what the GPU reaches of its two roofs.

Source: Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009. For an operator of F FLOPs and
B bytes on a GPU of peak P and bandwidth D: ``t = launch + max(F / (f * P), B / (b * D))``, where f and
b are fitted fractions (``advisor.predict.constants``) and launch is the least time of one kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from advisor.predict.families import Family, family_of
from advisor.types import FittedConstants, GpuSpec, Op, Precision

# The median of the 966 in-place adds and multiplies of an optimizer step in PyTorch's published
# ResNet-50 profile of a V100, tensors so small that only the launch counts.
KERNEL_FLOOR_S = 2e-6
# Page-locked copies reach this share of the PCIe rate (16 GiB/s links deliver about 12-13).
PCIE_FRACTION = 0.8

_COMPUTE_FAMILIES = {Family.GEMM, Family.CONV, Family.ATTENTION, Family.RECURRENT}
_DTYPE_RATE = {"float64": "fp64", "float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A FLOP rate a GPU can sustain, and how it was chosen (empty if as the script asks)."""

    flops_per_s: float
    note: str = ""


def op_times_s(
    ops: Sequence[Op], gpu: GpuSpec, constants: FittedConstants, precision: Precision
) -> NDArray[np.float64]:
    """Seconds of one call of each operator, shape [len(ops)]."""
    return np.array([op_time_s(op, gpu, constants, precision) for op in ops], dtype=np.float64)


def op_time_s(op: Op, gpu: GpuSpec, constants: FittedConstants, precision: Precision) -> float:
    """Seconds of one call of an operator on ``gpu``."""
    family = family_of(op)
    if family is Family.TRANSFER:
        return KERNEL_FLOOR_S + op.bytes / (PCIE_FRACTION * gpu.pcie_bytes_per_s)
    norm = family is Family.NORM
    fraction = constants.reduction_fraction if norm else constants.streaming_fraction
    memory_s = op.bytes / (fraction * gpu.memory_bytes_per_s)
    compute_s = work_flops(op) / compute_rate(op, family, gpu, constants, precision).flops_per_s
    return KERNEL_FLOOR_S + max(compute_s, memory_s)


def work_flops(op: Op) -> float:
    """FLOPs the kernels really do: fused attention skips the half that a causal mask hides."""
    return op.flops / 2 if op.attributes.get("is_causal") is True else op.flops


def compute_rate(
    op: Op, family: Family, gpu: GpuSpec, constants: FittedConstants, precision: Precision
) -> Rate:
    """The FLOP rate an operator gets: tensor cores where dtype, flags and GPU allow, else CUDA cores."""
    wanted = _wanted_rate(op, family, precision)
    conv = family is Family.CONV
    fractions = constants.conv_fraction if conv else constants.gemm_fraction
    if family not in _COMPUTE_FAMILIES:
        return Rate(flops_per_s=gpu.vector_flops_per_s["fp32"])
    if wanted == "tf32" and wanted not in gpu.tensor_flops_per_s:
        wanted = "fp32"
    fp32_flops_per_s = fractions["fp32"] * gpu.vector_flops_per_s["fp32"]
    if wanted in gpu.tensor_flops_per_s:
        # Libraries take the faster kernel: GeForce tensor cores are no faster than its CUDA cores.
        return Rate(flops_per_s=max(fractions[wanted] * gpu.tensor_flops_per_s[wanted], fp32_flops_per_s))
    if wanted == "fp16" and "fp16" in gpu.vector_flops_per_s:
        # Without tensor cores cuBLAS still accumulates in fp32: never slower than fp32, at most fp16's rate.
        rate = max(gpu.vector_flops_per_s["fp16"], gpu.vector_flops_per_s["fp32"])
        return Rate(flops_per_s=fractions["fp16_vector"] * rate, note="fp16 without tensor cores")
    if wanted == "fp64":
        return Rate(flops_per_s=fractions["fp64"] * gpu.vector_flops_per_s["fp64"])
    note = "bf16 is emulated at the fp32 rate" if wanted == "bf16" else ""
    return Rate(flops_per_s=fp32_flops_per_s, note=note)


def _wanted_rate(op: Op, family: Family, precision: Precision) -> str:
    # The widest floating input decides; index tensors do not count.
    dtypes = [t.dtype for t in op.inputs if t.dtype in _DTYPE_RATE]
    rate = _DTYPE_RATE[min(dtypes, key=list(_DTYPE_RATE).index)] if dtypes else "fp32"
    if rate != "fp32":
        return rate
    cudnn = family in (Family.CONV, Family.RECURRENT)
    return "tf32" if (precision.tf32_cudnn if cudnn else precision.tf32_matmul) else "fp32"
