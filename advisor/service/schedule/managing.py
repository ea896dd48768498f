"""Schedules: added, listed, shown, removed, and exported to other schedulers."""

import json
import os
import subprocess
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

from advisor.config.delivery_settings import DeliverySettings
from advisor.config.layers import environment_variable
from advisor.config.settings import ReportSettings, ScheduleSettings, StoreSettings
from advisor.core import processes
from advisor.core.errors import AdvisorError, InputError, did_you_mean
from advisor.core.files import write_atomically
from advisor.core.values import DeliverWhen, Occurrence, Schedule, Scheduler
from advisor.schedule import exports
from advisor.schedule.recurrence import next_after
from advisor.schedule.schedulable import channels_in, check_name, check_words, name_for, schedulable
from advisor.service.delivering import check_channels
from advisor.service.listening import Listener
from advisor.service.prices.live import now
from advisor.store.database import existing_store, open_store
from advisor.store.handle import Store

_ENV = "env:"
_MOST_SHOWN = 20
_SYSTEMD_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleRequest:
    """A command and when it shall run."""

    cron: str
    """Five fields."""
    zone: str
    """Whose clock they mean."""
    command: tuple[str, ...]
    """What follows ``advisor``."""
    folder: Path
    """Where it runs."""
    name: str | None = None
    """None for one that follows from the command."""
    channel: str | None = None
    """Where its output is sent; None for nowhere."""
    when: DeliverWhen = DeliverWhen.ALWAYS
    """After which ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A schedule, when it is due next, and its last occurrences."""

    schedule: Schedule
    next_at: datetime | None
    """None if it never is due again."""
    past: tuple[Occurrence, ...] = ()
    """The newest first."""


def add_schedule(
    request: ScheduleRequest, database: StoreSettings, delivery: DeliverySettings, listener: Listener
) -> Planned:
    """Keep a new schedule.

    Raises:
        ConfigError: the settings have no such channel.
        InputError: its times, zone, command or name cannot be, or another one has its name.
    """
    from advisor.store import schedules as kept

    command = schedulable(request.command)
    check_words(request.command)
    if request.name is not None:
        check_name(request.name)
    if request.channel is None and request.when is not DeliverWhen.ALWAYS:
        when, channel = listener.name_of("when"), listener.name_of("channel")
        raise InputError(f"{when} {request.when} says when the output is sent: say where to with {channel}.")
    own = () if request.channel is None else (request.channel,)
    check_channels((*own, *channels_in(request.command)), delivery)
    with open_store(database.url) as store:
        names = [schedule.name for schedule in kept.schedules(store)]
        schedule = _schedule(request, request.name or name_for(command, names))
        planned = Planned(schedule=schedule, next_at=next_after(schedule, schedule.added_at))
        if not kept.add_schedule(store, schedule):
            raise InputError(
                f"there is a schedule {schedule.name!r} already: choose another name, or remove it first"
                f" (advisor schedule remove {schedule.name})."
            )
    return planned


def _schedule(request: ScheduleRequest, name: str) -> Schedule:
    at = now()
    return Schedule(
        id=uuid.uuid4().hex,
        name=name,
        cron=" ".join(request.cron.split()),
        zone=request.zone,
        command=request.command,
        folder=str(request.folder.absolute()),
        channel=request.channel,
        when=request.when,
        added_at=at,
        settled_until=at,
    )


def planned_schedules(database: StoreSettings) -> tuple[Planned, ...]:
    """All schedules by name, each with its last occurrence; none where there is no database yet."""
    with existing_store(database.url) as store:
        return tuple(_planned(store, schedule, most=1) for schedule in _schedules(store))


def planned_schedule(name: str, database: StoreSettings) -> Planned:
    """One schedule with its last occurrences.

    Raises InputError: there is none of this name.
    """
    with existing_store(database.url) as store:
        return _planned(store, _named(name, _schedules(store)), most=_MOST_SHOWN)


def remove_schedule(name: str, database: StoreSettings) -> None:
    """Forget a schedule and its occurrences.

    Raises InputError: there is none of this name.
    """
    from advisor.store import schedules as kept

    with existing_store(database.url) as store:
        _named(name, _schedules(store))
        assert store is not None, "it holds a schedule of this name"  # noqa: S101
        kept.remove_schedule(store, name)


def _schedules(store: Store | None) -> tuple[Schedule, ...]:
    if store is None:
        return ()
    from advisor.store.schedules import schedules

    return schedules(store)


def _named(name: str, known: Sequence[Schedule]) -> Schedule:
    for schedule in known:
        if schedule.name == name:
            return schedule
    if not known:
        raise InputError(
            f"there is no schedule {name!r}, nor any other: `advisor schedule add` makes one, see its --help."
        )
    names = [schedule.name for schedule in known]
    hint = did_you_mean(name, names) or " `advisor schedule list` shows all."
    raise InputError(f"there is no schedule {name!r}.{hint}")


def _planned(store: Store | None, schedule: Schedule, *, most: int) -> Planned:
    from advisor.store.schedules import occurrences

    past = () if store is None else occurrences(store, schedule.id, most=most)
    return Planned(schedule=schedule, next_at=next_after(schedule, now()), past=past)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRequest:
    """Which schedules, and for which scheduler."""

    scheduler: Scheduler
    name: str | None = None
    """None only with ``is_all``."""
    is_all: bool = False
    image: str | None = None
    """For Kubernetes."""


def schedule_files(
    request: ExportRequest,
    database: StoreSettings,
    limits: ScheduleSettings,
    *,
    delivery: DeliverySettings,
    report: ReportSettings,
) -> tuple[exports.ExportedFile, ...]:
    """Files for another scheduler; those that run elsewhere have the channels and teams in them.

    Raises:
        ConfigError: a schedule names a channel that there is not.
        InputError: a channel needs a file of this machine, neither a name nor all
            were asked for, there is none, or the scheduler cannot have it.
    """
    if (request.name is None) is not request.is_all:
        raise InputError("name one schedule, or ask for all of them; `advisor schedule list` shows them.")
    if request.name is None:
        wanted = [one.schedule for one in planned_schedules(database)]
    else:
        wanted = [planned_schedule(request.name, database).schedule]
    if not wanted:
        raise InputError("there are no schedules to export: see `advisor schedule add --help`.")
    # By its path: cron and systemd know few folders.
    program = processes.ADVISOR
    timeout_s, carried = limits.timeout, partial(_carried, delivery=delivery, report=report)
    match request.scheduler:
        case Scheduler.CRON:
            return exports.crontab(wanted, program)
        case Scheduler.SYSTEMD:
            return exports.systemd_units(wanted, program=program, timeout_s=timeout_s)
        case Scheduler.GITHUB_ACTIONS:
            workflow = partial(exports.workflow, timeout_s=timeout_s, now=now())
            return tuple(
                workflow(one, secrets=_secrets(one, delivery), settings=carried(one)) for one in wanted
            )
        case Scheduler.KUBERNETES:
            if request.image is None:
                raise InputError("kubernetes runs images: name one that holds advisor with --image NAME.")
            waits_s = limits.catch_up
            return exports.cron_jobs(
                wanted, image=request.image, timeout_s=timeout_s, catch_up_s=waits_s, settings=carried
            )


def _channels(schedule: Schedule, delivery: DeliverySettings) -> dict[str, dict[str, object]]:
    """The settings of its channels, which name secrets and hold none."""
    names = dict.fromkeys((*channels_in(schedule.command), *filter(None, (schedule.channel,))))
    check_channels(tuple(names), delivery)
    return {
        name: delivery.channels[name].model_dump(mode="json", by_alias=True, exclude_defaults=True)
        for name in names
    }


def _secrets(schedule: Schedule, delivery: DeliverySettings) -> tuple[str, ...]:
    """The variables that hold secrets of its channels, and the address of a database that it needs."""
    channels = _channels(schedule, delivery).values()
    texts = [text for channel in channels for text in channel.values() if isinstance(text, str)]
    variables = {text.removeprefix(_ENV) for text in texts if text.startswith(_ENV)}
    needs_store = schedule.channel is not None or schedule.command[0] == "report"
    shared = {environment_variable("store.url")} if needs_store else set()
    return tuple(sorted(variables | shared))


# Bills and policies are files of this machine; the others say how a report is divided.
_OF_REPORTS = ("organisation", "teams", "shared", "shared_by", "tags", "tokens_per_step", "project_tag")


def _carried(schedule: Schedule, delivery: DeliverySettings, report: ReportSettings) -> dict[str, str]:
    """Settings that a command needs where ours are not, as variables.

    Raises InputError: a channel needs a file of this machine.
    """
    channels = _channels(schedule, delivery)
    for name, channel in channels.items():
        for key, value in channel.items():
            if key == "ca_file" or (isinstance(value, str) and value.startswith("file:")):
                raise InputError(
                    f"the channel {name} reads {key} from a file of this machine, which is not there: name a"
                    " secret as env:NAME, or export to systemd."
                )
    carried: dict[str, object] = {"delivery.channels": channels} if channels else {}
    if schedule.command[0] == "report":
        told = report.model_dump(mode="json", exclude_defaults=True)
        carried |= {f"report.{name}": told[name] for name in _OF_REPORTS if name in told}
    return {
        environment_variable(name): json.dumps(value, ensure_ascii=False) for name, value in carried.items()
    }


def write_files(files: Sequence[exports.ExportedFile], folder: Path) -> tuple[Path, ...]:
    """The files in a folder, which is made if it is not there. Raises InputError: they cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file in files:
            write_atomically(folder / file.name, file.text.encode())
    except OSError as error:
        raise InputError(
            f"cannot write to {folder}: {error.strerror or error}: choose another folder."
        ) from error
    return tuple(folder / file.name for file in files)


def install_service(name: str, words: Sequence[str]) -> Path:
    """Let systemd run a command from now on, as the user's own service; written anew, it starts anew.

    Raises:
        AdvisorError: systemd refuses; the unit is written.
        InputError: there is no systemd here, or the unit cannot be written.
    """
    configured = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    folder = Path(configured).expanduser() / "systemd/user"
    file = exports.service_unit(name, processes.ADVISOR, words)
    (path,) = write_files((file,), folder)
    for words in (("daemon-reload",), ("enable", file.name), ("restart", file.name)):
        command = ("systemctl", "--user", *words)
        try:
            done = processes.run(command, timeout_s=_SYSTEMD_S)
        except subprocess.TimeoutExpired:
            raise AdvisorError(f"{' '.join(command)} does not end. The unit is written ({path}).") from None
        except OSError:
            raise InputError(
                f"there is no systemctl here, so nothing starts the unit ({path}): let cron run the schedules"
                " (advisor schedule export --all --to cron), or another supervisor this command."
            ) from None
        if done.returncode:
            why = done.stderr.decode(errors="replace").strip()[:500] or f"exit code {done.returncode}"
            raise AdvisorError(
                f"{' '.join(command)} failed: {why}. The unit is written ({path}): run this command again in"
                " a session of your own, not by sudo."
            )
    return path
