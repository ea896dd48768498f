"""What a recording of kernels holds, in short."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from advisor.core.findings import Finding
from advisor.formats.recording_files import Measurement, Recording
from advisor.operators.registry import family_of
from advisor.report.cells import COUNT, MICROSECONDS, SHARE
from advisor.report.document import Column, Document, Row, Table, columns
from advisor.report.words import warnings_json

_COLUMNS = (
    Column("Family"),
    Column("Kernels", COUNT),
    *columns("Shortest", "Longest", kind=MICROSECONDS),
    Column("Median spread", SHARE),
)


def recording_document(recording: Recording, path: Path, warnings: Sequence[Finding]) -> Document:
    """A summary by family."""
    families = by_family(recording)
    body = {"path": str(path), **asdict(recording.header), "drift": recording.drift}
    facts = {"recording": body, "families": families, "skipped": dict(reasons(recording))}
    rows = tuple(Row((family, *figures.values())) for family, figures in families.items())
    return Document(facts={**facts, **warnings_json(warnings)}, blocks=(Table(columns=_COLUMNS, rows=rows),))


def by_family(recording: Recording) -> Mapping[str, Mapping[str, float]]:
    """Number, extremes and median spread of the kernels of each family, the largest family first."""
    groups: dict[str, list[Measurement]] = {}
    for kernel in recording.measurements:
        groups.setdefault(family_of(kernel.op).word, []).append(kernel)
    return {
        family: {
            "kernels": len(kernels),
            "shortest_s": min(kernel.time_s for kernel in kernels),
            "longest_s": max(kernel.time_s for kernel in kernels),
            "median_spread": statistics.median(kernel.spread for kernel in kernels),
        }
        for family, kernels in sorted(groups.items(), key=lambda item: -len(item[1]))
    }


def reasons(recording: Recording) -> list[tuple[str, int]]:
    """Why cases were left out, the most frequent reason first."""
    return Counter(entry.reason for entry in recording.skipped).most_common()


def skipped_lines(recording: Recording) -> list[str]:
    """The same in words."""
    return [f"{count} left out: {reason}" for reason, count in reasons(recording)]
