"""CronJobs of Kubernetes, against its schemas, and which commands may be scheduled under which names."""

import re
from typing import Any

import kubernetes_validate
import pytest
import yaml

from advisor.core.errors import InputError
from advisor.schedule.exports import cron_jobs, unit_name
from advisor.schedule.schedulable import SCHEDULABLE, check_name, check_words, name_for, schedulable
from tests.schedules import make_schedule

IMAGE = "registry.example.org/advisor:0.1"
LIMITS = {"timeout_s": 3600, "catch_up_s": 86_400}
ODD = ("report", "--since", "7d", "--project", "a b'c\"$(id)%${{ x }}")


def check(document: dict[str, Any]) -> None:
    kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)


def cron_job(**changes: Any) -> dict[str, Any]:
    """The CronJob of one schedule, as Kubernetes reads it."""
    (file,) = cron_jobs([make_schedule(**changes)], image=IMAGE, **LIMITS)
    document = yaml.safe_load(file.text)
    check(document)
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
    document = cron_job(cron=cron, command=ODD)
    assert re.fullmatch(r"([0-9*,-]+ ){4}[0-6*,-]+", document["spec"]["schedule"])
    document["spec"]["concurrency"] = document["spec"].pop("concurrencyPolicy")
    with pytest.raises(kubernetes_validate.ValidationError, match="concurrency"):
        check(document)


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
    assert all(re.fullmatch("[a-z0-9]([-a-z0-9]*[a-z0-9])?", unit) and len(unit) <= 52 for unit in units)
    assert units[0] == "advisor-weekly"


def test_the_command_is_the_longest_name_that_the_words_begin_with():
    assert schedulable(["prices", "refresh", "--region", "us-east-1"]) == "prices refresh"
    assert schedulable(["prices", "--gpu", "H100"]) == "prices"
    assert schedulable(["recommend", "t.json", "--budget", "50"]) == "recommend"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no command follows --"),
        (["schedule", "run"], "'schedule' cannot be scheduled: report, prices refresh"),
        (["queue", "show", "x"], "'queue show' cannot be scheduled"),
        (["trust", "."], "'trust' cannot be scheduled"),
        (["recomend", "x"], "'recomend' cannot be scheduled: .* Did you mean 'recommend'"),
        (["--version"], "'--version' cannot be scheduled"),
    ],
)
def test_other_commands_are_refused(words, message):
    with pytest.raises(InputError, match=message):
        schedulable(words)


@pytest.mark.parametrize(
    "words",
    [
        ["recommend", "t.py", "--", "--password", "hunter22"],
        ["recommend", "t.py", "--", "--api-key=abcdefgh"],
        ["recommend", "t.py", "--", "AKIAABCDEFGHIJKLMNOP"],
        ["report", "--out", "https://ann:hunter22@example.org/x"],
        ["report", "--to", "https://hooks.slack.com/services/T0/B0/abcdef"],
    ],
)
def test_secrets_are_refused_and_not_repeated(words):
    with pytest.raises(InputError, match="what looks like a password") as caught:
        check_words(words)
    assert not any(word in str(caught.value) for word in words[2:])


def test_words_that_no_file_could_hold_are_refused():
    for word in ("a\nb", "a\0b", "\x1b[2J", "\u202e"):
        with pytest.raises(InputError, match="does not show"):
            check_words(["recommend", word])
    with pytest.raises(InputError, match="more than 8,000 characters"):
        check_words(["recommend", "x" * 8001])
    check_words(["recommend", "mein Trainingsskript für 50 %.py", "--", "--lr", "$(x)", "a'b\"c\\"])


def test_names():
    for name in ("weekly", "A-1_b.c", "x" * 63):
        check_name(name)
    for name in ("", "-x", ".x", "a b", "x" * 64, "ü", "a/b", "a\n", "%h"):
        with pytest.raises(InputError, match="cannot be: take up to 63 letters"):
            check_name(name)
    assert name_for("prices refresh", []) == "prices-refresh"
    assert name_for("report", ["report", "report-2"]) == "report-3"
    for command in SCHEDULABLE:
        check_name(name_for(command, []))
