"""Types of the compiled module; what the functions do is told in ``reference.py``."""

import numpy as np
from numpy.typing import NDArray

from advisor.native.arrays import GpuArrays, KernelArrays, Unlaunchable, WaveForm

def count_resident_blocks(kernels: KernelArrays, gpus: GpuArrays) -> NDArray[np.int64]: ...
def scale_kernels(
    kernels: KernelArrays,
    origin: GpuArrays,
    destinations: GpuArrays,
    *,
    form: WaveForm = ...,
    unlaunchable: Unlaunchable = ...,
) -> NDArray[np.float64]: ...
