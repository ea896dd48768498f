"""What is sent and what runs at set times, as tables."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from advisor.core.values import Occurrence, OccurrenceState, Schedule
from advisor.delivery.posting import Delivery, Outcome
from advisor.report import document as doc
from advisor.schedule.recurrence import zone_of
from advisor.service.delivering import ChannelState

if TYPE_CHECKING:
    from advisor.service.schedule.managing import Planned


COLUMNS = (
    *doc.columns("Channel", "Outcome", "When (UTC)", ("Attempts", doc.COUNT), wraps=False),
    *doc.columns("To", "Note"),
)
_OUTCOMES = {
    Outcome.SENT: ("sent", doc.Tone.GOOD),
    Outcome.SENT_BEFORE: ("sent before", doc.Tone.FAINT),
    Outcome.PERHAPS: ("perhaps sent", doc.Tone.DOUBTFUL),
    Outcome.BUSY: ("being sent", doc.Tone.DOUBTFUL),
    Outcome.FAILED: ("not sent", doc.Tone.BAD),
}
_CUT_OFF = "a process ended in the middle of sending it"


def deliveries_document(deliveries: Sequence[Delivery]) -> doc.Document:
    """A row for each channel."""
    rows = []
    for one in deliveries:
        word, tone = _OUTCOMES[one.outcome]
        rows.append(doc.Row((one.channel, word, _minute(one.at), one.attempts, one.target, _note(one)), tone))
    return doc.Document(
        facts={"deliveries": list(map(doc.all_facts_of, deliveries)), "warnings": []},
        blocks=(doc.Table(columns=COLUMNS, rows=tuple(rows)),),
    )


def failures_in_words(deliveries: Sequence[Delivery]) -> tuple[str, ...]:
    """A line for each channel that the answer did not surely reach."""
    return tuple(
        f"{one.channel}: {_OUTCOMES[one.outcome][0]}: {_note(one)}" for one in deliveries if not one.is_there
    )


def trial_document(at: datetime) -> doc.Document:
    """What `advisor deliver test` sends."""
    text = f"A test, sent by `advisor deliver test` at {_minute(at)} UTC. There is nothing to do."
    return doc.Document(facts={"test": True, "warnings": []}, blocks=(doc.Section(text, ()),))


def _note(one: Delivery) -> str:
    match one.outcome:
        case Outcome.SENT_BEFORE:
            return one.error or "not sent again"
        case Outcome.PERHAPS:
            return (
                f"{one.error or _CUT_OFF}; it is not repeated. Look for it, and send it with another"
                " ADVISOR_DELIVERY_KEY if it is missing"
            )
        case Outcome.BUSY:
            return f"another process sends it since {_minute(one.at)} UTC: try again later"
        case _:
            resumed = f"again, since {_CUT_OFF}: the channel drops repeats" if one.is_resumed else ""
            return one.error or resumed


def _minute(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M}"


def channels_document(states: Sequence[ChannelState]) -> doc.Document:
    """The channels of the settings, their secrets by name."""
    sections = tuple(doc.Section(f"{state.name} ({state.kind})", tuple(_facts(state))) for state in states)
    none = doc.Lines(("No channel is set up: see docs/delivery.md for an example.",))
    return doc.Document(
        facts={"channels": [_channel_json(state) for state in states], "warnings": []},
        blocks=sections or (none,),
        sheet=doc.Table(
            columns=doc.columns("channel", "kind", "target", "secrets", "last"),
            rows=tuple(doc.Row(_channel_cells(state)) for state in states),
        ),
    )


def _facts(state: ChannelState) -> list[doc.Fact]:
    return [
        doc.Fact("to", state.target),
        *(doc.Fact(name, value) for name, value in state.settings),
        *(doc.Fact("secret", name, problem or "can be read") for name, problem in state.secrets),
        doc.Fact("last", _last(state)),
    ]


def _channel_cells(state: ChannelState) -> tuple[str, ...]:
    secrets = "; ".join(f"{name} ({problem or 'can be read'})" for name, problem in state.secrets)
    return state.name, state.kind, state.target, secrets, _last(state)


def _last(state: ChannelState) -> str:
    if state.last is None:
        return "nothing yet"
    words = f"{state.last.state}, {_minute(state.last.changed_at)} UTC"
    return f"{words}: {state.last.error}" if state.last.error else words


def _channel_json(state: ChannelState) -> dict[str, object]:
    last = state.last
    tries = doc.facts_of(last, "attempts error") if last else {}
    return {
        **doc.facts_of(state, "name kind target"),
        "settings": dict(state.settings),
        "secrets": [{"name": name, "problem": problem} for name, problem in state.secrets],
        "last": last and {"state": last.state, "at": last.changed_at.isoformat(), **tries},
    }


NO_SCHEDULES = "No schedules yet. An example: advisor schedule add '0 6 * * *' -- prices refresh"
_COLUMNS = (*doc.columns("Name", "Times", "Next", "Next (UTC)", wraps=False), *doc.columns("Last", "Command"))
_PAST_COLUMNS = (
    *doc.columns("Due", "State", ("Attempts", doc.PLAIN), ("Took", doc.SHORT_DURATION), wraps=False),
    *doc.columns("Outcome", "Delivery"),
)
_RUN_TONES = {
    OccurrenceState.DONE: doc.Tone.PLAIN,
    OccurrenceState.FAILED: doc.Tone.BAD,
    OccurrenceState.MISSED: doc.Tone.DOUBTFUL,
}
_NEVER = "never"


def schedules_document(planned: Sequence[Planned]) -> doc.Document:
    """A row for each schedule: its next time on its own clock and in UTC, and how it ended last."""
    table = doc.Table(
        columns=_COLUMNS,
        rows=tuple(doc.Row(_cells(one), _tone(one)) for one in planned),
        narrow=tuple(doc.Section(one.schedule.name, _planned_facts(one)) for one in planned),
        narrow_below=doc.NARROW,
    )
    return doc.Document(
        facts={"schedules": [_planned_json(one) for one in planned], "warnings": []},
        blocks=(table,) if planned else (doc.Lines((NO_SCHEDULES,)),),
        sheet=table,
    )


def schedule_document(planned: Planned) -> doc.Document:
    """One schedule, its last occurrences, and what the newest that ran has written."""
    rows = tuple(
        doc.Row(_past_cells(planned.schedule, one), _RUN_TONES.get(one.state, doc.Tone.PLAIN))
        for one in planned.past
    )
    ran = next((one for one in planned.past if one.output), None)
    title = "" if ran is None else f"What it wrote, {_on_its_clock(planned.schedule, ran.due_at)}:"
    return doc.Document(
        facts={
            "schedule": _planned_json(planned),
            "occurrences": [doc.all_facts_of(one) for one in planned.past],
            "warnings": [],
        },
        blocks=(
            doc.Section(planned.schedule.name, _planned_facts(planned)),
            *((doc.Table(columns=_PAST_COLUMNS, rows=rows),) if rows else ()),
            *((doc.Lines(("", title, *ran.output.splitlines())),) if ran is not None else ()),
        ),
        sheet=doc.Table(columns=_PAST_COLUMNS, rows=rows),
    )


def added_document(planned: Planned) -> doc.Document:
    """What was added, and when it runs first."""
    schedule = planned.schedule
    when = _on_its_clock(schedule, planned.next_at)
    lines = (
        f"Added {schedule.name}: advisor {shlex.join(schedule.command)}",
        f"  in {schedule.folder}, next {when} ({_in_utc(planned.next_at)})",
        "  It runs while `advisor schedule run` does, or where `advisor schedule export` puts it.",
    )
    return doc.Document(
        facts={"schedule": _planned_json(planned), "warnings": []}, blocks=(doc.Lines(lines),)
    )


def output_document(schedule: Schedule, ended: Occurrence) -> doc.Document:
    """What a command wrote, for those to whom it is sent."""
    title = f"advisor {shlex.join(schedule.command)}: {ended.outcome}"
    due = f"Schedule {schedule.name}, due {_on_its_clock(schedule, ended.due_at)}"
    return doc.Document(
        facts={"schedule": schedule.name, "occurrence": doc.all_facts_of(ended), "warnings": []},
        blocks=(doc.Section(title, (due,)), doc.Lines(("", *ended.output.splitlines()))),
    )


def ran_document(schedule_name: str, occurrence: Occurrence) -> doc.Document:
    """How an occurrence ended, below what it wrote."""
    delivery = f"; {occurrence.delivery}" if occurrence.delivery else ""
    end = f"{schedule_name}: {occurrence.state}, {occurrence.outcome}{delivery}"
    return doc.Document(
        facts={"occurrence": doc.all_facts_of(occurrence), "warnings": []},
        blocks=(doc.Lines((*occurrence.output.splitlines(), end)),),
    )


def _cells(planned: Planned) -> tuple[doc.Cell, ...]:
    schedule, next_at = planned.schedule, planned.next_at
    moments = _on_its_clock(schedule, next_at), _in_utc(next_at), _last_run(planned)
    return schedule.name, (schedule.cron, schedule.zone), *moments, shlex.join(schedule.command)


def _planned_facts(planned: Planned) -> tuple[doc.Fact, ...]:
    schedule, next_at = planned.schedule, planned.next_at
    to = "" if schedule.channel is None else f"{schedule.channel}, {schedule.when}"
    facts = (
        doc.Fact("Times", f"{schedule.cron} in {schedule.zone}"),
        doc.Fact("Next", _on_its_clock(schedule, next_at), _in_utc(next_at)),
        doc.Fact("Last", _last_run(planned) or "-"),
        doc.Fact("Command", shlex.join(schedule.command), f"in {schedule.folder}"),
    )
    return (*facts, doc.Fact("Output goes to", to)) if to else facts


def _last_run(planned: Planned) -> str | None:
    if not planned.past:
        return None
    last = planned.past[0]
    outcome = f": {last.outcome}" if last.outcome else ""
    return f"{last.state} {_on_its_clock(planned.schedule, last.due_at)}{outcome}"


def _past_cells(schedule: Schedule, one: Occurrence) -> tuple[doc.Cell, ...]:
    took_s = (one.ended_at - one.started_at).total_seconds() if one.started_at and one.ended_at else None
    due = _on_its_clock(schedule, one.due_at)
    return due, str(one.state), one.attempts, took_s, one.outcome or None, one.delivery or None


def _tone(planned: Planned) -> doc.Tone:
    return _RUN_TONES.get(planned.past[0].state, doc.Tone.PLAIN) if planned.past else doc.Tone.PLAIN


def _on_its_clock(schedule: Schedule, moment: datetime | None) -> str:
    return _NEVER if moment is None else f"{moment.astimezone(zone_of(schedule.zone)):%a %Y-%m-%d %H:%M %Z}"


def _in_utc(moment: datetime | None) -> str:
    return _NEVER if moment is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _planned_json(planned: Planned) -> dict[str, object]:
    schedule, next_at = planned.schedule, planned.next_at
    local = None if next_at is None else next_at.astimezone(zone_of(schedule.zone)).isoformat()
    return doc.all_facts_of(schedule) | {
        "next_at": None if next_at is None else next_at.isoformat(),
        "next_at_local": local,
        "last": doc.all_facts_of(planned.past[0]) if planned.past else None,
    }
