"""Units of systemd, checked by systemd itself where it is installed."""

import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import pytest

from advisor.schedule.exports import on_calendar, systemd_units
from advisor.schedule.recurrence import parse_cron, times_after
from tests.machine import needs
from tests.schedules import AT, make_schedule

HOW = {"program": (sys.executable, "-m", "advisor"), "timeout_s": 3600}
AWKWARD = ("recommend", "my script.py", "--", "50 %h", "$HOME", "a'b", 'c"d', "e\\f", ";", "@x", "")
needs_systemd = needs("systemd")


def analyze(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """What systemd says."""
    folder.chmod(0o700)
    environ = os.environ | {"XDG_RUNTIME_DIR": str(folder), "TZ": "UTC", "SYSTEMD_COLORS": "0"}
    return subprocess.run(
        ["systemd-analyze", *words], capture_output=True, text=True, env=environ, timeout=60
    )


@needs_systemd
def test_systemd_takes_the_units(tmp_path):
    either = make_schedule(
        name="either", cron="*/20 8-10,12 13 1-3 FRI", command=AWKWARD, folder=str(tmp_path)
    )
    units = tmp_path / "units"
    units.mkdir()
    for file in systemd_units([make_schedule(folder=str(tmp_path)), either], **HOW):
        (units / file.name).write_text(file.text)
    done = analyze("verify", *map(str, sorted(units.iterdir())), folder=tmp_path)
    ours = [line for line in done.stderr.splitlines() if "advisor-" in line]
    assert (done.returncode, ours) == (0, []), done.stderr


@needs_systemd
def test_systemd_sees_what_is_wrong(tmp_path):
    """The check above can fail."""
    unit = tmp_path / "bad.timer"
    unit.write_text("[Timer]\nOnCalendar=Mon *-*-* 08:00:00 Europe/Zuerich\n")
    assert "Zuerich" in analyze("verify", str(unit), folder=tmp_path).stderr


@needs_systemd
@pytest.mark.parametrize(
    ("cron", "zone"),
    [
        ("0 8 * * MON", "Europe/Zurich"),
        ("*/15 9-17 * * MON-FRI", "America/New_York"),
        ("30 23 1,15 2-4 *", "Asia/Kolkata"),
        ("5 4 * * 7", "UTC"),
        ("59 23 29 2 *", "Pacific/Auckland"),
    ],
)
def test_systemd_reckons_the_same_times(cron, zone, tmp_path):
    (event,) = on_calendar(parse_cron(cron), zone)
    base = f"--base-time={AT:%Y-%m-%d %H:%M:%S} UTC"
    done = analyze("calendar", "--iterations=6", base, event, folder=tmp_path)
    shown = re.findall(r"(?:Next elapse|Iter\. #\d+): \w+ (\S+ \S+) UTC", done.stdout)
    theirs = [datetime.fromisoformat(moment).replace(tzinfo=UTC) for moment in shown]
    schedule = make_schedule(cron=cron, zone=zone)
    assert theirs == list(islice(times_after(schedule, AT), 6))


def test_a_day_of_the_month_or_of_the_week_is_two_events():
    events = list(on_calendar(parse_cron("0 8 13 * FRI"), "UTC"))
    assert events == ["*-*-13 08:00:00 UTC", "Fri *-*-* 08:00:00 UTC"]


def test_words_are_quoted_for_systemd():
    service, timer = systemd_units([make_schedule(command=AWKWARD, folder="/data/5 %")], **HOW)
    assert (service.name, timer.name) == ("advisor-weekly.service", "advisor-weekly.timer")
    (line,) = [line for line in service.text.splitlines() if line.startswith("ExecStart=")]
    assert line == (
        f'ExecStart={sys.executable} -m advisor recommend "my script.py" -- "50 %%h" "$$HOME" "a\'b"'
        r' "c\"d" "e\\f" ";" @x ""'
    )
    assert "WorkingDirectory=/data/5 %%\n" in service.text


def test_secrets_are_named_and_not_written(monkeypatch):
    monkeypatch.setenv("SMTP_PASSWORD", "hunter22")
    service, _ = systemd_units([make_schedule(channel="team-mail")], **HOW)
    assert "EnvironmentFile=-%h/.config/advisor/secrets.env" in service.text
    assert "hunter22" not in service.text
    assert service.text.count("schedule run-now weekly") == 1
