"""Types of the compiled module; ``reference.py`` says what the functions do."""

import numpy as np
from numpy.typing import NDArray

from advisor.native.arrays import GpuArrays, KernelArrays, Queue, Unlaunchable, WaveForm

def count_resident_blocks(kernels: KernelArrays, gpus: GpuArrays) -> NDArray[np.int64]: ...
def scale_kernels(
    kernels: KernelArrays,
    origin: GpuArrays,
    destinations: GpuArrays,
    *,
    form: WaveForm = ...,
    unlaunchable: Unlaunchable = ...,
) -> NDArray[np.float64]: ...
def simulate_queue(queue: Queue) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...
