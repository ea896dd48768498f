"""How products are alike in what a GPU differs by from a network, and which 20 tell most of the others.

What is fitted is what networks are off on an architecture that they did not see, on shapes that train:

    python -m research.training --products DIR --network tensor_gemm --fold without:Hopper --out LEFT/Hopper
    python -m research.training.fit_likeness --products DIR --left-out LEFT

``LIKENESS`` of ``advisor/operators/gemm.py`` is the result, and so are its calibration's sizes.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from advisor.core.gpus import load_gpus
from advisor.core.values import Precision
from advisor.operators.family import Likeness
from advisor.operators.gemm import TENSOR_GEMM
from advisor.predict.constants import constants_for
from advisor.predict.knowledge import read_knowledge
from advisor.predict.learned import covariance, learned_times, numbers_of, told
from research.training.product_tables import FORWARD
from research.training.products import read_products
from research.training.samples import Samples
from research.training.tables import in_bursts

Floats = NDArray[np.float64]
_EXACT = Precision(amp_dtype=None, tf32_matmul=False, tf32_cudnn=False)
_NUM_SIZES = 4
# Of a GPU so many draws of so many products are looked at together.
_DRAWS, _DRAWN = 6, 80
# A product that is off by more tells of a slip.
_MOST_OFF = 1.0
_KERNELS, _DESIGNS, _CANDIDATES = 20, 24, 300
# A large GPU does them in milliseconds, and a small one has the memory.
_MOST_FLOPS, _MOST_BYTES = 4e11, 2**29
_ITEM_BYTES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Off:
    """What a network that did not see a GPU's architecture is off there, on N products."""

    gpu: str
    sizes: Floats
    """Logarithms of batch, rows, columns and inner size, [N, 4]."""
    off: Floats
    """Logarithm of measured over predicted, [N]."""


def read_off(products: Path, left_out: Path) -> list[Off]:
    """Of each GPU of the architectures that were left out, on the shapes that train."""
    samples = read_products(products)
    samples = samples.where((samples.splits == "train") & (samples.kinds == FORWARD))
    return [off for folder in sorted(left_out.iterdir()) for off in _of_architecture(samples, folder)]


def _of_architecture(samples: Samples, folder: Path) -> Iterator[Off]:
    knowledge = in_bursts(read_knowledge(folder))
    for gpu in load_gpus().values():
        own = samples.where(samples.gpus == gpu.name)
        if gpu.architecture != folder.name or not own.ops:
            continue
        predicted_s = learned_times(own.ops, gpu, constants_for(gpu, knowledge), _EXACT, knowledge).time_s
        numbers = np.array([numbers_of(op, TENSOR_GEMM) for op in own.ops])
        off = np.clip(np.log(own.time_s / predicted_s), -_MOST_OFF, _MOST_OFF)
        yield Off(gpu=gpu.name, sizes=numbers[:, :_NUM_SIZES], off=off)


def fit(measured: Sequence[Off], *, steps: int = 60, seed: int = 0) -> Likeness:
    """The variances and lengths under which the draws are most likely."""
    rng = np.random.default_rng(seed)
    draws = [
        (torch.tensor(off.sizes[i]), torch.tensor(off.off[i]))
        for off in measured
        for i in (rng.choice(len(off.off), min(_DRAWN, len(off.off)), replace=False) for _ in range(_DRAWS))
    ]
    logs = torch.tensor([math.log(0.01)] * 3 + [math.log(2.0)] * _NUM_SIZES, dtype=torch.float64)
    logs.requires_grad_()
    optimizer = torch.optim.LBFGS([logs], max_iter=steps, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        value = torch.stack([_surprise(logs.exp(), *draw) for draw in draws]).mean()
        value.backward()
        return value

    optimizer.step(loss)
    of_all, of_size, of_call, *lengths = logs.exp().tolist()
    return Likeness(of_all=of_all, of_size=of_size, of_call=of_call, lengths=tuple(lengths))


def _surprise(numbers: torch.Tensor, sizes: torch.Tensor, off: torch.Tensor) -> torch.Tensor:
    """Negative log likelihood of a draw but for a constant, as in ``advisor/predict/learned``."""
    apart = (sizes[:, None] - sizes[None]) / numbers[3:]
    distance = (3 * (apart**2).sum(-1) + 1e-12).sqrt()
    covariances = numbers[0] + numbers[1] * (1 + distance) * torch.exp(-distance)
    factor = torch.linalg.cholesky(covariances + numbers[2] * torch.eye(len(off), dtype=torch.float64))
    white = torch.linalg.solve_triangular(factor, off[:, None], upper=False)
    surprise: torch.Tensor = (white**2).sum() / 2 + factor.diagonal().log().sum()
    return surprise


def sizes_of_calibration(measured: Sequence[Off], likeness: Likeness) -> Floats:
    """Of several designs the 20 sizes that leave least, logarithms, [20, 4]."""
    designs = [_design(measured, likeness, seed) for seed in range(_DESIGNS)]
    return min(designs, key=lambda design: _error_left(measured, likeness, design))


def _design(measured: Sequence[Off], likeness: Likeness, seed: int) -> Floats:
    """One after the other, the size that takes most variance from the products of all GPUs."""
    rng = np.random.default_rng(seed)
    asked, candidates = (
        np.concatenate([rng.permutation(off.sizes)[:_CANDIDATES] for off in measured]) for _ in range(2)
    )
    candidates = candidates[_is_quick(candidates)]
    own, across = covariance(likeness, candidates, candidates), covariance(likeness, asked, candidates)
    chosen: list[int] = []
    for _ in range(_KERNELS):
        left = np.diag(own) + likeness.of_call
        gain = (across**2).sum(axis=0) / left
        gain[chosen] = -1.0
        best = int(gain.argmax())
        chosen.append(best)
        across = across - np.outer(across[:, best], own[best]) / left[best]
        own = own - np.outer(own[:, best], own[best]) / left[best]
    return np.asarray(candidates[chosen])


def _is_quick(sizes: Floats) -> NDArray[np.bool_]:
    batch, rows, columns, inner = np.exp(sizes).T
    num_bytes = _ITEM_BYTES * batch * (rows * inner + inner * columns + rows * columns)
    return np.asarray((2 * batch * rows * columns * inner < _MOST_FLOPS) & (num_bytes < _MOST_BYTES))


def _error_left(measured: Sequence[Off], likeness: Likeness, design: Floats) -> float:
    """Mean absolute error over the GPUs when those nearest to the design were measured."""
    errors = []
    for off in measured:
        near = nearest(likeness, off.sizes, design)
        left = off.off - told(likeness, off.sizes[near], off.off[near], off.sizes).mean
        errors.append(float(np.abs(np.expm1(-left)).mean()))
    return float(np.mean(errors))


def nearest(likeness: Likeness, sizes: Floats, design: Floats) -> list[int]:
    """Of each size of a design, which of N measured ones is most like it; each once.

    Args:
        likeness: by which they are alike.
        sizes: [N, D] logarithms, N at least as many as the design has.
        design: [K, D].
    """
    chosen: list[int] = []
    for wanted in design:
        alike = covariance(likeness, sizes, wanted[None])[:, 0]
        alike[chosen] = -1.0
        chosen.append(int(alike.argmax()))
    return chosen


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--products", type=Path, required=True, metavar="DIR")
    parser.add_argument("--left-out", type=Path, required=True, metavar="DIR")
    options = parser.parse_args()
    measured = read_off(options.products, options.left_out)
    likeness = fit(measured)
    _say(str(likeness))
    for size in sizes_of_calibration(measured, likeness):
        _say(str(tuple(np.rint(np.exp(size)).astype(int).tolist())))


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
