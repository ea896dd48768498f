"""Workflows of GitHub Actions: their structure, both offsets of a zone, and the step that chooses."""

import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from advisor.core.errors import InputError
from advisor.schedule.exports import WorkflowPlan, in_utc, workflow
from advisor.schedule.recurrence import parse_cron
from tests.programs import write_program
from tests.schedules import AT, make_schedule

PLAN = WorkflowPlan(secrets=("ADVISOR_STORE__URL", "SMTP_PASSWORD"), timeout_s=3600, now=AT)
STEP = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_-]*$"},
        "if": {"type": "string"},
        "uses": {"type": "string", "pattern": "^[^@]+@[^@]+$"},
        "with": {"type": "object"},
        "run": {"type": "string"},
        "env": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "oneOf": [{"required": ["uses"]}, {"required": ["run"]}],
    "additionalProperties": False,
}
# What docs.github.com/actions/reference/workflow-syntax-for-github-actions says of the keys that we use.
WORKFLOW = {
    "type": "object",
    "required": ["on", "jobs"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string"},
        "on": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "schedule": {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "type": "object",
                        "required": ["cron"],
                        "additionalProperties": False,
                        "properties": {"cron": {"type": "string", "pattern": r"^(\S+ ){4}\S+$"}},
                    },
                },
                "workflow_dispatch": {"type": "object"},
            },
        },
        "permissions": {"type": "object", "additionalProperties": {"enum": ["read", "write", "none"]}},
        "concurrency": {
            "type": "object",
            "required": ["group"],
            "properties": {"group": {"type": "string"}, "cancel-in-progress": {"type": "boolean"}},
        },
        "jobs": {
            "type": "object",
            "minProperties": 1,
            "patternProperties": {
                "^[A-Za-z_][A-Za-z0-9_-]*$": {
                    "type": "object",
                    "required": ["runs-on", "steps"],
                    "additionalProperties": False,
                    "properties": {
                        "runs-on": {"type": "string"},
                        "timeout-minutes": {"type": "integer", "minimum": 1, "maximum": 360 * 24},
                        "steps": {"type": "array", "items": STEP},
                    },
                }
            },
            "additionalProperties": False,
        },
    },
}


def document_of(**changes: Any) -> dict[str, Any]:
    """The workflow of one schedule, as GitHub reads it."""
    file = workflow(make_schedule(**changes), PLAN)
    # YAML 1.1 would read an unquoted key of this name as true.
    document = yaml.safe_load(file.text)
    jsonschema.validate(document, WORKFLOW)
    return dict(document)


def lines_of(document: dict[str, Any]) -> list[str]:
    return [entry["cron"] for entry in document["on"]["schedule"]]


def counts(document: dict[str, Any], line: str, offset: str, folder: Path) -> bool:
    """Whether the first step lets the others run when this line starts it and the zone has this offset."""
    write_program(folder / "date", f"echo {offset}")
    output = folder / "output"
    output.write_text("")
    environ = os.environ | {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "LINE": line,
        "GITHUB_OUTPUT": str(output),
    }
    script = document["jobs"]["advisor"]["steps"][0]["run"]
    subprocess.run(["bash", "-e", "-c", script], env=environ, check=True)
    return output.read_text() == "counts=yes\n"


def test_a_zone_with_summer_time_has_both_lines_and_one_counts(tmp_path):
    file = workflow(make_schedule(), PLAN)
    assert "'0 8 * * MON' in Europe/Zurich is, in UTC: 0 7 * * 1 at +0100; 0 6 * * 1 at +0200." in file.text
    document = document_of()
    assert lines_of(document) == ["0 6 * * 1", "0 7 * * 1"]
    assert counts(document, "0 7 * * 1", "+0100", tmp_path)
    assert counts(document, "0 6 * * 1", "+0200", tmp_path)
    assert not counts(document, "0 6 * * 1", "+0100", tmp_path)
    assert not counts(document, "0 7 * * 1", "+0200", tmp_path)
    # Started by hand.
    assert counts(document, "", "+0100", tmp_path)
    assert all("if" in step for step in document["jobs"]["advisor"]["steps"][1:])


def test_a_zone_without_summer_time_has_one_line_and_no_such_step():
    document = document_of(zone="Asia/Kolkata")
    assert lines_of(document) == ["30 2 * * 1"]
    assert [next(iter(step)) for step in document["jobs"]["advisor"]["steps"]] == [
        "uses",
        "uses",
        "run",
        "run",
    ]
    # What comes every hour comes every hour anywhere.
    assert lines_of(document_of(cron="15 * * * *")) == ["15 * * * *"]


def test_days_move_where_midnight_lies_between():
    (moved,) = in_utc(parse_cron("30 0 * * MON"), timedelta(hours=1), make_schedule())
    assert moved.text == "30 23 * * 0"
    with pytest.raises(InputError, match=r"knows UTC alone, where '30 0 1 .*falls on another day"):
        document_of(cron="30 0 1 * *")
    assert lines_of(document_of(cron="30 0 * * *", zone="Asia/Tokyo")) == ["30 15 * * *"]


def test_times_that_part_make_several_lines():
    moved = list(in_utc(parse_cron("0,45 8 * * *"), timedelta(minutes=330), make_schedule()))
    assert sorted(one.text for one in moved) == ["15 3 * * *", "30 2 * * *"]


def test_secrets_are_referenced_and_words_are_no_expressions(monkeypatch):
    monkeypatch.setenv("SMTP_PASSWORD", "hunter22")
    words = ("recommend", "a b.py", "--", "${{ secrets.X }}", "$(id)")
    file = workflow(make_schedule(command=words), PLAN)
    assert "hunter22" not in file.text
    last = yaml.safe_load(file.text)["jobs"]["advisor"]["steps"][-1]
    assert last["env"] == {
        "ADVISOR_STORE__URL": "${{ secrets.ADVISOR_STORE__URL }}",
        "SMTP_PASSWORD": "${{ secrets.SMTP_PASSWORD }}",
    }
    assert last["run"] == "advisor recommend 'a b.py' -- '${{ '${{' }} secrets.X }}' '$(id)'"


def test_the_offsets_of_the_year_that_follows_count():
    # Samoa gave up summer time in 2021.
    plan = WorkflowPlan(secrets=(), timeout_s=60, now=datetime(2021, 1, 1, tzinfo=UTC))
    file = workflow(make_schedule(zone="Pacific/Apia", cron="0 20 * * *"), plan)
    assert lines_of(yaml.safe_load(file.text)) == ["0 6 * * *", "0 7 * * *"]
    later = workflow(make_schedule(zone="Pacific/Apia", cron="0 20 * * *"), PLAN)
    assert lines_of(yaml.safe_load(later.text)) == ["0 7 * * *"]
