"""What a log of spot machines tells, in a file of its own: ``spot.history`` takes it."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from advisor.core.errors import InputError
from advisor.formats.user_files import fault_in_words
from recommender.availability.spot_log import SpotHistory, read_spot_log
from recommender.fit_files import FitKind, is_fit_file, read_fit_file, write_fit_file

KIND = FitKind(
    format="advisor-spot-history",
    version=1,
    noun="a log of spot machines",
    log="such a log",
    command="advisor spot fit LOG --out FILE",
)


def write_history(path: Path, history: SpotHistory) -> None:
    """As JSON.

    Raises:
        InputError: the file cannot be written.
    """
    write_fit_file(path, KIND, asdict(history))


def load_history(path: Path, now: datetime | None = None) -> SpotHistory:
    """What `write_history` wrote, or the same of a log, whose dates lie before ``now``.

    Raises:
        InputError: unreadable, neither of both, or of a newer version.
    """
    if not is_fit_file(path):
        return read_spot_log(path, now)
    body = read_fit_file(path, KIND)
    try:
        history = TypeAdapter(SpotHistory).validate_python(body)
    except InputError as error:
        raise InputError(f"{str(path)!r}: {error} {KIND.advice}.") from error
    except ValidationError as error:
        raise InputError(f"{str(path)!r}: {fault_in_words(error.errors()[0])} {KIND.advice}.") from error
    if not all(seen.up_h + seen.down_h > 0 for seen in history.machines.values()):
        raise InputError(f"{str(path)!r} holds a machine that was never watched. {KIND.advice}.")
    return history
