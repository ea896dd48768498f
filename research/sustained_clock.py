"""What GPUs keep under load of the rate of bursts: ``sustained_clock`` of the assumed constants.

    python -m research.sustained_clock --products FILE

The file is ``tensor_cores/gemm_tensor_cores.csv.gz``: products that ran as a burst of a few calls, and the
same repeated for 0.3 to 1 s with the board's power sampled. Near the power limit boards lower their clocks.
Kernels that memory binds do not show it.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from advisor.core.gpus import load_gpus

if TYPE_CHECKING:
    import pandas as pd

_KEY = ["gpu", "framework", "weights", "kernel", "batch", "m", "n", "k"]
# Kernels of at least this at their peak, and twice as long in compute as in memory, follow the clock.
_LEAST_S, _LEAST_INTENSITY = 30e-6, 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SustainedClock:
    """Burst time over sustained time of one GPU's products: its median and where 80 % of them lie."""

    gpu: str
    architecture: str
    products: int
    low: float
    median: float
    high: float
    power_w: float


def sustained_clocks(table: pd.DataFrame) -> list[SustainedClock]:
    """By GPU; bursts and repetitions of the same framework, weights and sizes are compared."""
    bursts = table[table.sustained == 0].groupby(_KEY).time_us.median().rename("burst_us").reset_index()
    pairs = table[table.sustained == 1].merge(bursts, on=_KEY)
    clocks = []
    for name, own in pairs.groupby("gpu"):
        gpu = load_gpus()[str(name)]
        flops = 2.0 * own.batch * own.m * own.n * own.k
        num_bytes = 2.0 * own.batch * (own.m * own.k + own.k * own.n + own.m * own.n)
        compute_s, memory_s = flops / gpu.tensor_flops_per_s["bf16"], num_bytes / gpu.memory_bytes_per_s
        own = own[(compute_s >= _LEAST_S) & (compute_s >= _LEAST_INTENSITY * memory_s)]
        kept = own.burst_us / own.time_us
        low, median, high = np.quantile(kept, [0.1, 0.5, 0.9]).tolist()
        clocks.append(
            SustainedClock(
                gpu=gpu.name,
                architecture=gpu.architecture,
                products=len(own),
                low=low,
                median=median,
                high=high,
                power_w=float(own.power_w.median()),
            )
        )
    return clocks


def main() -> None:
    """Command line."""
    import pandas as pd

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--products", type=Path, required=True, metavar="FILE")
    print("| GPU | architecture | products | p10 | median | p90 | W |\n|---|---|---|---|---|---|---|")
    for one in sustained_clocks(pd.read_csv(parser.parse_args().products)):
        ratios = f"{one.low:.2f} | {one.median:.2f} | {one.high:.2f}"
        print(f"| {one.gpu} | {one.architecture} | {one.products} | {ratios} | {one.power_w:.0f} |")


if __name__ == "__main__":
    main()
