"""What a GPU keeps of its speed when its power is limited, from published epochs (Zeus, NSDI'23, Apache-2.0).

    python -m benchmarks.power_limits --published ../shared/measurements/published

A job that draws nearly all the power that a board allows slows down when it allows less: the rate goes with
a root of the limit. Nothing that ships rests on it. It tells what to expect of a board such as Meta's H100 of
500 W, whose published runs are predicted as those of one of 700 W.
"""

from __future__ import annotations

import argparse
import csv
import math
import statistics
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

FILE = "zeus_nsdi23_epoch_time_power.csv"
# Of the highest limit: what a job draws that the limit holds back, and the least limit that counts. Below,
# clocks fall to where voltage does not.
_BUSY, _LEAST = 0.9, 0.65
_META, _USUAL = 500.0, 700.0

_JOB = ("gpu", "dataset", "model", "batch_size", "optimizer")

Epochs = Mapping[float, tuple[float, float]]
"""By power limit in watts: seconds of an epoch, and watts that were drawn."""


def exponents(published: Path) -> dict[str, float]:
    """By GPU the power of the limit that its rate goes with: the median over jobs that it holds back."""
    jobs: dict[tuple[str, ...], dict[float, tuple[float, float]]] = defaultdict(dict)
    with (published / FILE).open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            job = tuple(row[column] for column in _JOB)
            measured = float(row["time_per_epoch_s"]), float(row["average_power_w"])
            jobs[job][float(row["power_limit_w"])] = measured
    highest = {job[0]: 0.0 for job in jobs}
    for job, epochs in jobs.items():
        highest[job[0]] = max(highest[job[0]], *epochs)
    found: dict[str, list[float]] = defaultdict(list)
    for job, epochs in jobs.items():
        found[job[0]] += _of_job(epochs, highest[job[0]])
    return {gpu: statistics.median(of_gpu) for gpu, of_gpu in sorted(found.items()) if of_gpu}


def _of_job(epochs: Epochs, highest_w: float) -> list[float]:
    if highest_w not in epochs or epochs[highest_w][1] < _BUSY * highest_w:
        return []
    full_s = epochs[highest_w][0]
    return [
        math.log(full_s / time_s) / math.log(limit_w / highest_w)
        for limit_w, (time_s, _) in epochs.items()
        if _LEAST * highest_w <= limit_w < highest_w
    ]


def kept(exponent: float, limit_w: float, usual_w: float) -> float:
    """Of the rate at the usual limit.

    >>> kept(0.5, 100.0, 400.0)
    0.5
    """
    return math.pow(limit_w / usual_w, exponent)


def main() -> None:
    """Print the exponents, and what a board of 500 of 700 W would keep by them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--published", type=Path, required=True)
    for gpu, exponent in exponents(parser.parse_args().published).items():
        print(f"{gpu}: {exponent:.2f}, so {kept(exponent, _META, _USUAL):.2f} at {_META:g} of {_USUAL:g} W")


if __name__ == "__main__":
    main()
