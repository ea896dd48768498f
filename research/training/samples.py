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
    """Measured calls, one an element; all sequences have the same length.

    Attributes:
        ops: what ran, as a profile would record it; equal calls share one value.
        gpus: names of the catalog.
        time_s: as measured, launch and event overhead included; the launch alone where a data set is timed on
            the device.
        kinds: the data set's own name of the operator, such as ``"linear"``.
        splits: ``"train"`` or ``"test"``.
        sources: flags of the data sets.
    """

    ops: tuple[Op, ...]
    gpus: NDArray[np.str_]
    time_s: NDArray[np.float64]
    kinds: NDArray[np.str_]
    splits: NDArray[np.str_]
    sources: NDArray[np.str_]

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
    """All that training knows of one set of measurements.

    Attributes:
        name: whose measurements they are.
        flag: of the command line, without its dashes; names a file or folder.
        metavar: what the flag takes, ``FILE`` or ``DIR``.
        read: that file or folder.
        cite: what the model card says of the samples.
        is_timed_on_device: a call measures its launch and its kernel, and nothing of the host.
        fits: for each kind whose kernels tell a constant of their GPU, that constant.
        origin: what the constants' file says it was fitted to, in lines.
    """

    name: str
    flag: str
    metavar: str
    read: Callable[[Path], Samples]
    cite: Callable[[Samples], str]
    is_timed_on_device: bool
    fits: Mapping[str, str] = field(default_factory=dict)
    origin: tuple[str, ...] = ()
