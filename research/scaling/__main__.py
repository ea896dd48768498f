"""``python -m research.scaling --measurements DIR [--fit] [--rows]``: efficiencies of several GPUs.

DIR is the folder that holds ``third_party`` and ``published``. With ``--fit`` constants are fitted again;
without it those that ship are judged.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from advisor.predict.exchange.collective_time import ScalingConstants
from research.scaling.cases import Case, judged
from research.scaling.fitting import BOARDS, boards_left_out, fitted
from research.scaling.lambda_boards import lambda_cases
from research.scaling.replicated import dlperf_cases, nvidia_cases
from research.scaling.sharded import fsdp_cases
from research.scaling.tables import link_table, row_table, summary_table


def all_cases(measurements: Path) -> list[Case]:
    """Every row that can be built."""
    third_party, published = measurements / "third_party", measurements / "published"
    return [
        *nvidia_cases(third_party),
        *dlperf_cases(published),
        *fsdp_cases(third_party, published),
        *lambda_cases(published),
    ]


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measurements", type=Path, required=True)
    parser.add_argument("--fit", action="store_true", help="fit the constants again")
    parser.add_argument("--rows", action="store_true", help="print every row")
    arguments = parser.parse_args()
    cases = all_cases(arguments.measurements)
    scaling = fitted(cases) if arguments.fit else ScalingConstants()
    rows = [judged(case, scaling) for case in cases]
    print(f"{scaling}\n\n{summary_table(rows)}")
    boards = boards_left_out([case for case in cases if case.source == BOARDS])
    print(f"\nBoards left out:\n\n{link_table(boards)}")
    if arguments.rows:
        print(f"\n{row_table(rows)}")


if __name__ == "__main__":
    main()
