"""Published times of norms, softmax and element-wise operators in 16 bits.

- ``icicle_ops_fwd_bwd_a100_gh200.csv.gz``: operators of a transformer, fp16. An A100's backward layer norm is
  left out: its kernel took three times as long for its bytes as the GH200's, which is newer software.
- ``cudnn_frontend_norms_fwd_bwd.csv``: PyTorch's layer and RMS norm, bf16, H200 and GB200.
- ``liger_kernel_microbench.csv``: PyTorch's layer norm and softmax, bf16, B200 and RTX 3090.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from advisor.core.gpus import load_gpus
from advisor.core.values import GpuSpec
from training.published_rows import published_rows

ORIGIN = (
    "estimate-train-time (MIT), norms and GELU of icicle_ops_fwd_bwd_a100_gh200.csv.gz",
    "cudnn-frontend (MIT, 2026-03-09), cudnn_frontend_norms_fwd_bwd.csv",
    "Liger-Kernel (BSD-2-Clause), layer norm and softmax of liger_kernel_microbench.csv",
)
_GPUS = {
    "A100-SXM4-80GB": "A100-SXM-80GB",
    "GH200-120GB": "GH200-96GB",
    "H200": "H200-SXM-141GB",
    "GB200": "GB200",
    "B200": "B200-SXM-180GB",
    "RTX 3090": "RTX-3090",
}
_HALF_BYTES = 2
# Below it the launch is most of the time.
_LEAST_US = 20.0
# Tensors that are read and written once, forward and backward.
_FORWARD, _BACKWARD, _SUM = 2, 3, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredStream:
    """One measured call on ``rows x columns`` elements.

    Attributes:
        kind: of ``streams.toml``.
        source: what timed it.
        tensors: of that size, which it reads and writes.
    """

    kind: str
    source: str
    gpu: GpuSpec
    rows: int
    columns: int
    tensors: int
    time_s: float

    @property
    def num_bytes(self) -> int:
        """Read and written at least."""
        return self.tensors * _HALF_BYTES * self.rows * self.columns


def read_streams(folder: Path) -> tuple[MeasuredStream, ...]:
    """All rows that count, of ``measurements/published``.

    Raises:
        FileNotFoundError: a file is missing.
    """
    rows = (
        *_icicle_rows(folder / "icicle_ops_fwd_bwd_a100_gh200.csv.gz"),
        *_cudnn_rows(folder / "cudnn_frontend_norms_fwd_bwd.csv"),
        *_liger_rows(folder / "liger_kernel_microbench.csv"),
    )
    return tuple(row for row in rows if row.time_s >= 1e-6 * _LEAST_US and _is_possible(row))


def _is_possible(row: MeasuredStream) -> bool:
    """Not faster than the memory it has to pass: a dozen of a GH200's largest GELUs are."""
    passes_memory = row.num_bytes > 2 * row.gpu.l2_bytes
    return not passes_memory or row.time_s > row.num_bytes / row.gpu.memory_bytes_per_s


def _measured(
    source: str, row: Mapping[str, str], kind: str, sizes: tuple[float, float], tensors: int, time_us: str
) -> MeasuredStream:
    rows, columns = sizes
    return MeasuredStream(
        kind=kind,
        source=source,
        gpu=load_gpus()[_GPUS[row["gpu"]]],
        rows=round(rows),
        columns=round(columns),
        tensors=tensors,
        time_s=1e-6 * float(time_us),
    )


def _icicle_rows(path: Path) -> Iterator[MeasuredStream]:
    for row in published_rows(path):
        if row["flag"] or row["op"] not in ("layernorm", "gelu", "res_add", "softmax"):
            continue
        number = {name: float(row[name] or 1) for name in ("batch", "seq_len", "hidden", "heads")}
        tokens, ranks = number["batch"] * number["seq_len"], float(row["tensor_parallel"] or 1)
        hidden, scores = number["hidden"], (tokens * number["heads"] / ranks, number["seq_len"])
        forward, backward = {
            "layernorm": (("layer norm forward", _FORWARD), ("layer norm backward", _BACKWARD)),
            "gelu": (("curve", _FORWARD), ("curve backward", _BACKWARD)),
            "res_add": (("arithmetic", _SUM), None),
            "softmax": (("softmax forward", _FORWARD), ("softmax backward", _BACKWARD)),
        }[row["op"]]
        sizes = {"gelu": (tokens, 4 * hidden / ranks), "softmax": scores}.get(row["op"], (tokens, hidden))
        yield _measured("icicle", row, forward[0], sizes, forward[1], row["fwd_us"])
        is_old = row["op"] == "layernorm" and row["gpu"].startswith("A100")
        if backward and not is_old:
            yield _measured("icicle", row, backward[0], sizes, backward[1], row["bwd_us"])


def _cudnn_rows(path: Path) -> Iterator[MeasuredStream]:
    for row in published_rows(path):
        if row["backend"] != "pytorch":
            continue
        name = {"layer_norm": "layer norm", "rms_norm": "RMS norm"}[row["norm_type"]]
        kind, tensors = {
            "fwd": (f"{name} forward", _FORWARD),
            "bwd": (f"{name} backward", _BACKWARD),
        }[row["pass"]]
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
        if "bfloat16" not in setting["dtype"]:
            continue
        size = float(row["x_value"])
        sizes = (size, setting["hidden_size"]) if "hidden_size" in setting else (setting["M"], size)
        kind = f"{names[row['kernel']]} {row['pass']}"
        time_us = str(1e3 * float(row["time_ms_p50"]))
        yield _measured("liger", row, kind, sizes, tensors[row["pass"]], time_us)
