"""Whole forward passes of published tables: timm's models in inference, on two boards, by several releases.

Steps of training tell the sum of both passes, and of one board. These tell the forward pass apart, and of
another board. Rates per image are compared, since tables differ in the batch: it is large in all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from advisor.core.errors import InputError
from advisor.core.gpus import resolve_gpu
from advisor.core.values import Op, Phase, Trace
from advisor.formats.trace_files import read_trace
from advisor.operators.family import base_name
from advisor.predict.what_if.channels_last import in_channels_last
from research.training.whole_steps import LAYOUTS, Row, Step, has_as_many_macs, rows_that

RELEASES = ("1.12", "2.4.0", "2.9.1")
"""Of torch: that of the training steps, and those that measured both boards or today's."""
_BOARDS = ("RTX 3090", "RTX 4090")


def forward_rows(figures: Path) -> list[Row]:
    """Inference on the boards, by the releases that count.

    Raises:
        InputError: the file is missing or broken.
    """
    return rows_that(_is_forward, figures, "passes")


def _is_forward(row: Row) -> bool:
    return (
        row["mode"] == "infer" and row["device"] in _BOARDS and row["framework_version"] in RELEASES
        and row["memory_format"] in LAYOUTS
    )  # fmt: skip


def is_compiled(row: Row) -> bool:
    """Whether the model was compiled."""
    return row["torch_compile"] == "1"


def read_forwards(figures: Path, recordings: Path) -> list[Step]:
    """The eager passes of models that were recorded, in the layouts that were measured.

    Args:
        figures: ``timm_benchmarks.csv.gz``.
        recordings: a folder of ``MODEL.json.gz``, of ``python -m research.timm_recording --forward``.

    Raises:
        InputError: a file is missing or broken, or no model was recorded.
    """
    found = [
        step
        for trace, rows in recorded(figures, recordings)
        for row in rows
        if not is_compiled(row)
        for step in _steps(trace, row)
    ]
    if not found:
        raise InputError(
            f"no recorded model in {str(recordings)!r}: see python -m research.timm_recording --forward."
        )
    return found


def recorded(figures: Path, recordings: Path) -> Iterator[tuple[Trace, list[Row]]]:
    """Each recorded forward pass, with the rows that measured that model on images of that side."""
    by_model: dict[tuple[str, str], list[Row]] = {}
    for row in forward_rows(figures):
        by_model.setdefault((row["model"], row["image_size"]), []).append(row)
    for path in sorted(recordings.glob("*.json.gz")):
        trace = forward_of(read_trace(path))
        rows = by_model.get((trace.arguments[0], trace.arguments[2]), [])
        yield trace, [row for row in rows if has_as_many_macs(trace, batch_of(trace), row)]


def forward_of(trace: Trace) -> Trace:
    """Without the optimizer's step that ended the iteration.

    Of a training step's recording it is the forward pass as in evaluation: without dropout and without what
    batch norms count and measure.
    """
    kept = (op for op in trace.ops if op.phase is Phase.FORWARD and not _is_of_training(op))
    return replace(trace, ops=tuple(map(_in_evaluation, kept)))


def _is_of_training(op: Op) -> bool:
    name = base_name(op.name)
    return "dropout" in name or name == "bernoulli_" or (name == "add_" and op.inputs[0].dtype == "int64")


def _in_evaluation(op: Op) -> Op:
    if not op.attributes.get("training"):
        return op
    return replace(op, attributes={**op.attributes, "training": False})


def batch_of(trace: Trace) -> int:
    """Images of the recorded pass."""
    return int(trace.arguments[1])


def seconds_of(trace: Trace, row: Row) -> float:
    """What the recorded batch takes at the measured rate."""
    return batch_of(trace) / float(row["samples_per_s"])


def _steps(trace: Trace, row: Row) -> Iterator[Step]:
    in_layout = trace if row["memory_format"] == LAYOUTS[0] else in_channels_last(trace)
    if in_layout is not None:
        yield Step(
            model=row["model"],
            layout=row["memory_format"],
            gpu=resolve_gpu(row["device"]),
            trace=in_layout,
            time_s=seconds_of(trace, row),
            release=row["framework_version"],
        )
