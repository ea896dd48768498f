"""The constants of a GPU before and after it was calibrated."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from advisor.predict.calibrating import Calibration
from advisor.report.cells import DECIMALS, PLAIN, SHARE
from advisor.report.document import Column, Document, Lines, Row, Table, columns
from advisor.report.words import warnings_json

_COLUMNS = (
    Column("Constant"),
    *columns("Before", "After", kind=DECIMALS),
    Column("Kernels", PLAIN),
    Column("Spread", SHARE),
)


def calibration_document(calibration: Calibration, path: Path) -> Document:
    """Constants, and where they were written."""
    constants = list(map(asdict, calibration.constants))
    facts = {"gpu": calibration.gpu, "source": calibration.source, "constants": constants}
    rows = tuple(
        Row((fit.name, fit.before, fit.after, fit.num_kernels, fit.spread)) for fit in calibration.constants
    )
    return Document(
        facts={"calibration": {"path": str(path), **facts}, **warnings_json(calibration.warnings)},
        blocks=(
            Table(columns=_COLUMNS, rows=rows),
            Lines((f"{calibration.gpu}: written to {path}",)),
        ),
    )
