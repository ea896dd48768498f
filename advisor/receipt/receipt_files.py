"""Receipts as files: of runs that go on, that nobody saw end, or that the database did not take.

A run's file is made when it starts and says what is known if nothing more is heard of it. Its process holds
a lock on it, so that others can tell whether it is still there. The file goes when the database has the run.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from advisor.core.errors import InputError
from advisor.core.files import write_atomically
from advisor.core.limits import EARLIEST
from advisor.formats.foreign_files import read_json, read_plain
from advisor.store.ledger import Run, why_impossible

MOST_FILES = 1000
_AHEAD = timedelta(days=1)
"""Clocks of two machines differ, a receipt's by less than that."""
_MOST_BYTES = 1_000_000


def _possible(run: Run) -> Run:
    why = why_impossible(run)
    if why is not None:
        raise ValueError(why)
    if run.started_at.tzinfo is None or not EARLIEST <= run.started_at <= datetime.now(UTC) + _AHEAD:
        when = run.started_at.isoformat()
        raise ValueError(f"started_at is {when}: it must be between 2006 and now, with a time zone")
    return run


class ReceiptFile(BaseModel):
    """What a file holds.

    Attributes:
        steps_folder: where the command says how many steps it made; None once that was read.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    format: Literal["advisor-receipt"] = "advisor-receipt"
    version: Literal[1] = 1
    run: Annotated[Run, AfterValidator(_possible)]
    steps_folder: str | None = None

    def to_bytes(self) -> bytes:
        """As JSON."""
        return self.model_dump_json(indent=1).encode() + b"\n"


def read_receipt(path: Path) -> ReceiptFile:
    """The receipt of a file.

    Raises:
        InputError: the file cannot be read, or holds no receipt of this version.
    """
    try:
        payload = read_plain(path, most_bytes=_MOST_BYTES)
        # Two readings: pydantic's takes the last of two equal keys, and Python's knows no types.
        read_json(payload)
        return ReceiptFile.model_validate_json(payload)
    except OSError as error:
        raise InputError(f"cannot read the receipt {path}: {error.strerror or error}.") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise InputError(
            f"{path} is no receipt that this advisor can read: {where}: {first['msg']}. `advisor run` writes"
            " them."
        ) from None
    except ValueError as error:
        raise InputError(f"{path} is no receipt: {error}.") from None


@dataclass(frozen=True, slots=True)
class BegunFile:
    """The file of a run that goes on; its process holds the lock."""

    path: Path
    handle: int

    def replace(self, receipt: ReceiptFile) -> None:
        """Hold this instead, and let others enter it.

        Raises:
            OSError: the disk is full, or the folder is gone.
        """
        write_atomically(self.path, receipt.to_bytes(), private=True)
        os.close(self.handle)


def begin(folder: Path, receipt: ReceiptFile) -> BegunFile:
    """Make a run's file and hold its lock.

    Raises:
        OSError: the folder cannot be made or written.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, name = tempfile.mkstemp(dir=folder, prefix=".begun-")
    path = folder / f"{receipt.run.id}.json"
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(handle, receipt.to_bytes())
        Path(name).replace(path)
    except BaseException:
        os.close(handle)
        Path(name).unlink(missing_ok=True)
        raise
    return BegunFile(path, handle)


@contextmanager
def left_behind(folder: Path) -> Iterator[Iterator[Path]]:
    """Files of runs whose process is gone, for as long as nobody else looks at them."""
    handles: list[int] = []
    try:
        yield _unlocked(folder, handles)
    finally:
        for handle in handles:
            os.close(handle)


def _unlocked(folder: Path, handles: list[int]) -> Iterator[Path]:
    for path in sorted(islice(folder.glob("*.json"), MOST_FILES)):
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            continue
        handles.append(handle)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue
        if _is_still(path, handle):
            yield path


def _is_still(path: Path, handle: int) -> bool:
    """Whether nobody removed or replaced the file between its opening and its locking."""
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except OSError:
        return False
