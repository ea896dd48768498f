"""What a live Slurm tells: the jobs of its accounting database, asked for by ``sacct`` and read as a log."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from advisor.core.errors import InputError
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
    with tempfile.TemporaryDirectory(prefix="advisor-slurm-") as folder:
        path = Path(folder) / "sacct"
        _ask(path)
        yield path


def _ask(path: Path) -> None:
    """Write the jobs of all users of the last 180 days, their times in UTC."""
    command = [
        "sacct",
        "--allusers",
        "--allocations",
        "--parsable2",
        f"--starttime={_SINCE}",
        f"--format={SACCT_FORMAT}",
    ]
    try:
        with path.open("wb") as file:
            subprocess.run(
                command,
                stdout=file,
                stderr=subprocess.PIPE,
                env={**os.environ, "SLURM_TIME_FORMAT": "%Y-%m-%dT%H:%M:%S+00:00", "TZ": "UTC"},
                timeout=_WITHIN_S,
                check=True,
            )
    except FileNotFoundError as error:
        raise InputError(
            "this machine has no sacct, so Slurm cannot be asked: run this on a login node, or give a log."
        ) from error
    except subprocess.TimeoutExpired as error:
        raise InputError(f"Slurm (sacct) did not answer within {_WITHIN_S:.0f} s: give a log.") from error
    except subprocess.CalledProcessError as error:
        said = " ".join(error.stderr.decode(errors="replace").split())[:_MOST_WORDS]
        raise InputError(f"Slurm (sacct) refuses: {said or error.returncode}. Give a log instead.") from error
    except OSError as error:
        raise InputError(f"what sacct tells cannot be kept: {error.strerror or error}.") from error
