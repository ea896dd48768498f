"""Waits of a log in a file of their own, so that a log need not be read again, nor shared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from advisor.core.errors import InputError
from advisor.formats.user_files import fault_in_words
from recommender.fit_files import FitKind, is_fit_file, read_fit_file, write_fit_file
from recommender.queue.fitted import WaitQuantiles, fit
from recommender.queue.grids import LEVELS
from recommender.queue.job_log import read_job_log
from recommender.queue.log_clock import zone_named
from recommender.queue.waits import ALL

FORMAT = "advisor-queue-waits"
FORMAT_VERSION = 2
KIND = FitKind(
    format=FORMAT,
    version=FORMAT_VERSION,
    noun="queue waits",
    log="a job log",
    command="advisor queue fit LOG --out FILE",
)


def write_fit(path: Path, fitted: WaitQuantiles) -> None:
    """As JSON.

    Raises:
        InputError: the file cannot be written.
    """
    write_fit_file(path, KIND, asdict(fitted))


def load_fit(path: Path, timezone: str | None = None) -> WaitQuantiles:
    """What `write_fit` wrote, or the fit of a log.

    Args:
        path: the file.
        timezone: of times in a log that name none, such as ``"Europe/Berlin"``; None is this machine's.

    Raises:
        InputError: unreadable, neither of both, of another version, or no such time zone.
    """
    zone = None if timezone is None else zone_named(timezone)
    return _read_fit(path) if is_fit_file(path) else fit(read_job_log(path, zone))


def _read_fit(path: Path) -> WaitQuantiles:
    try:
        fitted = TypeAdapter(WaitQuantiles).validate_python(read_fit_file(path, KIND))
    except ValidationError as error:
        raise InputError(f"{str(path)!r}: {fault_in_words(error.errors()[0])} {KIND.advice}.") from error
    if not any(found_bin.key == ALL for found_bin in fitted.bins):
        raise InputError(f"{str(path)!r} lacks the bin of all jobs. {KIND.advice}.")
    if fitted.levels != LEVELS or any(not _rises(one.waits_s) for one in fitted.bins):
        raise InputError(f"{str(path)!r} has waits that are no quantiles. {KIND.advice}.")
    return fitted


def _rises(waits_s: Sequence[float]) -> bool:
    return len(waits_s) == len(LEVELS) and waits_s[0] >= 0 and all(a <= b for a, b in pairwise(waits_s))
