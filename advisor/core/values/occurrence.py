"""What runs at set times: a schedule, and each time at which it was due."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class DeliverWhen(StrEnum):
    """After which ends of a command its output is delivered."""

    ALWAYS = "always"
    OK = "ok"
    FAILS = "fails"
    CHANGES = "changes"
    OVER = "over"


class Scheduler(StrEnum):
    """Other schedulers, to which schedules can be exported."""

    CRON = "cron"
    SYSTEMD = "systemd"
    GITHUB_ACTIONS = "github-actions"
    KUBERNETES = "kubernetes"


class OccurrenceState(StrEnum):
    """How far an occurrence has come; a claimed one waits for its next attempt."""

    CLAIMED = "claimed"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    MISSED = "missed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A command of advisor and the times at which it runs.

    Attributes:
        cron: five fields: minute, hour, day of month, month, day of week.
        zone: whose clock the fields mean, such as ``Europe/Zurich``.
        command: what follows ``advisor``.
        folder: where it runs, an absolute path.
        channel: where its output is sent; None for nowhere.
        when: after which ends it is sent.
        added_at: with a time zone.
        settled_until: what was due up to here has run, runs or was missed.
    """

    id: str
    name: str
    cron: str
    zone: str
    command: tuple[str, ...]
    folder: str
    channel: str | None
    when: DeliverWhen
    added_at: datetime
    settled_until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """One time at which a schedule was due.

    Attributes:
        due_at: with a time zone.
        holder: the process that runs it or ran it; "" if it was missed.
        expires_at: when it is attempted again; None where it is not waiting for that.
        attempts: how often its command was started.
        exit_code: None if it has not ended by itself.
        recommended: id of the option that it recommended; None if it recommended nothing.
        outcome: how it ended, in a few words.
        delivery: what became of its output; "" if it is for no channel, or did not reach it.
        output_sha256: of all that it wrote to stdout; None if it has not ended.
        output: what it wrote, without secrets and perhaps without its middle.
    """

    schedule_id: str
    due_at: datetime
    state: OccurrenceState
    holder: str = ""
    expires_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    attempts: int = 0
    exit_code: int | None = None
    recommended: str | None = None
    outcome: str = ""
    delivery: str = ""
    output_sha256: str | None = None
    output: str = ""
