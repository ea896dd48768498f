"""Measures kernels one by one on this machine's device.

::

    recording = measure(grid(Extent.QUICK), Path("kernels.jsonl"))
"""

from advisor.measure.measuring import Extent, calibration_kernels, grid, measure

__all__ = ["Extent", "calibration_kernels", "grid", "measure"]
