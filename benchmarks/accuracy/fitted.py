"""Attention and recurrent layers: what formulas say of measured kernels that fitted none of their constants.

    python -m benchmarks.accuracy.fitted --measurements DIR --out research/docs/accuracy/fitted.md

Shapes are held out in fifths, the same on every GPU; architectures one at a time. What a source adds to every
call (launches, a server's cache) is fitted to all its rows, since it is no property of a kernel.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from advisor.core.files import write_atomically
from advisor.core.values import Z90
from advisor.operators.attention_kernels import kernels
from benchmarks.accuracy.fitted_tables import LEFT_OUT, UNSEEN_SHAPES, fitted_tables
from benchmarks.accuracy.kernels import ALL, KernelErrors
from research.training import fit_attention as attention
from research.training import fit_recurrent as recurrent
from research.training.attention_tables import read_attention

_DIRECTIONS = ("forward", "backward")

Floats = NDArray[np.float64]


def evaluate(measurements: Path) -> list[KernelErrors]:
    """Of all kernels, by GPU, for unseen shapes and where possible for architectures that were left out.

    Raises:
        FileNotFoundError: a file is missing.
    """
    return [*_attention(measurements), *_recurrent(measurements)]


def _attention(measurements: Path) -> Iterator[KernelErrors]:
    for (backend, is_backward), rows in sorted(attention.by_kernel(read_attention(measurements)).items()):
        kind, shipped = f"{backend} {_DIRECTIONS[is_backward]}", kernels()[backend, is_backward]
        for split, group_of, sigma in (
            (UNSEEN_SHAPES, attention.shape_fold, shipped.sigma),
            (LEFT_OUT, attention.architecture_of, shipped.sigma_unseen),
        ):
            judged = attention.held_out(rows, group_of)
            gpus = [row.gpu.name for row in judged.rows]
            yield from _by_gpu(kind, split, gpus, judged.log_errors, sigma)


def _recurrent(measurements: Path) -> Iterator[KernelErrors]:
    """Only the V100's: of the other boards with older libraries the constants are not (docs/methods)."""
    rates = recurrent.by_rate(
        layer for layer in recurrent.read_layers(measurements) if layer.gpu.architecture == recurrent.FITTED
    )
    for (cores, is_backward), layers in sorted(rates.items()):
        kind = f"recurrent {'fp16' if cores == 'tensor' else 'fp32'} {_DIRECTIONS[is_backward]}"
        errors = np.log(recurrent.unseen(layers)) - np.log([layer.time_s for layer in layers])
        sigma = recurrent.width(layers)
        yield from _by_gpu(kind, UNSEEN_SHAPES, [layer.gpu.name for layer in layers], errors, sigma)


def _by_gpu(
    kind: str, split: str, gpus: Sequence[str], log_errors: Floats, sigma: float
) -> Iterator[KernelErrors]:
    """Of each GPU, then of all: the mean over GPUs, so that a large table is no better than a small one."""
    parts = [
        _errors((kind, gpu, split), log_errors[np.array(gpus) == gpu], sigma) for gpu in dict.fromkeys(gpus)
    ]
    yield from parts
    if parts:
        yield _mean(parts)


def _errors(key: tuple[str, str, str], log_errors: Floats, sigma: float) -> KernelErrors:
    kind, gpu, split = key
    signed = np.expm1(log_errors)
    return KernelErrors(
        kind=kind,
        gpu=gpu,
        split=split,
        rows=len(signed),
        floor_s=None,
        median=float(np.median(np.abs(signed))),
        mean=float(np.abs(signed).mean()),
        p90=float(np.quantile(np.abs(signed), 0.9)),
        bias=float(np.median(signed)),
        coverage=float((np.abs(log_errors) <= Z90 * sigma).mean()),
    )


def _mean(parts: Sequence[KernelErrors]) -> KernelErrors:
    def mean(name: str) -> float:
        return float(np.mean([getattr(part, name) for part in parts]))

    return KernelErrors(
        kind=parts[0].kind,
        gpu=ALL,
        split=parts[0].split,
        rows=sum(part.rows for part in parts),
        floor_s=None,
        median=mean("median"),
        mean=mean("mean"),
        p90=mean("p90"),
        bias=mean("bias"),
        coverage=mean("coverage"),
    )


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--measurements", type=Path, required=True, metavar="DIR")
    parser.add_argument("--out", type=Path, metavar="FILE.md")
    options = parser.parse_args()
    sections = [f"## {title}\n\n{text}" for title, text in fitted_tables(evaluate(options.measurements))]
    page = "\n\n".join([_HEAD, *sections, _SHORT])
    print(page)
    if options.out:
        write_atomically(options.out, f"{page}\n".encode())


_HEAD = """\
# Attention and recurrent layers

Written by `python -m benchmarks.accuracy.fitted`. Absolute errors; the last row of a kernel is the mean over
its GPUs. Sources and what was left out: `research/training/attention_tables.py`,
`research/training/fit_recurrent.py`.

| | constants of attention and of recurrent layers |
|---|---|
| fitted | `catalogs/attention.toml`, `catalogs/recurrent.toml`: to four fifths of the shapes, in turn |
| chose | the form (tiles of 128, how a step's latency grows): by the same tables |
| gave widths | errors of what was held out, every GPU weighing the same |
| fitted to all rows | what a source's timing adds to a call, and its cache's bytes: no part of a prediction |
| only judged | the fifth that was held out; the architecture that was left out |"""

_SHORT = """\
## Short sequences

No sequence of fewer than 128 tokens was measured, so no row above judges them. That a block of such a
sequence starts with fewer rows (`busiest_tiles` in `advisor/operators/attention_kernels.py`) was decided
after seeing published throughput. Without it, that of the Transformer (big) in mixed precision, whose
sequences have about 30 tokens, was predicted 33.1 and 39.9 % too low on the V100s and 19.6 % on the A100;
with it 14.6, 21.5 and 7.5 %. So these published rows no longer judge short sequences."""


if __name__ == "__main__":
    main()
