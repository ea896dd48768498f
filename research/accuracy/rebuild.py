"""Train again the weights that docs/accuracy was written with: four minutes each, on one core.

    python -m research.accuracy.rebuild --kernels ../shared/measurements/kernels

Only hashes and results are committed. ``folds/GROUP/SHA256SUMS`` lists the files of each training; those that
are there already are kept. Then run the command that research/docs/accuracy/report.md names.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from advisor.core.errors import AdvisorError
from benchmarks.accuracy.knowledge_files import check_hashes, folders_of, is_complete
from research.training.folds import WITHOUT

FOLDS = Path(__file__).with_name("folds")
_SEED = "seed-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """One call of ``python -m research.training``."""

    fold: str
    seed: int
    out: Path


def trainings(folds: Path = FOLDS) -> Iterator[Training]:
    """What the lists of hashes name: ``without/GPU`` or ``FOLD/seed-N``."""
    for group in sorted(path.parent for path in folds.glob("*/SHA256SUMS")):
        for name in folders_of(group):
            seed = name.removeprefix(_SEED)
            if seed == name:
                yield Training(fold=f"{WITHOUT}{name}", seed=0, out=group / name)
            else:
                yield Training(fold=group.name, seed=int(seed), out=group / name)


def rebuild(train: Callable[[Training], None], *, folds: Path = FOLDS, jobs: int = 1) -> None:
    """Train what is missing, then hold all files against their hashes.

    Args:
        train: writes the files of one training.
        folds: the folder of the groups.
        jobs: trainings at a time.

    Raises:
        InputError: a training gave other files than those of the recorded results.
    """
    missing = [each for each in trainings(folds) if not is_complete(each.out)]
    with ThreadPoolExecutor(jobs) as pool:
        for _ in pool.map(train, missing):
            pass
    for group in sorted(path.parent for path in folds.glob("*/SHA256SUMS")):
        check_hashes(group)


def _run(each: Training, kernels: Path) -> None:
    options = [
        "--kernels",
        str(kernels),
        "--fold",
        each.fold,
        "--seed",
        str(each.seed),
        "--out",
        str(each.out),
    ]
    subprocess.run([sys.executable, "-m", "research.training", *options], check=True)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernels", type=Path, required=True, metavar="DIR", help="measured operators")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="trainings at a time")
    options = parser.parse_args()
    try:
        rebuild(partial(_run, kernels=options.kernels), jobs=options.jobs)
    except AdvisorError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)


if __name__ == "__main__":
    main()
