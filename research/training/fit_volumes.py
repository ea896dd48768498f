"""What convolutions of volumes reach: ``VOLUME_RATES`` of ``advisor/operators/convolution.py``.

    python -m research.training.fit_volumes KERNELS

KERNELS is a recording of ``advisor measure`` or of a day with a GPU. NVIDIA's nnU-Net only judges
(research/docs/accuracy/families.md).
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np

from advisor.core.gpus import resolve_gpu
from advisor.formats.recording_files import Measurement, read_recording
from advisor.operators.convolution import CONVOLUTION, VOLUME_RATES, VolumeRates, volumes_s
from advisor.operators.family import wanted_rate
from advisor.predict.constants import constants_for
from advisor.predict.knowledge import shipped
from advisor.predict.roofline import KERNEL_FLOOR_S, roofs_of
from research.training.least_squares import Floats, least_squares


def fitted(kernels: Path) -> tuple[VolumeRates, float, int]:
    """The rates, the log-normal sigma of a kernel, and the number of kernels."""
    recording = read_recording(kernels)
    gpu = resolve_gpu(recording.header.gpu or "")
    constants = constants_for(gpu, shipped())

    def predicted(kernel: Measurement, rates: VolumeRates) -> float | None:
        wanted = wanted_rate(kernel.op, CONVOLUTION, kernel.precision)
        return volumes_s(kernel.op, roofs_of(wanted, CONVOLUTION, gpu, constants), rates)

    volumes = [
        kernel
        for kernel in recording.measurements
        if kernel.op.name.rpartition("::")[2] in CONVOLUTION.names and predicted(kernel, VOLUME_RATES)
    ]
    logs = np.log([kernel.time_s - KERNEL_FLOOR_S for kernel in volumes])

    def residuals(parameters: Floats) -> Floats:
        rates = VolumeRates(**dict(zip(VolumeRates.__slots__, np.exp(parameters).tolist(), strict=True)))
        return np.log([predicted(kernel, rates) for kernel in volumes]) - logs

    found = least_squares(residuals, np.log([0.5, 30.0, 0.7]))
    values = dict(zip(VolumeRates.__slots__, np.exp(found).tolist(), strict=True))
    sigma = math.sqrt(float(np.mean(residuals(found) ** 2)))
    return VolumeRates(**values), sigma, len(volumes)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("kernels", type=Path)
    rates, sigma, number = fitted(parser.parse_args().kernels)
    print(f"{rates}, sigma {sigma:.2f}, {number} kernels")


if __name__ == "__main__":
    main()
