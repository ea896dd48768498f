"""A recorded day as values."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .lines import FILE, read_lines

if TYPE_CHECKING:
    from .steps import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What the board said of itself during a span: means; None where it was not watched then."""

    sm_hz: float | None
    power_w: float | None
    reasons: int
    """Bits of NVML that were set at any time, why clocks were lowered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedStep:
    """A step and its measured times and memory; ``wall_s`` of one iteration."""

    step: Step
    wall_s: float
    launched_s: float
    phases_s: Mapping[str, float]
    peak_bytes: int | None
    reserved_bytes: int | None
    watched: Watched
    kernels_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """What the host takes for one call of a chain."""

    name: str
    call_s: float
    launched_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Sustained:
    """Seconds of an iteration over time: at the beginning, and in the last third."""

    name: str
    lasted_s: float
    first_s: float
    last_s: float
    first: Watched
    last: Watched


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """What a folder holds; ``skipped`` cases by their names, with the reason."""

    device: str
    host: Mapping[str, object]
    steps: tuple[TimedStep, ...]
    chains: tuple[Chain, ...]
    sustained: tuple[Sustained, ...]
    skipped: Mapping[str, str]


def read_day(*folders: Path) -> Results:
    """Read a day, whole or not, and those which went on where it stopped.

    Raises:
        ValueError: one holds no day, or a line is damaged.
    """
    lines: list[dict[str, Any]] = []
    for folder in folders:
        own = read_lines(folder)
        if not own:
            raise ValueError(
                f"no {FILE} with a whole line in {str(folder)!r}: name the folder of record --out."
            )
        lines += own
    done = [line for line in lines if "case" in line and "reason" not in line]
    by_part: dict[str, list[dict[str, Any]]] = {}
    for line in done:
        by_part.setdefault(line["part"], []).append(line)
    facts = {line["case"]: line for line in by_part.get("environment", [])}
    samples = [line for line in lines if line["part"] == "watch" and "sm_mhz" in line]
    kernels_s = {line["case"]: line["kernels_s"] for line in by_part.get("profiles", [])}
    return Results(
        device=str(facts.get("device", {}).get("name", "unknown")),
        host=facts.get("host", {}),
        steps=tuple(_step(line, samples, kernels_s) for line in by_part.get("steps", [])),
        chains=tuple(
            Chain(name=line["case"], call_s=line["call_s"], launched_s=line["launched_s"])
            for line in by_part.get("host", [])
        ),
        sustained=tuple(_sustained(line, samples) for line in by_part.get("sustained", [])),
        skipped={
            f"{line['part']}: {line['case']}": line["reason"]
            for line in lines if "reason" in line and "case" in line
        },
    )  # fmt: skip


def watched(samples: Sequence[Mapping[str, Any]], begin_s: float, end_s: float) -> Watched:
    """What was seen from one time to another."""
    seen = [sample for sample in samples if begin_s <= sample["at_s"] <= end_s]
    watts = [sample.get("instant_w", sample.get("power_w")) for sample in seen]
    known = [float(value) for value in watts if value is not None]
    reasons = 0
    for sample in seen:
        reasons |= int(sample.get("reasons", 0))
    return Watched(
        sm_hz=1e6 * statistics.mean(sample["sm_mhz"] for sample in seen) if seen else None,
        power_w=statistics.mean(known) if known else None,
        reasons=reasons,
    )


def _step(
    line: Mapping[str, Any], samples: Sequence[Mapping[str, Any]], kernels_s: Mapping[str, float]
) -> TimedStep:
    from .steps import Step

    memory = line["memory"]
    return TimedStep(
        step=Step(**line["step"]),
        wall_s=line["wall_s"],
        launched_s=line["launched_s"],
        phases_s=line["phases_s"],
        peak_bytes=memory.get("peak_bytes"),
        reserved_bytes=memory.get("reserved_bytes"),
        watched=watched(samples, line["begun_s"], line["ended_s"]),
        kernels_s=kernels_s.get(line["case"]),
    )


def _sustained(line: Mapping[str, Any], samples: Sequence[Mapping[str, Any]]) -> Sustained:
    chunks = line["chunks"]
    begin_s, end_s = chunks[0][0], line["ended_s"]
    # The first is one iteration, not yet warm.
    early = chunks[1:4] or chunks
    late = [chunk for chunk in chunks if chunk[0] >= begin_s + 2 / 3 * (end_s - begin_s)] or chunks[-1:]
    return Sustained(
        name=line["case"],
        lasted_s=end_s - begin_s,
        first_s=statistics.median(chunk[1] for chunk in early),
        last_s=statistics.median(chunk[1] for chunk in late),
        first=watched(samples, early[0][0], early[-1][0] + early[-1][1] * early[-1][2]),
        last=watched(samples, late[0][0], end_s),
    )
