"""Predictions beside the best MLPerf submissions of one node: nobody's script should be said to beat them.

    python -m research.mlperf_floor --published DIR --out research/docs/accuracy/mlperf.md

Submissions are tuned by the vendors for months, so their time is a lower bound of what a plain PyTorch script
takes. ResNet-50 v1.5 in mixed precision is compared, image for image, as our example trains it. Rates are
derived from logs of MLPerf Training v0.7 to v4.1 (Apache-2.0) and not verified by MLCommons Association.
"""

from __future__ import annotations

import argparse
import re
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.core.errors import UnknownGpuError
from advisor.core.files import write_atomically
from advisor.core.gpus import resolve_gpu
from advisor.predict.iteration import predict
from research.published import CASES
from research.training.published_rows import published_rows

if TYPE_CHECKING:
    from advisor.core.values import Trace

FILE = "mlperf_training_v0.7_to_v5.1.csv.gz"
BATCH_SIZE = 256
# A prediction may be this much faster than the best submission.
TOLERANCE = 1.1
_IN_BRACKETS = re.compile(r"\s*\(.*\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """The best of a GPU."""

    images_per_s: float
    """Of each of its GPUs."""
    num_gpus: int
    submitter: str
    framework: str
    mlperf_round: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """The best submission on a GPU and what one such GPU is predicted to do, images a second."""

    gpu: str
    best: Submission
    predicted: float
    predicted_p10: float

    @property
    def ratio(self) -> float:
        """Above 1 where the script is said to be faster than the best submission."""
        return self.predicted / self.best.images_per_s


def best_submissions(published: Path) -> Mapping[str, Submission]:
    """By GPU of the catalog; rows that do not tell which of its forms it was are left out.

    Raises:
        FileNotFoundError: the file is missing.
    """
    best: dict[str, Submission] = {}
    for row in published_rows(published / FILE):
        submission = _submission(row)
        gpu = None if submission is None else _gpu(row["gpu"])
        if submission is None or gpu is None:
            continue
        if gpu not in best or submission.images_per_s > best[gpu].images_per_s:
            best[gpu] = submission
    return best


def _submission(row: Mapping[str, str]) -> Submission | None:
    """One node's ResNet whose rate nothing puts in doubt."""
    if row["benchmark"] != "resnet" or row["check_flag"] or not row["samples_per_s"]:
        return None
    if not row["num_nodes"] or float(row["num_nodes"]) != 1 or not row["num_gpus"]:
        return None
    num_gpus = int(float(row["num_gpus"]))
    return Submission(
        images_per_s=float(row["samples_per_s"]) / num_gpus,
        num_gpus=num_gpus,
        submitter=row["submitter"],
        framework=row["framework"].split(",")[0].strip(),
        mlperf_round=row["round"],
    )


def _gpu(text: str) -> str | None:
    try:
        return resolve_gpu(_IN_BRACKETS.sub("", text)).name
    except UnknownGpuError:
        return None


def resnet_50() -> Trace:
    """Our example with autocast and in channels last, as the published throughputs have it.

    Raises:
        ProfileError: it cannot be profiled here.
    """
    return next(case for case in CASES if case.name == "ResNet-50 AMP-FP16").build()


def floors(published: Path, build: Callable[[], Trace] = resnet_50) -> Iterator[Floor]:
    """Each GPU with a submission, the nearest to its best first.

    Raises:
        FileNotFoundError: the file is missing.
    """
    trace = build()
    rows = []
    for gpu, best in best_submissions(published).items():
        step_s = predict(trace, resolve_gpu(gpu)).iteration_s
        rows.append(
            Floor(
                gpu=gpu, best=best, predicted=BATCH_SIZE / step_s.p50, predicted_p10=BATCH_SIZE / step_s.p90
            )
        )
    yield from sorted(rows, key=lambda row: -row.ratio)


_HEAD = """# Beside MLPerf

Written by `python -m research.mlperf_floor --published DIR --out research/docs/accuracy/mlperf.md`.

The best submission to MLPerf Training (v0.7 to v4.1) on one node and, of one such GPU, what our ResNet-50
example is predicted to do with autocast, in channels last. Vendors tune for months, so a prediction that
beats one by more than 10 % is wrong. Rates are derived from the submitted logs, per GPU; they are not
verified by MLCommons Association.

These rows fitted and chose nothing. Submissions of BERT do not tell how long its sequences are, and drop
their padding; other networks are not among our examples. The RTX 4090 was submitted with tinygrad alone,
which no vendor tuned, and is no floor.
"""


def page(rows: Sequence[Floor]) -> str:
    """Markdown: how many keep the floor, and each GPU."""
    kept, median = sum(row.ratio <= TOLERANCE for row in rows), statistics.median(row.ratio for row in rows)
    lines = [
        _HEAD,
        f"{kept} of {len(rows)} GPUs keep the floor; the median is at {median:.2f} of the best submission.",
        "",
        "| GPU | best images/s a GPU | of | submitter, round, framework | predicted (p10) | of the best |",
        "|---|---|---|---|---|---|",
        *(
            f"| {row.gpu} | {row.best.images_per_s:,.0f} | {row.best.num_gpus} |"
            f" {row.best.submitter}, {row.best.mlperf_round}, {row.best.framework} |"
            f" {row.predicted:,.0f} ({row.predicted_p10:,.0f}) | {row.ratio:.2f} |"
            for row in rows
        ),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--published", type=Path, required=True, metavar="DIR")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.md")
    options = parser.parse_args()
    try:
        rows = list(floors(options.published))
    except FileNotFoundError as error:
        parser.error(f"no {error.filename}: name the folder of published measurements.")
    write_atomically(options.out, page(rows).encode())


if __name__ == "__main__":
    main()
