"""Which measurements a training may see."""

from __future__ import annotations

import numpy as np

from advisor.errors import InputError
from advisor.gpus import resolve_gpu
from advisor.predict.training.samples import Samples

ALL, FIVE, WITHOUT = "all", "five", "without:"
# Of the GPUs with measured iterations only these have a training split of products.
_FIVE = ("P4", "P100-PCIE-16GB", "T4", "V100-PCIE-32GB", "A100-PCIE-40GB")


def chosen(samples: Samples, fold: str) -> Samples:
    """The samples of a fold.

    Args:
        samples: all of them.
        fold: ``all``: every row, which is what ships; ``five``: the training split of P4, P100, T4, V100 and
            A100-40GB, which leaves the A100-80GB unseen; ``without:GPU``: the training split of the others.

    Raises:
        InputError: there is no such fold, or nothing is left.
    """
    in_training = samples.splits == "train"
    if fold == ALL:
        found = samples
    elif fold == FIVE:
        found = samples.where(in_training & np.isin(samples.gpus, _FIVE))
    elif fold.startswith(WITHOUT):
        left_out = resolve_gpu(fold.removeprefix(WITHOUT)).name
        found = samples.where(in_training & (samples.gpus != left_out))
    else:
        raise InputError(f"unknown fold {fold!r}: choose {ALL}, {FIVE} or {WITHOUT}GPU.")
    if not found.ops:
        raise InputError(f"fold {fold!r}: there is nothing to train on.")
    return found
