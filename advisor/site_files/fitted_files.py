"""What was learned from a log, in a file of its own: the log need not be read again, nor shared.

There are two kinds: waits of a job log (``advisor queue fit``), and what a log of spot machines tells
(``advisor spot fit``, which the setting ``spot.history`` takes).
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from advisor.core.errors import InputError
from advisor.core.files import write_atomically
from advisor.formats.foreign_files import open_regular, read_json, read_plain
from advisor.formats.user_files import fault_in_words
from advisor.schedule.recurrence import zone_of
from advisor.site_files.job_logs import read_job_log
from advisor.site_files.spot_logs import SpotHistory, read_spot_log
from recommender.queue.fitted import WaitQuantiles, fit
from recommender.queue.grids import LEVELS
from recommender.queue.waits import ALL, BACKLOGS, is_of_now

# A fit of thousands of queues.
_MOST_BYTES = 2**22


@dataclass(frozen=True, slots=True, kw_only=True)
class FitKind:
    """One kind of such files."""

    format: str
    """What the file says that it is."""
    version: int
    """Of its fields."""
    noun: str
    log: str
    advice: str
    """What to do about a file that is no good."""


def write_fit_file(path: Path, kind: FitKind, body: Mapping[str, object]) -> None:
    """As JSON. Raises InputError: the file cannot be written."""
    whole = {"format": kind.format, "version": kind.version, **body}
    try:
        write_atomically(path, f"{json.dumps(whole, indent=1)}\n".encode())
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {error.strerror}.") from error


def is_fit_file(path: Path) -> bool:
    """Whether it is a file of JSON, as no log but kubectl's is. Raises InputError: it cannot be read."""
    if not path.is_file():
        return False
    try:
        with open_regular(path) as file:
            begin = file.read(64).lstrip()
    except OSError as error:
        raise InputError(f"cannot read {str(path)!r}: {error.strerror}.") from error
    return begin.startswith(b"{") and b'"apiVersion"' not in begin


def read_fit_file(path: Path, kind: FitKind) -> dict[str, object]:
    """The body that `write_fit_file` wrote, unchecked. Raises InputError: none, or another version."""
    try:
        body = read_json(read_plain(path, most_bytes=_MOST_BYTES))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {str(path)!r}: {error}. {kind.advice}.") from error
    if not isinstance(body, dict) or body.pop("format", None) != kind.format:
        raise InputError(f"{str(path)!r} is no fit of {kind.noun}, nor {kind.log}. {kind.advice}.")
    if (version := body.pop("version", None)) != kind.version:
        raise InputError(f"{str(path)!r} has version {version!r}, not {kind.version}. {kind.advice}.")
    return body


WAITS = FitKind(
    format="advisor-queue-waits",
    version=3,
    noun="queue waits",
    log="a job log",
    advice="Write it anew: advisor queue fit LOG --out FILE",
)


def write_fit(path: Path, fitted: WaitQuantiles) -> None:
    """As JSON. Raises InputError: the file cannot be written."""
    write_fit_file(path, WAITS, asdict(fitted))


def load_fit(path: Path, timezone: str | None = None, user: str | None = None) -> WaitQuantiles:
    """What `write_fit` wrote, or the fit of a log, its times without a zone of ``timezone``, or ours.

    A log of the last hour is read for a job that ``user`` submits now. An older one does not show their jobs
    as they are, and a file has nothing of any user.

    Raises InputError: unreadable, neither of both, of another version, or no such time zone.
    """
    zone = None if timezone is None else zone_of(timezone)
    if not is_fit_file(path):
        log = read_job_log(path, zone)
        return fit(log, user if is_of_now(log.end_s, time.time()) else None)
    try:
        fitted = TypeAdapter(WaitQuantiles).validate_python(read_fit_file(path, WAITS))
    except ValidationError as error:
        raise InputError(f"{str(path)!r}: {fault_in_words(error.errors()[0])} {WAITS.advice}.") from error
    if not any(found_bin.key == ALL for found_bin in fitted.bins):
        raise InputError(f"{str(path)!r} lacks the bin of all jobs. {WAITS.advice}.")
    if fitted.levels != LEVELS or not all(_rise((0.0, *one.waits_s)) for one in fitted.bins):
        raise InputError(f"{str(path)!r} has waits that are no quantiles. {WAITS.advice}.")
    if len(fitted.backlog_levels) != len(BACKLOGS) or not all(
        _rise((0.0, *levels, 1.0), len(LEVELS) + 2) for levels in fitted.backlog_levels
    ):
        raise InputError(f"{str(path)!r} has backlog_levels that are no levels. {WAITS.advice}.")
    return fitted


def _rise(values: Sequence[float], num: int = len(LEVELS) + 1) -> bool:
    return len(values) == num and all(a <= b for a, b in pairwise(values))


SPOT_HISTORY = FitKind(
    format="advisor-spot-history",
    version=1,
    noun="a log of spot machines",
    log="such a log",
    advice="Write it anew: advisor spot fit LOG --out FILE",
)


def write_history(path: Path, history: SpotHistory) -> None:
    """As JSON. Raises InputError: the file cannot be written."""
    write_fit_file(path, SPOT_HISTORY, asdict(history))


def load_history(path: Path, now: datetime | None = None) -> SpotHistory:
    """What `write_history` wrote, or the same of a log until ``now``. Raises InputError: neither."""
    if not is_fit_file(path):
        return read_spot_log(path, now)
    body = read_fit_file(path, SPOT_HISTORY)
    try:
        history = TypeAdapter(SpotHistory).validate_python(body)
    except (InputError, ValidationError) as error:
        why = str(error) if isinstance(error, InputError) else fault_in_words(error.errors()[0])
        raise InputError(f"{str(path)!r}: {why} {SPOT_HISTORY.advice}.") from error
    if not all(seen.up_h + seen.down_h > 0 for seen in history.machines.values()):
        raise InputError(f"{str(path)!r} holds a machine that was never watched. {SPOT_HISTORY.advice}.")
    return history
