"""Measured calls of operators, from whatever folder they come: what training learns and accuracy scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from advisor.core.values import Op

# How the kinds of advisor measure's recordings begin: timed on the device, which the host was ahead of.
RECORDED = "recorded "


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Measured calls, one an element; all sequences have the same length.

    Attributes:
        ops: what ran, as a profile would record it; equal calls share one value.
        gpus: names of the catalog.
        time_s: as measured, launch and event overhead included; of recorded kinds the launch alone.
        kinds: the recording's own name of the operator, such as ``"linear"``.
        splits: ``"train"`` or ``"test"``.
    """

    ops: tuple[Op, ...]
    gpus: NDArray[np.str_]
    time_s: NDArray[np.float64]
    kinds: NDArray[np.str_]
    splits: NDArray[np.str_]

    @property
    def is_recorded(self) -> NDArray[np.bool_]:
        """Which calls are of recordings, [N]."""
        return np.asarray(np.char.startswith(self.kinds, RECORDED))

    def where(self, chosen: NDArray[np.bool_]) -> Samples:
        """The chosen calls, in the same order."""
        return Samples(
            ops=tuple(self.ops[i] for i in np.flatnonzero(chosen)),
            gpus=self.gpus[chosen],
            time_s=self.time_s[chosen],
            kinds=self.kinds[chosen],
            splits=self.splits[chosen],
        )

    @staticmethod
    def joined(parts: list[Samples]) -> Samples:
        """All calls of several recordings, one recording after the other."""
        return Samples(
            ops=tuple(op for part in parts for op in part.ops),
            gpus=np.concatenate([part.gpus for part in parts]),
            time_s=np.concatenate([part.time_s for part in parts]),
            kinds=np.concatenate([part.kinds for part in parts]),
            splits=np.concatenate([part.splits for part in parts]),
        )
