"""How well queue waits are foreseen on real logs: ``python -m research.queue_waits [--choose]``.

Reads the logs of ``../shared/traces``, whose README names their sources and limits. Writes the results and
the tables of research/docs/methods/queue-wait.md. ``--choose`` also tries other constants, on logs that judge
nothing.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from advisor.core.units import DAY_S, MINUTE_S
from advisor.site_files.job_logs import read_job_log
from recommender.queue import grids, waits
from recommender.queue.scoring import TRAINED_SHARE, check
from recommender.queue.waits import Bin, JobLog, QueuedJob, Waits, bin_of, size_bin, walltime_bin
from research.former_queue_waits import former_scores

ROOT = Path(__file__).resolve().parents[1]
TRACES = ROOT.parent / "shared" / "traces"
PAGE = ROOT / "research" / "docs" / "methods" / "queue-wait.md"
RESULTS = ROOT / "research" / "docs" / "methods" / "queue-wait.json"
LOGS = {
    "KTH SP2 1996": "kth_sp2_1996",
    "CEA Curie 2011": "cea_curie_sample",
    "MetaCentrum wagap 2013": "metacentrum_wagap_2013",
    "MIT SuperCloud 2021, GPU jobs": "mit_supercloud_gpu_2021_sample",
    "Alibaba openb 2023, GPU pods": "alibaba_openb_gpu_2023",
}
STREAMS = ("KTH SP2 1996", "CEA Curie 2011", "MetaCentrum wagap 2013")
"""Logs of all jobs, of which the queue at a moment can be told."""
# The last 30 % of KTH judge; constants are chosen by what lies before.
CHOSEN_ON_KTH = 0.6
CHOICES: Sequence[tuple[int, float, float, float]] = (
    (40, 14, 100, 30), (40, 7, 100, 30), (40, 28, 100, 30), (40, 14, 30, 30), (40, 14, 300, 30),
    (40, 14, 100, 15), (40, 14, 100, 100), (20, 14, 100, 30), (80, 14, 100, 30),
)  # fmt: skip

Facts = dict[str, Any]


def main() -> None:
    """Judge, and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--choose", action="store_true", help="try other constants, too")
    choose = parser.parse_args().choose
    before: Facts = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    results: Facts = {
        "judged": {name: judged(log_of(file)) for name, file in LOGS.items()},
        "to_come": {
            **{name: still_to_come(log_of(LOGS[name])) for name in STREAMS},
            "DRAC Cedar 2021, pending GPU jobs": cedar_to_come(),
        },
        "chosen": chosen() if choose else before.get("chosen", []),
    }
    RESULTS.write_text(f"{json.dumps(results, indent=1)}\n")
    PAGE.write_text(with_tables(PAGE.read_text(), results))


def judged(log: JobLog) -> Facts:
    """Four ways of now and two of before, on the last 30 % of a log."""
    scores = check(log)
    online, frozen = former_scores(log)
    return _rounded(asdict(scores)) | _rounded(
        {"former_online": asdict(online), "former_frozen": asdict(frozen)}
    )


def still_to_come(log: JobLog) -> Facts:
    """Of all jobs that wait at noon of the last 30 % of days: how long they wait from then on."""
    jobs = sorted(log.jobs)
    noon_s, state = jobs[math.floor(TRAINED_SHARE * len(jobs))].submit_s, Waits()
    waits: list[float] = []
    foreseen: list[grids.Array] = []
    queued: list[QueuedJob] = []
    for job in jobs:
        while job.submit_s > noon_s:
            state.advance(noon_s)
            queued = [one for one in queued if one.start_s > noon_s]
            waits += [grids.to_log_minutes(one.start_s - noon_s) for one in queued]
            foreseen += [_left(state, bin_of(one), noon_s, noon_s - one.submit_s) for one in queued]
            noon_s += DAY_S
        state.submit(job)
        queued.append(job)
    return _still_scored(waits, foreseen)


def cedar_to_come() -> Facts:
    """Cedar's queue at noon of its last 30 % of polls, from the jobs that started before.

    The log holds jobs that waited at some noon, so short waits are rare in it. Of a job that waited w days a
    share of 0.1 / min(1, w) counts, one at most: as many of each length as a log of all jobs would have.
    """
    everything = sorted(log_of("drac_cedar_gpu_2021").jobs)
    chance = np.random.default_rng(0).random(len(everything))
    jobs = [
        job
        for job, drawn in zip(everything, chance, strict=True)
        if drawn < 0.1 / min(1.0, max(job.wait_s, MINUTE_S) / DAY_S)
    ]
    with gzip.open(TRACES / "drac_cedar_gpu_polls_2021.csv.gz", "rt") as file:
        polls = sorted(csv.DictReader(file), key=lambda row: float(row["poll_time"]))
    state, num_submitted = Waits(), 0
    waits, foreseen = [], []
    for row in polls[math.floor(TRAINED_SHARE * len(polls)) :]:
        now_s = float(row["poll_time"])
        while num_submitted < len(jobs) and jobs[num_submitted].submit_s < now_s:
            state.submit(jobs[num_submitted])
            num_submitted += 1
        state.advance(now_s)
        which = size_bin(float(row["gpus"])), walltime_bin(float(row["time_limit_sec"])), None
        waits.append(grids.to_log_minutes(float(row["poll_wait_sec"])))
        foreseen.append(_left(state, which, now_s, max(now_s - float(row["eligible_time"]), 0.0)))
    return _still_scored(waits, foreseen)


def _left(state: Waits, which: Bin, now_s: float, waited_s: float) -> grids.Array:
    """Quantiles of the wait that is left, in log minutes."""
    expected = state.expect(which)
    assert expected is not None, "waits of all jobs are known"
    whole = grids.after(state.reading(now_s).of(expected), grids.to_log_minutes(waited_s))
    return np.log1p(np.maximum(grids.to_waits_s(whole) - waited_s, 0.0) / MINUTE_S)


def _still_scored(waits: Sequence[float], foreseen: Sequence[grids.Array]) -> Facts:
    covers = {
        f"p{100 * level:g}": float(
            np.mean(np.array(waits) <= np.array(foreseen)[:, grids.level_index(level)] + 1e-9)
        )
        for level in (0.5, 0.9)
    }
    return _rounded({"jobs": len(waits), "coverage": covers})


def chosen() -> list[Facts]:
    """What each choice of constants gives on logs that do not judge, all but their first 15 %."""
    kth = log_of(LOGS["KTH SP2 1996"])
    logs = [
        replace(kth, jobs=kth.jobs[: math.floor(CHOSEN_ON_KTH * len(kth.jobs))]),
        *(log_of(file) for name, file in LOGS.items() if name.startswith(("MIT", "Alibaba"))),
    ]
    return [_tried(logs, *choice) for choice in CHOICES]


def _tried(
    logs: Sequence[JobLog], wider_jobs: int, memory_days: float, right_ones: float, of_state: float
) -> Facts:
    """Constants of modules, set for the duration."""
    kept = waits.WIDER_BIN_JOBS, grids.MEMORY_S, grids.RIGHT_ONES, grids.RIGHT_ONES_OF_STATE
    waits.WIDER_BIN_JOBS, grids.MEMORY_S, grids.RIGHT_ONES, grids.RIGHT_ONES_OF_STATE = (
        wider_jobs, memory_days * DAY_S, right_ones, of_state,
    )  # fmt: skip
    scores = [check(log, trained_share=0.15) for log in logs]
    waits.WIDER_BIN_JOBS, grids.MEMORY_S, grids.RIGHT_ONES, grids.RIGHT_ONES_OF_STATE = kept
    losses = [score.pinball.p90 for one in scores for score in (one.online, one.frozen)]
    mean = math.exp(sum(map(math.log, losses)) / len(losses))
    return _rounded(
        {
            "wider_bin_jobs": wider_jobs,
            "memory_days": memory_days,
            "right_ones": right_ones,
            "right_ones_of_state": of_state,
            "loss": mean,
        }
    )


def with_tables(page: str, results: Facts) -> str:
    """The page with its tables written anew."""
    tables = {
        "judged": _judged_lines(results),
        "to come": _to_come_lines(results),
        "chosen": _chosen_lines(results),
    }
    for name, lines in tables.items():
        page = with_table(page, f"research/queue_waits.py: {name}", lines)
    return page


def with_table(page: str, writer: str, lines: Sequence[str]) -> str:
    """The page with one table written anew."""
    begin, end = f"<!-- written by {writer} -->\n", "<!-- end -->"
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    return "".join([before, begin, "\n", *(f"{line}\n" for line in lines), "\n", end, after])


def _judged_lines(results: Facts) -> list[str]:
    lines = [
        "| log | forecast | covers p50 | covers p90 | p10 | p99 | pinball p50 | pinball p90 |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, scores in results["judged"].items():
        for way in ("online", "former_online", "frozen", "former_frozen", "baseline"):
            words = way.replace("former_", "former, ")
            lines.append(f"| {name} | {words} | {' | '.join(_cells(scores[way]))} |")
    return lines


def _to_come_lines(results: Facts) -> list[str]:
    rows = (
        f"| {name} | {one['jobs']:,} | {one['coverage']['p50']:.1%} | {one['coverage']['p90']:.1%} |"
        for name, one in results["to_come"].items()
    )
    return ["| log | jobs | covers p50 | covers p90 |", "|---|---|---|---|", *rows]


def _cells(score: Mapping[str, Any]) -> list[str]:
    def covers(level: str) -> str:
        error = "" if score["coverage_se"] is None else f" ± {100 * score['coverage_se'][level]:.1f}"
        return f"{100 * score['coverage'][level]:.1f}{error} %"

    tails = [f"{100 * score['tails'][level]:.1f} %" for level in ("p10", "p99")]
    return [covers("p50"), covers("p90"), *tails, *(f"{score['pinball'][p]:.3f}" for p in ("p50", "p90"))]


def _chosen_lines(results: Facts) -> list[str]:
    return [
        "| wider bin, jobs | memory, days | right forecasts, waits | of a state, waits | pinball p90 |",
        "|---|---|---|---|---|",
        *(
            f"| {tried['wider_bin_jobs']} | {tried['memory_days']:g} | {tried['right_ones']:g}"
            f" | {tried['right_ones_of_state']:g} | {tried['loss']:.4f} |"
            for tried in results["chosen"]
        ),
    ]


def log_of(file: str) -> JobLog:
    """A log of ../shared."""
    return read_job_log(TRACES / f"{file}.csv.gz")


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    return round(value, 4) if isinstance(value, float) else value


if __name__ == "__main__":
    main()
