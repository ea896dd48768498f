"""What all exports share: what is run, and names that every scheduler takes."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from enum import StrEnum

from advisor.core.values import Schedule
from advisor.schedule.cron import Cron

ANY = "*"
# Kubernetes adds eleven characters for each job and takes 63.
_MOST = 52


class Scheduler(StrEnum):
    """Who else can run schedules."""

    CRON = "cron"
    SYSTEMD = "systemd"
    GITHUB_ACTIONS = "github-actions"
    KUBERNETES = "kubernetes"


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
    if plain == schedule.name and len(name) <= _MOST:
        return name
    # What was changed could be another one's name.
    return f"{name[: _MOST - 9].rstrip('-')}-{zlib.crc32(schedule.name.encode()):08x}"


def cron_text(cron: Cron) -> str:
    """Five fields of numbers, with Sunday as 0: what every cron reads alike.

    >>> from advisor.schedule.cron import parse_cron
    >>> cron_text(parse_cron("*/20 8 * JAN-FEB SAT,7"))
    '0,20,40 8 * 1-2 0,6'
    """
    return " ".join(
        (
            listed(cron.minutes, 60),
            listed(cron.hours, 24),
            listed(cron.days, 0),
            listed(cron.months, 12),
            listed(cron.weekdays, 0),
        )
    )


def listed(values: tuple[int, ...] | None, all_of_them: int, *, dash: str = "-", digits: int = 1) -> str:
    """Numbers as ranges and a list; ``*`` for any, or where there are all.

    Args:
        values: in order; None for any.
        all_of_them: how many there can be; 0 where a list of all means something else than any.
        dash: what stands between the ends of a range.
        digits: of each number, at least.

    >>> listed((0, 1, 2, 4), 60)
    '0-2,4'
    """
    if values is None or len(values) == all_of_them:
        return ANY
    runs: list[list[int]] = []
    for value in values:
        if runs and runs[-1][-1] == value - 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    return ",".join(_range(run, dash, digits) for run in runs)


def _range(run: list[int], dash: str, digits: int) -> str:
    first, last = f"{run[0]:0{digits}}", f"{run[-1]:0{digits}}"
    return first if len(run) == 1 else f"{first}{dash}{last}"
