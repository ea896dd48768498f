"""Which measurements a training may see."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from advisor.core.errors import InputError
from advisor.core.gpus import load_gpus, resolve_gpu
from advisor.core.values import Op
from research.training.drawn import fraction_of
from research.training.samples import Samples

ALL, FIVE, UNSEEN_DIMS, WITHOUT = "all", "five", "unseen-dims", "without:"
# The part of the shapes that UNSEEN_DIMS holds out.
HELD_OUT_SHARE = 0.15
# Of the GPUs with measured iterations only these have a training split of products.
_FIVE = ("P4", "P100-PCIE-16GB", "T4", "V100-PCIE-32GB", "A100-PCIE-40GB")


def chosen(samples: Samples, fold: str) -> Samples:
    """The samples of a fold.

    Args:
        samples: all of them.
        fold: ``all``: the training split, which is what ships; ``five``: that of P4, P100, T4, V100 and
            A100-40GB, which leaves the A100-80GB unseen; ``unseen-dims``: the training split but for the
            shapes of ``held_out``; ``without:GPU`` or ``without:ARCHITECTURE``: the training split of the
            others.

    Raises:
        InputError: there is no such fold, or nothing is left.
    """
    in_training = samples.splits == "train"
    if fold == ALL:
        part = samples.where(in_training)
    elif fold == FIVE:
        part = samples.where(in_training & np.isin(samples.gpus, _FIVE))
    elif fold == UNSEEN_DIMS:
        part = samples.where(in_training & ~_is_held_out(samples))
    elif fold.startswith(WITHOUT):
        left_out = _left_out(fold.removeprefix(WITHOUT))
        part = samples.where(in_training & ~np.isin(samples.gpus, left_out))
    else:
        raise InputError(
            f"unknown fold {fold!r}: choose {ALL}, {FIVE}, {UNSEEN_DIMS} or {WITHOUT}GPU or ARCHITECTURE."
        )
    if not part.ops:
        raise InputError(f"fold {fold!r}: there is nothing to train on.")
    return part


def _left_out(name: str) -> list[str]:
    """The GPUs of an architecture, or the one of that name."""
    alike = [gpu.name for gpu in load_gpus().values() if gpu.architecture == name]
    return alike or [resolve_gpu(name).name]


def held_out(samples: Samples) -> Samples:
    """What ``unseen-dims`` is scored on: 15 % of the shapes of the training split, the same on every GPU.

    Operators of equal shapes are held out together, and only within one split: the splits ran in different
    states of the boards, which no model of shapes can tell.
    """
    return samples.where((samples.splits == "train") & _is_held_out(samples))


def _is_held_out(samples: Samples) -> NDArray[np.bool_]:
    distinct = {id(op): op for op in samples.ops}
    drawn = {key: _fraction(op) < HELD_OUT_SHARE for key, op in distinct.items()}
    return np.array([drawn[id(op)] for op in samples.ops], dtype=bool)


def _fraction(op: Op) -> float:
    """A number in [0, 1) that only the call's shapes decide, however many operands have the same."""
    shapes = dict.fromkeys(tensor.shape for tensor in (*op.inputs, *op.outputs))
    return fraction_of(repr(list(shapes)))
