"""What a GPU reaches of its data sheet: measured on it, else its architecture's median, else assumed."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from advisor.core.gpus import load_gpus
from advisor.core.values import FittedConstants, GpuSpec
from advisor.predict.calibration.calibration_files import (
    CALIBRATED,
    CORRECTIONS,
    is_of_other_networks,
    read_calibration,
)
from advisor.predict.knowledge import Knowledge, shipped

Table = Mapping[str, Any]


def constants_for(gpu: GpuSpec, knowledge: Knowledge | None = None) -> FittedConstants:
    """The constants of one GPU, each with where it comes from, by default as shipped.

    Per constant the first that exists counts: calibrated on this machine; fitted on this GPU; the median
    over the fitted GPUs of its architecture and power class; the assumption for its architecture; the
    median over the fitted GPUs of its power class; the assumption for all. A calibration's corrections of
    other networks than these do not count.

    Raises:
        CatalogError: ``fitted.toml`` is missing or broken, or this machine's calibration is.
    """
    knowledge = knowledge or shipped()
    calibration = dict((read_calibration(gpu.name) if knowledge.is_calibrated_here else None) or {})
    is_outdated = is_of_other_networks(calibration, knowledge.fingerprint)
    calibrated_share = calibration.pop(CORRECTIONS, {})
    values: dict[str, float] = {}
    origin: dict[str, str] = {}
    for source, table in _layers(gpu, knowledge.tables, calibration):
        for name, value in _flat(table).items():
            if name not in values:
                values[name], origin[name] = value, source
    measured = frozenset(
        name for name, source in origin.items() if source == _MEASURED or source.startswith(CALIBRATED)
    )
    return FittedConstants(
        fractions=values,
        measured=measured,
        origin=origin,
        learned_share=knowledge.corrections.get(gpu.name, {} if is_outdated else calibrated_share),
        is_share_outdated=is_outdated,
        is_measured=gpu.name in knowledge.tables["gpu"],
    )


_MEASURED = "fitted to measurements on this GPU"
# PCI Express Card Electromechanical Specification: what a x16 slot supplies.
_SLOT_W = 75.0


def _layers(gpu: GpuSpec, tables: Table, calibration: Table) -> list[tuple[str, Table]]:
    fitted: Mapping[str, Table] = tables["gpu"]
    others = [load_gpus()[name] for name in fitted if name != gpu.name]
    alike = [other for other in others if _power_class(other) == _power_class(gpu)]
    relatives = [other.name for other in alike if other.architecture == gpu.architecture]
    power = "up to 75 W" if gpu.tdp_w <= _SLOT_W else "above 75 W"
    assumed = tables["assumed"]
    return [
        *([(str(calibration["source"]), calibration)] if calibration else []),
        (_MEASURED, fitted.get(gpu.name, {})),
        (f"median of the measured {gpu.architecture} GPUs {power}", _median([fitted[r] for r in relatives])),
        (f"assumed for {gpu.architecture}", assumed.get(gpu.architecture, {})),
        (f"median of the measured GPUs {power}", _median([fitted[a.name] for a in alike])),
        ("assumed for any GPU", assumed["any"]),
    ]


def _power_class(gpu: GpuSpec) -> tuple[str, bool]:
    """Boards that live on the power of their slot lower their clocks under load."""
    return gpu.vendor, gpu.tdp_w <= _SLOT_W


def _median(tables: Iterable[Table]) -> Table:
    """Of each constant that any of them has."""
    flat = [_flat(table) for table in tables]
    names = sorted({name for table in flat for name in table})
    return {name: statistics.median(table[name] for table in flat if name in table) for name in names}


def _flat(table: Table) -> dict[str, float]:
    """``{"gemm_fraction": {"fp32": 0.8}}`` -> ``{"gemm_fraction.fp32": 0.8}``; texts are left out."""
    flat: dict[str, float] = {}
    for name, value in table.items():
        if isinstance(value, Mapping):
            flat |= {f"{name}.{rate}": float(number) for rate, number in value.items()}
        elif not isinstance(value, str):
            flat[name] = float(value)
    return flat


def described(origin: Mapping[str, str], used: Collection[str] | None = None) -> tuple[str, ...]:
    """Where constants come from: ``"assumed for Ampere: gemm (bf16, fp16, tf32)"``, one text a source.

    The rates are left out where it is all of them.

    Args:
        origin: of ``FittedConstants``.
        used: the constants of interest, by default all.
    """
    chosen = {name: source for name, source in origin.items() if used is None or name in used}
    lines = []
    for source in dict.fromkeys(chosen.values()):
        kinds: dict[str, list[str]] = {}
        for name in sorted(name for name, found in chosen.items() if found == source):
            kind, _, rate = name.partition(".")
            kinds.setdefault(kind, []).append(rate)
        texts = []
        for kind, rates in kinds.items():
            every = sum(name.startswith(f"{kind}.") for name in origin)
            which = "" if len(rates) == every or rates == [""] else f" ({', '.join(rates)})"
            texts.append(kind.removesuffix("_fraction") + which)
        lines.append(f"{source}: {', '.join(texts)}")
    return tuple(lines)
