"""Schedules -> files of cron, systemd, Kubernetes and GitHub Actions, which name secrets and hold none."""

import re
import shlex
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from types import MappingProxyType

import yaml

from advisor.core.errors import InputError
from advisor.core.values import Schedule
from advisor.schedule.recurrence import Cron, listed, parse_cron, zone_of

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

    Raises InputError: a line would be longer than cron takes, or more than one.
    """
    text = _CRONTAB_HEADER
    for schedule in schedules:
        _check_lines(schedule)
        words = shlex.join((*program, *exported_words(schedule)))
        # cron makes line breaks of what is not escaped.
        command = f"cd {shlex.quote(schedule.folder)} && {words}".replace("%", r"\%")
        if len(command) > _MOST_OF_A_LINE:
            raise InputError(
                f"{schedule.name}: cron takes lines of {_MOST_OF_A_LINE} characters, and this command has"
                f" {len(command)}: export it to systemd, or move options to a settings file."
            )
        text += f"\n# {schedule.name}\nCRON_TZ={schedule.zone}\n{schedule.cron} {command}\n"
    return (ExportedFile(name="advisor.crontab", text=text),)


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


def systemd_units(
    schedules: Sequence[Schedule], *, program: Sequence[str], timeout_s: float
) -> tuple[ExportedFile, ...]:
    """A timer and a service for each schedule, for a user's own systemd.

    Raises InputError: a line would be more than one.
    """
    files = []
    for schedule in schedules:
        _check_lines(schedule)
        unit = unit_name(schedule)
        service = _SERVICE.format(
            unit=unit,
            name=schedule.name,
            folder=schedule.folder.replace("%", "%%"),
            words=" ".join(map(_quoted, (*program, *exported_words(schedule)))),
            timeout_s=timeout_s,
        )
        events = on_calendar(parse_cron(schedule.cron), schedule.zone)
        times = "\n".join(f"OnCalendar={event}" for event in events)
        timer = _TIMER.format(unit=unit, name=schedule.name, times=times)
        files += [
            ExportedFile(name=f"{unit}.service", text=service),
            ExportedFile(name=f"{unit}.timer", text=timer),
        ]
    return tuple(files)


_ALWAYS = """\
# Written by advisor; `systemctl --user disable --now {name}` ends it.
[Unit]
Description=The service {name}
After=network-online.target

[Service]
# Secrets, as NAME=value; chmod 600. It need not exist.
EnvironmentFile=-%h/.config/advisor/secrets.env
ExecStart={words}
Restart=always
TimeoutStopSec=90

[Install]
WantedBy=default.target
"""


def service_unit(name: str, program: Sequence[str], words: Sequence[str]) -> ExportedFile:
    """The unit of a service that always runs."""
    text = _ALWAYS.format(name=name, words=" ".join(map(_quoted, (*program, *words))))
    return ExportedFile(name=f"{name}.service", text=text)


def on_calendar(cron: Cron, zone: str) -> Iterator[str]:
    """The same times as calendar events: one, or two where a day of the month or of the week is enough.

    >>> list(on_calendar(parse_cron("0 8 * * MON-FRI"), "Europe/Zurich"))
    ['Mon,Tue,Wed,Thu,Fri *-*-* 08:00:00 Europe/Zurich']
    """
    several = partial(listed, dash="..", digits=2)
    clock = f"{several(cron.hours, 24)}:{several(cron.minutes, 60)}:00 {zone}"
    months = several(cron.months, 12)
    if cron.days is not None or cron.weekdays is None:
        yield f"*-{months}-{several(cron.days)} {clock}"
    if cron.weekdays is not None:
        yield f"{','.join(_WEEKDAYS[day] for day in cron.weekdays)} *-{months}-* {clock}"


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


def cron_jobs(
    schedules: Sequence[Schedule],
    *,
    image: str,
    timeout_s: float,
    catch_up_s: float,
    settings: Callable[[Schedule], Mapping[str, str]] = lambda _: {},
) -> tuple[ExportedFile, ...]:
    """A CronJob for each schedule.

    Args:
        catch_up_s: how late a missed run may still begin.
        settings: variables with settings of ours, which the image does not have; they hold no secret.
    """
    files = []
    for schedule in schedules:
        name = unit_name(schedule)
        job = {
            "backoffLimit": 1,
            "activeDeadlineSeconds": max(1, round(timeout_s)),
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [_container(schedule, image, settings(schedule))],
                }
            },
        }
        cron_job = {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": {"name": name},
            "spec": {
                "schedule": parse_cron(schedule.cron).text,
                "timeZone": schedule.zone,
                "concurrencyPolicy": "Forbid",
                "startingDeadlineSeconds": max(_LEAST_DEADLINE_S, round(catch_up_s)),
                "jobTemplate": {"spec": job},
            },
        }
        files.append(ExportedFile(name=f"{name}.yaml", text=_CRON_JOB_HEADER + _yaml_text(cron_job)))
    return tuple(files)


def _container(schedule: Schedule, image: str, settings: Mapping[str, str]) -> dict[str, object]:
    # In both texts Kubernetes puts variables: `$$` is `$`.
    variables = [{"name": name, "value": text.replace("$", "$$")} for name, text in settings.items()]
    return {
        "name": "advisor",
        "image": image,
        "command": ["advisor"],
        "args": [word.replace("$", "$$") for word in exported_words(schedule)],
        **({"env": variables} if variables else {}),
        "envFrom": [{"secretRef": {"name": "advisor", "optional": True}}],
    }


class _Blocks(yaml.SafeDumper):
    """Writes several lines as a block, as a person would."""

    def represent_str(self, text: str) -> yaml.ScalarNode:
        return self.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Blocks.add_representer(str, _Blocks.represent_str)


def _yaml_text(document: object) -> str:
    return yaml.dump(document, Dumper=_Blocks, sort_keys=False, allow_unicode=True, width=1000)


_MINUTES_PER_DAY = 24 * 60
_MONTHS = tuple(range(1, 13))
_HEADER = """\
# Written by `advisor schedule export`: put it into .github/workflows of the repository with your scripts.
# GitHub starts workflows late when it is busy, and none more often than every five minutes.
"""


def workflow(
    schedule: Schedule,
    *,
    secrets: Sequence[str],
    timeout_s: float,
    now: datetime,
    settings: Mapping[str, str] = MappingProxyType({}),
) -> ExportedFile:
    """The workflow of a schedule.

    Args:
        secrets: variables that the command needs; the repository's secrets of these names are handed on.
        timeout_s: of one run.
        now: the year that follows says which offsets a zone has.
        settings: variables with settings of ours, which the runner does not have; they hold no secret.

    Raises InputError: it cannot be said in UTC.
    """
    zone, cron, unit = zone_of(schedule.zone), parse_cron(schedule.cron), unit_name(schedule)
    days = ((now + timedelta(days=day)).astimezone(zone) for day in range(367))
    # By the offset of the zone, the present one first.
    offsets = {f"{day:%z}": day.utcoffset() or timedelta() for day in days}
    lines = {sign: tuple(one.text for one in in_utc(cron, by, schedule)) for sign, by in offsets.items()}
    steps, header = _steps(schedule, secrets, settings), _HEADER
    if len(set(lines.values())) > 1:
        guarded = ({"if": "steps.clock.outputs.counts == 'yes'", **step} for step in steps)
        steps = [_clock_step(schedule.zone, lines), *guarded]
        in_words = "; ".join(f"{' and '.join(of_one)} at {sign}" for sign, of_one in lines.items())
        header += (
            f"# {schedule.cron!r} in {schedule.zone} is, in UTC: {in_words}.\n"
            "# All are given; the first step checks which one counts. A time that the clock skips has none.\n"
        )
    # Ten minutes to install.
    job = {"runs-on": "ubuntu-latest", "timeout-minutes": round(timeout_s / 60) + 10, "steps": steps}
    document = {
        "name": f"advisor {schedule.name}",
        "on": {"schedule": [{"cron": line} for line in _all(lines)], "workflow_dispatch": {}},
        "permissions": {"contents": "read"},
        "concurrency": {"group": unit, "cancel-in-progress": False},
        "jobs": {"advisor": job},
    }
    return ExportedFile(name=f"{unit}.yml", text=header + _yaml_text(document))


def _steps(
    schedule: Schedule, secrets: Sequence[str], settings: Mapping[str, str]
) -> list[dict[str, object]]:
    run: dict[str, object] = {"run": _literal(shlex.join(("advisor", *exported_words(schedule))))}
    variables = {name: f"${{{{ secrets.{name} }}}}" for name in secrets}
    variables |= {name: _literal(text) for name, text in settings.items()}
    if variables:
        run["env"] = variables
    return [
        {"uses": "actions/checkout@v4", "with": {"persist-credentials": False}},
        {"uses": "actions/setup-python@v5", "with": {"python-version": "3.12"}},
        {"run": "pip install gpu-advisor"},
        run,
    ]


def _all(lines: Mapping[str, tuple[str, ...]]) -> list[str]:
    return sorted({line for of_one in lines.values() for line in of_one})


def _clock_step(zone: str, lines: Mapping[str, tuple[str, ...]]) -> dict[str, object]:
    """Whether the line that started the workflow is that of the offset which the zone has now."""
    cases = "\n".join(
        f'  "{line}") wanted="{" ".join(sign for sign, of_one in lines.items() if line in of_one)}" ;;'
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

    Raises InputError: days of the month would have to move to another month.
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
