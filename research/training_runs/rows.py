"""All published runs that are described well enough to be predicted."""

from __future__ import annotations

from pathlib import Path

from research.training_runs.intern import intern_runs
from research.training_runs.llamas import titan_runs, vector_runs
from research.training_runs.mosaic import mosaic_runs
from research.training_runs.runs import Run


def all_runs(measurements: Path) -> list[Run]:
    """Of the folder that holds ``third_party`` and ``published``."""
    published = measurements / "published"
    return [
        *mosaic_runs(measurements / "third_party"),
        *titan_runs(published),
        *vector_runs(published),
        *intern_runs(published),
    ]
