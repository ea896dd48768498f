"""Whole training steps of published tables: what they tell a network beside measured kernels.

A step is the sum of its operators. The network knows some of them; the others keep the time that all other
methods predict. So one measured second is told to thousands of calls at once: what no table of kernels
shows, such as the price of a memory layout, is learned from the steps that differ in it.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from advisor.core.errors import InputError
from advisor.core.gpus import resolve_gpu
from advisor.core.values import GpuSpec, Trace
from advisor.formats.trace_files import read_trace
from advisor.operators.family import base_name
from advisor.operators.registry import rows
from advisor.predict.constants import constants_for
from advisor.predict.distinct import asked_rates
from advisor.predict.knowledge import Knowledge
from advisor.predict.learned import grouped, peak_flops_per_s
from advisor.predict.methods import op_times
from advisor.predict.roofline import KERNEL_FLOOR_S
from advisor.predict.what_if.channels_last import in_channels_last
from research.training.drawn import fraction_of
from research.training.published_rows import published_rows

# Families of models, not models, are kept apart: resnet50 tells much of resnet101.
_PREFIXES = re.compile(r"^(tf|gluon|ssl|swsl|legacy|ig)_")
_JUDGED_SHARE = 1 / 3
# Models of today's package that are not those that were measured, and steps of another release of torch.
_MOST_OFF_PARAMETERS, _MOST_OFF_MACS = 0.01, 0.06
_TORCH = "1.12"
# The network that learns from them.
NETWORK = "conv16"
LAYOUTS = ("nchw", "channels_last")
# Steps in one batch, and the standard deviation of what is added to each feature, in standard deviations.
_BATCH, _NOISE = 48, 0.2
_HUBER = 0.08
Floats = NDArray[np.float64]
Row = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One measured training step of a model in one memory layout, or its forward pass."""

    model: str
    layout: str
    gpu: GpuSpec
    trace: Trace
    time_s: float
    release: str

    @property
    def family(self) -> str:
        """The models that are left out together.

        >>> family_of_model("tf_efficientnet_b0_ns")
        'efficientnet'
        """
        return family_of_model(self.model)

    @property
    def only_judges(self) -> bool:
        """Whether it is of the third of families that no training sees."""
        return only_judges(self.model)


def family_of_model(model: str) -> str:
    """The letters that a model's name begins with, without whose weights they are."""
    match = re.match(r"[a-z]+", _PREFIXES.sub("", model))
    return match[0] if match else model


def only_judges(model: str) -> bool:
    """Whether a model is of the third of families that no training sees."""
    return fraction_of(family_of_model(model)) < _JUDGED_SHARE


def read_steps(figures: Path, recordings: Path) -> list[Step]:
    """The steps of models that were recorded, in both layouts; channels_last follows from NCHW.

    Args:
        figures: ``timm_benchmarks.csv.gz``.
        recordings: a folder of ``MODEL.json.gz``, written by ``python -m research.timm_recording``.

    Raises:
        InputError: a file is missing or broken, or no model was recorded.
    """
    by_model: dict[str, dict[str, Row]] = {}
    for row in rows_that(is_used, figures, "steps"):
        by_model.setdefault(row["model"], {})[row["memory_format"]] = row
    steps = [
        step
        for path in sorted(recordings.glob("*.json.gz"))
        if (of_model := by_model.get(path.name.removesuffix(".json.gz"))) is not None
        for step in _steps(read_trace(path), of_model)
    ]
    if not steps:
        raise InputError(f"no recorded model in {str(recordings)!r}: see python -m research.timm_recording.")
    return steps


def rows_that(count: Callable[[Row], bool], figures: Path, what: str) -> list[Row]:
    """The rows of timm's table that count.

    Args:
        count: tells which.
        figures: ``timm_benchmarks.csv.gz``.
        what: they are, in words.

    Raises:
        InputError: the file is missing or broken.
    """
    try:
        return [row for row in published_rows(figures) if count(row)]
    except (OSError, EOFError, csv.Error, KeyError) as error:
        raise InputError(f"cannot read published {what}: {str(figures)!r}: {error}") from error


def is_used(row: Row) -> bool:
    """Whether a row of the table is a training step of the release of torch that is learned from."""
    return row["mode"] == "train" and row["framework_version"] == _TORCH


def _steps(trace: Trace, of_model: Mapping[str, Row]) -> Iterator[Step]:
    first = of_model.get(LAYOUTS[0])
    if first is None or not _is_the_same_model(trace, first):
        return
    for layout, in_layout in ((LAYOUTS[0], trace), (LAYOUTS[1], in_channels_last(trace))):
        row = of_model.get(layout)
        if in_layout is not None and row is not None and row["batch_size"] == first["batch_size"]:
            yield Step(
                model=row["model"],
                layout=layout,
                gpu=resolve_gpu(row["device"]),
                trace=in_layout,
                time_s=float(row["step_ms"]) * 1e-3,
                release=_TORCH,
            )


def _is_the_same_model(trace: Trace, row: Row) -> bool:
    parameters = (trace.memory.parameter_bytes or 0) / 4e6
    is_as_large = _is_near(parameters, row["params_millions"], _MOST_OFF_PARAMETERS)
    return is_as_large and has_as_many_macs(trace, int(row["batch_size"]), row)


def has_as_many_macs(trace: Trace, batch: int, row: Row) -> bool:
    """Whether the forward pass of a batch does per sample what the published model does."""
    return _is_near(forward_macs(trace) / batch / 1e9, row["fwd_gmacs_per_sample"], _MOST_OFF_MACS)


def forward_macs(trace: Trace) -> float:
    """Multiply-adds of convolutions and products in the forward pass."""
    names = rows().flops
    return sum(
        op.count * op.flops / 2
        for op in trace.ops
        if op.phase == "forward" and base_name(op.name) in names and len(op.inputs) > 1
    )


def _is_near(value: float, published: str, most: float) -> bool:
    # Published figures have two digits after the point.
    return abs(value - float(published)) <= most * float(published) + 0.006


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeSteps:
    """S steps as a network sees them: N calls that it knows, and seconds of all others.

    Attributes:
        features: [N, F], the board's included.
        compute_s, memory_s: work of one call over the data sheet's rates, [N].
        counts: of each call, [N].
        step: which step each call is of, [N], ascending.
        rest_s: of the step's other operators, [S].
        time_s: measured, [S].
    """

    features: NDArray[np.float32]
    compute_s: Floats
    memory_s: Floats
    counts: Floats
    step: NDArray[np.int64]
    rest_s: Floats
    time_s: Floats

    def loss(
        self,
        outputs_of: Callable[[torch.Tensor], torch.Tensor],
        inputs: torch.Tensor,
        generator: torch.Generator,
    ) -> torch.Tensor:
        """Of a batch of steps: Huber's of the log of their time.

        Args:
            outputs_of: the ensemble.
            inputs: the features, normalised.
            generator: of the batch and of what is added to its features.
        """
        drawn = torch.randperm(len(self.time_s), generator=generator)[:_BATCH]
        place = torch.full((len(self.time_s),), -1)
        place[drawn] = torch.arange(len(drawn))
        where = place[torch.from_numpy(self.step)]
        own = torch.nonzero(where >= 0)[:, 0]
        features = inputs[own] + _NOISE * torch.randn(len(own), inputs.shape[1], generator=generator)
        outputs = outputs_of(features)
        compute_s, memory_s, counts = (
            torch.from_numpy(column).float()[own] for column in (self.compute_s, self.memory_s, self.counts)
        )
        call_s = KERNEL_FLOOR_S + compute_s * outputs[..., 0].exp() + memory_s * outputs[..., 1].exp()
        rest_s, time_s = (torch.from_numpy(column).float()[drawn] for column in (self.rest_s, self.time_s))
        sums = rest_s + torch.zeros(len(outputs), len(drawn)).index_add(1, where[own], counts * call_s)
        return torch.nn.functional.huber_loss(sums.log(), time_s.log().expand_as(sums), delta=_HUBER)


def whole_steps(steps: Sequence[Step], network: str, knowledge: Knowledge) -> WholeSteps:
    """The steps as the network of this name sees them; other operators as ``knowledge`` predicts them."""
    seen = [_seen(step, network, knowledge) for step in steps]
    return WholeSteps(
        features=np.concatenate([one.features for one in seen]),
        compute_s=np.concatenate([one.compute_s for one in seen]),
        memory_s=np.concatenate([one.memory_s for one in seen]),
        counts=np.concatenate([one.counts for one in seen]),
        step=np.repeat(np.arange(len(seen)), [len(one.counts) for one in seen]),
        rest_s=np.array([one.rest_s[0] for one in seen]),
        time_s=np.array([step.time_s for step in steps]),
    )


def _seen(step: Step, network: str, knowledge: Knowledge) -> WholeSteps:
    family, learned = rows().network[network]
    constants, ops = constants_for(step.gpu, knowledge), step.trace.ops
    times = op_times(step.trace, step.gpu, constants, knowledge)
    counts = times.columns.counts
    calls = next((calls for calls in grouped(ops) if calls.network == network), None)
    if calls is None:
        nothing = np.zeros(0)
        features = np.zeros((0, learned.num_features + learned.board.num_features), np.float32)
        return WholeSteps(
            features=features, compute_s=nothing, memory_s=nothing, counts=nothing,
            step=np.zeros(0, np.int64), rest_s=np.array([times.time_s.sum()]), time_s=np.array([step.time_s]),
        )  # fmt: skip
    asked = [rate for rate, _ in asked_rates(ops, step.trace.precision)]
    peaks = np.array(
        [peak_flops_per_s(asked[i], family, learned, step.gpu, constants) for i in calls.index.tolist()]
    )
    known = ~np.isnan(peaks)
    index, features = calls.index[known], calls.features[known]
    return WholeSteps(
        features=np.concatenate([features, learned.board.features(features, step.gpu)], axis=1),
        compute_s=calls.flops[known] / peaks[known],
        memory_s=calls.num_bytes[known] / step.gpu.memory_bytes_per_s,
        counts=counts[index],
        step=np.zeros(len(index), np.int64),
        rest_s=np.array([times.time_s.sum() - times.time_s[index].sum()]),
        time_s=np.array([step.time_s]),
    )
