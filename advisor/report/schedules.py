"""Schedules and their occurrences as documents, and as JSON (docs/json.md)."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from advisor.core.values import Occurrence, OccurrenceState, Schedule
from advisor.report.cells import PLAIN, SHORT_DURATION, Cell
from advisor.report.document import NARROW, Column, Document, Fact, Lines, Row, Section, Table, Tone, columns
from advisor.schedule.recurrence import zone_of

if TYPE_CHECKING:
    from advisor.service.schedule.managing import Planned

NO_SCHEDULES = "No schedules yet. An example: advisor schedule add '0 6 * * *' -- prices refresh"
_COLUMNS = (
    *columns("Name", "Times", "Next", "Next (UTC)", wraps=False),
    *columns("Last", "Command"),
)
_PAST_COLUMNS = (
    *columns("Due", "State", wraps=False),
    Column("Attempts", PLAIN, wraps=False),
    Column("Took", SHORT_DURATION, wraps=False),
    *columns("Outcome", "Delivery"),
)
_TONES = {
    OccurrenceState.DONE: Tone.PLAIN,
    OccurrenceState.FAILED: Tone.BAD,
    OccurrenceState.MISSED: Tone.DOUBTFUL,
}
_NEVER = "never"


def schedules_document(planned: Sequence[Planned]) -> Document:
    """A row for each schedule: its next time on its own clock and in UTC, and how it ended last."""
    table = Table(
        columns=_COLUMNS,
        rows=tuple(Row(_cells(one), _tone(one)) for one in planned),
        narrow=tuple(Section(one.schedule.name, _facts(one)) for one in planned),
        narrow_below=NARROW,
    )
    return Document(
        facts={"schedules": [_json(one) for one in planned], "warnings": []},
        blocks=(table,) if planned else (Lines((NO_SCHEDULES,)),),
        sheet=table,
    )


def schedule_document(planned: Planned) -> Document:
    """One schedule, its last occurrences, and what the newest that ran has written."""
    rows = tuple(
        Row(_past_cells(planned.schedule, one), _TONES.get(one.state, Tone.PLAIN)) for one in planned.past
    )
    ran = next((one for one in planned.past if one.output), None)
    title = "" if ran is None else f"What it wrote, {_on_its_clock(planned.schedule, ran.due_at)}:"
    return Document(
        facts={
            "schedule": _json(planned),
            "occurrences": [_occurrence(one) for one in planned.past],
            "warnings": [],
        },
        blocks=(
            Section(planned.schedule.name, _facts(planned)),
            *((Table(columns=_PAST_COLUMNS, rows=rows),) if rows else ()),
            *((Lines(("", title, *ran.output.splitlines())),) if ran is not None else ()),
        ),
        sheet=Table(columns=_PAST_COLUMNS, rows=rows),
    )


def added_document(planned: Planned) -> Document:
    """What was added, and when it runs first."""
    schedule = planned.schedule
    when = _NEVER if planned.next_at is None else _on_its_clock(schedule, planned.next_at)
    lines = (
        f"Added {schedule.name}: advisor {shlex.join(schedule.command)}",
        f"  in {schedule.folder}, next {when} ({_in_utc(planned.next_at)})",
        "  It runs while `advisor schedule run` does, or where `advisor schedule export` puts it.",
    )
    return Document(facts={"schedule": _json(planned), "warnings": []}, blocks=(Lines(lines),))


def output_document(schedule: Schedule, ended: Occurrence) -> Document:
    """What a command wrote, for those to whom it is sent."""
    title = f"advisor {shlex.join(schedule.command)}: {ended.outcome}"
    due = f"Schedule {schedule.name}, due {_on_its_clock(schedule, ended.due_at)}"
    return Document(
        facts={"schedule": schedule.name, "occurrence": _occurrence(ended), "warnings": []},
        blocks=(Section(title, (due,)), Lines(("", *ended.output.splitlines()))),
    )


def ran_document(schedule_name: str, occurrence: Occurrence) -> Document:
    """How an occurrence ended, below what it wrote."""
    delivery = f"; {occurrence.delivery}" if occurrence.delivery else ""
    end = f"{schedule_name}: {occurrence.state}, {occurrence.outcome}{delivery}"
    return Document(
        facts={"occurrence": _occurrence(occurrence), "warnings": []},
        blocks=(Lines((*occurrence.output.splitlines(), end)),),
    )


def _cells(planned: Planned) -> tuple[Cell, ...]:
    schedule = planned.schedule
    next_at = planned.next_at
    times = (schedule.cron, schedule.zone)
    on_clock = _NEVER if next_at is None else _on_its_clock(schedule, next_at)
    return schedule.name, times, on_clock, _in_utc(next_at), _last(planned), _command(schedule)


def _facts(planned: Planned) -> tuple[Fact, ...]:
    schedule = planned.schedule
    next_at = planned.next_at
    to = "" if schedule.channel is None else f"{schedule.channel}, {schedule.when}"
    facts = (
        Fact("Times", f"{schedule.cron} in {schedule.zone}"),
        Fact("Next", _NEVER if next_at is None else _on_its_clock(schedule, next_at), _in_utc(next_at)),
        Fact("Last", _last(planned) or "-"),
        Fact("Command", _command(schedule), f"in {schedule.folder}"),
    )
    return (*facts, Fact("Output goes to", to)) if to else facts


def _command(schedule: Schedule) -> str:
    return shlex.join(schedule.command)


def _last(planned: Planned) -> str | None:
    if not planned.past:
        return None
    last = planned.past[0]
    outcome = f": {last.outcome}" if last.outcome else ""
    return f"{last.state} {_on_its_clock(planned.schedule, last.due_at)}{outcome}"


def _past_cells(schedule: Schedule, one: Occurrence) -> tuple[Cell, ...]:
    due = _on_its_clock(schedule, one.due_at)
    return due, str(one.state), one.attempts, _took_s(one), one.outcome or None, one.delivery or None


def _took_s(one: Occurrence) -> float | None:
    if one.started_at is None or one.ended_at is None:
        return None
    return (one.ended_at - one.started_at).total_seconds()


def _tone(planned: Planned) -> Tone:
    return _TONES.get(planned.past[0].state, Tone.PLAIN) if planned.past else Tone.PLAIN


def _on_its_clock(schedule: Schedule, moment: datetime) -> str:
    return f"{moment.astimezone(zone_of(schedule.zone)):%a %Y-%m-%d %H:%M %Z}"


def _in_utc(moment: datetime | None) -> str:
    return _NEVER if moment is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _json(planned: Planned) -> dict[str, object]:
    schedule, next_at = planned.schedule, planned.next_at
    local = None if next_at is None else next_at.astimezone(zone_of(schedule.zone)).isoformat()
    return asdict(schedule) | {
        "added_at": schedule.added_at.isoformat(),
        "settled_until": schedule.settled_until.isoformat(),
        "next_at": None if next_at is None else next_at.isoformat(),
        "next_at_local": local,
        "last": _occurrence(planned.past[0]) if planned.past else None,
    }


def _occurrence(one: Occurrence) -> dict[str, object]:
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in asdict(one).items()
    }
