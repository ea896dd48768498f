"""What a live Slurm tells: the jobs of its accounting database, asked for by ``sacct`` and read as a log."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from advisor.core import processes
from advisor.core.errors import InputError
from advisor.core.files import temporary_folder, write_atomically
from advisor.site_files.log_rows import SACCT_FORMAT

SLURM = "slurm"
"""Stands for the cluster that this machine belongs to, in the place of a log."""
_SINCE = "now-180days"
# 2 million jobs take a minute.
_WITHIN_S = 600.0
_MOST_WORDS = 300


@contextmanager
def log_or_slurm(source: Path) -> Iterator[Path]:
    """The log itself; of the word ``slurm``, what sacct tells now, as a temporary file.

    Raises:
        InputError: there is no sacct, it refuses, or it does not answer.
    """
    if str(source) != SLURM or source.exists():
        yield source
        return
    with temporary_folder("slurm") as folder:
        path = folder / "sacct"
        _ask(path)
        yield path


def _ask(path: Path) -> None:
    """Write the jobs of all users of the last 180 days, their times in UTC."""
    command = ("sacct", "--allusers", "--allocations", "--parsable2", f"--starttime={_SINCE}")
    utc = {"SLURM_TIME_FORMAT": "%Y-%m-%dT%H:%M:%S+00:00", "TZ": "UTC"}
    try:
        done = processes.run(
            (*command, f"--format={SACCT_FORMAT}"), timeout_s=_WITHIN_S, environment={**os.environ, **utc}
        )
    except subprocess.TimeoutExpired as error:
        raise InputError(f"Slurm (sacct) did not answer within {_WITHIN_S:.0f} s: give a log.") from error
    except OSError as error:
        raise InputError(
            "this machine has no sacct, so Slurm cannot be asked: run this on a login node, or give a log."
        ) from error
    if done.returncode:
        said = " ".join(done.stderr.decode(errors="replace").split())[:_MOST_WORDS]
        raise InputError(f"Slurm (sacct) refuses: {said or done.returncode}. Give a log instead.")
    write_atomically(path, done.stdout)
