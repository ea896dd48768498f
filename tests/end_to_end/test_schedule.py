"""Schedules as a person types them: added, listed, run, exported, and what is wrong with them."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from advisor.formats.trace_files import write_trace
from tests.builders import make_trace
from tests.end_to_end.cli import assert_plain_error
from tests.programs import write_program

ADD = ("schedule", "add")
PRICES = ("--", "prices", "--gpu", "L4")
CHANNEL = "delivery:\n  channels:\n    inbox: {kind: file, path: ~/inbox.txt}\n"


@pytest.fixture
def weekly(shell):
    """With one schedule, Mondays at eight in Zurich."""
    shell.write(".config/advisor/config.yaml", CHANNEL)
    answer = shell.run(*ADD, "0 8 * * MON", "--tz", "Europe/Zurich", "--name", "weekly", *PRICES)
    assert answer.code == 0, answer
    return shell


def test_what_is_added_is_listed_with_its_next_time_here_and_in_utc(weekly):
    listed = weekly.run("schedule", "list")
    (row,) = [line for line in listed.out.splitlines() if "weekly" in line]
    assert "0 8 * * MON" in row
    assert " Mon 20" in row
    assert " 08:00 CE" in row
    assert "0 UTC" in row
    (schedule,) = weekly.run("schedule", "list", "--json").document["schedules"]
    next_at, local = (datetime.fromisoformat(schedule[key]) for key in ("next_at", "next_at_local"))
    assert next_at == local
    assert (local.weekday(), local.hour, local.minute) == (0, 8, 0)
    assert next_at > datetime.now(UTC)
    assert schedule["command"] == ["prices", "--gpu", "L4"]
    assert schedule["folder"] == str(weekly.folder)
    assert schedule["last"] is None


def test_a_schedule_without_a_name_is_called_after_its_command(shell):
    for expected in ("Added prices-refresh: advisor prices refresh", "Added prices-refresh-2:"):
        answer = shell.run(*ADD, "0 6 * * *", "--", "prices", "refresh")
        assert answer.out.startswith(expected), answer
        assert f"in {shell.folder}, next " in answer.out
        assert "06:00 UTC" in answer.out


@pytest.mark.parametrize(
    ("words", "messages"),
    [
        (
            ("0 8 * * MON", "--tz", "Europe/Zuerich", *PRICES),
            ("no time zone 'Europe/Zuerich'", "'Europe/Zurich'?"),
        ),
        (("0 0 8 * * MON", *PRICES), ("has 6 fields, it needs five: minute, hour, day of month",)),
        (("0 8 * *", *PRICES), ("has 4 fields, it needs five: minute",)),
        (("61 * * * *", *PRICES), ("minute '61' is not valid: write 0-59",)),
        (("30 2 30 2 *", *PRICES), ("day of month '30' is not valid",)),
        (("0 8 * * *", "--", "prizes"), ("'prizes' cannot be scheduled", "Did you mean 'prices'")),
        (("0 8 * * *", "--", "schedule", "run"), ("'schedule' cannot be scheduled",)),
        (("0 8 * * *", "--", "init"), ("'init' cannot be scheduled",)),
        (("0 8 * * *", "--", "prices", "refesh"), ("'prices refesh' cannot be scheduled",)),
        (("0 8 * * *", "--", "prices", "--gpuu", "L4"), ("No such option: --gpuu",)),
        (("0 8 * * *", "--", "recommend"), ("Missing argument 'SCRIPT_OR_TRACE'",)),
        (("0 8 * * *", "--", "recommend", "t.json", "--budget", "fifty"), ("Invalid value for '--budget'",)),
        (("0 8 * * *",), ("no command follows --",)),
        (("0 8 * * *", "--name", "a b", *PRICES), ("the name 'a b' cannot be",)),
        (("0 8 * * *", "--when", "changes", *PRICES), ("--when changes says when", "--to")),
        (("0 8 * * *", "--when", "sometimes", *PRICES), ("'sometimes' is not one of",)),
        (("0 8 * * *", "--when", "over-80%", *PRICES), ("--when over-80% is for a report",)),
        (("0 8 * * *", "--to", "inbx", *PRICES), ("no channel 'inbx'",)),
        (("0 8 * * *", "--", "report", "--to", "inbx"), ("no channel 'inbx'",)),
        (("0 8 * * *", "--", "report", "--to=inbx"), ("no channel 'inbx'",)),
        (("0 8 * * *", "--", "recommend", "t.py", "--", "--token", "hunter22"), ("looks like a password",)),
    ],
)
def test_what_is_typed_wrong_is_told_and_keeps_nothing(shell, words, messages):
    answer = shell.run(*ADD, *words)
    assert_plain_error(answer, 2, *messages)
    assert "hunter22" not in answer.err
    assert shell.run("schedule", "list", "--json").document["schedules"] == []


def test_a_name_is_taken_once(weekly):
    answer = weekly.run(*ADD, "0 9 * * *", "--name", "weekly", *PRICES)
    assert_plain_error(answer, 2, "there is a schedule 'weekly' already", "advisor schedule remove weekly")


def test_a_name_that_nobody_has(weekly):
    for command in (("remove",), ("show",), ("run-now",), ("export", "--to", "cron")):
        answer = weekly.run("schedule", *command, "weekl")
        assert_plain_error(answer, 2, "there is no schedule 'weekl'. Did you mean 'weekly'?")
    assert weekly.run("schedule", "remove", "weekly").out == "Removed weekly.\n"
    assert_plain_error(weekly.run("schedule", "remove", "weekly"), 2, "nor any other", "schedule add")


def test_without_a_database_there_is_nothing_yet_and_none_is_made(shell):
    assert "No schedules yet. An example: advisor schedule add" in shell.run("schedule", "list").out
    for command in (("remove", "x"), ("show", "x"), ("run-now", "x"), ("export", "x", "--to", "cron")):
        assert_plain_error(shell.run("schedule", *command), 2, "no schedule 'x', nor any other")
    assert_plain_error(shell.run("schedule", "export", "--all", "--to", "cron"), 2, "no schedules to export")
    assert not (shell.folder / ".local/share/advisor/advisor.db").exists()


def test_a_database_that_cannot_be_read_is_told(shell):
    shell.write("broken.db", "no database at all, but long enough to look like one" * 50)
    answer = shell.run("schedule", "list", ADVISOR_STORE__URL=f"sqlite:///{shell.folder}/broken.db")
    assert_plain_error(answer, 1, "cannot use the database", "broken.db")


def test_run_now_runs_it_delivers_and_keeps_what_it_wrote(weekly):
    added = weekly.run(*ADD, "0 8 * * *", "--name", "mailed", "--to", "inbox", *PRICES)
    assert added.code == 0, added
    answer = weekly.run("schedule", "run-now", "mailed")
    assert answer.code == 0, answer
    assert "g2-standard" in answer.out
    assert answer.out.splitlines()[-1] == "mailed: done, exit code 0; sent to inbox"
    assert "mailed: begins, due at" in answer.err
    # Neither the key nor the file of the answer is taken for a setting.
    assert "no setting of ours" not in answer.out + answer.err
    sent = (weekly.folder / "inbox.txt").read_text()
    assert "advisor prices --gpu L4: exit code 0" in sent
    assert "g2-standard" in sent
    (one,) = weekly.run("schedule", "show", "mailed", "--json").document["occurrences"]
    assert (one["state"], one["attempts"], one["delivery"]) == ("done", 1, "sent to inbox")
    assert "g2-standard" in one["output"]


def test_when_a_job_fits_its_budget_somebody_hears_of_it(weekly):
    """Exit code 4 keeps quiet; that the job fits is delivered."""
    write_trace(make_trace(), weekly.folder / "t.json.gz")
    job = ("--", "recommend", "t.json.gz", "--epochs", "1", "--offline", "--gpu", "L4", "--budget")
    for name, budget in (("dear", "0.0000001"), ("cheap", "50")):
        added = weekly.run(*ADD, "0 8 * * *", "--name", name, "--to", "inbox", "--when", "ok", *job, budget)
        assert added.code == 0, added
    dear = weekly.run("schedule", "run-now", "dear")
    assert dear.code == 4
    assert dear.out.splitlines()[-1] == (
        "dear: done, exit code 4: nothing feasible; not sent: wanted only with exit code 0"
    )
    assert not (weekly.folder / "inbox.txt").exists()
    cheap = weekly.run("schedule", "run-now", "cheap", "--json")
    assert cheap.code == 0
    occurrence = cheap.document["occurrence"]
    assert occurrence["outcome"] == f"recommends {occurrence['recommended']}"
    assert occurrence["recommended"] in (weekly.folder / "inbox.txt").read_text()


def test_a_failing_command_fails_and_tells_why(weekly):
    assert (
        weekly.run(
            *ADD, "0 8 * * *", "--name", "lost", "--", "recommend", "gone.json.gz", "--epochs", "1"
        ).code
        == 0
    )
    answer = weekly.run("schedule", "run-now", "lost")
    assert answer.code == 2
    assert "gone.json.gz" in answer.out
    assert answer.out.splitlines()[-1] == "lost: failed, exit code 2"
    assert "failed" in weekly.run("schedule", "list").out


def test_what_is_due_is_run_once_by_a_process(weekly):
    """The service itself would wait for Monday: what was due is dated back."""
    import sqlite3

    with sqlite3.connect(weekly.folder / ".local/share/advisor/advisor.db") as database:
        database.execute(
            "UPDATE schedules SET cron = '* * * * *', settled_until = '2026-01-01 00:00:00.000000'"
        )
    answer = weekly.run_process("schedule", "run", "--once")
    assert answer.code == 0, answer
    assert "weekly: missed more than 100 since 2026-01-01 00:01 UTC; the latest one, of" in answer.err
    assert "weekly: done, exit code 0" in answer.err
    shown = weekly.run("schedule", "show", "weekly")
    assert "What it wrote" in shown.out
    assert "missed" in shown.out


def test_the_service_ends_when_it_is_asked_to(weekly):
    service = subprocess.Popen(
        [sys.executable, "-m", "advisor", "schedule", "run"],
        cwd=weekly.folder, env=weekly.environ(), stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert service.stderr is not None
    first = service.stderr.readline()
    assert "runs the schedules of" in first, first
    os.kill(service.pid, signal.SIGTERM)
    _, rest = service.communicate(timeout=60)
    assert service.returncode == 0
    assert rest.endswith("UTC  ended\n")


@pytest.mark.parametrize("scheduler", ["cron", "systemd", "github-actions", "kubernetes"])
def test_exports_are_printed_or_written(weekly, scheduler):
    image = ("--image", "registry.example.org/advisor:1") if scheduler == "kubernetes" else ()
    printed = weekly.run("schedule", "export", "weekly", "--to", scheduler, *image)
    assert printed.code == 0, printed
    written = weekly.run("schedule", "export", "--all", "--to", scheduler, "--out", "files", *image)
    assert written.code == 0, written
    paths = [Path(line.removeprefix("Wrote ")) for line in written.out.splitlines()]
    texts = [(weekly.folder / path).read_text() for path in paths]
    assert printed.out.count("# ---- ") == len(texts) > 0
    assert all(text.rstrip() in printed.out for text in texts)


def test_exports_that_lack_something(weekly):
    export = ("schedule", "export")
    assert_plain_error(weekly.run(*export, "--to", "cron"), 2, "name one schedule, or ask for all of them")
    assert_plain_error(weekly.run(*export, "weekly", "--all", "--to", "cron"), 2, "name one schedule")
    assert_plain_error(weekly.run(*export, "weekly", "--to", "kubernetes"), 2, "--image NAME")
    assert_plain_error(weekly.run(*export, "weekly"), 2, "Missing option '--to'")
    weekly.write("taken", "")
    taken = weekly.run(*export, "weekly", "--to", "cron", "--out", "taken/x")
    assert_plain_error(taken, 2, "cannot write to taken/x")


def test_secrets_of_channels_are_referenced_by_name(weekly):
    weekly.write(".config/advisor/config.yaml", CHANNEL + "    chat: {kind: slack, url: 'env:SLACK_HOOK'}\n")
    assert weekly.run(*ADD, "0 7 * * *", "--name", "chat", "--to", "chat", *PRICES).code == 0
    secret = {"SLACK_HOOK": "https://hooks.slack.com/services/T0/B0/hunter22"}
    exported = weekly.run("schedule", "export", "chat", "--to", "github-actions", **secret)
    assert "SLACK_HOOK: ${{ secrets.SLACK_HOOK }}" in exported.out
    assert "ADVISOR_STORE__URL: ${{ secrets.ADVISOR_STORE__URL }}" in exported.out
    assert "hunter22" not in exported.out


@pytest.mark.parametrize("scheduler", ["github-actions", "kubernetes"])
def test_an_exported_report_has_its_channels_and_teams_with_it(weekly, scheduler):
    settings = f"{CHANNEL}    mail: {{kind: slack, url: 'env:SLACK_HOOK'}}\n"
    settings += "report: {teams: {vision: [resnet]}}\n"
    path = weekly.write(".config/advisor/config.yaml", settings)
    words = "0 8 * * MON", "--name", "ours", "--", "report", "--team", "vision", "--to", "mail"
    assert weekly.run(*ADD, *words).code == 0
    image = ("--image", "registry.example.org/advisor:1") if scheduler == "kubernetes" else ()
    exported = weekly.run("schedule", "export", "ours", "--to", scheduler, *image)
    document = yaml.safe_load(exported.out)
    if scheduler == "kubernetes":
        (pod,) = document["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
        variables, args = {one["name"]: one["value"] for one in pod["env"]}, pod["args"]
    else:
        step = document["jobs"]["advisor"]["steps"][-1]
        variables, args = step["env"], shlex.split(step["run"])[1:]
        assert variables.pop("ADVISOR_STORE__URL") == "${{ secrets.ADVISOR_STORE__URL }}"
        assert variables.pop("SLACK_HOOK") == "${{ secrets.SLACK_HOOK }}"
    # Elsewhere there are no settings: the file's own variables are enough.
    path.unlink()
    there = weekly.run(*args, "--preview", SLACK_HOOK="https://hooks.slack.com/services/T0/B0/x", **variables)
    assert there.code == 0, there.err
    weekly.write(".config/advisor/config.yaml", settings.replace("env:SLACK_HOOK", "file:~/hook"))
    refused = weekly.run("schedule", "export", "ours", "--to", scheduler, *image)
    assert_plain_error(refused, 2, "the channel mail reads url from a file of this machine")


def test_install_writes_enables_and_starts_the_service(shell):
    fake = write_program(shell.folder / "bin/systemctl", 'echo "$@" >> "$HOME/calls"\nexit ${FAILS:-0}')
    path = f"{fake.parent}:{os.environ['PATH']}"
    installed = shell.run("schedule", "install", PATH=path)
    assert installed.code == 0, installed.err
    unit = shell.folder / ".config/systemd/user/advisor-schedules.service"
    assert f"Wrote {unit}" in installed.out
    assert re.search(r"ExecStart=\S+ -P -m advisor schedule run\n", unit.read_text())
    calls = "--user daemon-reload\n--user enable advisor-schedules.service\n"
    assert (shell.folder / "calls").read_text() == f"{calls}--user restart advisor-schedules.service\n"
    assert_plain_error(shell.run("schedule", "install", PATH=path, FAILS="1"), 1, "daemon-reload failed")
    assert_plain_error(shell.run("schedule", "install", PATH="/nowhere"), 2, "--to cron")


def test_json_of_an_empty_list(shell):
    assert json.loads(shell.run("schedule", "list", "--json").out)["schedules"] == []
