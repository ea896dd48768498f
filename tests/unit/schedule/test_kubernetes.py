"""CronJobs of Kubernetes, against a schema written after the documentation of batch/v1."""

import re
from typing import Any

import jsonschema
import pytest
import yaml

from advisor.schedule.exports import cron_jobs, unit_name
from tests.schedules import make_schedule

IMAGE = "registry.example.org/advisor:0.1"
LIMITS = {"timeout_s": 3600, "catch_up_s": 86_400}
NAME = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
CONTAINER = {
    "type": "object",
    "required": ["name", "image"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "pattern": NAME, "maxLength": 63},
        "image": {"type": "string", "minLength": 1},
        "command": {"type": "array", "items": {"type": "string"}},
        "args": {"type": "array", "items": {"type": "string"}},
        "env": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name", "value"],
                "additionalProperties": False,
                "properties": {"name": {"type": "string"}, "value": {"type": "string"}},
            },
        },
        "envFrom": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "secretRef": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {"name": {"type": "string"}, "optional": {"type": "boolean"}},
                    }
                },
            },
        },
    },
}
POD = {
    "type": "object",
    "required": ["containers", "restartPolicy"],
    "additionalProperties": False,
    "properties": {
        # A Job takes no Always.
        "restartPolicy": {"enum": ["Never", "OnFailure"]},
        "containers": {"type": "array", "minItems": 1, "items": CONTAINER},
    },
}
JOB = {
    "type": "object",
    "required": ["template"],
    "additionalProperties": False,
    "properties": {
        "backoffLimit": {"type": "integer", "minimum": 0},
        "activeDeadlineSeconds": {"type": "integer", "minimum": 1},
        "template": {"type": "object", "required": ["spec"], "properties": {"spec": POD}},
    },
}
CRON_JOB = {
    "type": "object",
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "additionalProperties": False,
    "properties": {
        "apiVersion": {"const": "batch/v1"},
        "kind": {"const": "CronJob"},
        "metadata": {
            "type": "object",
            "required": ["name"],
            # Jobs get eleven characters more.
            "properties": {"name": {"type": "string", "pattern": NAME, "maxLength": 52}},
        },
        "spec": {
            "type": "object",
            "required": ["schedule", "jobTemplate"],
            "additionalProperties": False,
            "properties": {
                "schedule": {"type": "string", "pattern": r"^([0-9*,-]+ ){4}[0-6*,-]+$"},
                "timeZone": {"type": "string"},
                "concurrencyPolicy": {"enum": ["Allow", "Forbid", "Replace"]},
                "startingDeadlineSeconds": {"type": "integer", "minimum": 10},
                "jobTemplate": {"type": "object", "required": ["spec"], "properties": {"spec": JOB}},
            },
        },
    },
}


def cron_job(**changes: Any) -> dict[str, Any]:
    """The CronJob of one schedule, as Kubernetes reads it."""
    (file,) = cron_jobs([make_schedule(**changes)], image=IMAGE, **LIMITS)
    document = yaml.safe_load(file.text)
    jsonschema.validate(document, CRON_JOB)
    return dict(document)


def test_times_zone_and_command():
    spec = cron_job(cron="*/30 8 * JAN-MAR 7")["spec"]
    # Its Sunday is 0 alone.
    assert (spec["schedule"], spec["timeZone"]) == ("0,30 8 * 1-3 0", "Europe/Zurich")
    assert (spec["concurrencyPolicy"], spec["startingDeadlineSeconds"]) == ("Forbid", 86_400)
    (container,) = spec["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert container["command"] + container["args"] == ["advisor", "prices", "refresh"]
    assert container["image"] == IMAGE


@pytest.mark.parametrize("cron", ["0 8 * * MON", "* * * * *", "0 0 29 2 *", "15 */6 1-7 * 5-7"])
def test_the_schema_holds_for_any_times(cron):
    cron_job(cron=cron)


def test_words_arrive_as_they_were():
    words = ("recommend", "a b.py", "--", "$(HOME)", "$$(A)", "on", "1.0", "- x", "#y", "'", "ü", "")
    (container,) = cron_job(command=words)["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert container["args"] == [word.replace("$", "$$") for word in words]


def test_secrets_come_from_a_secret(monkeypatch):
    monkeypatch.setenv("SMTP_PASSWORD", "hunter22")
    (file,) = cron_jobs([make_schedule(channel="team-mail")], image=IMAGE, **LIMITS)
    assert "hunter22" not in file.text
    assert "secretRef" in file.text
    assert "run-now" in file.text


def test_names_are_what_kubernetes_takes_and_never_the_same():
    names = ["weekly", "Weekly", "a_b", "a-b", "a.b", "x" * 63, "x" * 62 + "y", "A", "a"]
    units = [unit_name(make_schedule(name=name)) for name in names]
    assert len(set(units)) == len(names)
    assert all(re.fullmatch(NAME, unit) and len(unit) <= 52 for unit in units)
    assert units[0] == "advisor-weekly"
