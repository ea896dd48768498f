"""Schedules as lines of a crontab."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from advisor.core.errors import InputError
from advisor.core.values import Schedule
from advisor.schedule.exports.exported import ExportedFile, exported_words

# Of Vixie's cron, from which all others come.
_MOST_CHARACTERS = 998
_HEADER = """\
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
        InputError: a line would be longer than cron takes.
    """
    text = _HEADER + "".join(f"\n{_lines(schedule, program)}" for schedule in schedules)
    return (ExportedFile(name="advisor.crontab", text=text),)


def _lines(schedule: Schedule, program: Sequence[str]) -> str:
    words = shlex.join((*program, *exported_words(schedule)))
    # cron makes line breaks of what is not escaped.
    command = f"cd {shlex.quote(schedule.folder)} && {words}".replace("%", r"\%")
    if len(command) > _MOST_CHARACTERS:
        raise InputError(
            f"{schedule.name}: cron takes lines of {_MOST_CHARACTERS} characters, and this command has"
            f" {len(command)}: export it to systemd, or move options to a settings file."
        )
    return f"# {schedule.name}\nCRON_TZ={schedule.zone}\n{schedule.cron} {command}\n"
