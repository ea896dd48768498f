"""Small tables of measured calls for tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from advisor.core.values import Op
from research.training.samples import Samples
from tests.builders import make_op

OP = make_op("aten::add.Tensor")


def make_samples(rows: Sequence[tuple[str, str, str, float]], ops: Sequence[Op] | None = None) -> Samples:
    """Rows of GPU, kind, split and seconds; of one operator unless said otherwise."""
    return Samples(
        ops=tuple(ops) if ops is not None else (OP,) * len(rows),
        gpus=np.array([row[0] for row in rows], dtype=np.str_),
        kinds=np.array([row[1] for row in rows], dtype=np.str_),
        sources=np.array(["recording" if row[1].startswith("recorded ") else "kernels" for row in rows]),
        splits=np.array([row[2] for row in rows], dtype=np.str_),
        time_s=np.array([row[3] for row in rows], dtype=float),
    )
