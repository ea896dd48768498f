"""Fit what collectives reach of links and networks to published times.

    python -m research.training.fit_collectives --tensor-cores ../shared/measurements/tensor_cores \
        --published ../shared/measurements/published --out catalogs/collectives.toml

What ships is fitted to all rows that may fit. How far it is off is learned from rows that were held out
(``research/training/judge_collectives.py``); the tables of those errors are printed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from advisor.core.files import write_atomically
from research.training.collective_fit import fit_of
from research.training.collective_page import page, rendered
from research.training.collective_tables import read_collectives, read_judges
from research.training.judge_collectives import judged, spread_of


def main(say: Callable[[str], object] = print) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tensor-cores", type=Path, required=True, metavar="DIR")
    parser.add_argument("--published", type=Path, required=True, metavar="DIR")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="collectives.toml")
    options = parser.parse_args()
    try:
        rows = read_collectives(options.tensor_cores, options.published)
        judges = read_judges(options.published)
    except FileNotFoundError as error:
        parser.error(f"no {error.filename}: name the folders of measurements.")
    fit = fit_of([row for row in rows if row.fits])
    trials = list(judged(rows))
    spread = spread_of(trials)
    write_atomically(options.out, rendered(fit, spread).encode())
    say(page(fit, spread, trials, judges))


if __name__ == "__main__":
    main()
