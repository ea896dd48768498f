"""What a recording of kernels holds, in short."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from advisor.formats.recording_files import Measurement, Recording
from advisor.operators.registry import family_of
from advisor.report.plain import print_text
from advisor.report.rows import Format, print_rows, to_json

_COLUMNS = ("Family", "Kernels", "Shortest", "Longest", "Median spread")


def print_recording(recording: Recording, path: Path, warnings: Sequence[str], output: Format) -> None:
    """A summary by family to stdout."""
    families = by_family(recording)
    if output is Format.JSON:
        body = {"path": str(path), **asdict(recording.header), "drift": recording.drift}
        document = {"recording": body, "families": families, "skipped": dict(reasons(recording))}
        print_text(to_json({**document, "warnings": warnings}))
        return
    rows = [
        [
            family,
            f"{facts['kernels']:,}",
            _microseconds(facts["shortest_s"]),
            _microseconds(facts["longest_s"]),
            f"{facts['median_spread']:.1%}",
        ]
        for family, facts in families.items()
    ]
    print_rows(_COLUMNS, rows, output, right=frozenset(_COLUMNS[1:]))


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


def _microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:,.1f} us"
