"""Published times of norms, softmax, element-wise operators and look-ups in 16 bits.

What is left out, since it is not the time of the call:

- An estimate-train-time row whose forward and backward time agree to the last digit: one of them was written
  twice (364 of the GH200's 1,067 rows of softmax, 45 of its 351 layer norms). Backward is the longer one.
- The GH200's backward layer norms of that source: two kernels work on it, and the time is that of one. On an
  A100, H200 and B200 a column takes two to three times the cycles.
- An A100's softmax of long rows forward, of that source: PyTorch has another kernel since.
- Calls of Liger-Kernel whose p80 is a third above their p20: they wait for the host.
- Liger-Kernel's cross entropy in FP32 is the log-softmax of a vocabulary, whose rows no shared memory holds.
  Of its backward pass the time to fill the gradient of the scores is taken off.
- Of an embedding's pass forward and backward Liger-Kernel has the sum: the pass forward, random gradients and
  adding up those of the weights are taken off.
- vidur's calls whose tensors an L2 could hold: they run one after the other on the same ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from advisor.core.gpus import load_gpus
from advisor.core.values import GpuSpec
from advisor.operators import cycles
from advisor.predict.constants import constants_for
from research.training.published_rows import published_rows

ORIGIN = (
    "estimate-train-time (MIT), norms, softmax, sums and GELU of icicle_ops_fwd_bwd_a100_gh200.csv.gz",
    "cudnn-frontend (MIT, 2026-03-09), cudnn_frontend_norms_fwd_bwd.csv",
    "Liger-Kernel (BSD-2-Clause), layer norm, softmax, cross entropy of liger_kernel_microbench.csv",
    "batch norms of our steps (research/measured) and of pytorch/kineto's (BSD-3-Clause, 2021-06)",
    "vidur (MIT, 2024-11-19), sums, layer norm and embedding of linear_and_pointwise_vidur.csv.gz",
)
_GPUS = {
    "A100-SXM4-80GB": "A100-SXM-80GB",
    "GH200-120GB": "GH200-96GB",
    "H200": "H200-SXM-141GB",
    "B200": "B200-SXM-180GB",
    "RTX 3090": "RTX-3090",
}
_HALF_BYTES, _FULL_BYTES = 2, 4
# Below it the launch is most of the time.
_LEAST_US = 20.0
_MOST_SPREAD = 4 / 3
# Tensors that are read and written once, forward and backward.
_FORWARD, _BACKWARD, _SUM = 2, 3, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredStream:
    """One measured call on ``rows x columns`` elements."""

    kind: str
    """Of ``streams.toml``."""
    source: str
    """What timed it."""
    gpu: GpuSpec
    rows: int
    columns: int
    tensors: float
    """Of that size, which it reads and writes."""
    time_s: float
    item_bytes: int = _HALF_BYTES
    """Of an element."""

    @property
    def num_bytes(self) -> int:
        """Read and written at least."""
        return round(self.tensors * self.item_bytes * self.rows * self.columns)

    @property
    def work(self) -> cycles.CallWork[float]:
        """What a prediction of the same call counts."""
        if self.kind.startswith(cycles.CHANNEL_NORM):
            return cycles.channel_work(self.kind, self.rows, self.columns, self.item_bytes)
        if self.is_of_rows:
            return cycles.row_work(self.kind, self.rows, self.columns, self.num_bytes)
        if self.kind == "look-up backward":
            table = round((self.tensors - 1) * self.rows)
            return cycles.scatter_work(self.rows, table, self.columns, self.num_bytes)
        return cycles.plain_work(self.rows * self.columns, self.num_bytes)

    @property
    def is_of_rows(self) -> bool:
        """Whether each row is reduced: norms and softmax."""
        return "norm" in self.kind or "softmax" in self.kind


def read_streams(measurements: Path) -> tuple[MeasuredStream, ...]:
    """All rows that count, of ``measurements``.

    Raises:
        FileNotFoundError: a file is missing.
    """
    published = measurements / "published"
    rows = (
        *_icicle_rows(published / "icicle_ops_fwd_bwd_a100_gh200.csv.gz"),
        *_cudnn_rows(published / "cudnn_frontend_norms_fwd_bwd.csv"),
        *_liger_rows(published / "liger_kernel_microbench.csv"),
        *_cross_entropy_rows(published / "liger_kernel_microbench.csv"),
        *_embedding_rows(published / "liger_kernel_microbench.csv"),
        *_vidur_rows(measurements / "tensor_cores" / "linear_and_pointwise_vidur.csv.gz"),
    )
    return tuple(counted(rows))


def counted(rows: Iterable[MeasuredStream]) -> Iterator[MeasuredStream]:
    """Those that are neither mostly a launch nor impossible."""
    return (row for row in rows if row.time_s >= 1e-6 * _LEAST_US and _is_possible(row))


def _is_possible(row: MeasuredStream) -> bool:
    """Not faster than the memory it has to pass: a dozen of a GH200's largest GELUs are."""
    passes_memory = row.num_bytes > 2 * row.gpu.l2_bytes
    return not passes_memory or row.time_s > row.num_bytes / row.gpu.memory_bytes_per_s


def _measured(
    source: str, row: Mapping[str, str], kind: str, sizes: tuple[float, float], tensors: float, time_us: str
) -> MeasuredStream:
    rows, columns = map(round, sizes)
    return MeasuredStream(
        kind=cycles.row_kind(kind, columns),
        source=source,
        gpu=load_gpus()[_GPUS.get(row["gpu"], row["gpu"])],
        rows=rows,
        columns=columns,
        tensors=tensors,
        time_s=1e-6 * float(time_us),
    )


def _icicle_rows(path: Path) -> Iterator[MeasuredStream]:
    kinds = {"layernorm": "layer norm", "softmax": "softmax", "gelu": "curve", "res_add": "arithmetic"}
    for row in published_rows(path):
        if row["flag"] or row["op"] not in kinds:
            continue
        number = {name: float(row[name] or 1) for name in ("batch", "seq_len", "hidden", "heads")}
        tokens, ranks = number["batch"] * number["seq_len"], float(row["tensor_parallel"] or 1)
        hidden, scores = number["hidden"], (tokens * number["heads"] / ranks, number["seq_len"])
        sizes = {"gelu": (tokens, 4 * hidden / ranks), "softmax": scores}.get(row["op"], (tokens, hidden))
        kind = kinds[row["op"]]
        if kind == "arithmetic":
            yield _measured("icicle", row, kind, sizes, _SUM, row["fwd_us"])
            continue
        forward = kind if kind == "curve" else f"{kind} forward"
        for direction in (
            _measured("icicle", row, forward, sizes, _FORWARD, row["fwd_us"]),
            _measured("icicle", row, f"{kind} backward", sizes, _BACKWARD, row["bwd_us"]),
        ):
            if _is_whole(direction, is_written_twice=row["fwd_us"] == row["bwd_us"]):
                yield direction


def _is_whole(row: MeasuredStream, *, is_written_twice: bool) -> bool:
    """Whether it is the time of this call, on software of today."""
    if row.kind == "layer norm backward":
        return row.gpu.architecture != "Hopper"
    if row.kind == "softmax forward" + cycles.LONG_ROWS:
        return row.gpu.architecture != "Ampere" and not is_written_twice
    return True


def _cudnn_rows(path: Path) -> Iterator[MeasuredStream]:
    for row in published_rows(path):
        if row["backend"] != "pytorch":
            continue
        name = {"layer_norm": "layer norm", "rms_norm": "RMS norm"}[row["norm_type"]]
        kind, tensors = {"fwd": (f"{name} forward", _FORWARD), "bwd": (f"{name} backward", _BACKWARD)}[
            row["pass"]
        ]
        sizes = float(row["rows"]), float(row["cols"])
        yield _measured("cudnn", row, kind, sizes, tensors, str(1e3 * float(row["time_ms"])))


def _liger_rows(path: Path) -> Iterator[MeasuredStream]:
    names = {"layer_norm": "layer norm", "softmax": "softmax"}
    tensors = {"forward": _FORWARD, "backward": _BACKWARD}
    for row in published_rows(path):
        is_torch = row["provider"] == "torch" and row["gpu"] in _GPUS
        if not is_torch or row["kernel"] not in names or row["pass"] not in tensors:
            continue
        setting = json.loads(row["config_json"])
        is_steady = float(row["time_ms_p80"]) < _MOST_SPREAD * float(row["time_ms_p20"])
        if "bfloat16" not in setting["dtype"] or not is_steady:
            continue
        size = float(row["x_value"])
        sizes = (size, setting["hidden_size"]) if "hidden_size" in setting else (setting["M"], size)
        kind = f"{names[row['kernel']]} {row['pass']}"
        time_us = str(1e3 * float(row["time_ms_p50"]))
        yield _measured("liger", row, kind, sizes, tensors[row["pass"]], time_us)


def _cross_entropy_rows(path: Path) -> Iterator[MeasuredStream]:
    """By classes or by rows; a row that names a model in place of them is left out."""
    for row in published_rows(path):
        is_torch = row["provider"] in ("torch", "huggingface") and row["gpu"] in _GPUS
        if row["kernel"] != "cross_entropy" or not is_torch or row["x_name"] not in ("V", "BT"):
            continue
        setting = json.loads(row["config_json"])
        size = float(row["x_value"])
        by_classes = row["x_name"] == "V"
        sizes = (setting["B"] * setting["T"], size) if by_classes else (size, setting["vocab_size"])
        kind = cycles.row_kind(f"softmax {row['pass']}", round(sizes[1]), _FULL_BYTES)
        tensors = {"forward": _FORWARD, "backward": _BACKWARD}.get(row["pass"])
        if tensors is not None and kind.endswith(cycles.LONGEST_ROWS):
            time_us = str(1e3 * float(row["time_ms_p50"]))
            measured = _measured("liger", row, kind, sizes, tensors, time_us)
            yield _without_fill(replace(measured, kind=kind, item_bytes=_FULL_BYTES))


def _without_fill(row: MeasuredStream) -> MeasuredStream:
    """Backward, the loss fills a matrix of zeros first."""
    if "forward" in row.kind:
        return row
    fill_s = row.num_bytes / row.tensors / _streamed_bytes_per_s(row)
    return replace(row, time_s=row.time_s - fill_s)


def _embedding_rows(path: Path) -> Iterator[MeasuredStream]:
    """What backward takes of a table of V rows, for gradients of B * T of them."""
    rows = [
        row
        for row in published_rows(path)
        if row["kernel"] == "embedding" and row["provider"] == "huggingface" and row["gpu"] in _GPUS
    ]
    by_pass = {(row["pass"], row["config_json"], row["x_value"]): row for row in rows}
    for (direction, config, table_rows), row in by_pass.items():
        if direction != "full":
            continue
        forward = by_pass["forward", config, table_rows]
        setting, table = json.loads(config), float(table_rows)
        picks, width = setting["B"] * setting["T"], setting["D"]
        rest_us = 1e3 * (float(row["time_ms_p50"]) - float(forward["time_ms_p50"]))
        kind, tensors = "look-up backward", 1 + table / picks
        whole = _measured("liger", row, kind, (picks, width), tensors, str(rest_us))
        other_s = _FULL_BYTES * width * (picks + 3 * table) / _streamed_bytes_per_s(whole)
        yield replace(whole, time_s=whole.time_s - other_s, item_bytes=_FULL_BYTES)


def _streamed_bytes_per_s(row: MeasuredStream) -> float:
    return constants_for(row.gpu).fractions["streaming_fraction"] * row.gpu.memory_bytes_per_s


def _vidur_rows(path: Path) -> Iterator[MeasuredStream]:
    """Of one rank; but for its norm, operators of phi-2 are others than their names say."""
    kinds = {
        "add": ("arithmetic", _SUM),
        "layer_norm": ("layer norm forward", _FORWARD),
        "embedding": ("look-up", _FORWARD),
    }
    for row in published_rows(path):
        if row["kind"] not in kinds or row["tp"] != "1":
            continue
        kind, tensors = kinds[row["kind"]]
        if "phi-2" in row["model"] and kind != "layer norm forward":
            continue
        measured = _measured("vidur", row, kind, (float(row["m"]), float(row["n"])), tensors, row["time_us"])
        if kind == "look-up" or measured.num_bytes > 2 * measured.gpu.l2_bytes:
            yield measured
