"""Fit what operators take in whole steps beyond what they take alone: ``catalogs/steps.toml``.

    python -m research.training.fit_steps --steps ../shared/measurements/published/lambda_steps.csv
        [--leave-out BOARD ...] --out catalogs/steps.toml

The logs of a step's time and of its prediction differ by kinds of operators, which all boards share, and by
what software older than the latest adds to all, which is not learned. All are drawn towards 0, and nothing
gets faster than alone. NVIDIA's, timm's, our own steps and whole training runs only judge
(research/docs/accuracy/lambda.md).
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from advisor.core.files import write_atomically
from advisor.core.gpus import resolve_gpu
from advisor.core.values import GpuSpec, Trace
from advisor.predict.constants import constants_for
from advisor.predict.distinct import merged
from advisor.predict.iteration import predict
from advisor.predict.knowledge import Knowledge, shipped
from advisor.predict.methods import kinds_of, op_times
from research.lambda_steps import Work, read_rows, trace_of
from research.training.least_squares import least_squares

Floats = NDArray[np.float64]
# Products: of 16 bits learned under load, of FP32 in a lab of its own, and TF32 must not be slower than FP32.
# Convolutions learn from whole steps in their network, and norms from a day.
KINDS = ("element-wise",)
_OTHER = ""
_HEAD = """# Written by python -m research.training.fit_steps: what operators take in whole steps beyond
# what they take alone, as logs of a factor. Do not edit.
# Fitted to steps of Lambda Labs' boards (2020 to 2022; no licence stated: figures)."""
LATEST = "NGC 22.10"
"""Lambda's software of 2022."""
# Standard deviations of logs, before any step: of kinds, of older software, of a step. The first was chosen
# of 0.03, 0.035, 0.04, 0.05 and 0.07 by Lambda's architectures left out (10.4, 9.9, 9.6, 9.1, 8.8 %; networks
# as shipped), NVIDIA's published rows (9.2, 9.4, 9.5, 9.7, 10.0) and what bias the latest software is left
# with (-0.8, -0.2, +0.2, +0.7, +1.3).
_OF_KIND, _OF_SOFTWARE, _OF_STEP = 0.05, 0.1, 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredStep:
    """A step by what it consists of."""

    network: str
    """With its precision."""
    gpu: str
    software: str
    """That ran it."""
    time_s: float
    parts_s: Mapping[str, float]
    """Predicted seconds of kinds of operators alone, and of all that is no kind."""


def read_steps(table: Path, knowledge: Knowledge) -> Iterator[MeasuredStep]:
    """Those of Lambda's table; a batch lies on the line through the two that were recorded."""

    @cache
    def parts(row_work: Work, batch: int, gpu: str) -> defaultdict[str, float]:
        return _parts_s(trace_of(row_work, batch), resolve_gpu(gpu), knowledge)

    for row in read_rows(table):
        low, high = row.work.nearest(row.batch)
        share = (row.batch - low) / (high - low)
        below, above = (parts(row.work, batch, row.gpu.name) for batch in (low, high))
        yield MeasuredStep(
            network=f"{row.work.network} {row.work.precision}",
            gpu=row.gpu.name,
            software=row.software,
            time_s=row.step_s,
            parts_s={kind: (1 - share) * below[kind] + share * above[kind] for kind in below | above},
        )


def _parts_s(trace: Trace, gpu: GpuSpec, knowledge: Knowledge) -> defaultdict[str, float]:
    """Seconds of one step by kind; those of none, such as waiting for the host, are of one without a name."""
    trace = replace(trace, ops=merged(trace.ops))
    times = op_times(trace, gpu, constants_for(gpu, knowledge), knowledge)
    kinds, index = kinds_of(times)
    parts_s: defaultdict[str, float] = defaultdict(float)
    for kind, seconds in zip(kinds, np.bincount(index, weights=times.time_s).tolist(), strict=True):
        parts_s[kind if kind in KINDS else _OTHER] += seconds
    parts_s[_OTHER] += predict(trace, gpu, knowledge=knowledge).device_s.p50 - float(times.time_s.sum())
    return parts_s


def fit(steps: Sequence[MeasuredStep], of_kind: float = _OF_KIND) -> Mapping[str, float]:
    """What suits the steps of a lab.

    Args:
        steps: of several networks and boards.
        of_kind: the standard deviation of a kind's log, before any step.
    """
    parts_s = np.array([[step.parts_s.get(kind, 0.0) for kind in KINDS] for step in steps])
    other_s = np.array([step.parts_s.get(_OTHER, 0.0) for step in steps])
    logs = np.log([step.time_s for step in steps])
    software = sorted({step.software for step in steps} - {LATEST})
    is_of = np.array([[float(step.software == each) for each in software] for step in steps])
    spread = np.array([of_kind] * len(KINDS) + [_OF_SOFTWARE] * len(software))

    def residuals(parameters: Floats) -> Floats:
        factors = np.exp(np.maximum(parameters[: len(KINDS)], 0.0))
        of_software = is_of @ parameters[len(KINDS) :]
        errors_of_steps = np.log(parts_s @ factors + other_s) + of_software - logs
        return np.concatenate([errors_of_steps, _OF_STEP * parameters / spread])

    found = np.maximum(least_squares(residuals, np.full(len(spread), 0.05)), 0.0).tolist()
    return dict(zip(KINDS, found[: len(KINDS)], strict=True))


def errors(steps: Sequence[MeasuredStep], excess: Mapping[str, float]) -> Floats:
    """Logs of predicted over measured time."""
    return np.array([math.log(_predicted_s(step, excess) / step.time_s) for step in steps])


def _predicted_s(step: MeasuredStep, excess: Mapping[str, float]) -> float:
    return sum(seconds * math.exp(excess.get(kind, 0.0)) for kind, seconds in step.parts_s.items())


def render(excess: Mapping[str, float]) -> str:
    """The catalog's text."""
    return "\n".join([_HEAD, "", "[excess]", *(f'"{kind}" = {log:.3f}' for kind, log in excess.items()), ""])


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--steps", type=Path, required=True, metavar="FILE")
    parser.add_argument("--leave-out", action="append", default=[], metavar="BOARD")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.toml")
    options = parser.parse_args()
    steps = read_steps(options.steps, replace(shipped(), excess={}))
    seen = [step for step in steps if step.gpu not in options.leave_out]
    write_atomically(options.out, render(fit(seen)).encode())


if __name__ == "__main__":
    main()
