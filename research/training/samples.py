"""Measured calls of operators, from whatever data set they come: what training learns and accuracy scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from advisor.core.values import Op


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Measured calls, one an element; all sequences have the same length."""

    ops: tuple[Op, ...]
    """What ran, as a profile would record it; equal calls share one value."""
    gpus: NDArray[np.str_]
    """Names of the catalog."""
    time_s: NDArray[np.float64]
    """As measured, launch and event overhead included; the launch alone where a data set is timed on the
    device."""
    kinds: NDArray[np.str_]
    """The data set's own name of the operator, such as ``"linear"``."""
    splits: NDArray[np.str_]
    """``"train"`` or ``"test"``."""
    sources: NDArray[np.str_]
    """Flags of the data sets."""

    def where(self, chosen: NDArray[np.bool_]) -> Samples:
        """The chosen calls, in the same order."""
        return Samples(
            ops=tuple(self.ops[i] for i in np.flatnonzero(chosen)),
            gpus=self.gpus[chosen],
            time_s=self.time_s[chosen],
            kinds=self.kinds[chosen],
            splits=self.splits[chosen],
            sources=self.sources[chosen],
        )

    @staticmethod
    def joined(parts: list[Samples]) -> Samples:
        """All calls of several data sets, one after the other."""
        return Samples(
            ops=tuple(op for part in parts for op in part.ops),
            gpus=np.concatenate([part.gpus for part in parts]),
            time_s=np.concatenate([part.time_s for part in parts]),
            kinds=np.concatenate([part.kinds for part in parts]),
            splits=np.concatenate([part.splits for part in parts]),
            sources=np.concatenate([part.sources for part in parts]),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DataSet:
    """All that training knows of one set of measurements."""

    name: str
    """Whose measurements they are."""
    flag: str
    """Of the command line, without its dashes; names a file or folder."""
    metavar: str
    """What the flag takes, ``FILE`` or ``DIR``."""
    read: Callable[[Path], Samples]
    """That file or folder."""
    cite: Callable[[Samples], str]
    """What the model card says of the samples."""
    is_timed_on_device: bool
    """A call measures its launch and its kernel, and nothing of the host."""
    fits: Mapping[str, str] = field(default_factory=dict)
    """For each kind whose kernels tell a constant of their GPU, that constant."""
    origin: tuple[str, ...] = ()
    """What the constants' file says it was fitted to, in lines."""
