"""What a GPU reaches of its data sheet: measured on it, else its architecture's median, else assumed."""

import math
import statistics
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import NamedTuple

from advisor.core.findings import Finding
from advisor.core.findings.about_estimates import Constant, RooflineConstants
from advisor.core.gpus import load_gpus
from advisor.core.values import FittedConstants, GpuSpec
from advisor.predict.knowledge import (
    CORRECTIONS,
    KERNELS,
    Constants,
    Knowledge,
    corrections_of,
    is_of_other_networks,
    kernels_of,
    read_calibration,
    shipped,
)


def constants_for(gpu: GpuSpec, knowledge: Knowledge | None = None) -> FittedConstants:
    """The constants of one GPU, each with where it comes from, by default as shipped.

    Per constant the first that exists counts: calibrated on this machine; fitted on this GPU; the assumption
    for tensor cores of half rate, if it has such; the median over the fitted GPUs of its architecture and
    power class; the assumption for its architecture; the median over the fitted GPUs of its power class; the
    assumption for all. A calibration's corrections of other networks than these do not count.

    Raises CatalogError: ``fitted.toml`` is missing or broken, or this machine's calibration is.
    """
    knowledge = knowledge or shipped()
    calibration = (read_calibration(gpu.name) if knowledge.is_calibrated_here else None) or {}
    board = _board_of(gpu)
    return _constants(board, knowledge, calibration) if calibration else _uncalibrated(board, knowledge)


class _Board(NamedTuple):
    """What constants depend on. Boards that live on the power of their slot lower their clocks under load."""

    name: str
    architecture: str
    vendor: str
    is_on_slot: bool
    is_half_rate: bool
    shares_lanes: bool
    supply: float


def _board_of(gpu: GpuSpec) -> _Board:
    traits = gpu.tdp_w <= _SLOT_W, gpu.has_half_rate_tensor_cores, gpu.compute_capability in _SHARING
    return _Board(gpu.name, gpu.architecture, gpu.vendor, *traits, supply_of(gpu))


# A board of 700 W that may draw 500 lowers its clocks until it does. What its cores bind then takes ``1 +
# 0.49 (700 / 500 - 1)^1.75 = 1.10`` times as long; what memory binds takes as long as before. The law is
# fitted to epochs of jobs that draw all a V100, an A40 or an RTX 6000 may, down to 0.35 of it (Zeus,
# NSDI'23: ``python -m research.power_limits``).

FACTOR, POWER = 0.49, 1.75


def slowed(missing: float) -> float:
    """By which what cores bind takes longer: ``missing`` is power without over power with a limit, less 1."""
    return 1 + FACTOR * math.pow(missing, POWER)


# A card for a PCIe slot may have the chip of a board of 400 W, its peak rate and 250 W: the same law. Beyond
# this a higher clock would make it slower.
_MOST_MISSING = 0.8


def supply_of(gpu: GpuSpec) -> float:
    """What products keep of a board's tensor cores, which may have less power a FLOP than others of its chip.

    Boards of one slot have constants of their own. Tensor cores of half rate do not draw as much: boards of
    laptops with a quarter of the power lose nothing (``python -m research.lambda_steps``).
    """
    if gpu.tdp_w <= _SLOT_W or gpu.has_half_rate_tensor_cores or not gpu.tensor_flops_per_s.get("fp16"):
        return 1.0
    missing = _most_w_per_flop(gpu.compute_capability, gpu.num_sms) / _w_per_flop(gpu) - 1
    return 1 / slowed(min(max(missing, 0.0), _MOST_MISSING))


@lru_cache(maxsize=32)
def _most_w_per_flop(capability: str, num_sms: int) -> float:
    """What at least two boards have of that capability and no fewer SMs; 0 where there are not two.

    The figure of one alone may be another one: that of a Grace Hopper counts its CPU.
    """
    alike = [
        _w_per_flop(gpu)
        for gpu in load_gpus().values()
        if gpu.compute_capability == capability
        and gpu.num_sms >= num_sms
        and gpu.tensor_flops_per_s.get("fp16")
        and not gpu.has_half_rate_tensor_cores
    ]
    return sorted(alike)[-2] if len(alike) > 1 else 0.0


def _w_per_flop(gpu: GpuSpec) -> float:
    return gpu.tdp_w / gpu.tensor_flops_per_s["fp16"]


@lru_cache(maxsize=128)
def _uncalibrated(board: _Board, knowledge: Knowledge) -> FittedConstants:
    """Kept for the next trace that asks about the GPU."""
    return _constants(board, knowledge, {})


def _constants(board: _Board, knowledge: Knowledge, calibration: Constants) -> FittedConstants:
    is_outdated = is_of_other_networks(calibration, knowledge.fingerprint)
    calibrated = {name: value for name, value in calibration.items() if name not in {CORRECTIONS, KERNELS}}
    values: dict[str, float] = {}
    uncalibrated: dict[str, float] = {}
    origin: dict[str, Finding] = {}
    for source, table in _layers(board, knowledge, calibrated):
        for name, value in _flat(table).items():
            if name not in values:
                values[name], origin[name] = value, source
            if not (isinstance(source, Constant) and source.of == "calibrated"):
                uncalibrated.setdefault(name, value)
    measured = frozenset(name for name, source in origin.items() if source.facts.get("of") in _OF_THIS_GPU)
    corrections = {} if is_outdated else corrections_of(calibration)
    own = knowledge.tables["gpu"].get(board.name)
    fitted = None if own is None else frozenset(_flat(own))
    kernels = {} if is_outdated or board.name in knowledge.corrections else kernels_of(calibration)
    return FittedConstants(
        fractions=values,
        measured=measured,
        origin=origin,
        learned_share=knowledge.corrections.get(board.name, corrections),
        learned_kernels=knowledge.kernels.get(board.name, kernels),
        is_share_outdated=is_outdated,
        fitted=fitted,
        uncalibrated=uncalibrated,
        supply=1.0 if fitted and fitted & _OF_PRODUCTS else board.supply,
    )


# From a board's own products, under its own power.
_OF_PRODUCTS = frozenset(f"gemm_fraction.{rate}" for rate in ("fp16", "bf16", "tf32", "fp8"))
_OF_THIS_GPU = frozenset({"calibrated", "measured"})
# What boards with such tensor cores have in common, beside architectures among what is assumed.
_HALF_RATE, _SHARED_LANES = "half_rate", "shared_lanes"
# Half of these chips' FP32 lanes also do all integers, such as a convolution's addresses (NVIDIA's white
# papers of GA102 and AD102).
_SHARING = frozenset({"8.6", "8.9"})
# PCI Express Card Electromechanical Specification: what a x16 slot supplies.
_SLOT_W = 75.0


def _layers(board: _Board, knowledge: Knowledge, calibration: Constants) -> list[tuple[Finding, Constants]]:
    fitted, assumed = knowledge.tables["gpu"], knowledge.tables["assumed"]
    others = [_board_of(load_gpus()[name]) for name in fitted if name != board.name]
    alike = [o for o in others if (o.vendor, o.is_on_slot) == (board.vendor, board.is_on_slot)]
    relatives = [other.name for other in alike if other.architecture == board.architecture]
    calibrated = Constant(of="calibrated", source=str(calibration.get("source")))
    return [
        *([(calibrated, calibration)] if calibration else []),
        (Constant(of="measured"), fitted.get(board.name, {})),
        *([(Constant(of="half-rate"), assumed.get(_HALF_RATE, {}))] if board.is_half_rate else []),
        *([(Constant(of="shared-lanes"), assumed.get(_SHARED_LANES, {}))] if board.shares_lanes else []),
        (_of_median(board, board.architecture), _median(tuple(relatives), knowledge)),
        (_of_assumption(board.architecture), assumed.get(board.architecture, {})),
        (_of_median(board, None), _median(tuple(other.name for other in alike), knowledge)),
        (_of_assumption(None), assumed["any"]),
    ]


def _of_median(board: _Board, architecture: str | None) -> Finding:
    return Constant(
        of="median", architecture=architecture, is_on_slot_power=board.is_on_slot, slot_power_w=_SLOT_W
    )


def _of_assumption(architecture: str | None) -> Finding:
    return Constant(of="assumed", architecture=architecture)


@lru_cache(maxsize=32)
def _median(gpus: tuple[str, ...], knowledge: Knowledge) -> Constants:
    flat = [_flat(knowledge.tables["gpu"][gpu]) for gpu in gpus]
    names = sorted({name for table in flat for name in table})
    return {name: statistics.median(table[name] for table in flat if name in table) for name in names}


def _flat(table: Constants) -> dict[str, float]:
    """``{"gemm_fraction": {"fp32": 0.8}}`` -> ``{"gemm_fraction.fp32": 0.8}``; texts are left out."""
    flat: dict[str, float] = {}
    for name, value in table.items():
        if isinstance(value, Mapping):
            flat |= {f"{name}.{rate}": float(number) for rate, number in value.items()}
        elif not isinstance(value, str):
            flat[name] = float(value)
    return flat


def described(origin: Mapping[str, Finding], used: Collection[str] | None = None) -> tuple[Finding, ...]:
    """Where constants come from: ``assumed for Ampere: gemm (bf16, fp16, tf32)``, one finding a source.

    The rates of a constant are left out where it is all of them. Only constants that are used count.
    """
    chosen = {name: source for name, source in origin.items() if used is None or name in used}
    parts = []
    for source in dict.fromkeys(chosen.values()):
        kinds: dict[str, list[str]] = {}
        for name in sorted(name for name, whence in chosen.items() if whence == source):
            kind, _, rate = name.partition(".")
            kinds.setdefault(kind, []).append(rate)
        for kind, rates in kinds.items():
            if rates == [""] or len(rates) == sum(name.startswith(f"{kind}.") for name in origin):
                kinds[kind] = []
        rates_of = {kind.removesuffix("_fraction"): rates for kind, rates in kinds.items()}
        parts.append(RooflineConstants(source=source, rates_by_constant=rates_of))
    return tuple(parts)
