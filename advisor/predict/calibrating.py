"""A recording of kernels of one GPU -> that GPU's constants."""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from advisor.core.errors import CalibrationError, RecordingError
from advisor.core.findings import Finding
from advisor.core.findings.about_estimates import KernelsDoubtful
from advisor.core.gpus import resolve_gpu
from advisor.core.iterables import grouped
from advisor.core.values import FittedConstants, GpuSpec, Op, Precision
from advisor.formats.recording_files import Header, Measurement, Recording
from advisor.operators.family import compute_rate, wanted_rate
from advisor.operators.registry import family_of, rows
from advisor.predict.constants import constants_for
from advisor.predict.knowledge import CORRECTIONS, MOST_CORRECTION, Kernels, Knowledge, shipped
from advisor.predict.learned import Shape, learned_times, shape_of
from advisor.predict.roofline import KERNEL_FLOOR_S, op_time

# Fits what a GPU reaches of its data sheet to a few measured kernels, by how much slower they are than
# predicted (``fit_offset``), whatever the predictor; medians, so a few wild rows do no harm.

# What no GPU stays below; Winograd lets convolutions pass their peak, by less than twice.
_LEAST_FRACTION, _MOST_FRACTION = 0.01, 2.0
PredictS = Callable[[Op, Precision], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedConstant:
    """One constant before and after."""

    name: str
    """Such as ``gemm_fraction.bf16``."""
    before: float
    after: float
    num_kernels: int
    spread: float
    """Median absolute deviation of the kernels' logarithmic offsets; 0.1 is about 10 %."""


def fit_offset(
    name: str,
    before: float,
    kernels: Sequence[Measurement],
    predict_s: PredictS,
    launch_s: float,
    *,
    most: float = _MOST_FRACTION,
    quantile: float = 0.5,
    trust: float = 1.0,
) -> FittedConstant:
    """The constant with which the median kernel takes as long as predicted.

    With ``offset = median(log(measured - launch) - log(predicted - launch))``, the time of a kernel beyond
    its launch being inversely proportional to the constant: ``after = before * exp(-offset)``.

    Args:
        before: its value behind ``predict_s``.
        predict_s: seconds of one call as predicted with ``before``.
        launch_s: seconds of a launch, which no constant changes.
        most: the largest value that makes sense.
        quantile: of the offsets, instead of the median.
        trust: the part of the offset that counts.

    Raises CalibrationError: no kernel takes longer than a launch, or the result is no fraction.
    """
    offsets = [
        math.log(kernel.time_s - launch_s) - math.log(predicted_s - launch_s)
        for kernel in kernels
        if (predicted_s := predict_s(kernel.op, kernel.precision)) > launch_s and kernel.time_s > launch_s
    ]
    if not offsets:
        raise CalibrationError(f"no kernel for {name} takes longer than its launch: nothing can be fitted.")
    offset = float(np.quantile(offsets, quantile))
    after = before * math.exp(-trust * offset)
    if not _LEAST_FRACTION <= after <= most:
        raise CalibrationError(
            f"{name} would become {after:.3g}, which is no share of a rate"
            f" ({_LEAST_FRACTION:g} to {most:g}): is this the GPU that its name says, and was it"
            " free?"
        )
    middle = statistics.median(offsets)
    spread = statistics.median(abs(value - middle) for value in offsets)
    return FittedConstant(name=name, before=before, after=after, num_kernels=len(offsets), spread=spread)


# Smaller kernels leave a part of the GPU empty, which no constant describes.
_LEAST_S = 25 * KERNEL_FLOOR_S
_WIDE = 0.25
# A minute of one day tells 60 % of what sets a board apart from those like it:
# 20 % between boards against 10 % between days and some between kernels (learned/times.py).
_TRUST = 0.6
# Of a kernel not much longer than a launch it is the launch that was measured.
_LEAST_TOLD_S = KERNEL_FLOOR_S
MOST_DRIFT = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Fitted constants of one GPU."""

    gpu: str
    source: str
    """Date and versions, in words."""
    constants: tuple[FittedConstant, ...]
    kernels: Kernels
    """By network, of each measured kernel its sizes, and the part of the learned rate it reached."""
    warnings: tuple[Finding, ...]


def calibrate(recording: Recording) -> Calibration:
    """Fit every constant for which the recording holds kernels.

    Raises:
        RecordingError: it was not made on a GPU of the catalog.
        CalibrationError: it holds no kernel that is large enough, or a result is no fraction.
    """
    gpu = resolve_gpu(calibrated_gpu(recording.header))
    before = constants_for(gpu)

    def predict_s(op: Op, precision: Precision) -> float:
        return op_time(op, gpu, before, precision).time_s

    by_constant = grouped(recording.measurements, lambda kernel: _own_constant(kernel, gpu, before) or "")
    fitted = tuple(
        fit_offset(name, before.fractions[name], kernels, predict_s, KERNEL_FLOOR_S)
        for name, kernels in sorted(by_constant.items())
        if name
    )
    fitted += learned_offsets(recording.measurements, gpu, shipped())
    if not fitted:
        families = dict.fromkeys(family.word for family in rows().families if family.calibrates)
        raise CalibrationError(
            "the recording holds no kernel of 50 microseconds or more of these families:"
            f" {', '.join(families)}. advisor calibrate without `source` measures what is needed."
        )
    versions, wide = recording.header.versions, [one for one in fitted if one.spread > _WIDE]
    parts = [f"{name} {versions[name]}" for name in ("driver", "torch") if versions.get(name)]
    disagree = (
        KernelsDoubtful(why="disagree", constant=one.name, num_kernels=one.num_kernels, spread=one.spread)
        for one in wide
    )
    return Calibration(
        gpu=gpu.name,
        source=", ".join([recording.header.recorded_on, *parts]),
        constants=fitted,
        kernels=learned_kernels(recording.measurements, gpu, shipped()),
        warnings=(*drift_warnings(recording), *disagree),
    )


def learned_offsets(
    kernels: Sequence[Measurement], gpu: GpuSpec, knowledge: Knowledge
) -> tuple[FittedConstant, ...]:
    """For each family of networks, the part of the rate it expects that the GPU reaches.

    Kernels too small, or that no network knows, do not count.
    """
    asked = _as_trained(knowledge, gpu)
    constants = constants_for(gpu, asked)

    def predict_s(op: Op, precision: Precision) -> float:
        return float(learned_times([op], gpu, constants, precision, asked).time_s[0])

    def network_of(kernel: Measurement) -> str:
        network = _network_of(kernel, gpu, constants) or ""
        return network if network and not math.isnan(predict_s(kernel.op, kernel.precision)) else ""

    learned = {network: learned for network, (_, learned) in rows().network.items()}
    return tuple(
        fit_offset(
            f"{CORRECTIONS}.{network}",
            1.0,
            known,
            predict_s,
            KERNEL_FLOOR_S,
            most=MOST_CORRECTION,
            quantile=learned[network].quantile,
            # Where the rate is a constant of the GPU, nothing else is known of it.
            trust=1.0 if learned[network].is_of_fitted else _TRUST,
        )
        for network, known in sorted(grouped(kernels, network_of).items())
        if network
    )


def learned_kernels(kernels: Sequence[Measurement], gpu: GpuSpec, knowledge: Knowledge) -> Kernels:
    """For each family of networks that learns from each kernel: its sizes, and the part of the rate reached.

    Kernels as short as a launch, or that no such network knows, do not count.
    """
    asked = _as_trained(knowledge, gpu)
    constants = constants_for(gpu, asked)
    by_network: dict[str, list[tuple[float, ...]]] = {}
    for kernel in kernels:
        shape = _shape_of(kernel)
        likeness = rows().network[shape.network][1].likeness if shape is not None else None
        predicted_s = float(learned_times([kernel.op], gpu, constants, kernel.precision, asked).time_s[0])
        if shape is None or likeness is None or math.isnan(predicted_s) or kernel.time_s < _LEAST_TOLD_S:
            continue
        share = min(max(predicted_s / kernel.time_s, 1 / MOST_CORRECTION), MOST_CORRECTION)
        sizes = (math.exp(value) for value in shape.values[: len(likeness.lengths)])
        by_network.setdefault(shape.network, []).append((*sizes, share))
    return by_network


def _as_trained(knowledge: Knowledge, gpu: GpuSpec) -> Knowledge:
    """Without what an earlier calibration of the GPU found."""
    return replace(knowledge, corrections={gpu.name: dict.fromkeys(rows().network, 1.0)}, kernels={})


def _shape_of(kernel: Measurement) -> Shape | None:
    """The numbers that the network of its rate is given of it."""
    return shape_of(kernel.op, wanted_rate(kernel.op, family_of(kernel.op), kernel.precision))


def _network_of(kernel: Measurement, gpu: GpuSpec, constants: FittedConstants) -> str | None:
    """The network that a kernel tells of, if it is large enough and bound by its own rate."""
    shape = _shape_of(kernel)
    if shape is None:
        return None
    if rows().network[shape.network][1].is_of_fitted:
        return shape.network if kernel.time_s >= _LEAST_S else None
    return shape.network if _own_constant(kernel, gpu, constants) else None


def calibrated_gpu(header: Header) -> str:
    """The catalog's name of the GPU that a recording is of.

    Raises RecordingError: it is of no GPU, or of one that the catalog lacks.
    """
    if header.backend != "cuda":
        raise RecordingError(
            f"the recording is of the backend {header.backend}: only kernels of a GPU"
            " (`profile.backend` cuda) tell a GPU's constants."
        )
    if header.gpu is None:
        raise RecordingError(why_unknown(header.device_name))
    return header.gpu


def why_unknown(device_name: str) -> str:
    """In words what to do about a GPU that is not in the catalog."""
    return (
        f"{device_name!r} is not in the catalog, so there is no data sheet to calibrate against. Add an"
        " entry with its rates and its source to catalogs/gpus.toml (catalogs/README.md), and repeat;"
        " advisor measure records its kernels without one."
    )


def drift_warnings(recording: Recording) -> tuple[Finding, ...]:
    """Whether the clocks changed while it was recorded."""
    return (KernelsDoubtful(why="clocks", spread=recording.drift),) if recording.drift > MOST_DRIFT else ()


def _own_constant(kernel: Measurement, gpu: GpuSpec, constants: FittedConstants) -> str | None:
    """The constant that a kernel tells of: it is large, and bound by its own family's roof and rate.

    Kernels that are bound by another family's roof do not count.
    """
    family = family_of(kernel.op)
    name = op_time(kernel.op, gpu, constants, kernel.precision).constant
    is_own = name.partition(".")[0] == family.calibrates
    is_substitute = compute_rate(kernel.op, family, gpu, constants, kernel.precision).is_substitute
    return name if kernel.time_s >= _LEAST_S and is_own and not is_substitute else None
