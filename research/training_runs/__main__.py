"""``python -m research.training_runs --measurements DIR [--out FILE.md]``: published runs and predictions.

DIR is the folder that holds ``third_party`` and ``published``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from advisor.core.files import write_atomically
from research.training_runs.judged import judged
from research.training_runs.page import page, summaries
from research.training_runs.recipes import recorded
from research.training_runs.rows import all_runs


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measurements", type=Path, required=True, metavar="DIR")
    parser.add_argument("--out", type=Path, metavar="FILE.md")
    options = parser.parse_args()
    rows = [judged(run, recorded) for run in all_runs(options.measurements)]
    print("\n\n".join(summaries(rows)))
    if options.out:
        write_atomically(options.out, page(rows).encode())


if __name__ == "__main__":
    main()
