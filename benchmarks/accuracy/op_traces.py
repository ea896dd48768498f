"""Operator-by-operator measurements of whole models: ``GPU--MODEL-MODE-SEQ-BATCH.csv.gz``.

A file lists the nodes of the model's ``torch.fx`` graph, each timed alone. The graph holds one layer, whose
nodes run ``num_layers`` times. Every figure holds the cost of timing a node at all, which nodes that only
compute shapes show pure; it is taken off (:func:`floor_s`).
"""

from __future__ import annotations

import csv
import gzip
import math
import re
import statistics
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from advisor.core.errors import InputError
from advisor.core.gpus import resolve_gpu
from benchmarks.accuracy.models import Workload

_FILE_NAME = re.compile(r"(.+)--(.+)-(train|inf)-(\d+)-(\d+)\.csv\.gz")
_FUNCTION = re.compile(r"<(?:built-in )?(?:function|method|class) '?(?:\w+\.)*(\w+)")
_IN_LAYER = re.compile(r"\.\d+\.")
_SCALAR = (1,)
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node of the graph, timed alone; seconds of one call."""

    kind: str
    """``call_module``, ``call_function``, ``call_method``, ``get_attr``, ``placeholder``, ``output``."""
    target: str
    """A function's name, or the dotted name of a module or parameter."""
    input_shapes: tuple[Shape, ...]
    output_shape: Shape
    dtype: str
    forward_s: float
    backward_s: float
    accumulate_s: float
    """Adding the parameters' gradients to those of the iteration before."""
    count: int = 1
    """Calls of one iteration."""

    @property
    def is_call(self) -> bool:
        """Whether it runs anything."""
        return self.kind.startswith("call_")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpTrace:
    """All nodes of one workload on one GPU (a name of the catalog), in order."""

    gpu: str
    workload: Workload
    nodes: tuple[Node, ...]


def read_op_traces(folder: Path, num_layers: Mapping[str, int]) -> tuple[OpTrace, ...]:
    """The traces of a folder, the floor of their GPU taken off.

    Args:
        folder: files named ``GPU--MODEL-MODE-SEQ-BATCH.csv.gz``.
        num_layers: by model; traces of other models are left out.

    Raises:
        InputError: there is no such file, or one is broken.
        UnknownGpuError: a GPU is not in the catalog.
    """
    traces = []
    for path in sorted(folder.glob("*.csv.gz")):
        match = _FILE_NAME.fullmatch(path.name)
        if match and match[2] in num_layers:
            gpu, model, mode, seq_len, batch_size = match.groups()
            workload = Workload(model=model, mode=mode, seq_len=int(seq_len), batch_size=int(batch_size))
            nodes = with_counts(_read(path), num_layers[model])
            traces.append(OpTrace(gpu=resolve_gpu(gpu).name, workload=workload, nodes=nodes))
    if not traces:
        raise InputError(
            f"no operator traces of these models in {str(folder)!r}: expected files named"
            " GPU--MODEL-MODE-SEQ-BATCH.csv.gz."
        )
    floors_s = {gpu: floor_s(t for t in traces if t.gpu == gpu) for gpu in {t.gpu for t in traces}}
    return tuple(without_floor(trace, floors_s[trace.gpu]) for trace in traces)


def floor_s(traces: Iterable[OpTrace]) -> float:
    """Seconds that timing a node costs: the median of calls that give no tensor; 0 where there are none."""
    empty = [n.forward_s for t in traces for n in t.nodes if n.is_call and n.output_shape == _SCALAR]
    return statistics.median(empty) if empty else 0.0


def without_floor(trace: OpTrace, floor: float) -> OpTrace:
    """The trace with ``floor`` seconds off each figure, none below 0."""
    return replace(trace, nodes=tuple(_lowered(node, floor) for node in trace.nodes))


def with_counts(nodes: Sequence[Node], num_layers: int) -> tuple[Node, ...]:
    """The nodes of the one layer counted ``num_layers`` times.

    The layer begins with the first module or parameter that has a number in its dotted name, and ends before
    the first other module after the last of them.
    """
    inside = [i for i, node in enumerate(nodes) if _IN_LAYER.search(node.target)]
    if not inside:
        return tuple(nodes)
    after = range(inside[-1] + 1, len(nodes))
    end = next((i for i in after if nodes[i].kind in ("call_module", "output")), len(nodes))
    layer = range(inside[0], end)
    return tuple(replace(n, count=num_layers) if i in layer else n for i, n in enumerate(nodes))


def _lowered(node: Node, floor: float) -> Node:
    forward_s, backward_s, accumulate_s = (
        max(time_s - floor, 0.0) for time_s in (node.forward_s, node.backward_s, node.accumulate_s)
    )
    return replace(node, forward_s=forward_s, backward_s=backward_s, accumulate_s=accumulate_s)


def _read(path: Path) -> list[Node]:
    try:
        with gzip.open(path, "rt", newline="", encoding="utf-8") as file:
            return [_node(row) for row in csv.DictReader(file)]
    except (OSError, EOFError, zlib.error, KeyError, TypeError, ValueError, csv.Error) as error:
        message = f"{str(path)!r} is no operator trace ({type(error).__name__}: {error}): write it again."
        raise InputError(message) from error


def _node(row: Mapping[str, str]) -> Node:
    function = _FUNCTION.match(row["target"])
    return Node(
        kind=row["op"],
        target=function[1] if function else row["target"],
        input_shapes=tuple(_shape(text) for text in re.findall(r"\[([\d, ]*)\]", row["input_shapes"])),
        output_shape=_shape(row["output_shape"]),
        dtype=row["dtype"].removeprefix("torch."),
        forward_s=_seconds(row["forward_ms"]),
        backward_s=_seconds(row["backward_ms"]),
        accumulate_s=_seconds(row["accumulate_ms"]),
    )


def _shape(text: str) -> Shape:
    return tuple(int(size) for size in re.findall(r"\d+", text))


def _seconds(text: str) -> float:
    value = float(text) * 1e-3
    if not math.isfinite(value) or value < 0:
        raise ValueError(f"{text!r} is not a time")
    return value
