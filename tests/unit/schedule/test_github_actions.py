"""Workflows of GitHub Actions: the schema of GitHub, both offsets of a zone, and the step that chooses."""

import json
import os
import subprocess
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from advisor.core.errors import InputError
from advisor.schedule.exports import in_utc, workflow
from advisor.schedule.recurrence import parse_cron
from tests.programs import write_program
from tests.schedules import AT, make_schedule
from tests.test_docs import ROOT
from tests.unit.schedule.test_kubernetes import ODD

PLAN: dict[str, Any] = {"secrets": ("ADVISOR_STORE__URL", "SMTP_PASSWORD"), "timeout_s": 3600, "now": AT}
OURS = sorted(
    path for folder in (".github/workflows", "examples/github") for path in (ROOT / folder).glob("*.yml")
)


@cache
def schema() -> Any:
    """Of a workflow, as check-jsonschema brings it."""
    published = files("check_jsonschema") / "builtin_schemas/vendor/github-workflows.json"
    return jsonschema.validators.validator_for(whole := json.loads(published.read_text()))(whole)


def read(text: str) -> dict[str, Any]:
    """A workflow; YAML 1.1 reads an unquoted `on` as true."""
    document = {"on" if key is True else key: value for key, value in yaml.safe_load(text).items()}
    schema().validate(document)
    return document


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_github_takes_the_workflows_that_lie_here(path):
    read(path.read_text())


def test_github_takes_odd_words():
    document = document_of(command=ODD)
    document["jobs"]["advisor"]["run-on"] = document["jobs"]["advisor"].pop("runs-on")
    with pytest.raises(jsonschema.ValidationError):
        schema().validate(document)


def document_of(**changes: Any) -> dict[str, Any]:
    """The workflow of one schedule, as GitHub reads it."""
    text = workflow(make_schedule(**changes), **PLAN).text
    assert "\n'on':" in text
    return read(text)


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
    file = workflow(make_schedule(), **PLAN)
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
    file = workflow(make_schedule(command=words), **PLAN)
    assert "hunter22" not in file.text
    last = yaml.safe_load(file.text)["jobs"]["advisor"]["steps"][-1]
    assert last["env"] == {
        "ADVISOR_STORE__URL": "${{ secrets.ADVISOR_STORE__URL }}",
        "SMTP_PASSWORD": "${{ secrets.SMTP_PASSWORD }}",
    }
    assert last["run"] == "advisor recommend 'a b.py' -- '${{ '${{' }} secrets.X }}' '$(id)'"


def test_the_offsets_of_the_year_that_follows_count():
    # Samoa gave up summer time in 2021.
    daily = make_schedule(zone="Pacific/Apia", cron="0 20 * * *")
    before = workflow(daily, **PLAN | {"now": datetime(2021, 1, 1, tzinfo=UTC)})
    assert lines_of(read(before.text)) == ["0 6 * * *", "0 7 * * *"]
    assert lines_of(read(workflow(daily, **PLAN).text)) == ["0 7 * * *"]
