"""Schedules as workflows of GitHub Actions, whose cron knows UTC alone."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias
from zoneinfo import ZoneInfo

from advisor.core.errors import InputError
from advisor.core.values import Schedule
from advisor.schedule.exports import ExportedFile, exported_words, unit_name, yaml_text
from advisor.schedule.recurrence import Cron, parse_cron, zone_of

_MINUTES_PER_DAY = 24 * 60
_Lines: TypeAlias = Mapping[timedelta, tuple[str, ...]]
"""The lines of cron in UTC, by the offset of the zone."""
_MONTHS = tuple(range(1, 13))
_HEADER = """\
# Written by `advisor schedule export`: put it into .github/workflows of the repository with your scripts.
# GitHub starts workflows late when it is busy, and none more often than every five minutes.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowPlan:
    """How workflows are made.

    Attributes:
        secrets: variables that the command needs; the repository's secrets of these names are handed on.
        timeout_s: of one run.
        now: the year that follows says which offsets a zone has.
    """

    secrets: Sequence[str]
    timeout_s: float
    now: datetime


def workflow(schedule: Schedule, plan: WorkflowPlan) -> ExportedFile:
    """The workflow of a schedule.

    Raises:
        InputError: it cannot be said in UTC.
    """
    zone, cron = zone_of(schedule.zone), parse_cron(schedule.cron)
    lines = {
        offset: tuple(one.text for one in in_utc(cron, offset, schedule))
        for offset in _offsets(zone, plan.now)
    }
    unit = unit_name(schedule)
    document = {
        "name": f"advisor {schedule.name}",
        "on": {"schedule": [{"cron": line} for line in _all(lines)], "workflow_dispatch": {}},
        "permissions": {"contents": "read"},
        "concurrency": {"group": unit, "cancel-in-progress": False},
        "jobs": {"advisor": _job(schedule, plan, lines)},
    }
    return ExportedFile(name=f"{unit}.yml", text=_header(schedule, lines) + yaml_text(document))


def _job(schedule: Schedule, plan: WorkflowPlan, lines: _Lines) -> dict[str, object]:
    steps = _steps(schedule, plan)
    if _follows_clock(lines):
        guarded = [{"if": "steps.clock.outputs.counts == 'yes'", **step} for step in steps]
        steps = [_clock_step(schedule.zone, lines), *guarded]
    # Ten minutes to install.
    return {
        "runs-on": "ubuntu-latest",
        "timeout-minutes": round(plan.timeout_s / 60) + 10,
        "steps": steps,
    }


def _follows_clock(lines: _Lines) -> bool:
    return len(set(lines.values())) > 1


def _all(lines: _Lines) -> list[str]:
    return sorted({line for of_one in lines.values() for line in of_one})


def _header(schedule: Schedule, lines: _Lines) -> str:
    if not _follows_clock(lines):
        return _HEADER
    in_utc_words = "; ".join(f"{' and '.join(of_one)} at {_sign(offset)}" for offset, of_one in lines.items())
    return (
        f"{_HEADER}# {schedule.cron!r} in {schedule.zone} is, in UTC: {in_utc_words}.\n"
        "# All are given; the first step checks which one counts. A time that the clock skips has none.\n"
    )


def _steps(schedule: Schedule, plan: WorkflowPlan) -> list[dict[str, object]]:
    run: dict[str, object] = {"run": _literal(shlex.join(("advisor", *exported_words(schedule))))}
    if plan.secrets:
        run["env"] = {name: f"${{{{ secrets.{name} }}}}" for name in plan.secrets}
    return [
        {"uses": "actions/checkout@v4", "with": {"persist-credentials": False}},
        {"uses": "actions/setup-python@v5", "with": {"python-version": "3.12"}},
        {"run": "pip install gpu-advisor"},
        run,
    ]


def _clock_step(zone: str, lines: _Lines) -> dict[str, object]:
    """Whether the line that started the workflow is that of the offset which the zone has now."""
    cases = "\n".join(
        f'  "{line}") wanted="{" ".join(_sign(o) for o, of_one in lines.items() if line in of_one)}" ;;'
        for line in _all(lines)
    )
    script = f"""\
offset=$(TZ={shlex.quote(zone)} date +%z)
case "$LINE" in
{cases}
  *) wanted="$offset" ;;
esac
case " $wanted " in *" $offset "*) echo counts=yes >> "$GITHUB_OUTPUT" ;; esac
"""
    return {"id": "clock", "env": {"LINE": "${{ github.event.schedule }}"}, "run": script}


def _literal(text: str) -> str:
    """Text that GitHub does not read as an expression."""
    return text.replace("${{", "${{ '${{' }}")


def in_utc(cron: Cron, offset: timedelta, schedule: Schedule) -> Iterator[Cron]:
    """The same times on a clock that is ``offset`` behind: one cron, or more where hours and minutes part.

    Raises:
        InputError: days of the month would have to move to another month.
    """
    behind = round(offset.total_seconds() / 60)
    names_days = cron.weekdays is not None or cron.days is not None or cron.months != _MONTHS
    moved: dict[tuple[int, int], list[int]] = defaultdict(list)
    for minute in cron.minutes:
        for hour in cron.hours:
            days, rest = divmod(hour * 60 + minute - behind, _MINUTES_PER_DAY)
            moved[days if names_days else 0, rest % 60].append(rest // 60)
    parts: dict[tuple[int, tuple[int, ...]], list[int]] = defaultdict(list)
    for (days, minute), of_minute in moved.items():
        parts[days, tuple(sorted(of_minute))].append(minute)
    for (days, hours), minutes in sorted(parts.items()):
        if days and (cron.days is not None or cron.months != _MONTHS):
            raise InputError(
                f"{schedule.name}: GitHub Actions knows UTC alone, where {schedule.cron!r} of {schedule.zone}"
                " falls on another day: choose an hour further from midnight, or export to systemd."
            )
        weekdays = cron.weekdays and tuple(sorted((day + days) % 7 for day in cron.weekdays))
        yield Cron(
            minutes=tuple(sorted(minutes)), hours=hours, days=cron.days, months=cron.months, weekdays=weekdays
        )


def _offsets(zone: ZoneInfo, now: datetime) -> list[timedelta]:
    """The offsets of the year that follows, the present one first."""
    days = (now + timedelta(days=day) for day in range(367))
    return list(dict.fromkeys(day.astimezone(zone).utcoffset() or timedelta() for day in days))


def _sign(offset: timedelta) -> str:
    minutes = round(offset.total_seconds() / 60)
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}{abs(minutes) % 60:02}"
