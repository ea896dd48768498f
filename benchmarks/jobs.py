"""Jobs as a user would type them, what advisor recommends for each, and what an engineer says to it.

``python -m benchmarks.jobs [--out docs/jobs.md] [--shared DIR] [--traces DIR]`` writes the page, and beside
it the same as JSON, with an independent check of each answer and its regret. Prices are those that ship, on
one day, without a network. DIR/kineto holds the recorded profile, DIR/prices and DIR/traces what became of
prices and spot machines. Without them that job keeps the row of its last run, and the page says so, and all
keep what records said.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import pickle
import shlex
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from advisor.core.processes import ANSWER_FILE_VARIABLE
from advisor.core.units import format_duration
from benchmarks.job_checks import COLUMNS, faults
from benchmarks.job_list import JOBS, Listed

ROOT = Path(__file__).resolve().parent.parent
DAY = "2026-11-22"
_DOUBTS = Path(__file__).with_name("jobs_doubts.md")
_CHANGE = "What would change this advice: "

Row = dict[str, Any]


def answer(
    job: Listed, shared: Path | None = None, traces: Path | None = None, records: str = "-"
) -> Row | None:
    """What is recommended, as JSON of the command, with how it stands; None if the job's file is not there.

    Args:
        job: what is typed.
        shared: holds recorded profiles in ``kineto``.
        traces: keeps what was profiled, for jobs of one script and for the next time.
        records: a file of what became of prices and spot machines; - for none.
    """
    words = _on_trace(job, traces, shared) if traces is not None else _command(job, shared)
    if words is None:
        return None
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        _write_settings(home, job)
        command = ["-m", "benchmarks.job_moves", str(home / "moves.json"), DAY, records, "recommend", *words]
        done = _run(command, home, {"COLUMNS": str(COLUMNS), ANSWER_FILE_VARIABLE: str(home / "answer.json")})
        document: Row = json.loads((home / "answer.json").read_text())
        moves = json.loads((home / "moves.json").read_text())
    return document | {"moves": moves, "faults": faults(document, done.stdout, done.stderr)}


def _command(job: Listed, shared: Path | None) -> list[str] | None:
    words = shlex.split(job.arguments)
    at = words.index("--") if "--" in words else len(words)
    if not words[0].startswith("--"):
        path = (ROOT if words[0].endswith(".py") else (shared or ROOT) / "kineto") / words[0]
        if not path.exists():
            return None
        words[0] = str(path)
    return [*words[:at], "--offline", *words[at:]]


def _on_trace(job: Listed, traces: Path, shared: Path | None) -> list[str] | None:
    """The command on what the script was profiled to, which is done if it was not."""
    words = _command(job, shared)
    if words is None or not words[0].endswith(".py"):
        return words
    at = words.index("--") if "--" in words else len(words)
    own = words[:at]
    world = own.index("--world") if "--world" in own else at
    profiled = [words[0], *own[world : world + 2], *words[at:]]
    trace = traces / f"{hashlib.sha256(repr(profiled).encode()).hexdigest()[:16]}.json.gz"
    if not trace.exists():
        with tempfile.TemporaryDirectory() as home:
            command = ["-m", "advisor", "profile", words[0], "--out", str(trace), *profiled[1:]]
            _run(command, Path(home), {})
    return [str(trace), *own[1:world], *own[world + 2 :]]


def _run(command: list[str], home: Path, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ADVISOR_")}
    # Whose CPU is at hand would decide small jobs.
    own = {"HOME": str(home), "XDG_CONFIG_HOME": str(home), "ADVISOR_LOCAL__CPU": "false"}
    return subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=kept | own | variables,
        check=True,
    )


def _write_settings(home: Path, job: Listed) -> None:
    if job.settings is None:
        return
    settings = home / "advisor" / "config.yaml"
    settings.parent.mkdir()
    settings.write_text(job.settings)
    settings.chmod(0o600)


def row_of(job: Listed, document: Row) -> Row:
    """What the page tells of an answer."""
    feasible = [option for option in document["options"] if option["feasible"]]
    chosen = next(option for option in feasible if option["recommended"])
    price = chosen["price"] or {}
    return {
        "name": job.name,
        "command": f"advisor recommend {job.arguments}",
        "num_gpus": chosen["num_gpus"],
        "gpu": chosen["gpu"],
        "market": chosen["market"],
        "where": " ".join(filter(None, (chosen["provider"], chosen["instance_type"], chosen["region"]))),
        "price_age_days": price.get("age_days"),
        "price_kind": price.get("kind"),
        "time_s": {q: round(chosen["time_s"][q]) for q in ("p50", "p90")},
        "cost_usd": {q: round(chosen["cost_usd"][q], 2) for q in ("p50", "p90")},
        "why": document["rule"],
        "change": document["summary"][-1].partition(_CHANGE)[2],
        "beaten_by": [option["id"] for option in feasible if _beats(option, chosen)],
        "samples_per_s": chosen["samples_per_s"] and round(chosen["samples_per_s"], 1),
        "mfu": chosen["mfu"] and round(chosen["mfu"], 3),
        "work": chosen["work"]["kinds"],
        "faults": document["faults"],
        **document["moves"],
    }


def _beats(option: Row, chosen: Row) -> bool:
    """Whether it is cheaper and faster, both at the median and at p90, for no other change to the script."""
    changes, chosen_changes = (
        {change["facts"].get("what", change["code"]) for change in row["script_change_findings"]}
        for row in (option, chosen)
    )
    return changes <= chosen_changes and all(
        option[axis][q] < chosen[axis][q] for axis in ("time_s", "cost_usd") for q in ("p50", "p90")
    )


def choice_of(row: Row) -> tuple[int, str, str | None]:
    """What a sentence must speak of."""
    return row["num_gpus"], row["gpu"], row["market"]


def page(rows: list[Row], kept: list[str]) -> str:
    """The page.

    Args:
        rows: of all jobs.
        kept: names of those that did not run this time.
    """
    lines = [_HEAD.format(num=len(rows), day=DAY)]
    for row, job in zip(rows, JOBS, strict=True):
        lines.append(_line(_cells(row)))
        assert row["name"] == job.name
    lines += ["", "## What an engineer says to each", "", _BESIDE, ""]
    cited: set[str] = set()
    for row, job in zip(rows, JOBS, strict=True):
        lines.append(_said(row, job, is_first=job.published not in cited))
        cited.add(job.published)
    lines += ["", *_checked(rows)]
    lines += ["", "Settings of the job on a private cluster:"]
    lines += ["", "```yaml"]
    lines += [job.settings.strip() for job in JOBS if job.settings] + ["```", ""]
    lines += [f"Not run anew when this page was written: {', '.join(kept)}.", ""] if kept else []
    return "\n".join([*lines, _DOUBTS.read_text()])


_HEAD = """# Jobs, and what is recommended

What advisor recommends for {num} jobs, and whether that holds: with the shipped prices, on {day}, without a
network. [jobs.json](jobs.json) has the commands, and the machine to take instead. `python -m benchmarks.jobs`
writes both; do not edit them.

| job | recommended | first | price's age | time (p90) | cost (p90) | what changes it |
|---|---|---|---|---|---|---|"""
_BESIDE = (
    "Written by hand for the machine that is recommended. In brackets: what the prediction implies for all"
    " GPUs together, and what others published for a similar job."
)


def _line(cells: list[str]) -> str:
    return " ".join(["|", " | ".join(cells), "|"])


def _cells(row: Row) -> list[str]:
    time, cost, age = row["time_s"], row["cost_usd"], row["price_age_days"]
    return [
        row["name"],
        f"{row['num_gpus']} x {row['gpu']} {row['market'] or 'own'} ({row['where']})",
        ", ".join(row["work"]) or "nothing",
        "" if age is None else f"{age:.0f} d",
        f"{format_duration(time['p50'])} ({format_duration(time['p90'])})",
        f"${cost['p50']:.2f} (${cost['p90']:.2f})",
        row["change"]
        .partition(", take ")[0]
        .replace(", with a chance of 90 % (--deadline)", " (--deadline)"),
    ]


def _said(row: Row, job: Listed, *, is_first: bool) -> str:
    """What an engineer says; what others published is cited once, at the first job that it is like."""
    rate, mfu = row["samples_per_s"], row["mfu"]
    implied = [
        *([f"{rate:,.0f} samples/s" if rate >= 10 else f"{rate:.2f} samples/s"] if rate else []),
        *([f"{mfu:.0%} MFU"] if mfu else []),
    ]
    beside = f"; {job.published}" if job.published and is_first else ""
    return f"- **{job.name}.** {job.sentence} ({', '.join(implied) or 'samples unknown'}{beside})"


def _checked(rows: list[Row]) -> list[str]:
    """What an independent check found of all answers, and the regret of each."""
    moved = [row for row in rows if row["flips"] is not None]
    wrong = [row["name"] for row in moved if not all(row["flips"].values())]
    before = [f"{row['name']} ({', '.join(row['earlier'])})" for row in rows if row["earlier"]]
    faulty = [f"{row['name']}: {'; '.join(row['faults'])}" for row in rows if row["faults"]]
    worlds, recorded = list(rows[0]["regret"]), list(rows[0]["recorded"])
    regret = [share for row in rows for share in row["regret"].values() if share is not None]
    missed = [row["name"] for row in rows if None in row["regret"].values()]
    return [
        "## Checked independently",
        "",
        _CHECKS.format(num=len(rows), moved=len(moved)),
        "",
        f"- Rule, sentences, limits, rows and length: {_listed(faulty)}.",
        f"- The pick flips at another value than the stated threshold: {_listed(wrong)}.",
        f"- Another fact flips it earlier: {_listed(before)}.",
        "",
        _REGRET.format(mean=statistics.fmean(regret), worst=max(regret), missed=_listed(missed)),
        "",
        *(f"- {_RECORDED[name]}: {_mean_and_worst(rows, name)}." for name in recorded),
        "",
        _line(["job", *worlds, *recorded]),
        "|---" * (len(worlds) + len(recorded) + 1) + "|",
        *(
            _line([name, *map(_share, shares)])
            for name, shares in ((row["name"], _regrets(row)) for row in rows)
            if any(one is None or one >= LEAST_SHOWN for one in shares)
        ),
        "",
        f"Jobs whose regret is below {LEAST_SHOWN:.0%} throughout are left out.",
    ]


_CHECKS = """\
`benchmarks/job_checks.py` checks each of the {num} answers by its JSON and its screen: the rule, sentences,
limits, rows and length. `benchmarks/job_moves.py` ranks again on both sides of the stated threshold ({moved}
can be moved), and with price, step and wait of the pick moved 95 % as far."""
_REGRET = """\
**Regret**: what following the advice costs more than the best choice if a fact was wrong (bill, hours at
their value, work): mean {mean:.1%}, worst {worst:.0%}. The pick then misses a limit of its job: {missed}."""
LEAST_SHOWN, MOST_REGRET = 0.1, 0.25
_RECORDED = {
    "later prices": "**Later prices**: chosen by GCP's quotes of 30, 90 and 180 days before, paid on three"
    " dates",
    "spot traces": "**Spot traces**: machines come and go as in five collections of traces",
}


def _mean_and_worst(rows: list[Row], name: str) -> str:
    known = [one for row in rows for one in row["recorded"][name]]
    held = [one for one in known if one is not None]
    missed = "" if len(held) == len(known) else f"; limits missed in {len(known) - len(held)} of {len(known)}"
    worst = [f"{row['name']} {most:.0%}" for row in rows if (most := _most(row, name)) > MOST_REGRET]
    beyond = f"; above {MOST_REGRET:.0%}: {', '.join(worst)}" if worst else ""
    return (
        f"mean {statistics.fmean(held):.1%}, worst {max(held):.0%} of {len(held):,} answers{missed}{beyond}"
    )


def _most(row: Row, name: str) -> float:
    return max((one for one in row["recorded"][name] if one is not None), default=0.0)


def _regrets(row: Row) -> list[float | None]:
    """Of each kind; of records the mean of those that hold the job's limits."""
    held = ([one for one in found if one is not None] for found in row["recorded"].values())
    return [*row["regret"].values(), *(statistics.fmean(found) if found else None for found in held)]


def _share(regret: float | None) -> str:
    return "misses" if regret is None else f"{regret:.1%}"


def _listed(names: list[str]) -> str:
    return "none" if not names else " · ".join(names)


def _records(shared: Path | None, folder: Path) -> str:
    """Where the records are kept for the runs; - for none."""
    if shared is None:
        return "-"
    from benchmarks.job_records import read_records

    path = folder / "records.pickle"
    path.write_bytes(pickle.dumps(read_records(shared)))
    return str(path)


def main() -> None:
    """Run all jobs, and write what they found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "jobs.md")
    parser.add_argument("--shared", type=Path, help="folder with recorded profiles in kineto/")
    parser.add_argument("--traces", type=Path, help="folder that keeps what scripts were profiled to")
    arguments = parser.parse_args()
    record: Path = arguments.out.with_suffix(".json")
    former = {row["name"]: row for row in json.loads(record.read_text())} if record.exists() else {}
    with tempfile.TemporaryDirectory() as name:
        records = _records(arguments.shared, Path(name))
        answers = [(job, answer(job, arguments.shared, arguments.traces, records)) for job in JOBS]
    rows = [
        former[job.name] if of_job is None else former.get(job.name, {}) | row_of(job, of_job)
        for job, of_job in answers
    ]
    kept = [job.name for job, of_job in answers if of_job is None]
    stale = [row["name"] for row, job in zip(rows, JOBS, strict=True) if choice_of(row) != job.choice]
    if stale:
        sys.exit(f"another machine is recommended; read the sentences of these again: {', '.join(stale)}")
    record.write_text(json.dumps(rows, indent=1) + "\n")
    arguments.out.write_text(page(rows, kept))


if __name__ == "__main__":
    main()
