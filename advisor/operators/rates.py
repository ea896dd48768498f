"""The FLOP rate an operator gets: tensor cores where dtype, flags and GPU allow, else CUDA cores."""

from __future__ import annotations

from dataclasses import replace

from advisor.core.findings import Code, Finding, finding
from advisor.core.values import FittedConstants, GpuSpec, Op, Precision
from advisor.operators.family import Family, Rate, Tf32Flag

_DTYPE_RATE = {
    "float64": "fp64",
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
}


def compute_rate(
    op: Op, family: Family, gpu: GpuSpec, constants: FittedConstants, precision: Precision
) -> Rate:
    """The rate of one call: that of its family, as far as the call gets it."""
    return rate_of_call(rate_for(wanted_rate(op, family, precision), family, gpu, constants), op, family)


def rate_of_call(rate: Rate, op: Op, family: Family) -> Rate:
    """The rate of a family as far as one call gets it."""
    share = family.compute.share(op)
    return rate if share == 1.0 else replace(rate, flops_per_s=share * rate.flops_per_s)


def rate_for(wanted: str, family: Family, gpu: GpuSpec, constants: FittedConstants) -> Rate:
    """The same for any operator of the family that asks for the rate ``wanted``."""
    kind = family.compute.fraction

    def rate(name: str, boost_flops_per_s: float, note: Finding | None = None) -> Rate:
        constant = f"{kind}.{name}"
        peak_flops_per_s = constants.sustained_clock * boost_flops_per_s
        return Rate(
            flops_per_s=constants.fractions[constant] * peak_flops_per_s,
            peak_flops_per_s=peak_flops_per_s,
            constant=constant,
            note=note,
        )

    vector, tensor = gpu.vector_flops_per_s, gpu.tensor_flops_per_s
    fp32 = rate("fp32", max(vector["fp32"], tensor.get("fp32", 0.0)))
    if not family.compute.tensor_cores or wanted == "fp32":
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


def data_sheet_flops_per_s(wanted: str, gpu: GpuSpec) -> float:
    """The dense peak for a rate that is asked for; where the GPU has none, that of FP32."""
    vector, tensor = gpu.vector_flops_per_s, gpu.tensor_flops_per_s
    own = max(vector.get(wanted, 0.0), tensor.get(wanted, 0.0))
    return own if wanted == "fp64" else max(own, vector["fp32"], tensor.get("fp32", 0.0))


def wanted_rate(op: Op, family: Family, precision: Precision) -> str:
    """The rate the script asks for: its first floating operand of two dimensions or more decides.

    Biases, statistics and scales that go along in fp32 do not make a product an fp32 one.
    """
    operands = [t for t in op.inputs if t.dtype in _DTYPE_RATE]
    operands = [t for t in operands if len(t.shape) > 1] or operands
    rate = _DTYPE_RATE[operands[0].dtype] if operands else "fp32"
    if rate != "fp32":
        return rate
    cudnn = family.compute.tf32 is Tf32Flag.CUDNN
    return "tf32" if (precision.tf32_cudnn if cudnn else precision.tf32_matmul) else "fp32"
