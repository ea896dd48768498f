"""Products on tensor cores against measured kernels: unseen shapes, an architecture left out, calibrated.

What is scored trained nothing: the test split of ``research.training.products``, here also of GPUs whose
architecture was left out. Kernels ran in bursts, and so are predicted at the clock of bursts.

    python -m research.accuracy.products --products ../shared/measurements [--left-out DIR]

``DIR/ARCHITECTURE`` holds what ``python -m research.training --fold without:ARCHITECTURE`` wrote.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from advisor.core.gpus import load_gpus
from advisor.core.values import Z90
from advisor.formats.recording_files import Measurement
from advisor.operators.gemm import LIKENESS, TELLING_SIZES, TENSOR_GEMM
from advisor.predict.calibrating import learned_kernels, learned_offsets
from advisor.predict.knowledge import Knowledge, read_knowledge, shipped
from advisor.predict.learned import numbers_of
from benchmarks.accuracy.op_predictions import kernel_times
from research.bare_trace import TRUE_FP32
from research.training.fit_likeness import nearest
from research.training.product_tables import BACKWARD, FORWARD
from research.training.products import read_products
from research.training.samples import Samples
from research.training.tables import in_bursts

UNSEEN_SHAPES, UNSEEN_GPU, CALIBRATED = "unseen shapes", "architecture left out", "and calibrated"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductErrors:
    """Absolute errors of one kind of product on one GPU, as fractions of the measured time."""

    state: str
    """What the prediction did not know."""
    kind: str
    gpu: str
    rows: int
    mean: float
    median: float
    p90: float
    bias: float
    """Median of the signed error, positive where predictions are too slow."""
    coverage: float
    """The part of the measurements within p10..p90."""


def unseen_shapes(samples: Samples, knowledge: Knowledge) -> list[ProductErrors]:
    """Of the shapes that no training saw."""
    return _errors(samples.where(samples.splits == "test"), knowledge, UNSEEN_SHAPES)


def left_out(samples: Samples, without: Mapping[str, Knowledge]) -> list[ProductErrors]:
    """Of all GPUs of an architecture, by what was trained without it, and after 20 kernels of each."""
    errors: list[ProductErrors] = []
    for architecture, knowledge in without.items():
        of_it = [gpu.name for gpu in load_gpus().values() if gpu.architecture == architecture]
        of_architecture = samples.where(np.isin(samples.gpus, of_it))
        own = of_architecture.where(of_architecture.splits == "test")
        others = of_architecture.where(of_architecture.splits != "test")
        errors += _errors(own, knowledge, UNSEEN_GPU)
        errors += _errors(own, _calibrated(others, knowledge), CALIBRATED)
    return errors


def _calibrated(samples: Samples, knowledge: Knowledge) -> Knowledge:
    """With what 20 kernels of each GPU tell of it: those nearest to what is measured that do not judge."""
    design = np.log(np.array(TELLING_SIZES, float))
    told, shares = dict(knowledge.kernels), dict(knowledge.corrections)
    for name in np.unique(samples.gpus).tolist():
        own = samples.where((samples.gpus == name) & (samples.kinds == FORWARD))
        sizes = np.array([numbers_of(op, TENSOR_GEMM) for op in own.ops])[:, : design.shape[1]]
        kernels = [
            Measurement(
                case=str(i),
                op=replace(own.ops[i], measured_s=float(own.time_s[i])),
                precision=TRUE_FP32,
                spread=0.0,
                num_samples=1,
            )
            for i in nearest(LIKENESS, sizes, design)
        ]
        gpu, bursts = load_gpus()[name], in_bursts(knowledge)
        told[name] = learned_kernels(kernels, gpu, bursts)
        shares[name] = {
            share.name.partition(".")[2]: share.after for share in learned_offsets(kernels, gpu, bursts)
        }
    return replace(knowledge, kernels=told, corrections=shares)


def _errors(samples: Samples, knowledge: Knowledge, state: str) -> list[ProductErrors]:
    """By kind and GPU."""
    errors = []
    for kind in np.unique(samples.kinds).tolist():
        for gpu in np.unique(samples.gpus[samples.kinds == kind]).tolist():
            own = samples.where((samples.kinds == kind) & (samples.gpus == gpu))
            predicted_s, sigma = kernel_times(own.ops, load_gpus()[gpu], in_bursts(knowledge))
            measured_s = own.time_s
            if kind == BACKWARD:
                predicted_s, sigma, measured_s = _both_gradients(own, predicted_s, sigma)
            signed = predicted_s / measured_s - 1
            inside = np.abs(np.log(predicted_s / measured_s)) <= Z90 * sigma
            errors.append(
                ProductErrors(
                    state=state,
                    kind=kind,
                    gpu=gpu,
                    rows=len(signed),
                    mean=float(np.abs(signed).mean()),
                    median=float(np.median(np.abs(signed))),
                    p90=float(np.quantile(np.abs(signed), 0.9)),
                    bias=float(np.median(signed)),
                    coverage=float(inside.mean()),
                )
            )
    return errors


def _both_gradients(
    samples: Samples, predicted_s: NDArray[np.float64], sigma: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Predicted seconds, sigma and measured seconds of a layer's two gradients, whose sum was measured."""
    sizes = [sorted({size for t in (*op.inputs, *op.outputs) for size in t.shape}) for op in samples.ops]
    layers = [f"{size} {time_s!r}" for size, time_s in zip(sizes, samples.time_s.tolist(), strict=True)]
    _, layer, parts = np.unique(layers, return_inverse=True, return_counts=True)
    predicted, spread, measured = (
        np.bincount(layer, values).astype(np.float64) for values in (predicted_s, sigma, samples.time_s)
    )
    return predicted, spread / parts, measured


def product_table(errors: Sequence[ProductErrors]) -> str:
    """Markdown: a row a state, kind and GPU."""
    legend = (
        "Absolute error in per cent: mean, median, p90; then the median signed error, positive where"
        " predictions are too slow, and how many measurements lie within p10..p90."
    )
    header = "| state | products | GPU | rows | mean | median | p90 | bias | within p10..p90 |"
    return "\n".join([legend, "", header, "|---" * 9 + "|", *_lines(errors)])


def _lines(errors: Sequence[ProductErrors]) -> Iterator[str]:
    for one in errors:
        figures = " | ".join(f"{100 * value:.1f}" for value in (one.mean, one.median, one.p90))
        signed = f"{100 * one.bias:+.0f} | {one.coverage:.0%}"
        yield f"| {one.state} | {one.kind} | {one.gpu} | {one.rows} | {figures} | {signed} |"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--products", type=Path, required=True, metavar="DIR")
    parser.add_argument("--left-out", type=Path, metavar="DIR")
    options = parser.parse_args()
    samples = read_products(options.products)
    folders = sorted(options.left_out.iterdir()) if options.left_out else []
    without = {folder.name: read_knowledge(folder) for folder in folders}
    print(product_table([*unseen_shapes(samples, shipped()), *left_out(samples, without)]))


if __name__ == "__main__":
    main()
