"""Waits in a cluster's queue as tables and JSON (docs/json.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from advisor.core.units import format_duration, format_duration_short
from advisor.core.values import Quantiles
from advisor.report.plain import print_lines, print_text
from advisor.report.rows import Format, print_rows, to_json
from recommender.queue.fitted import WaitBin, WaitQuantiles, basis
from recommender.queue.foresight import QueueCheck, Score

BIN_COLUMNS = ("Size", "Walltime", "Queue", "Jobs", "Wait p50", "Wait p90")
CHECK_COLUMNS = ("Quantiles", "Covers p50", "Covers p90", "Pinball p50", "Pinball p90")
ANY = "any"
NO_WAIT = "0 s"  # logs count whole seconds


def print_fit(found: WaitQuantiles, output: Format) -> None:
    """Every bin with enough jobs."""
    if output is Format.JSON:
        print_text(to_json(asdict(found)))
        return
    rows = [_bin_row(one) for one in found.bins]
    print_rows(BIN_COLUMNS, rows, output, right=frozenset(BIN_COLUMNS[3:]))


def print_wait(alike: WaitBin, size_unit: str, warnings: Sequence[str], output: Format) -> None:
    """The wait of one kind of job, and what it rests on."""
    if output is Format.JSON:
        wait_s = Quantiles(p50=alike.p50_s, p90=alike.p90_s)
        based_on = {"size": alike.size, "walltime": alike.walltime, "queue": alike.queue}
        body = {"wait_s": asdict(wait_s), "jobs": alike.num_jobs, "size_unit": size_unit}
        print_text(to_json({**body, "based_on": based_on, "warnings": warnings}))
    elif output is Format.TABLE:
        wait = f"{_in_words(alike.p50_s)}, 9 of 10 within {_in_words(alike.p90_s)}"
        print_lines(f"half of the jobs wait up to {wait} ({basis(alike, size_unit)})")
    else:
        print_rows(BIN_COLUMNS, [_bin_row(alike)], output)


def print_check(found: QueueCheck, output: Format) -> None:
    """Coverage and pinball loss beside those of the global quantiles."""
    if output is Format.JSON:
        scores = {
            "coverage": found.foreseen.coverage,
            "pinball": found.foreseen.pinball,
            "uncorrected_coverage": found.uncorrected.coverage,
            "uncorrected_pinball": found.uncorrected.pinball,
            "baseline_coverage": found.baseline.coverage,
            "baseline_pinball": found.baseline.pinball,
        }
        counts = {"jobs": found.num_jobs, "jobs_checked": found.num_checked}
        print_text(to_json({**counts, **{name: asdict(score) for name, score in scores.items()}}))
        return
    rows = [_score_row("by size, walltime and queue, corrected", found.foreseen)]
    rows += [_score_row("the same, uncorrected", found.uncorrected)]
    rows += [_score_row("of all jobs", found.baseline)]
    print_rows(CHECK_COLUMNS, rows, output, right=frozenset(CHECK_COLUMNS[1:]))
    if output is Format.TABLE:
        print_lines(
            f"{found.num_checked:,} of {found.num_jobs:,} jobs checked, the last. Pinball in log minutes."
        )


def _bin_row(one: WaitBin) -> list[str]:
    kind = [ANY if name is None else name for name in one.key]
    waits = [_short(seconds) for seconds in (one.p50_s, one.p90_s)]
    return [*kind, f"{one.num_jobs:,}", *waits]


def _in_words(wait_s: float) -> str:
    return NO_WAIT if wait_s < 1 else format_duration(wait_s)


def _short(wait_s: float) -> str:
    return NO_WAIT if wait_s < 1 else format_duration_short(wait_s)


def _score_row(name: str, score: Score) -> list[str]:
    shares = [f"{share:.1%}" for share in (score.coverage.p50, score.coverage.p90)]
    return [name, *shares, f"{score.pinball.p50:.3f}", f"{score.pinball.p90:.3f}"]
