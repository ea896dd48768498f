"""Sharded models: FSDP of language models from 125M to 70B parameters, on up to 512 GPUs.

Efficiency is beside the smallest published job of the same model, whose rate also tells how long its
computation takes: what is judged is what gathers, scatters and stragglers add when GPUs are added. Rows
that are more than 5 % better than perfect are left out: something else than the number of GPUs changed.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from advisor.core.gpus import resolve_gpu
from advisor.core.values import Collective, GpuSpec, Layout, Trace
from advisor.predict.exchange.collective_time import ScalingConstants
from advisor.predict.exchange.data_parallel import exchange_of_shards
from research.bare_trace import bare_trace
from research.roce_clusters import MOSAIC_NETWORK_BYTES_PER_S, TITAN_NETWORK_BYTES_PER_S, layout_of
from research.scaling.cases import Case

_MOSAIC_GPUS = {"a100_40gb": "A100-SXM-40GB", "h100_80gb": "H100-SXM-80GB"}
_LAYERS = {"125m": 12, "350m": 24, "760m": 24, "1b": 24, "3b": 32, "7b": 32, "13b": 40, "30b": 48, "70b": 80}
_LLAMA_8B, _LLAMA_8B_LAYERS = 8.03e9, 32
# Parameters are gathered and gradients scattered in bf16; where the script says so, gradients in FP32.
_BF16_BYTES, _FP32_BYTES = 2, 4

_MOST_EFFICIENCY = 1.05

_Row = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One published rate: seconds of a step, and what each rank gathers and scatters in it."""

    group: str
    num_gpus: int
    step_s: float
    units: int
    gathered_bytes: float
    gathers: int
    scattered_bytes: float
    scatters: int


def mosaic_jobs(third_party: Path) -> Iterator[tuple[str, Job]]:
    """GPU and job of MosaicML's BF16 rows."""
    with (third_party / "mpt_llmfoundry_train.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["precision"] in ("bf16", "amp_bf16")]
    for row in rows:
        if row["gpu"] in _MOSAIC_GPUS:
            columns = ("model", "gpu", "seq_len", "microbatch", "act_ckpt", "sharding", "grad_accum")
            parameters, passes = float(row["n_params"]), int(row["grad_accum"])
            reduced = _BF16_BYTES if row["mp_mode"] == "PURE" else _FP32_BYTES
            yield (
                _MOSAIC_GPUS[row["gpu"]],
                Job(
                    group=", ".join(row[column] for column in columns),
                    num_gpus=int(row["n_gpus"]),
                    step_s=float(row["iter_time_s"]),
                    units=_LAYERS[row["model"].removeprefix("MPT-")],
                    gathered_bytes=_BF16_BYTES * parameters,
                    gathers=passes * (2 if row["sharding"] == "FULL_SHARD" else 1),
                    scattered_bytes=reduced * parameters,
                    scatters=passes,
                ),
            )


def titan_jobs(published: Path) -> Iterator[tuple[str, Job]]:
    """Torchtitan's BF16 rows of Llama 3.1 8B on 8 and on 128 H100."""
    with (published / "misc_llm_tpu_training_throughput.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            options = row["parallelism_and_options"]
            if row["step_ms"] and row["precision"] == "bf16" and options.startswith("FSDP"):
                yield "H100-SXM-80GB", _llama(row, options, float(row["step_ms"]) / 1000)


def vector_jobs(published: Path) -> Iterator[tuple[str, Job]]:
    """VectorLM's full fine-tuning of Llama 3 8B on 1 to 4 A100."""
    with (published / "vectorlm_llama3_a100.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            if row["method"] == "full_rank":
                tokens = int(row["batch_per_gpu"]) * int(row["sequence_length"]) * int(row["num_gpus"])
                step_s = tokens / float(row["tokens_per_s_total"])
                yield "A100-SXM-80GB", _llama(row, f"sequences of {row['sequence_length']}", step_s)


def _llama(row: _Row, group: str, step_s: float) -> Job:
    return Job(
        group=f"Llama 3 8B, {group}",
        num_gpus=int(row["num_gpus"]),
        step_s=step_s,
        units=_LLAMA_8B_LAYERS,
        gathered_bytes=_BF16_BYTES * _LLAMA_8B,
        gathers=2,
        scattered_bytes=_FP32_BYTES * _LLAMA_8B,
        scatters=1,
    )


def fsdp_cases(third_party: Path, published: Path) -> Iterator[Case]:
    """All rows that have a smaller job of their group beside them."""
    yield from _cases("llm-foundry", mosaic_jobs(third_party), MOSAIC_NETWORK_BYTES_PER_S)
    yield from _cases("torchtitan", titan_jobs(published), TITAN_NETWORK_BYTES_PER_S)
    yield from _cases("VectorLM", vector_jobs(published), None)


def _cases(source: str, jobs: Iterable[tuple[str, Job]], network_bytes_per_s: float | None) -> Iterator[Case]:
    in_order = sorted(jobs, key=lambda pair: (pair[1].group, pair[1].num_gpus))
    for group, members in groupby(in_order, key=lambda pair: pair[1].group):
        (name, base), *others = members
        gpu = resolve_gpu(name)
        for _, job in others:
            if job.num_gpus > base.num_gpus and base.step_s / job.step_s < _MOST_EFFICIENCY:
                yield Case(
                    source=source,
                    group=group,
                    gpu=gpu,
                    base=layout_of(base.num_gpus, gpu, network_bytes_per_s),
                    layout=layout_of(job.num_gpus, gpu, network_bytes_per_s),
                    published=base.step_s / job.step_s,
                    seconds=_seconds(base, gpu, network_bytes_per_s),
                )


def _seconds(
    base: Job, gpu: GpuSpec, network_bytes_per_s: float | None
) -> Callable[[Layout, ScalingConstants], tuple[float, float]]:
    smallest = layout_of(base.num_gpus, gpu, network_bytes_per_s)

    def seconds(layout: Layout, scaling: ScalingConstants) -> tuple[float, float]:
        compute_s = base.step_s
        for _ in range(20):
            compute_s *= base.step_s / _together_s(base, compute_s, gpu, smallest, scaling)[0]
        return _together_s(base, compute_s, gpu, layout, scaling)

    return seconds


def _together_s(
    job: Job, compute_s: float, gpu: GpuSpec, layout: Layout, scaling: ScalingConstants
) -> tuple[float, float]:
    trace = _trace(job, layout.num_gpus)
    exchange = exchange_of_shards(trace, compute_s, gpu, layout, slowdown=scaling.slowdown)
    together_s = compute_s * (1 + scaling.waiting(layout.num_gpus)) + exchange.seconds
    return together_s, math.hypot(exchange.sigma_s / together_s, scaling.sigma)


def _trace(job: Job, num_ranks: int) -> Trace:
    """Of nothing but what its rank exchanges, in as many units as the model has layers."""
    trace = bare_trace(())
    share = round(job.scattered_bytes / num_ranks)
    return replace(
        trace,
        world_size=num_ranks,
        is_sharded=num_ranks > 1,
        accumulation=job.scatters,
        memory=replace(trace.memory, gradient_bytes=share),
        collectives=(
            _collective("all_gather", job.gathered_bytes, job.gathers, job.units, num_ranks),
            _collective("reduce_scatter", job.scattered_bytes, job.scatters, job.units, num_ranks),
        ),
    )


def _collective(kind: str, num_bytes: float, times: int, units: int, num_ranks: int) -> Collective:
    return Collective(
        kind=kind, num_bytes=round(num_bytes / units), world_size=num_ranks, count=times * units
    )
