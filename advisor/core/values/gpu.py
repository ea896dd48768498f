"""What is known of a GPU."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from advisor.core.findings import Finding
from advisor.core.findings.about_estimates import Constant


@dataclass(frozen=True, slots=True, kw_only=True)
class OccupancyLimits:
    """What one SM can hold, by compute capability (CUDA programming guide, technical specifications)."""

    max_threads: int
    max_blocks: int
    max_registers: int
    max_registers_per_thread: int
    max_shared_bytes: int
    max_shared_bytes_per_block: int
    reserved_shared_bytes_per_block: int
    register_unit: int
    shared_unit_bytes: int
    warp_allocation_unit: int
    warp_size: int = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedConstants:
    """What a GPU reaches of its data sheet, fitted to measurements; data, never code."""

    fractions: Mapping[str, float]
    """Achieved / specified, by dotted name: of memory bandwidth such as ``streaming_fraction``, of a peak
    FLOP rate such as ``gemm_fraction.bf16``; above 1 where Winograd saves multiplications."""
    measured: frozenset[str]
    """The constants fitted on this very GPU; the others are medians or assumptions."""
    origin: Mapping[str, Finding]
    """Where each constant comes from, by dotted name such as ``gemm_fraction.bf16``."""
    learned_share: Mapping[str, float] = field(default_factory=dict)
    """By network, the part of the learned rate that a calibration found."""
    learned_kernels: Mapping[str, Sequence[Sequence[float]]] = field(default_factory=dict)
    """By network, the sizes and the part of the learned rate of each kernel it is from, where kernels of
    other sizes may reach another."""
    is_share_outdated: bool = False
    """A calibration found some of other networks, which does not count."""
    fitted: frozenset[str] | None = None
    """The constants that kernels of this GPU gave when the networks were trained; None where it was not
    measured."""
    uncalibrated: Mapping[str, float] = field(default_factory=dict)
    """The fractions without this machine's calibration, which networks are corrected against by
    ``learned_share``."""
    supply: float = 1.0
    """What products on tensor cores keep of their rate where the board has less power for it than others of
    its chip."""

    @property
    def is_measured(self) -> bool:
        """Whether kernels of this GPU were measured for the constants and networks."""
        return self.fitted is not None

    @property
    def is_calibrated(self) -> bool:
        """Whether any of it is from kernels that this machine's user measured."""
        told = (
            (isinstance(source, Constant) and source.of == "calibrated") for source in self.origin.values()
        )
        return bool(self.learned_share or self.learned_kernels) or any(told)

    @property
    def sustained_clock(self) -> float:
        """What the GPU keeps under load of the rate of bursts, where the other constants tell of bursts."""
        return self.fractions.get("sustained_clock", 1.0)


# Between 512 and 1,024 FLOPs a clock and SM.
_FULL_RATE = 768.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSpec:
    """One GPU model, each PCIe / SXM / memory variant its own."""

    name: str
    aliases: tuple[str, ...]
    families: tuple[str, ...]
    vendor: str
    architecture: str
    compute_capability: str
    num_sms: int
    base_clock_hz: float
    boost_clock_hz: float
    memory_bytes: int
    """What a process can see, not the marketing figure."""
    memory_bytes_per_s: float
    l2_bytes: int
    vector_flops_per_s: Mapping[str, float]
    """Dense peak without tensor cores, by dtype (``fp64``, ``fp32``, ``fp16`` ...)."""
    tensor_flops_per_s: Mapping[str, float]
    """Dense peak with tensor cores, by dtype (``tf32``, ``fp16``, ``bf16``, ``fp8``)."""
    occupancy: OccupancyLimits | None
    tdp_w: float
    nvlink_bytes_per_s: float
    """Per direction and GPU, 0 without NVLink."""
    pcie_bytes_per_s: float
    """Per direction."""
    released: date
    """The day it was announced."""
    source_url: str
    source_date: date

    @property
    def has_half_rate_tensor_cores(self) -> bool:
        """Whether tensor cores do half as many FLOPs when they add in FP32, as those of GeForce boards do.

        That is 512 a clock and SM, where full-rate ones of the same generations do 1,024 or more.
        """
        rate = self.tensor_flops_per_s.get("fp16", 0.0) / (self.num_sms * self.boost_clock_hz)
        return self.vendor == "NVIDIA" and 0 < rate < _FULL_RATE
