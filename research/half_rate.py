"""What GeForce boards reach of their data sheets' rate of products, from whole forward passes.

    python -m research.half_rate --figures timm_benchmarks.csv.gz --recorded DIR

No table of kernels has a board whose tensor cores add in FP32 at half rate. timm's forward passes are of two
(DIR is written by ``python -m research.timm_recording --forward``). Passes in which convolutions take less
than an eighth tell how long products take, if attention takes half to all of what is predicted, and streams
0.85 to all of it: the three weights, of both boards and releases alike, whose sums are nearest. Families of
models that only judge are left out.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import fmean

from advisor.core.gpus import resolve_gpu
from advisor.predict.constants import constants_for
from advisor.predict.iteration import predict
from research.training.forward_passes import read_forwards
from research.training.whole_steps import LAYOUTS, Step

CONSTANT, BOARD = "gemm_fraction.fp16", "RTX-4090"
# Of torch: what people train with today.
RELEASES = ("2.4.0", "2.9.1")
_MOST_CONVOLUTIONS = 0.125
_PRODUCTS = tuple(share / 50 for share in range(35, 70))
_ATTENTION = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_STREAMS = (0.85, 0.9, 0.95, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """Seconds of a forward pass: predicted by family, and measured."""

    products_s: float
    attention_s: float
    streams_s: float
    others_s: float
    measured_s: float


def told_by(step: Step) -> Pass | None:
    """The parts of a pass; None where convolutions take much of it."""
    seconds = dict(predict(step.trace, step.gpu, 1).by_family)
    if seconds.get("convolution", 0.0) > _MOST_CONVOLUTIONS * sum(seconds.values()):
        return None
    products_s, attention_s = seconds.pop("gemm", 0.0), seconds.pop("attention", 0.0)
    streams_s = seconds.pop("element-wise", 0.0) + seconds.pop("norm and softmax", 0.0)
    return Pass(
        products_s=products_s,
        attention_s=attention_s,
        streams_s=streams_s,
        others_s=sum(seconds.values()),
        measured_s=step.time_s,
    )


def weight_of_products(sets: Sequence[Sequence[Pass]]) -> tuple[float, list[float]]:
    """By which products take longer than predicted, and what that leaves off each set, as a mean log."""
    best: tuple[float, float, list[float]] = (math.inf, 1.0, [])
    for products, attention, streams in product(_PRODUCTS, _ATTENTION, _STREAMS):
        off = [_off(passes, products, attention, streams) for passes in sets]
        best = min(best, (fmean(off), products, off))
    return best[1], best[2]


def _off(passes: Sequence[Pass], products: float, attention: float, streams: float) -> float:
    seconds = (
        products * one.products_s + attention * one.attention_s + streams * one.streams_s + one.others_s
        for one in passes
    )
    return fmean(abs(math.log(own_s / one.measured_s)) for own_s, one in zip(seconds, passes, strict=True))


def main() -> None:
    """Print the fraction, and what it leaves off by board and release."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--figures", type=Path, required=True)
    parser.add_argument("--recorded", type=Path, required=True, metavar="DIR")
    options = parser.parse_args()
    sets: dict[str, list[Pass]] = {}
    for step in read_forwards(options.figures, options.recorded):
        told = told_by(step) if _counts(step) else None
        if told is not None:
            sets.setdefault(f"{step.gpu.name}, torch {step.release}", []).append(told)
    ships = constants_for(resolve_gpu(BOARD)).fractions[CONSTANT]
    weight, off = weight_of_products(list(sets.values()))
    for name, left in zip(sets, off, strict=True):
        print(f"{name}: {len(sets[name])} passes, {left:.1%} off")
    print(f"{CONSTANT}: {ships / weight:.2f}; ships: {ships:g}")


def _counts(step: Step) -> bool:
    return not step.only_judges and step.release in RELEASES and step.layout == LAYOUTS[0]


if __name__ == "__main__":
    main()
