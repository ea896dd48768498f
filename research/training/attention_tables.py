"""Published times of fused attention, forward and backward; the files' own README tells their traps.

Kept are calls as training makes them: whole sequences of at least 128 tokens. Left out are decoding
(one query), sliding windows, kernels that PyTorch does not have (Triton, TRT-LLM), and a GH200's backward
passes, which would exceed its peak. The tables of A100 and GH200 (``icicle``) count FLOPs as if under a
causal mask; that there was none is our reading: with one they would reach half of what the kernel's paper
reports, and fit one to three points worse (in tiles of 128).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from advisor.core.gpus import load_gpus
from advisor.core.values import GpuSpec
from advisor.operators.attention_kernels import AttentionBackend, AttentionCall
from research.training.published_rows import published_rows

ORIGIN = (
    "aiconfigurator (Apache-2.0, commit 095f58a51c4c, 2026-08-21), attention_forward.csv.gz",
    "cudnn-frontend (MIT, commits df73764adb and older, 2024-09-23 to 2026-04-29), *_sdpa_*.csv",
    "estimate-train-time (MIT), flash attention of icicle_ops_fwd_bwd_a100_gh200.csv.gz",
)
_LEAST_QUERIES = 128
# Below it an inference server's launches and cache count more than its attention.
_LEAST_US, _LEAST_CAUSAL_US = 20.0, 50.0
_OF_SERVERS = {
    ("A100-SXM-80GB", "flash_attention"): AttentionBackend.FLASH_2,
    ("L40S", "vllm_flash_attn_fa2"): AttentionBackend.FLASH_2,
    ("L40S", "vllm_vit_flash_attn_fa2"): AttentionBackend.FLASH_2,
    **{
        (gpu, kernel): AttentionBackend.FLASH_3
        for gpu in ("H100-SXM-80GB", "H200-SXM-141GB")
        for kernel in ("fa3", "flash_attention_v3", "vllm_flash_attn_fa3", "vllm_vit_flash_attn_fa3")
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One measured call."""

    call: AttentionCall
    backend: AttentionBackend
    gpu: GpuSpec
    source: str
    """What timed it; each adds a cost of its own to a call."""
    time_s: float
    cache_bytes: int = 0
    """What the call also wrote to a server's cache."""


def read_attention(folder: Path) -> tuple[Measured, ...]:
    """All rows that count, of ``measurements``.

    Raises:
        FileNotFoundError: a file is missing.
    """
    return (*_server_rows(folder / "tensor_cores" / "attention_forward.csv.gz"), *read_both_ways(folder))


def read_both_ways(folder: Path) -> tuple[Measured, ...]:
    """Those of the tables that have backward passes, too.

    Raises:
        FileNotFoundError: a file is missing.
    """
    published = folder / "published"
    return (
        *_icicle_rows(published / "icicle_ops_fwd_bwd_a100_gh200.csv.gz"),
        *_cudnn_rows(published / "cudnn_frontend_sdpa_fwd_bwd.csv"),
        *_cudnn_rows(published / "cudnn_frontend_sdpa_older_b200_pytorch_backends.csv"),
    )


def _spec(name: str) -> GpuSpec:
    """Tables name boards as the catalog does, or by a part of it: of which one, is our reading."""
    gpus = load_gpus()
    if name in gpus:
        return gpus[name]
    if name.startswith("GH200"):
        return replace(gpus["GH200-96GB"], name="GH200")  # rows that judge are drawn by it
    return next(gpu for gpu in gpus.values() if gpu.name.startswith(f"{name}-SXM"))


def _server_rows(path: Path) -> Iterator[Measured]:
    for row in published_rows(path):
        backend = _OF_SERVERS.get((row["gpu"], row["kernel"]))
        queries, is_causal, time_us = int(row["q_len"]), row["causal"] == "1", float(row["time_us"])
        least_us = _LEAST_CAUSAL_US if is_causal else _LEAST_US
        if not backend or row["sustained"] == "1" or queries < _LEAST_QUERIES or time_us < least_us:
            continue
        call = _call(
            heads=(int(row["batch"]), int(row["num_heads"]), int(row["num_kv_heads"])),
            lengths=(queries, queries),
            sizes=(int(row["head_dim"]), int(row["head_dim"])),
            is_causal=is_causal,
        )
        # Keys and values are read, and written to the pages of the cache.
        cache_bytes = 8 * int(row["batch"]) * int(row["num_kv_heads"]) * queries * int(row["head_dim"])
        yield Measured(
            call=call,
            backend=backend,
            gpu=_spec(row["gpu"]),
            source=row["kernel"],
            time_s=1e-6 * time_us,
            cache_bytes=cache_bytes if is_causal else 0,
        )


def _icicle_rows(path: Path) -> Iterator[Measured]:
    for row in published_rows(path):
        if row["op"] != "flash_atten":
            continue
        gpu = _spec("A100-SXM-80GB" if row["gpu"].startswith("A100") else row["gpu"])
        heads, size = round(float(row["heads"])), round(float(row["hidden"]) / float(row["heads"]))
        here, length = round(heads / float(row["tensor_parallel"])), round(float(row["seq_len"]))
        for is_backward, column in ((False, "fwd_us"), (True, "bwd_us")):
            if is_backward and (gpu.name == "GH200" or row["flag"]):
                continue
            call = _call(
                heads=(round(float(row["batch"])), here, here),
                lengths=(length, length),
                sizes=(size, size),
                is_causal=False,
                is_backward=is_backward,
                dtype="float16",
            )
            yield Measured(
                call=call,
                backend=AttentionBackend.FLASH_2,
                gpu=gpu,
                source="icicle",
                time_s=1e-6 * float(row[column]),
            )


def _cudnn_rows(path: Path) -> Iterator[Measured]:
    """Of cuDNN and PyTorch's FlashAttention 2; determinism slows a backward pass, an H200's all have it."""
    for row in published_rows(path):
        name = row["gpu"].split()[0]
        is_slowed = row.get("deterministic_bwd") == "True" and name != "H200"
        is_window = bool(row.get("sliding_window")) or row["head_dim_qk"] == "64"
        backend = _cudnn_backend(row["backend"])
        if backend is None or is_slowed or is_window or float(row["time_ms"] or 0) <= 0:
            continue
        if not row["precision"].startswith("bf"):
            continue
        call = _call(
            heads=(int(row["batch_size"]), int(row["num_q_heads"]), int(row["num_kv_heads"])),
            lengths=(int(row["q_seqlen"]), int(row["kv_seqlen"])),
            sizes=(int(row["head_dim_qk"]), int(row["head_dim_vo"])),
            is_causal=row["attn_mask"] in ("top_left", "causal"),
            is_backward=row["pass"] == "bwd",  # noqa: S105
        )
        yield Measured(
            call=call,
            backend=backend,
            gpu=_spec(name),
            source=f"cudnn-frontend: {row['backend']}",
            time_s=1e-3 * float(row["time_ms"]),
        )


def _cudnn_backend(name: str) -> AttentionBackend | None:
    if "math" in name:
        return None
    return AttentionBackend.CUDNN if "cudnn" in name else AttentionBackend.FLASH_2


def _call(
    *,
    heads: tuple[int, int, int],
    lengths: tuple[int, int],
    sizes: tuple[int, int],
    is_causal: bool,
    is_backward: bool = False,
    dtype: str = "bfloat16",
) -> AttentionCall:
    """A call in 16 bits, of batch, query's and key's heads; bytes as ``cost_of`` counts."""
    batch, num_heads, num_key_heads = heads
    both = sum(sizes)
    of_query, of_key = batch * num_heads * lengths[0] * both, batch * num_key_heads * lengths[1] * both
    return AttentionCall(
        batch_heads=batch * num_heads,
        queries=lengths[0],
        keys=lengths[1],
        key_size=sizes[0],
        value_size=sizes[1],
        dtype=dtype,
        has_mask=False,
        is_causal=is_causal,
        is_backward=is_backward,
        is_trained=is_backward,
        has_dropout=False,
        ran_flash_3=False,
        num_bytes=2 * (2 if is_backward else 1) * (of_query + of_key) + 4 * batch * num_heads * lengths[0],
    )
