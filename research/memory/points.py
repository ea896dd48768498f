"""Whether published runs fit: ``points.csv``, each row with its source and date.

A row names a recorded trace (``tests/memory_traces``), the batch of a pass over that of the trace, what the
optimizer keeps, and the changes that the run made to the script. Nothing here was fitted to these rows.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from advisor.core.gpus import resolve_gpu
from advisor.core.units import GIB
from advisor.core.values import Fit, GpuSpec, Interval, Layout, Trace
from advisor.formats.trace_files import read_trace
from advisor.predict.footprint import Footprint, footprint, overheads
from advisor.predict.largest_batch import FittedScript, StepSeconds, changed

POINTS = Path(__file__).with_name("points.csv")
TRACES = Path(__file__).resolve().parents[2] / "tests" / "memory_traces"
_GPUS_OF_A_NODE = 8
# Of a sequence in the recorded traces of MPT.
MPT_TOKENS = 2048
# Times do not matter to what fits.
_SECONDS = StepSeconds(forward=1.0, backward=2.0, optimizer=0.1, exchange=0.0, rest=0.0)
# Beside weights and gradients in 16 bits: weights and both moments of Adam in 32 (Rajbhandari et al., 2020).
_MIXED_OVER_WEIGHTS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A published or measured run."""

    name: str
    trace: str
    batch: float
    """Samples of a pass."""
    gpu: str
    num_gpus: int
    states: str
    """``recorded`` as the trace has them, or ``mixed``: 16 bits, and 32 for the optimizer."""
    changes: tuple[str, ...]
    """To the script, by their names in a `Remedy`."""
    fits: bool
    measured_gib: float | None = None
    """What it took, if that is known."""
    source: str = ""


def points() -> Iterator[Point]:
    """The rows of the table."""
    with POINTS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            yield Point(
                name=row["name"],
                trace=row["trace"],
                batch=float(row["batch"]),
                gpu=row["gpu"],
                num_gpus=int(row["num_gpus"]),
                states=row["states"],
                changes=tuple(filter(None, row["changes"].split("+"))),
                fits=row["fits"] == "yes",
                measured_gib=float(row["measured_gib"]) if row["measured_gib"] else None,
                source=f"{row['source']}, {row['date']}",
            )


def mpt_points(table: Path) -> Iterator[Point]:
    """MosaicML's rows of MPT in bf16, all of which were trained; by flash attention tokens count."""
    with table.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            gpu, gigabytes = row["gpu"].split("_")
            if row["precision"] != "amp_bf16" or row["sharding"] != "FULL_SHARD":
                continue
            yield Point(
                name=f"{row['model']} {row['seq_len']}",
                trace=row["model"].lower(),
                batch=int(row["microbatch"]) * int(row["seq_len"]) / MPT_TOKENS,
                gpu=f"{gpu.upper()}-SXM-{gigabytes.upper()}",
                num_gpus=int(row["n_gpus"]),
                states="mixed",
                changes=("checkpointing", "zero-3") if row["act_ckpt"] == "True" else ("zero-3",),
                fits=True,
                source="mosaicml/llm-foundry, scripts/train/benchmarking/README.md",
            )


def need_of_point(point: Point) -> Interval:
    """What one of its GPUs has to hold."""
    trace, gpu = recorded(point.trace), resolve_gpu(point.gpu)
    within = min(point.num_gpus, _GPUS_OF_A_NODE)
    layout = Layout(gpus_per_node=within, num_nodes=point.num_gpus // within)
    version = changed(_version(trace, gpu, layout, point.states), point.changes)
    assert version is not None, point
    return version.need_bytes(point.batch / (trace.batch_size or 1))


def verdict(point: Point) -> Fit:
    """Whether it is predicted to fit."""
    return Fit.of(need_of_point(point), resolve_gpu(point.gpu).memory_bytes)


def _version(trace: Trace, gpu: GpuSpec, layout: Layout, states: str) -> FittedScript:
    tensors = footprint(trace, layout)
    assert tensors is not None
    return FittedScript(
        trace=trace,
        gpu=gpu,
        layout=layout,
        tensors=_mixed(tensors) if states == "mixed" else tensors,
        beside=overheads(trace, gpu, layout),
        seconds=_SECONDS,
        timed=lambda _: {},
        slowdown=0.0,
    )


def _mixed(tensors: Footprint) -> Footprint:
    """Of weights in 16 bits, stepped by a fused optimizer."""
    return replace(tensors, optimizer=_MIXED_OVER_WEIGHTS * tensors.weights, step_temporary=0.0)


@cache
def recorded(name: str) -> Trace:
    """A recorded trace."""
    return read_trace(TRACES / f"{name}.json.gz")


def table() -> Iterator[str]:
    """The points as a Markdown table."""
    yield "| run | GPUs | needed p10 .. p50 .. p90, GiB | measured | fits | predicted |"
    yield "|---|---|---|---|---|---|"
    for point in points():
        need = need_of_point(point)
        gib = " .. ".join(f"{part / GIB:.1f}" for part in (need.p10, need.p50, need.p90))
        measured = "" if point.measured_gib is None else f"{point.measured_gib:g}"
        fits = "yes" if point.fits else "no"
        where = f"{point.num_gpus} x {point.gpu}"
        yield f"| {point.name} | {where} | {gib} | {measured} | {fits} | {verdict(point)} |"


if __name__ == "__main__":
    print("\n".join(table()))
