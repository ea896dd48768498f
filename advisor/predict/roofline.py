"""Operator time from FLOPs, bytes and what the GPU reaches of its two roofs.

Source: Williams, Waterman, Patterson, "Roofline", CACM 52(4), 2009. For an operator of F FLOPs and
B bytes on a GPU of peak P and bandwidth D: ``t = launch + max(F / (f * P), B / (b * D))``, where f and
b are fitted fractions (``advisor.predict.constants``) and launch is the least time of one kernel. Recurrent
layers add the steps that wait for each other (``advisor.predict.recurrent``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from advisor.core.findings import Code, Finding, finding
from advisor.core.values import FittedConstants, GpuSpec, Op, Precision
from advisor.operators.families import Family, family_of
from advisor.predict.recurrent import Steps, steps_of

# The median of the tiny kernels of the optimizer steps (966 in-place multiplications, 2,994 additions) in
# PyTorch's published ResNet-50 profile of a V100: so small that only the launch counts.
KERNEL_FLOOR_S = 2e-6
# An eager PyTorch operator costs about 2.4 us of Python and dispatch on a current core (measured:
# `python -m benchmarks.host_dispatch`) and 3.5 us to launch its kernel.
HOST_DISPATCH_S = 6e-6
# Page-locked copies reach this share of the PCIe rate (16 GB/s links deliver about 12 to 13).
PCIE_FRACTION = 0.8
# Recurrent layers whose sizes were not recorded: steps wait for each other. Assumed, not measured.
RECURRENT_SHARE = 0.3

_COMPUTE_FAMILIES = {Family.GEMM, Family.CONV, Family.ATTENTION, Family.RECURRENT}
_DTYPE_RATE = {
    "float64": "fp64",
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A FLOP rate a GPU can sustain.

    Attributes:
        flops_per_s: what is reached.
        peak_flops_per_s: the data sheet's figure it is a fraction of.
        constant: the fitted constant behind it, such as ``"gemm_fraction.bf16"``.
        note: set where it is not what the script asks for.
        is_substitute: the GPU could do what is asked for no faster, or not at all, so another rate serves.
    """

    flops_per_s: float
    peak_flops_per_s: float
    constant: str
    note: Finding | None = None
    is_substitute: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineTime:
    """Seconds of one call, and the constant of the roof that binds it (empty: the PCIe link)."""

    time_s: float
    constant: str


def op_time(op: Op, gpu: GpuSpec, constants: FittedConstants, precision: Precision) -> RooflineTime:
    """Seconds of one call of an operator on ``gpu``."""
    family = family_of(op)
    if family is Family.TRANSFER:
        link_s = op.bytes / (PCIE_FRACTION * gpu.pcie_bytes_per_s)
        return RooflineTime(time_s=KERNEL_FLOOR_S + link_s, constant="")
    kind = "reduction_fraction" if family is Family.NORM else "streaming_fraction"
    fraction = constants.reduction_fraction if family is Family.NORM else constants.streaming_fraction
    memory_s = op.bytes / (fraction * gpu.memory_bytes_per_s)
    rate = compute_rate(op, family, gpu, constants, precision)
    steps = steps_of(op) if family is Family.RECURRENT else None
    if steps is not None:
        return _recurrent_time(op, steps, rate, gpu, constants)
    compute_s = work_flops(op) / rate.flops_per_s
    return RooflineTime(
        time_s=KERNEL_FLOOR_S + max(compute_s, memory_s),
        constant=rate.constant if compute_s > memory_s else kind,
    )


def _recurrent_time(
    op: Op, steps: Steps, rate: Rate, gpu: GpuSpec, constants: FittedConstants
) -> RooflineTime:
    bytes_per_s = constants.streaming_fraction * gpu.memory_bytes_per_s
    at_once_s = max((op.flops - steps.flops) / rate.flops_per_s, op.bytes / bytes_per_s)
    steps_s = steps.time_s(
        num_sms=gpu.num_sms, flops_per_s=rate.flops_per_s, bytes_per_s=bytes_per_s, launch_s=KERNEL_FLOOR_S
    )
    return RooflineTime(time_s=KERNEL_FLOOR_S + at_once_s + steps_s, constant=rate.constant)


def work_flops(op: Op) -> float:
    """FLOPs the kernels really do: fused attention skips the half that a causal mask hides."""
    return op.flops / 2 if op.attributes.get("is_causal") is True else op.flops


def compute_rate(
    op: Op, family: Family, gpu: GpuSpec, constants: FittedConstants, precision: Precision
) -> Rate:
    """The FLOP rate an operator gets: tensor cores where dtype, flags and GPU allow, else CUDA cores.

    Recurrent layers get that of products where their steps are known, else a share of it.
    """
    rate = rate_for(wanted_rate(op, family, precision), family, gpu, constants)
    if family is not Family.RECURRENT:
        return rate
    share = 1.0 if steps_of(op) else RECURRENT_SHARE
    constant = rate.constant.replace("gemm_fraction", "recurrent")
    return replace(rate, flops_per_s=share * rate.flops_per_s, constant=constant)


def rate_for(wanted: str, family: Family, gpu: GpuSpec, constants: FittedConstants) -> Rate:
    """The same for any operator of the family that asks for the rate ``wanted``."""
    conv = family is Family.CONV
    kind, fractions = (
        ("conv_fraction", constants.conv_fraction) if conv else ("gemm_fraction", constants.gemm_fraction)
    )

    def rate(name: str, peak_flops_per_s: float, note: Finding | None = None) -> Rate:
        return Rate(
            flops_per_s=fractions[name] * peak_flops_per_s,
            peak_flops_per_s=peak_flops_per_s,
            constant=f"{kind}.{name}",
            note=note,
        )

    vector, tensor = gpu.vector_flops_per_s, gpu.tensor_flops_per_s
    fp32 = rate("fp32", max(vector["fp32"], tensor.get("fp32", 0.0)))
    if family not in _COMPUTE_FAMILIES or wanted == "fp32":
        return fp32
    if wanted == "fp64":
        return rate("fp64", max(vector["fp64"], tensor.get("fp64", 0.0)))
    if wanted in tensor:
        # Libraries take the faster kernel: GeForce tensor cores are no faster than its CUDA cores.
        own = rate(wanted, tensor[wanted])
        return own if own.flops_per_s >= fp32.flops_per_s else replace(fp32, is_substitute=True)
    if wanted == "fp16" and "fp16" in vector:
        # Without tensor cores cuBLAS still accumulates in fp32: never slower than fp32.
        return rate("fp16_vector", max(vector["fp16"], vector["fp32"]), finding(Code.FP16_ON_CUDA_CORES))
    if wanted == "tf32":
        return fp32
    return replace(fp32, note=finding(Code.EMULATED_RATE, rate=wanted), is_substitute=True)


def wanted_rate(op: Op, family: Family, precision: Precision) -> str:
    """The rate the script asks for: its first floating operand of two dimensions or more decides.

    Biases, statistics and scales that go along in fp32 do not make a product an fp32 one.
    """
    operands = [t for t in op.inputs if t.dtype in _DTYPE_RATE]
    operands = [t for t in operands if len(t.shape) > 1] or operands
    rate = _DTYPE_RATE[operands[0].dtype] if operands else "fp32"
    if rate != "fp32":
        return rate
    cudnn = family in (Family.CONV, Family.RECURRENT)
    return "tf32" if (precision.tf32_cudnn if cudnn else precision.tf32_matmul) else "fp32"
