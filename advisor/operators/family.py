"""What an operator family is: one value, written in one file, that all other rooms read by the registry."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from advisor.core.findings import Finding
from advisor.core.findings.about_estimates import RatesFrom
from advisor.core.values import FittedConstants, GpuSpec, Op, Precision
from advisor.operators.case import Caps, Case
from advisor.operators.cycles import StreamedCall
from advisor.operators.work import Formula, PerElement

T = TypeVar("T")
_OF_PRODUCTS = "gemm_fraction"


class Tf32Flag(StrEnum):
    """Which of PyTorch's two switches lets TF32 replace FP32."""

    MATMUL = "matmul"
    CUDNN = "cudnn"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A FLOP rate a GPU can sustain."""

    flops_per_s: float
    """What is reached."""
    peak_flops_per_s: float
    """What it is a fraction of: the data sheet's, at the clock that the GPU sustains."""
    constant: str
    """The fitted constant behind it, such as ``"gemm_fraction.bf16"``."""
    note: Finding | None = None
    """Set where it is not what the script asks for."""
    is_substitute: bool = False
    """The GPU could do what is asked for no faster, or not at all, so another rate serves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofs:
    """What one operator reaches on one GPU."""

    gpu: GpuSpec
    rate: Rate
    """Of its FLOPs."""
    bytes_per_s: float
    """Of device memory."""
    bandwidth: str
    """The fitted constant behind that."""
    launch_s: float
    """The least time of one kernel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RooflineTime:
    """Seconds of one call."""

    time_s: float
    constant: str
    """Of the roof that binds it; empty for the PCIe link."""
    sigma: float | None = None
    """Log-normal, where the family knows how sure its time is on this GPU; None for the family's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedTime:
    """Seconds of one call without its launch, and their log-normal sigma."""

    time_s: float
    sigma: float


TimeOnGpu = Callable[[GpuSpec], FittedTime | None]
"""What a call takes on a GPU; None where that cannot be told."""


def higher_roof(op: Op, roofs: Roofs, flops: float | None = None) -> RooflineTime:
    """The roofline of one kernel: ``launch + max(FLOPs / rate, bytes / bandwidth)``."""
    compute_s = (op.flops if flops is None else flops) / roofs.rate.flops_per_s
    memory_s = op.bytes / roofs.bytes_per_s
    return RooflineTime(
        time_s=roofs.launch_s + max(compute_s, memory_s),
        constant=roofs.rate.constant if compute_s > memory_s else roofs.bandwidth,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Compute:
    """At which rate a family's FLOPs run."""

    fraction: str = _OF_PRODUCTS
    """The fitted constant, one value for each rate."""
    tensor_cores: bool = False
    """Whether its libraries use them, and ``torch.autocast`` runs it in lower precision; everything else runs
    on CUDA cores in FP32."""
    tf32: Tf32Flag = Tf32Flag.MATMUL
    """The switch that lets TF32 replace FP32."""
    share: Callable[[Op], float] = lambda _: 1.0
    """The part of that rate a call gets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Autocast:
    """What ``torch.autocast`` does to a family that it does not lower."""

    full: frozenset[str] = frozenset()
    """Base names that it runs in float32."""
    casts_operands: bool = True
    """False where operands are parts of a product's result, which has the dtype already."""
    keeps_dtype: bool = False
    """Results have the dtype of the first operand, not the widest of all."""


# Kernels were measured one after the other under load; iterations, which count, as the mean of the fastest
# 5 of 25. So networks aim below the median: 0.4 of the kernels are faster than predicted. At 0.3 clean
# iterations are predicted half a point worse.
QUANTILE = 0.4
# Of N calls, by their features [N, F] and the GPU they run on: what else depends on the GPU, [N, K].
BoardFeatures = Callable[[NDArray[np.float32], GpuSpec], NDArray[np.float32]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardInputs:
    """What a network is given of the GPU."""

    num_features: int
    """How many numbers each call gets."""
    features: BoardFeatures
    """Those numbers, such as the waves that its tiles make on the GPU's SMs."""


def power_and_capability(calls: NDArray[np.float32], gpu: GpuSpec) -> NDArray[np.float32]:
    """Log of the power limit in watts, and the compute capability as a number; the same for all calls."""
    board = np.array([math.log(gpu.tdp_w), float(gpu.compute_capability)], np.float32)
    return np.broadcast_to(board, (len(calls), 2))


POWER_AND_CAPABILITY = BoardInputs(num_features=2, features=power_and_capability)


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """How alike calls are in what a GPU differs by from a network without it; log-normal variances."""

    of_all: float
    """That all calls of the GPU share."""
    of_size: float
    """That calls of like sizes share."""
    of_call: float
    """That each call has of its own."""
    lengths: tuple[float, ...]
    """Of each size, over how far its logarithm may differ between calls that are alike."""

    @property
    def variance(self) -> float:
        """Of a call, without its own."""
        return self.of_all + self.of_size


# What networks of memory-bound families learned from; half the bytes do not take half the time.
FULL_RATES = frozenset({"fp32", "tf32", "fp64"})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Learned:
    """How a network sees a family, and how that network is trained."""

    name: str
    """Of the network in weights and calibrations."""
    names: frozenset[str]
    """Base names of the operators it knows."""
    num_features: int
    """How many numbers a call is to it."""
    features: Callable[[Op], tuple[float, ...] | None]
    """Those numbers, which tell how well a kernel uses a GPU; how much work it is stays with the roofline.
    None for a call unlike those that were measured."""
    counts_flops: bool
    """False where time goes by bytes alone."""
    steps: int
    """Batches of 2,048 calls that it is trained with."""
    units: int = 96
    """Of each hidden layer."""
    members: int = 4
    """Of the ensemble; more where few calls were measured, since chance then decides more."""
    board_noise: float = 0.0
    """What training adds to the board's features, in standard deviations."""
    rates: frozenset[str] | None = None
    """Of FLOPs, at which it was measured: those that the GPU offers for what the script asks for. Where FLOPs
    do not count, those that are asked for, that is the dtype; None: any."""
    coupled: Mapping[str, float] = field(default_factory=dict)
    """Of these rates those that it was not measured at, each with the log-normal sigma by which the same
    units may do otherwise at it."""
    is_of_fitted: bool = False
    """What it tells is lost of the fitted rate (``gemm_fraction.bf16`` of the peak), so that a GPU or an
    architecture has one constant of its own; else of the data sheet's."""
    measured_by: frozenset[str] = frozenset({"streaming_fraction"})
    """The fitted constants any of which says that a GPU's kernels were learned from."""
    vendor: str = "NVIDIA"
    """Whose kernels were measured; libraries of others have kernels of their own."""
    likeness: Likeness | None = None
    """Over the logarithms of the sizes, which are the first features: what one measured call of a GPU tells
    of others. None where a calibration tells one share of all."""
    unseen_sigma: float = 0.2
    """Log-normal, by which a GPU may differ from those that were learned from; where there is a likeness,
    that tells it."""
    held_out_share: float = 1.3
    """How much more kernels that were held out scatter than those of the training."""
    least_sigma: float = 0.0
    """Log-normal, of what no network can tell of a kernel, such as which one a library chose."""
    board: BoardInputs = POWER_AND_CAPABILITY
    quantile: float = QUANTILE
    """The part of the kernels that are faster than it aims at."""
    few_weigh_more: bool = False
    """A kernel weighs less the more there are of its GPU, by the root of their number."""


Generate = Callable[[int, Caps], Iterator[Case]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Family:
    """All that is known of one family of operators."""

    word: str
    """Under which its time is reported; families that share one are reported together."""
    others: frozenset[str] = frozenset()
    """Base names beside those of the tables."""
    flops: Mapping[str, Formula] = field(default_factory=dict)
    nominal: Mapping[str, PerElement] = field(default_factory=dict)
    """FLOPs of cheap operators by name, which also stands for ``name_`` and ``_foreach_name``."""
    traffic: Mapping[str, Formula] = field(default_factory=dict)
    """Bytes by name, for operators that do not move each of their tensors once."""
    compute: Compute = Compute()
    bandwidth: str = "streaming_fraction"
    """The fitted constant of its memory traffic."""
    calibrates: str | None = None
    """The fitted constant that its kernels tell, if any."""
    stream: Callable[[Op], StreamedCall | None] = lambda _: None
    """What a call streams that is no roofline, because what an SM does in a clock counts as well; None for
    others."""
    time: Callable[[Op, Roofs], RooflineTime] = higher_roof
    sigma: float | None = None
    """Log-normal, of ``time``; None for the roofline's usual one."""
    caveat: Callable[[Op], Finding | None] = lambda _: None
    """What to say of a call that ``time`` predicts, if anything."""
    fitted: Callable[[Op], TimeOnGpu | None] | None = None
    """The formula of a call, whose few constants were fitted to measured ones: found once a trace, asked for
    each GPU. It comes before ``time`` and before scaling a measurement, and counts where it is slower than a
    network. None where there is none, or it cannot tell."""
    learned: tuple[Learned, ...] = ()
    """Its networks; of those that know a call at its rate, the first counts."""
    autocast: Autocast = Autocast()
    cases: Mapping[str, Generate] = field(default_factory=dict)
    """What is measured, by the word of ``advisor measure --only``."""
    calibration_cases: Callable[[], Iterable[Case]] = lambda: iter(())
    """The few large kernels of ``advisor calibrate``."""

    @property
    def names(self) -> frozenset[str]:
        """Base names of all its operators."""
        tables = {*self.flops, *self.nominal, *self.traffic}
        return self.others | {base_name(name) for name in tables}


@cache
def base_name(op_name: str) -> str:
    """``"aten::add_.Tensor"`` -> ``"add_"``: neither namespace nor overload."""
    return op_name.rpartition("::")[2].partition(".")[0]


def names(words: str) -> frozenset[str]:
    """Names that are separated by white space."""
    return frozenset(words.split())


def each(words: str, row: T) -> dict[str, T]:
    """A table with the same row for each of the names."""
    return dict.fromkeys(words.split(), row)


HALF_RATES = {"float16": "fp16", "bfloat16": "bf16"}
"""Rates of tensor cores by the types of 16 bits."""
_DTYPE_RATE = {
    "float64": "fp64", "float32": "fp32", **HALF_RATES, "float8_e4m3fn": "fp8", "float8_e5m2": "fp8",
}  # fmt: skip


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
        own = rate(wanted, (constants.supply if kind == _OF_PRODUCTS else 1.0) * tensor[wanted])
        is_faster = own.flops_per_s >= fp32.flops_per_s
        # FP32 is what a script that only allows TF32 runs then; in place of 16 bits it was not measured.
        return own if is_faster else replace(fp32, is_substitute=wanted != "tf32")
    if wanted == "fp16" and "fp16" in vector:
        # Without tensor cores libraries keep halves and compute in fp32, where that is the faster.
        own = rate("fp16_vector", vector["fp16"], RatesFrom(of="cuda-cores"))
        is_faster = own.flops_per_s >= fp32.flops_per_s
        return own if is_faster else replace(fp32, note=own.note, is_substitute=True)
    if wanted == "tf32":
        return fp32
    return replace(fp32, note=RatesFrom(of="emulated", rate=wanted), is_substitute=True)


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
