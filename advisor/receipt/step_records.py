"""What the command's processes wrote about their steps -> one training's steps.

Anybody's code ran there, so a record may be missing, cut off, huge or forged. It is checked as what a
stranger wrote, and left out with a word where it cannot be true.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate, islice
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from advisor.core.values import Interval
from advisor.formats.foreign_files import read_json, read_plain
from advisor.payload.receipt.steps import PER_FACTOR_E, VERSION

FOLDER_VARIABLE = "ADVISOR_STEPS_FOLDER"
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
class Steps:
    """The optimizer steps of one process.

    Attributes:
        step_s: quantiles over means of blocks of steps; None of a single step.
        span_s: from the first step to the last.
        num_processes: that made steps and seem to have trained on their own; their steps are not counted.
    """

    num_steps: int
    step_s: Interval | None
    span_s: float
    num_processes: int


def steps_environment(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The environment in which every Python says in `folder` how many steps it made."""
    paths = [str(ON_PATH), *filter(None, [environment.get("PYTHONPATH")])]
    return {**environment, FOLDER_VARIABLE: str(folder), "PYTHONPATH": os.pathsep.join(paths)}


def read_steps(folder: Path, duration_s: float) -> tuple[Steps | None, list[str]]:
    """The steps of the leading process, None where nobody made any; and what cannot be believed.

    Args:
        folder: the records are in it.
        duration_s: how long the command ran.
    """
    records: list[StepRecord] = []
    warnings: list[str] = []
    for path in _files(folder):
        try:
            payload = read_plain(path, most_bytes=_MOST_BYTES)
            read_json(payload)
            record = StepRecord.model_validate_json(payload)
            _check(record, duration_s)
        except (OSError, ValueError) as error:
            warnings.append(f"a record of steps is left out: {_reason(error)}")
            continue
        if record.failure is not None:
            warnings.append(f"steps are missing: counting them failed with {record.failure}")
        if record.num_steps:
            records.append(record)
    return _leading(records), sorted(set(warnings))


def _files(folder: Path) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            few = islice(entries, MOST_PROCESSES)
            names = sorted(entry.name for entry in few if entry.is_file(follow_symlinks=False))
    except (OSError, ValueError):  # ValueError: a name that no folder can have
        return iter(())
    return (folder / name for name in names if name.endswith(".json"))


def _check(record: StepRecord, duration_s: float) -> None:
    """Refuse what no process could have seen.

    Raises:
        ValueError: the numbers contradict each other, or the time that the command took.
    """
    if record.span_s > duration_s * _LONGER:
        raise ValueError("its steps took longer than the command")
    if any(bucket not in _BUCKETS or steps < 1 for bucket, steps in record.blocks):
        raise ValueError("it has times that no step takes")
    if sum(steps for _, steps in record.blocks) > max(record.num_steps - 1, 0):
        raise ValueError("it timed more steps than it made")


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(map(str, first['loc'])) or 'it'}: {first['msg']}"
    return getattr(error, "strerror", None) or str(error)


def _leading(records: list[StepRecord]) -> Steps | None:
    """Of ranks the lowest, and of those that know no rank the one with the most steps."""
    if not records:
        return None
    leading = min(records, key=lambda record: (_rank(record), -record.num_steps))
    alone = [record for record in records if record.rank is None or record.rank == leading.rank]
    return Steps(
        num_steps=leading.num_steps,
        step_s=_quantiles(leading.blocks),
        span_s=leading.span_s,
        num_processes=len(alone),
    )


def _rank(record: StepRecord) -> float:
    return math.inf if record.rank is None else record.rank


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
