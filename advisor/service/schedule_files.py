"""Schedules -> files of other schedulers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from advisor.config.layers import environment_variable
from advisor.core import processes
from advisor.core.errors import InputError
from advisor.core.files import write_atomically
from advisor.core.values import Schedule
from advisor.schedule.exports.exported import ExportedFile, Scheduler
from advisor.schedule.schedulable import channels_in
from advisor.service.live import now
from advisor.service.scheduling import planned_schedule, planned_schedules

if TYPE_CHECKING:
    from advisor.config.layers import Config

_ENV = "env:"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRequest:
    """Which schedules, and who shall run them.

    Attributes:
        name: None only with ``is_all``.
        image: for Kubernetes.
    """

    scheduler: Scheduler
    name: str | None = None
    is_all: bool = False
    image: str | None = None


def schedule_files(request: ExportRequest, config: Config) -> tuple[ExportedFile, ...]:
    """Files for the scheduler that was asked for.

    Raises:
        InputError: neither a name nor all were asked for, there is none, or the scheduler cannot have it.
        StoreError: the database cannot be read.
    """
    if (request.name is None) is not request.is_all:
        raise InputError("name one schedule, or ask for all of them; `advisor schedule list` shows them.")
    planned = planned_schedules(config) if request.name is None else (planned_schedule(request.name, config),)
    wanted = [one.schedule for one in planned]
    if not wanted:
        raise InputError("there are no schedules to export: see `advisor schedule add --help`.")
    return _files(wanted, request, config)


def _files(wanted: Sequence[Schedule], request: ExportRequest, config: Config) -> tuple[ExportedFile, ...]:
    # By its path: cron and systemd know few folders.
    program = processes.ADVISOR
    match request.scheduler:
        case Scheduler.CRON:
            from advisor.schedule.exports.crontab import crontab

            return crontab(wanted, program)
        case Scheduler.SYSTEMD:
            from advisor.schedule.exports.systemd import SystemdPlan, systemd_units

            return systemd_units(
                wanted, SystemdPlan(program=program, timeout_s=config.settings.schedule.timeout)
            )
        case Scheduler.GITHUB_ACTIONS:
            return tuple(_workflow(schedule, config) for schedule in wanted)
        case Scheduler.KUBERNETES:
            return _cron_jobs(wanted, request.image, config)
        case _:
            assert_never(request.scheduler)


def _workflow(schedule: Schedule, config: Config) -> ExportedFile:
    from advisor.schedule.exports.github_actions import WorkflowPlan, workflow

    timeout_s = config.settings.schedule.timeout
    return workflow(
        schedule, WorkflowPlan(secrets=_secrets(schedule, config), timeout_s=timeout_s, now=now())
    )


def _cron_jobs(wanted: Sequence[Schedule], image: str | None, config: Config) -> tuple[ExportedFile, ...]:
    from advisor.schedule.exports.kubernetes import CronJobPlan, cron_jobs

    if image is None:
        raise InputError("kubernetes runs images: name one that holds advisor with --image NAME.")
    limits = config.settings.schedule
    return cron_jobs(wanted, CronJobPlan(image=image, timeout_s=limits.timeout, catch_up_s=limits.catch_up))


def _secrets(schedule: Schedule, config: Config) -> tuple[str, ...]:
    """Variables whose values are secret: of its channels, and the database that services share."""
    names = {*channels_in(schedule.command), schedule.channel}
    channels = (one for name, one in config.settings.delivery.channels.items() if name in names)
    values = (value for channel in channels for value in channel.model_dump(mode="json").values())
    variables = {
        text.removeprefix(_ENV) for text in values if isinstance(text, str) and text.startswith(_ENV)
    }
    shared = {environment_variable("store.url")} if schedule.channel is not None else set()
    return tuple(sorted(variables | shared))


def write_files(files: Sequence[ExportedFile], folder: Path) -> tuple[Path, ...]:
    """The files in a folder, which is made if it is not there.

    Raises:
        InputError: they cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file in files:
            write_atomically(folder / file.name, file.text.encode())
    except OSError as error:
        raise InputError(
            f"cannot write to {folder}: {error.strerror or error}: choose another folder."
        ) from error
    return tuple(folder / file.name for file in files)
