"""Schedules as timers and services of systemd (systemd.time(7), systemd.service(5))."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from advisor.core.values import Schedule
from advisor.schedule.cron import Cron, parse_cron
from advisor.schedule.exports.exported import ExportedFile, exported_words, listed, unit_name

_WEEKDAYS = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")
_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./~^-]+")

_SERVICE = """\
# Written by `advisor schedule export`: put it into ~/.config/systemd/user beside {unit}.timer.
[Unit]
Description=advisor schedule {name}

[Service]
Type=oneshot
WorkingDirectory={folder}
# Secrets, as NAME=value; chmod 600. It need not exist.
EnvironmentFile=-%h/.config/advisor/secrets.env
ExecStart={words}
TimeoutStartSec={timeout_s:.0f}
"""
_TIMER = """\
# Written by `advisor schedule export`: systemctl --user enable --now {unit}.timer
# It runs while you are logged in; `loginctl enable-linger` lets it run always.
[Unit]
Description=Times of the advisor schedule {name}

[Timer]
{times}
AccuracySec=1s
# A time that the machine was off for is caught up once.
Persistent=true

[Install]
WantedBy=timers.target
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemdPlan:
    """How units are made.

    Attributes:
        program: how advisor is called, by an absolute path.
        timeout_s: of one run.
    """

    program: Sequence[str]
    timeout_s: float


def systemd_units(schedules: Sequence[Schedule], plan: SystemdPlan) -> tuple[ExportedFile, ...]:
    """A timer and a service for each schedule, for a user's own systemd."""
    return tuple(file for schedule in schedules for file in _units(schedule, plan))


def _units(schedule: Schedule, plan: SystemdPlan) -> Iterator[ExportedFile]:
    unit = unit_name(schedule)
    service = _SERVICE.format(
        unit=unit,
        name=schedule.name,
        folder=schedule.folder.replace("%", "%%"),
        words=" ".join(map(_quoted, (*plan.program, *exported_words(schedule)))),
        timeout_s=plan.timeout_s,
    )
    yield ExportedFile(name=f"{unit}.service", text=service)
    events = on_calendar(parse_cron(schedule.cron), schedule.zone)
    times = "\n".join(f"OnCalendar={event}" for event in events)
    yield ExportedFile(name=f"{unit}.timer", text=_TIMER.format(unit=unit, name=schedule.name, times=times))


def on_calendar(cron: Cron, zone: str) -> Iterator[str]:
    """The same times as calendar events: one, or two where a day of the month or of the week is enough.

    >>> list(on_calendar(parse_cron("0 8 * * MON-FRI"), "Europe/Zurich"))
    ['Mon,Tue,Wed,Thu,Fri *-*-* 08:00:00 Europe/Zurich']
    """
    clock = f"{_list(cron.hours, 24)}:{_list(cron.minutes, 60)}:00 {zone}"
    months = _list(cron.months, 12)
    if cron.days is not None or cron.weekdays is None:
        yield f"*-{months}-{_list(cron.days, 0)} {clock}"
    if cron.weekdays is not None:
        yield f"{','.join(_WEEKDAYS[day] for day in cron.weekdays)} *-{months}-* {clock}"


def _list(values: tuple[int, ...] | None, all_of_them: int) -> str:
    return listed(values, all_of_them, dash="..", digits=2)


def _quoted(word: str) -> str:
    """A word of ExecStart: % and $ stand for themselves, and quotes hold it together."""
    escaped = word.replace("%", "%%").replace("$", "$$")
    if _PLAIN.fullmatch(escaped):
        return escaped
    escaped = escaped.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
