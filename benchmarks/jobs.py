"""Jobs as a user would type them, what advisor recommends for each, and what an engineer says to it.

``python -m benchmarks.jobs [--out docs/jobs.md] [--shared DIR]`` writes the page, and beside it the same as
JSON. Prices are those that ship, on one day, without a network. DIR/kineto holds the recorded profile.
Without it that job keeps the row of its last run, and the page says so.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from advisor.core.units import format_duration
from benchmarks.job_list import JOBS, Listed

ROOT = Path(__file__).resolve().parent.parent
DAY = "2026-11-22"
_DOUBTS = Path(__file__).with_name("jobs_doubts.md")
# Prices age, and what they are expected to be ages with them.
_ON_ONE_DAY = f"""
import sys
from datetime import UTC, datetime

import advisor.service.prices.live as live

live.now = lambda: datetime.fromisoformat("{DAY}").replace(tzinfo=UTC)
from advisor.__main__ import main

main()
"""
_CHANGE = "What would change this advice: "

Row = dict[str, Any]


def answer(job: Listed, shared: Path | None = None) -> Row | None:
    """What is recommended, as JSON of the command; None if the job's file is not there."""
    words = shlex.split(job.arguments)
    path = (ROOT if words[0].endswith(".py") else (shared or ROOT) / "kineto") / words[0]
    if not path.exists():
        return None
    at = words.index("--") if "--" in words else len(words)
    command = ["recommend", str(path), *words[1:at], "--offline", "--json", *words[at:]]
    with tempfile.TemporaryDirectory() as home:
        _write_settings(Path(home), job)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ADVISOR_")}
        done = subprocess.run(
            [sys.executable, "-c", _ON_ONE_DAY, *command],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env=kept | {"HOME": home, "XDG_CONFIG_HOME": home},
            check=True,
        )
    document: Row = json.loads(done.stdout)
    return document


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
        lines.append(" ".join(["|", " | ".join(_cells(row)), "|"]))
        assert row["name"] == job.name
    lines += ["", "## What an engineer says to each", ""]
    lines += [f"- **{job.name}.** {job.sentence}" for job in JOBS]
    lines += ["", "Commands: [jobs.json](jobs.json). Settings of the job on a private cluster:"]
    lines += ["", "```yaml"]
    lines += [job.settings.strip() for job in JOBS if job.settings] + ["```", ""]
    lines += [f"Not run anew when this page was written: {', '.join(kept)}.", ""] if kept else []
    return "\n".join([*lines, _DOUBTS.read_text()])


_HEAD = """# Jobs, and what is recommended

{num} jobs as a user would type them, with the shipped prices, on {day}, without a network.
`python -m benchmarks.jobs` writes this page and [jobs.json](jobs.json); do not edit them. The engineer's
sentences are written by hand for one machine; the page is not written if another is recommended.

| job | recommended | price's age | time (p90) | cost (p90) | what changes it, and to which machine |
|---|---|---|---|---|---|"""


def _cells(row: Row) -> list[str]:
    time, cost, age = row["time_s"], row["cost_usd"], row["price_age_days"]
    return [
        row["name"],
        f"{row['num_gpus']} x {row['gpu']} {row['market'] or 'own'} ({row['where']})",
        "" if age is None else f"{age:.0f} d",
        f"{format_duration(time['p50'])} ({format_duration(time['p90'])})",
        f"${cost['p50']:.2f} (${cost['p90']:.2f})",
        row["change"].replace(" would be recommended", ""),
    ]


def main() -> None:
    """Run all jobs, and write what they found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "jobs.md")
    parser.add_argument("--shared", type=Path)
    arguments = parser.parse_args()
    record: Path = arguments.out.with_suffix(".json")
    former = {row["name"]: row for row in json.loads(record.read_text())} if record.exists() else {}
    answers = [(job, answer(job, arguments.shared)) for job in JOBS]
    rows = [former[job.name] if of_job is None else row_of(job, of_job) for job, of_job in answers]
    kept = [job.name for job, of_job in answers if of_job is None]
    stale = [row["name"] for row, job in zip(rows, JOBS, strict=True) if choice_of(row) != job.choice]
    if stale:
        sys.exit(f"another machine is recommended; read the sentences of these again: {', '.join(stale)}")
    record.write_text(json.dumps(rows, indent=1) + "\n")
    arguments.out.write_text(page(rows, kept))


if __name__ == "__main__":
    main()
