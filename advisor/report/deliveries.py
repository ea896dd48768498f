"""What went where, and the channels of the settings, as documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime

from advisor.delivery.posting import Delivery, Outcome
from advisor.report.cells import COUNT
from advisor.report.document import Column, Document, Fact, Lines, Row, Section, Table, Tone, columns
from advisor.service.delivering import ChannelState
from advisor.store.outbox import Posted

COLUMNS = (
    *columns("Channel", "Outcome", wraps=False),
    Column("When (UTC)", wraps=False),
    Column("Attempts", COUNT, wraps=False),
    *columns("To", "Note"),
)
_TONES = {
    Outcome.SENT: Tone.GOOD,
    Outcome.SENT_BEFORE: Tone.FAINT,
    Outcome.PERHAPS: Tone.DOUBTFUL,
    Outcome.BUSY: Tone.DOUBTFUL,
    Outcome.FAILED: Tone.BAD,
}
_OUTCOMES = {
    Outcome.SENT: "sent",
    Outcome.SENT_BEFORE: "sent before",
    Outcome.PERHAPS: "perhaps sent",
    Outcome.BUSY: "being sent",
    Outcome.FAILED: "not sent",
}
_CUT_OFF = "a process ended in the middle of sending it"


def deliveries_document(deliveries: Sequence[Delivery]) -> Document:
    """A row for each channel."""
    rows = tuple(
        Row(
            (one.channel, _OUTCOMES[one.outcome], _minute(one.at), one.attempts, one.target, _note(one)),
            _TONES[one.outcome],
        )
        for one in deliveries
    )
    return Document(
        facts={"deliveries": [_json(one) for one in deliveries], "warnings": []},
        blocks=(Table(columns=COLUMNS, rows=rows),),
    )


def failures_in_words(deliveries: Sequence[Delivery]) -> tuple[str, ...]:
    """A line for each channel that the answer did not surely reach."""
    return tuple(
        f"{one.channel}: {_OUTCOMES[one.outcome]}: {_note(one)}" for one in deliveries if not one.is_there
    )


def trial_document(at: datetime) -> Document:
    """What `advisor deliver test` sends."""
    text = f"A test, sent by `advisor deliver test` at {_minute(at)} UTC. There is nothing to do."
    return Document(facts={"test": True, "warnings": []}, blocks=(Section(text, ()),))


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


def _json(one: Delivery) -> dict[str, object]:
    return asdict(one) | {"at": one.at.isoformat()}


def _minute(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M}"


def channels_document(states: Sequence[ChannelState]) -> Document:
    """The channels of the settings, their secrets by name."""
    sections = tuple(Section(f"{state.name} ({state.kind})", tuple(_facts(state))) for state in states)
    none = Lines(("No channel is set up: see docs/delivery.md for an example.",))
    return Document(
        facts={"channels": [_channel_json(state) for state in states], "warnings": []},
        blocks=sections or (none,),
        sheet=Table(
            columns=columns("channel", "kind", "target", "secrets", "last"),
            rows=tuple(Row(_channel_cells(state)) for state in states),
        ),
    )


def _facts(state: ChannelState) -> list[Fact]:
    return [
        Fact("to", state.target),
        *(Fact(name, value) for name, value in state.settings),
        *(Fact("secret", name, problem or "can be read") for name, problem in state.secrets),
        Fact("last", _last(state)),
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
    return {
        "name": state.name,
        "kind": state.kind,
        "target": state.target,
        "settings": dict(state.settings),
        "secrets": [{"name": name, "problem": problem} for name, problem in state.secrets],
        "last": None if state.last is None else _last_json(state.last),
    }


def _last_json(last: Posted) -> dict[str, object]:
    return {
        "state": last.state,
        "at": last.changed_at.isoformat(),
        "attempts": last.attempts,
        "error": last.error,
    }
