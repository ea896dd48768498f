"""How much longer a step takes where power is limited, from published epochs (Zeus, NSDI'23, Apache-2.0).

    python -m research.power_limits --published ../shared/measurements/published

A job that draws nearly all that a board allows slows down when it allows less: by
``1 + FACTOR (board / limit - 1)^POWER``. That is what
``advisor/predict/constants.py`` takes for what cores bind.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from advisor.predict.constants import FACTOR, POWER
from advisor.predict.utilization import SIGMA_SHARE
from research.training.least_squares import Floats, least_squares
from research.training.published_rows import published_rows

FILE = "zeus_nsdi23_epoch_time_power.csv"
# Of the highest limit: what a job draws that the limit holds back, and the least limit that counts. Below,
# an A40's clocks fall to their floor.
_BUSY, _LEAST = 0.9, 0.35
_JOB = ("gpu", "dataset", "model", "batch_size", "optimizer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limited:
    """An epoch under a limit, beside the same under the highest one."""

    gpu: str
    share: float
    """Of the highest limit."""
    slowdown: float
    """By which the epoch takes longer."""


def limited_epochs(published: Path) -> list[Limited]:
    """The epochs of jobs that draw all they may, under each lower limit."""
    jobs: dict[tuple[str, ...], dict[float, tuple[float, float]]] = defaultdict(dict)
    for row in published_rows(published / FILE):
        job = tuple(row[column] for column in _JOB)
        measured = float(row["time_per_epoch_s"]), float(row["average_power_w"])
        jobs[job][float(row["power_limit_w"])] = measured
    highest = {job[0]: 0.0 for job in jobs}
    for job, epochs in jobs.items():
        highest[job[0]] = max(highest[job[0]], *epochs)
    return [epoch for job, epochs in jobs.items() for epoch in _of_job(job[0], epochs, highest[job[0]])]


def _of_job(gpu: str, epochs: Mapping[float, tuple[float, float]], highest_w: float) -> Iterator[Limited]:
    if highest_w not in epochs or epochs[highest_w][1] < _BUSY * highest_w:
        return
    full_s = epochs[highest_w][0]
    for limit_w, (time_s, _) in sorted(epochs.items()):
        if _LEAST * highest_w <= limit_w < highest_w:
            yield Limited(gpu=gpu, share=limit_w / highest_w, slowdown=time_s / full_s)


def fitted(epochs: Sequence[Limited]) -> tuple[float, float]:
    """``FACTOR`` and ``POWER`` that tell these slowdowns best."""
    factor, power = least_squares(lambda law: _off(epochs, law), np.array([0.5, 2.0]))
    return float(factor), float(power)


def _off(epochs: Sequence[Limited], law: Floats) -> Floats:
    """By how much, in logarithms, epochs are slower than the law says, [N]."""
    slowdowns = np.array([epoch.slowdown for epoch in epochs])
    return np.log(slowdowns) - np.log(_slowdowns(epochs, law))


def _slowdowns(epochs: Sequence[Limited], law: Floats) -> Floats:
    missing = 1 / np.array([epoch.share for epoch in epochs]) - 1
    told: Floats = 1 + law[0] * missing ** law[1]
    return told


def scatter(epochs: Sequence[Limited], factor: float, power: float) -> float:
    """Of the log of a slowdown, as a share of it."""
    law = np.array([factor, power])
    off, told = _off(epochs, law), np.log(_slowdowns(epochs, law))
    return float(np.sqrt((off**2).sum() / (told**2).sum()))


def main() -> None:
    """Print the law by board and of all, what it leaves unexplained, and what ships."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--published", type=Path, required=True)
    epochs = limited_epochs(parser.parse_args().published)
    parts = {gpu: [one for one in epochs if one.gpu == gpu] for gpu in sorted({one.gpu for one in epochs})}
    for name, part in {**parts, "all": epochs}.items():
        factor, power = fitted(part)
        print(
            f"{name}: {len(part)} epochs, 1 + {factor:.2f} (board / limit - 1)^{power:.2f}, so"
            f" {1 + factor * 0.4**power:.2f} at 5/7 of the power; scatter {scatter(part, factor, power):.2f}"
        )
    print(f"ships: {FACTOR:g}, {POWER:g}, scatter {SIGMA_SHARE:g}")


if __name__ == "__main__":
    main()
