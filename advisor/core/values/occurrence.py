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
    """A command of advisor and the times at which it runs."""

    id: str
    name: str
    cron: str
    """Five fields: minute, hour, day of month, month, day of week."""
    zone: str
    """Whose clock the fields mean, such as ``Europe/Zurich``."""
    command: tuple[str, ...]
    """What follows ``advisor``."""
    folder: str
    """Where it runs, an absolute path."""
    channel: str | None
    """Where its output is sent; None for nowhere."""
    when: DeliverWhen
    """After which ends it is sent."""
    added_at: datetime
    """With a time zone."""
    settled_until: datetime
    """What was due up to here has run, runs or was missed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """One time at which a schedule was due."""

    schedule_id: str
    due_at: datetime
    """With a time zone."""
    state: OccurrenceState
    holder: str = ""
    """The process that runs it or ran it; "" if it was missed."""
    expires_at: datetime | None = None
    """When it is attempted again; None where it is not waiting for that."""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    attempts: int = 0
    """How often its command was started."""
    exit_code: int | None = None
    """None if it has not ended by itself."""
    recommended: str | None = None
    """Id of the option that it recommended; None if it recommended nothing."""
    outcome: str = ""
    """How it ended, in a few words."""
    delivery: str = ""
    """What became of its output; "" if it is for no channel, or did not reach it."""
    output_sha256: str | None = None
    """Of all that it wrote to stdout; None if it has not ended."""
    output: str = ""
    """What it wrote, without secrets and perhaps without its middle."""
