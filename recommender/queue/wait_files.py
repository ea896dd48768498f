"""Waits of a log in a file of their own, so that a log need not be read again, nor shared."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from advisor.core.errors import InputError
from advisor.core.files import write_atomically
from advisor.formats.foreign_files import open_regular, read_plain
from advisor.formats.user_files import fault_in_words
from recommender.queue.fitted import WaitQuantiles, fit
from recommender.queue.grids import LEVELS
from recommender.queue.job_log import read_job_log
from recommender.queue.log_clock import zone_named
from recommender.queue.waits import ALL

FORMAT = "advisor-queue-waits"
FORMAT_VERSION = 2
# A fit of thousands of queues.
_MOST_BYTES = 2**22


def write_fit(path: Path, found: WaitQuantiles) -> None:
    """As JSON.

    Raises:
        InputError: the file cannot be written.
    """
    body = {"format": FORMAT, "version": FORMAT_VERSION, **asdict(found)}
    try:
        write_atomically(path, f"{json.dumps(body, indent=1)}\n".encode())
    except OSError as error:
        raise InputError(f"cannot write {str(path)!r}: {error.strerror}.") from error


def load_fit(path: Path, timezone: str | None = None) -> WaitQuantiles:
    """What `write_fit` wrote, or the fit of a log.

    Args:
        path: the file.
        timezone: of times in a log that name none, such as ``"Europe/Berlin"``; None is this machine's.

    Raises:
        InputError: unreadable, neither of both, of another version, or no such time zone.
    """
    zone = None if timezone is None else zone_named(timezone)
    if not path.is_file():
        return fit(read_job_log(path, zone))  # says what is there instead
    try:
        with open_regular(path) as file:
            is_fit = file.read(64).lstrip()[:1] == b"{"
    except OSError as error:
        raise InputError(f"cannot read {str(path)!r}: {error.strerror}.") from error
    return _read_fit(path) if is_fit else fit(read_job_log(path, zone))


def _read_fit(path: Path) -> WaitQuantiles:
    advice = "Write it anew: advisor queue fit LOG --out FILE"
    try:
        body = json.loads(read_plain(path, most_bytes=_MOST_BYTES))
        if not isinstance(body, dict) or body.pop("format", None) != FORMAT:
            raise InputError(f"{str(path)!r} is no fit of queue waits, nor a job log. {advice}.")
        if (version := body.pop("version", None)) != FORMAT_VERSION:
            raise InputError(f"{str(path)!r} has version {version!r}, not {FORMAT_VERSION}. {advice}.")
        found = TypeAdapter(WaitQuantiles).validate_python(body)
    except ValidationError as error:
        raise InputError(f"{str(path)!r}: {fault_in_words(error.errors()[0])} {advice}.") from error
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"cannot read {str(path)!r}: {error}. {advice}.") from error
    if not any(found_bin.key == ALL for found_bin in found.bins):
        raise InputError(f"{str(path)!r} lacks the bin of all jobs. {advice}.")
    if found.levels != LEVELS or any(not _rises(one.waits_s) for one in found.bins):
        raise InputError(f"{str(path)!r} has waits that are no quantiles. {advice}.")
    return found


def _rises(waits_s: Sequence[float]) -> bool:
    return len(waits_s) == len(LEVELS) and waits_s[0] >= 0 and all(a <= b for a, b in pairwise(waits_s))
