"""Receipts as files: of runs that go on, whose end was not seen, or that the database did not take.

A run's file is made when it starts and says what is known if nothing more is heard of it. Its process holds
a lock on it, so that others can tell whether it is still there. The file goes when the database has the run.
"""

import fcntl
import math
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import accumulate, islice
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from advisor.core.errors import InputError
from advisor.core.files import write_atomically
from advisor.core.limits import EARLIEST
from advisor.core.processes import STEPS_FOLDER_VARIABLE
from advisor.core.values import Interval
from advisor.formats.foreign_files import read_json, read_plain
from advisor.payload.receipt.steps import PER_FACTOR_E, VERSION
from advisor.receipt.guard import CanaryVerdict
from advisor.store.ledger import Run, why_impossible

# What the command's processes wrote about their steps -> one training's steps.
#
# Anybody's code ran there, so a record may be missing, cut off, huge or forged. It is checked as what a
# stranger wrote, and left out with a word where it cannot be true.

ON_PATH = Path(__file__).resolve().parents[1] / "payload" / "receipt" / "on_path"
MOST_PROCESSES = 1024
_MOST_BYTES = 1_000_000
# From a nanosecond to the age of the universe.
_BUCKETS = range(-2100, 4100)
_LONGER = 1.01
"""Clocks of two processes, and rounding."""


class StepRecord(BaseModel):
    """The file of one process, as ``payload/receipt/steps.py`` writes it."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    version: int = Field(ge=VERSION, le=VERSION)
    pid: int
    rank: int | None = Field(ge=0)
    num_steps: int = Field(ge=0, le=2**53)
    span_s: FiniteFloat = Field(ge=0)
    blocks: tuple[tuple[int, int], ...] = Field(max_length=10_000)
    failure: str | None = Field(max_length=200)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSteps:
    """The optimizer steps of one process."""

    num_steps: int
    step_s: Interval | None
    """Quantiles over means of blocks of steps; None of a single step."""
    span_s: float
    """From the first step to the last."""
    num_processes: int
    """That made steps and seem to have trained on their own; their steps are not counted."""


def steps_environment(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The environment in which every Python says in `folder` how many steps it made."""
    paths = [str(ON_PATH), *filter(None, [environment.get("PYTHONPATH")])]
    return {**environment, STEPS_FOLDER_VARIABLE: str(folder), "PYTHONPATH": os.pathsep.join(paths)}


def read_steps(folder: Path, duration_s: float) -> tuple[ProcessSteps | None, list[str]]:
    """The steps of the leading process, None where there are none; and what cannot be believed."""
    records: list[StepRecord] = []
    warnings: list[str] = []
    for path in _files(folder):
        try:
            payload = read_plain(path, most_bytes=_MOST_BYTES)
            read_json(payload)
            record = StepRecord.model_validate_json(payload)
            if record.span_s > duration_s * _LONGER:
                raise ValueError("its steps took longer than the command")
            if any(bucket not in _BUCKETS or steps < 1 for bucket, steps in record.blocks):
                raise ValueError("it has times that no step takes")
            if sum(steps for _, steps in record.blocks) > max(record.num_steps - 1, 0):
                raise ValueError("it timed more steps than it made")
        except (OSError, ValueError) as error:
            warnings.append(f"a record of steps is left out: {_reason(error)}")
            continue
        if record.failure is not None:
            warnings.append(f"steps are missing: counting them failed with {record.failure}")
        if record.num_steps:
            records.append(record)
    if not records:
        return None, sorted(set(warnings))
    # Of ranks the lowest, and of those that know no rank the one with the most steps.
    leading = min(records, key=lambda one: (math.inf if one.rank is None else one.rank, -one.num_steps))
    alone = [record for record in records if record.rank is None or record.rank == leading.rank]
    steps = ProcessSteps(
        num_steps=leading.num_steps,
        step_s=_quantiles(leading.blocks),
        span_s=leading.span_s,
        num_processes=len(alone),
    )
    return steps, sorted(set(warnings))


def _files(folder: Path) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            few = islice(entries, MOST_PROCESSES)
            names = sorted(entry.name for entry in few if entry.is_file(follow_symlinks=False))
    except (OSError, ValueError):  # ValueError: a name that no folder can have
        return iter(())
    return (folder / name for name in names if name.endswith(".json"))


def _first_fault(error: ValidationError, whole: str) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or whole}: {first['msg']}"


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return _first_fault(error, "it")
    return getattr(error, "strerror", None) or str(error)


def _quantiles(blocks: tuple[tuple[int, int], ...]) -> Interval | None:
    if not blocks:
        return None
    ordered = sorted(blocks)
    total = sum(steps for _, steps in ordered)

    def at(share: float) -> float:
        seen = accumulate(steps for _, steps in ordered)
        reached = (bucket for (bucket, _), steps in zip(ordered, seen, strict=True) if steps >= share * total)
        return math.exp(next(reached) / PER_FACTOR_E)

    return Interval(p10=at(0.1), p50=at(0.5), p90=at(0.9))


MOST_FILES = 1000
_STAGED = ".begun-"
_STAGED_S = 3600.0
"""No receipt takes so long to write."""
_AHEAD = timedelta(days=1)
"""Clocks of two machines differ, a receipt's by less than that."""


def _possible(run: Run) -> Run:
    why = why_impossible(run)
    if why is not None:
        raise ValueError(why)
    if run.started_at.tzinfo is None or not EARLIEST <= run.started_at <= datetime.now(UTC) + _AHEAD:
        when = run.started_at.isoformat()
        raise ValueError(f"started_at is {when}: it must be between 2006 and now, with a time zone")
    return run


class ReceiptFile(BaseModel):
    """What a file holds."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    format: Literal["advisor-receipt"] = "advisor-receipt"
    version: Literal[1] = 1
    run: Annotated[Run, AfterValidator(_possible)]
    steps_folder: str | None = None
    """Where the command says how many steps it made; None once that was read."""
    canary: CanaryVerdict | None = None
    """In the file that was asked for, where its first steps were too slow."""

    def to_bytes(self) -> bytes:
        """As JSON."""
        return self.model_dump_json(indent=1).encode() + b"\n"


def read_receipt(path: Path) -> ReceiptFile:
    """The receipt of a file.

    Raises InputError: the file cannot be read, or holds no receipt of this version.
    """
    try:
        payload = read_plain(path, most_bytes=_MOST_BYTES)
        # Two readings: pydantic's takes the last of two equal keys, and Python's knows no types.
        read_json(payload)
        return ReceiptFile.model_validate_json(payload)
    except OSError as error:
        raise InputError(f"cannot read the receipt {path}: {error.strerror or error}.") from error
    except ValidationError as error:
        raise InputError(
            f"{path} is no receipt that this advisor can read: {_first_fault(error, 'the file')}."
            " `advisor run` writes them."
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

        Raises OSError: the disk is full, or the folder is gone.
        """
        write_atomically(self.path, receipt.to_bytes(), private=True)
        os.close(self.handle)


def begin(folder: Path, receipt: ReceiptFile) -> BegunFile:
    """Make a run's file and hold its lock. Raises OSError: the folder cannot be made or written."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Files that never got their name: SIGKILL came between.
    for staged in islice(folder.glob(f"{_STAGED}*"), MOST_FILES):
        with suppress(OSError):
            if time.time() - staged.stat().st_mtime > _STAGED_S:
                staged.unlink()
    handle, name = tempfile.mkstemp(dir=folder, prefix=_STAGED)
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
        is_ours = False
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # It may have been removed or replaced between its opening and its locking.
            is_ours = os.path.samestat(path.stat(), os.fstat(handle))
        if is_ours:
            yield path
