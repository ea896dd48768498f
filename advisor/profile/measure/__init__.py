"""Measures kernels one by one on this machine's device.

::

    recording = measure(grid(Extent.QUICK), Path("kernels.jsonl"))
"""

from __future__ import annotations

from advisor.profile.measure.calibration_kernels import calibration_kernels
from advisor.profile.measure.grid import FAMILIES, Extent, grid
from advisor.profile.measure.session import measure

__all__ = ["FAMILIES", "Extent", "calibration_kernels", "grid", "measure"]
