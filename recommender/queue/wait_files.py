"""Waits of a log in a file of their own, so that a log need not be read again, nor shared."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from advisor.core.errors import InputError
from advisor.formats.user_files import fault_in_words
from recommender.fit_files import FitKind, is_fit_file, read_fit_file, write_fit_file
from recommender.queue.fitted import WaitQuantiles, fit
from recommender.queue.job_log import read_job_log
from recommender.queue.waits import ALL

FORMAT = "advisor-queue-waits"
FORMAT_VERSION = 1
KIND = FitKind(
    format=FORMAT,
    version=FORMAT_VERSION,
    noun="queue waits",
    log="a job log",
    command="advisor queue fit LOG --out FILE",
)


def write_fit(path: Path, found: WaitQuantiles) -> None:
    """As JSON.

    Raises:
        InputError: the file cannot be written.
    """
    write_fit_file(path, KIND, asdict(found))


def load_fit(path: Path) -> WaitQuantiles:
    """What `write_fit` wrote, or the fit of a log.

    Raises:
        InputError: unreadable, neither of both, or of a newer version.
    """
    return _read_fit(path) if is_fit_file(path) else fit(read_job_log(path))


def _read_fit(path: Path) -> WaitQuantiles:
    try:
        found = TypeAdapter(WaitQuantiles).validate_python(read_fit_file(path, KIND))
    except ValidationError as error:
        raise InputError(f"{str(path)!r}: {fault_in_words(error.errors()[0])} {KIND.advice}.") from error
    if not any(found_bin.key == ALL for found_bin in found.bins):
        raise InputError(f"{str(path)!r} lacks the bin of all jobs. {KIND.advice}.")
    return found
