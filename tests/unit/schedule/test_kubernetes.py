"""CronJobs of Kubernetes, against the schemas of kubernetes-validate."""

import re
from typing import Any

import kubernetes_validate
import pytest
import yaml

from advisor.schedule.exports import cron_jobs, unit_name
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
