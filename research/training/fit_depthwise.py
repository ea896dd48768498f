"""What an SM does in a cycle of convolutions whose groups are narrow, depthwise ones above all.

    python -m research.training.fit_depthwise KERNELS

KERNELS is a recording of ``advisor measure`` or of a day with a GPU. The rate of each pass and kind is
the geometric mean of its shapes.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from advisor.core.gpus import resolve_gpu
from advisor.formats.recording_files import read_recording
from advisor.operators.convolution import narrow_call
from advisor.predict.roofline import KERNEL_FLOOR_S

Rates = Mapping[tuple[int, bool], tuple[float, ...]]


def rates_of(kernels: Path) -> tuple[Rates, float]:
    """By kind of kernel: forward, of the input's gradient, of the weight's; and the shapes' sigma."""
    recording = read_recording(kernels)
    gpu = resolve_gpu(recording.header.gpu or "")
    logs: dict[tuple[int, bool], tuple[list[float], list[float], list[float]]] = defaultdict(
        lambda: ([], [], [])
    )
    for kernel in recording.measurements:
        call = narrow_call(kernel.op)
        if call is None or (call.gives_data and call.gives_weights):
            continue
        kind = call.narrow_kind
        if (kind[0] == 2 and not call.is_channels_last) or kind == (4, False):
            continue
        cycles = (kernel.time_s - KERNEL_FLOOR_S) * gpu.num_sms * gpu.boost_clock_hz
        which = 1 if call.gives_data else 2 if call.gives_weights else 0
        logs[kind][which].append(math.log(call.taps_met / cycles))
    means = {kind: [statistics.fmean(each) for each in passes] for kind, passes in logs.items()}
    left = [
        value - mean
        for kind, passes in logs.items()
        for each, mean in zip(passes, means[kind], strict=True)
        for value in each
    ]
    rates = {kind: tuple(round(math.exp(mean), 1) for mean in each) for kind, each in means.items()}
    return rates, round(math.sqrt(statistics.fmean(each**2 for each in left)), 2)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernels", type=Path)
    print(*rates_of(parser.parse_args().kernels))


if __name__ == "__main__":
    main()
