"""Logs of spot machines -> what was seen of each.

CSV with the columns ``time`` and ``event``, and, where they differ, ``machine`` (an instance type) and
``zone``. Each event holds until the next one of the same machine and zone:

- ``up``, ``available``, ``started``, ``running``: there is a machine, or a start would have found one
- ``down``, ``unavailable``, ``requested``, ``failed``, ``preempted``: there is none
- ``ended``, ``stopped``: unobserved until the next event
"""

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from advisor.core.errors import InputError
from advisor.core.units import DAY_S, HOUR_S
from advisor.formats.foreign_files import why_unreadable
from advisor.site_files.log_rows import table_rows
from recommender.outcome.spot_history import Watched, joined, watched

ANY_MACHINE = ""
# Some three thousand years: beyond it a number is no moment.
_LATEST_S = 10**11
_STATES: Mapping[str, bool | None] = {
    **dict.fromkeys(("up", "available", "started", "running"), True),
    **dict.fromkeys(("down", "unavailable", "requested", "failed", "preempted"), False),
    **dict.fromkeys(("ended", "stopped"), None),
}
_COLUMNS = ("time", "event", "machine", "zone")
_MOST_FAULTS = 5
_LONGEST_FAULT = 200

Series = dict[tuple[str, str], list[tuple[float, bool | None]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotHistory:
    """What a log tells; no rows of it."""

    machines: Mapping[str, Watched]
    """By instance type; ``""`` in a log that names none."""


def read_spot_log(path: Path, now: datetime | None = None) -> SpotHistory:
    """Read a log, gzipped or not; dates more than a day after ``now``, if given, make no sense.

    Raises InputError: unreadable, lines that make no sense (five are named), or nothing was watched.
    """
    if path.exists() and not path.is_file():
        raise InputError(f"cannot read {str(path)!r}: it is no file. Write the log to one.")
    try:
        series = _series(path, now)
    except (OSError, ValueError, EOFError, zlib.error) as error:
        raise InputError(f"cannot read {str(path)!r}: {why_unreadable(error)}.") from error
    machines: dict[str, Watched] = {}
    for (machine, _), states in series.items():
        for stretches in joined(sorted(states, key=lambda state: state[0])):
            machines[machine] = machines.get(machine, Watched()) + watched(stretches)
    if not machines:
        raise InputError(
            f"{str(path)!r} watched no machine for any time: it needs two events of one machine, at least."
        )
    return SpotHistory(machines=dict(sorted(machines.items())))


def _series(path: Path, now: datetime | None) -> Series:
    latest_h = math.inf if now is None else (now.timestamp() + DAY_S) / HOUR_S
    series: Series = {}
    faults: list[str] = []
    for number, row in table_rows(path, _check_header):
        try:
            if isinstance(row, ValueError):
                raise row
            hour, event = _hour(row["time"].strip(), latest_h), row["event"].strip().lower()
            if event not in _STATES:
                raise ValueError(f"event {event!r} is none of {', '.join(_STATES)}")
            place = row.get("machine", ANY_MACHINE).strip(), row.get("zone", "").strip()
            series.setdefault(place, []).append((hour, _STATES[event]))
        except ValueError as error:
            faults.append(f"line {number}: {error}"[:_LONGEST_FAULT])
    if faults:
        title = f"{str(path)!r} is not a log of spot machines as it should be:"
        more = [f"and {len(faults) - _MOST_FAULTS:,} more lines"] if len(faults) > _MOST_FAULTS else []
        raise InputError("\n  ".join([title, *faults[:_MOST_FAULTS], *more]))
    return series


def _check_header(header: list[str], path: Path) -> None:
    missing = [name for name in _COLUMNS[:2] if name not in header]
    if missing:
        raise InputError(
            f"{str(path)!r} has no column {' and '.join(missing)}. A log of spot machines is CSV with the"
            f" columns {', '.join(_COLUMNS)}, of which the first two are needed."
        )


def _hour(text: str, latest_h: float) -> float:
    """Hours of an ISO time or of a bare number of seconds; only differences count, so any zone will do."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if math.isfinite(seconds):
        if not 0 <= seconds <= _LATEST_S:
            raise ValueError(f"time {text!r} is not from 0 to {_LATEST_S:,} seconds")
        return seconds / HOUR_S
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"time {text!r} is no time such as 2026-03-01T12:00:00, nor seconds") from None
    hour = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() / HOUR_S
    if hour > latest_h:
        raise ValueError(f"time {text!r} lies in the future")
    return hour
