"""Schedules -> files of cron, systemd and Kubernetes, which name secrets and hold none.

GitHub Actions, whose cron knows UTC alone, is in ``github_actions``.
"""

from __future__ import annotations

import re
import shlex
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import yaml

from advisor.core.errors import InputError
from advisor.core.values import Schedule
from advisor.schedule.recurrence import Cron, listed, parse_cron

# Kubernetes adds eleven characters to a name for each job and takes 63.
_MOST_OF_A_NAME = 52


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedFile:
    """A file for another scheduler."""

    name: str
    text: str


def exported_words(schedule: Schedule) -> tuple[str, ...]:
    """What another scheduler runs: the command, or where its output is delivered, all that belongs to it."""
    if schedule.channel is None:
        return schedule.command
    return ("schedule", "run-now", schedule.name)


def unit_name(schedule: Schedule) -> str:
    """A name of lower-case letters, digits and dashes; two schedules never share one.

    >>> from tests.schedules import make_schedule
    >>> unit_name(make_schedule(name="weekly"))
    'advisor-weekly'
    """
    plain = re.sub(r"[^a-z0-9]+", "-", schedule.name.lower()).strip("-")
    name = f"advisor-{plain}"
    if plain == schedule.name and len(name) <= _MOST_OF_A_NAME:
        return name
    # What was changed could be another one's name.
    return f"{name[: _MOST_OF_A_NAME - 9].rstrip('-')}-{zlib.crc32(schedule.name.encode()):08x}"


# A folder may be named by anybody, and what follows a line break would be a line of its own.
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def _check_lines(schedule: Schedule) -> None:
    texts = (schedule.name, schedule.cron, schedule.zone, schedule.folder, *exported_words(schedule))
    broken = [text for text in texts if _CONTROL.search(text)]
    # systemd joins the next line to one that ends so.
    if broken or schedule.folder.endswith("\\"):
        raise InputError(
            f"{schedule.name}: {(broken or [schedule.folder])[0]!r} has a line break, another control"
            " character or a backslash at its end, which no line of cron or systemd can hold: rename it, and"
            " add the schedule again."
        )


# Of Vixie's cron, from which all others come.
_MOST_OF_A_LINE = 998
_CRONTAB_HEADER = """\
# Written by `advisor schedule export`: add these lines with `crontab -e`.
# WARNING: cronie (Fedora, RHEL, Arch) reads CRON_TZ. The cron of Debian and Ubuntu ignores it and takes the
# machine's time zone: set that to the zone below, or export to systemd.
"""


def crontab(schedules: Sequence[Schedule], program: Sequence[str]) -> tuple[ExportedFile, ...]:
    """One file with a line for each schedule.

    Args:
        schedules: what is to run.
        program: how advisor is called, by an absolute path: cron knows few folders.

    Raises:
        InputError: a line would be longer than cron takes, or more than one.
    """
    text = _CRONTAB_HEADER + "".join(f"\n{_lines(schedule, program)}" for schedule in schedules)
    return (ExportedFile(name="advisor.crontab", text=text),)


def _lines(schedule: Schedule, program: Sequence[str]) -> str:
    _check_lines(schedule)
    words = shlex.join((*program, *exported_words(schedule)))
    # cron makes line breaks of what is not escaped.
    command = f"cd {shlex.quote(schedule.folder)} && {words}".replace("%", r"\%")
    if len(command) > _MOST_OF_A_LINE:
        raise InputError(
            f"{schedule.name}: cron takes lines of {_MOST_OF_A_LINE} characters, and this command has"
            f" {len(command)}: export it to systemd, or move options to a settings file."
        )
    return f"# {schedule.name}\nCRON_TZ={schedule.zone}\n{schedule.cron} {command}\n"


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
    """A timer and a service for each schedule, for a user's own systemd.

    Raises:
        InputError: a line would be more than one.
    """
    return tuple(file for schedule in schedules for file in _units(schedule, plan))


def _units(schedule: Schedule, plan: SystemdPlan) -> Iterator[ExportedFile]:
    _check_lines(schedule)
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
    clock = f"{_systemd_list(cron.hours, 24)}:{_systemd_list(cron.minutes, 60)}:00 {zone}"
    months = _systemd_list(cron.months, 12)
    if cron.days is not None or cron.weekdays is None:
        yield f"*-{months}-{_systemd_list(cron.days)} {clock}"
    if cron.weekdays is not None:
        yield f"{','.join(_WEEKDAYS[day] for day in cron.weekdays)} *-{months}-* {clock}"


def _systemd_list(values: tuple[int, ...] | None, all_of_them: int | None = None) -> str:
    return listed(values, all_of_them, dash="..", digits=2)


def _quoted(word: str) -> str:
    """A word of ExecStart: % and $ stand for themselves, and quotes hold it together."""
    escaped = word.replace("%", "%%").replace("$", "$$")
    if _PLAIN.fullmatch(escaped):
        return escaped
    escaped = escaped.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


_CRON_JOB_HEADER = """\
# Written by `advisor schedule export`: kubectl apply -f FILE
# The image holds advisor and the files that the command names; it runs in the image's own folder.
# Secrets come from a Secret named advisor, if there is one:
#   kubectl create secret generic advisor --from-env-file=FILE
"""
# A deadline of less would let the controller miss every run.
_LEAST_DEADLINE_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class CronJobPlan:
    """How jobs are made.

    Attributes:
        image: that holds advisor.
        timeout_s: of one run.
        catch_up_s: how late a missed run may still begin.
    """

    image: str
    timeout_s: float
    catch_up_s: float


def cron_jobs(schedules: Sequence[Schedule], plan: CronJobPlan) -> tuple[ExportedFile, ...]:
    """A CronJob for each schedule."""
    return tuple(
        ExportedFile(name=f"{unit_name(s)}.yaml", text=_CRON_JOB_HEADER + yaml_text(_cron_job(s, plan)))
        for s in schedules
    )


def _cron_job(schedule: Schedule, plan: CronJobPlan) -> dict[str, object]:
    container = {
        "name": "advisor",
        "image": plan.image,
        "command": ["advisor"],
        "args": [_kubernetes_word(word) for word in exported_words(schedule)],
        "envFrom": [{"secretRef": {"name": "advisor", "optional": True}}],
    }
    job = {
        "backoffLimit": 1,
        "activeDeadlineSeconds": max(1, round(plan.timeout_s)),
        "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": unit_name(schedule)},
        "spec": {
            "schedule": parse_cron(schedule.cron).text,
            "timeZone": schedule.zone,
            "concurrencyPolicy": "Forbid",
            "startingDeadlineSeconds": max(_LEAST_DEADLINE_S, round(plan.catch_up_s)),
            "jobTemplate": {"spec": job},
        },
    }


def _kubernetes_word(word: str) -> str:
    """Text in which Kubernetes puts no variable."""
    return word.replace("$(", "$$(")


class _Blocks(yaml.SafeDumper):
    pass


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Blocks.add_representer(str, _text)


def yaml_text(document: Mapping[str, object]) -> str:
    """A document that every YAML reader reads back as it was."""
    return yaml.dump(dict(document), Dumper=_Blocks, sort_keys=False, allow_unicode=True, width=1000)
