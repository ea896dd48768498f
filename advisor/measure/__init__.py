"""Measures kernels one by one on this machine's device.

::

    recording = measure(grid(Extent.QUICK), Path("kernels.jsonl"))
"""

from __future__ import annotations

from advisor.measure.calibration_kernels import calibration_kernels
from advisor.measure.grid import FAMILIES, Extent, grid
from advisor.measure.measuring import measure

__all__ = ["FAMILIES", "Extent", "calibration_kernels", "grid", "measure"]
