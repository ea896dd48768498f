"""The constants of a GPU before and after it was calibrated."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from advisor.predict.calibration.calibrating import Calibration
from advisor.report.plain import print_lines, print_text
from advisor.report.rows import Format, print_rows, to_json

_COLUMNS = ("Constant", "Before", "After", "Kernels", "Spread")


def print_calibration(calibration: Calibration, path: Path, output: Format) -> None:
    """Constants to stdout."""
    if output is Format.JSON:
        facts = asdict(calibration)
        warnings = facts.pop("warnings")
        print_text(to_json({"calibration": {"path": str(path), **facts}, "warnings": warnings}))
        return
    rows = [
        [fit.name, f"{fit.before:.3f}", f"{fit.after:.3f}", str(fit.num_kernels), f"{fit.spread:.1%}"]
        for fit in calibration.constants
    ]
    print_rows(_COLUMNS, rows, output, right=frozenset(_COLUMNS[1:]))
    if output is Format.TABLE:
        print_lines(f"{calibration.gpu}: written to {path}")
