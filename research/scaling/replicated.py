"""Data parallelism: NVIDIA's DeepLearningExamples on one node, DLPerf's PyTorch rows to four nodes of V100.

The networks are those of ``research.speedups``. NVIDIA's rows are of DGX machines: a DGX-1 has 8 V100 in a
mesh of NVLink, a DGX-2 has 16 and a DGX A100 8 behind NVSwitch. DLPerf's nodes of 8 V100 are joined by
InfiniBand at 100 Gb/s (Oneflow-Inc/DLPerf).
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, lru_cache, partial
from pathlib import Path

from advisor.core.gpus import resolve_gpu
from advisor.core.values import Fabric, GpuSpec, Layout, Link, Network, Phase, Trace
from advisor.predict.exchange.collective_time import ScalingConstants
from research import speedups
from research.published import as_in_containers
from research.scaling import bert_base
from research.scaling.cases import Case
from research.scaling.lambda_networks import reducing_behind
from research.scaling.steps import Timed, step_of, timed_on

_Row = Mapping[str, str]
# The GPU's name in the catalog, and how a machine of the table joins them.
_NVIDIA = {
    "V100 SXM2/3 16GB": ("V100-SXM-16GB", Link.NVLINK_MESH),
    "V100 SXM2/3 32GB": ("V100-SXM-32GB", Link.NVLINK_MESH),
    "V100 SXM3-350W 32GB(DGX-2H)": ("V100-SXM-32GB", Link.NVSWITCH),
    "A100 SXM4 40GB": ("A100-SXM-40GB", Link.NVSWITCH),
    "A100 SXM4 80GB": ("A100-SXM-80GB", Link.NVSWITCH),
}
_DLPERF_GPU, _DLPERF_NETWORK_BYTES_PER_S = "V100-SXM-16GB", 12.5e9
# BERT was pre-trained in batches of 8,192 to 65,536 sequences: so many passes make a step.
_PASSES = 128
_GNMT = "Translation/GNMT"
# Batches of sentences vary by so much: chosen on these rows.
_SENTENCES, _VARIATION = ("Translation/",), 0.08


def nvidia_cases(third_party: Path) -> Iterator[Case]:
    """Rows of one node whose model can be built, beside the same on one GPU."""
    rows = _read(third_party / speedups.FILE)
    alone = {_key(row): float(row["throughput"]) for row in rows if row["n_gpus"] == "1"}
    networks = {(network.published, network.variant): network for network in speedups.NETWORKS}
    for row in rows:
        network, num_gpus = networks.get((row["model"], row["variant"])), int(row["n_gpus"])
        is_one_node = num_gpus <= (16 if "DGX-2" in row["gpu"] else 8)
        if network is None or num_gpus == 1 or _key(row) not in alone or not is_one_node:
            continue
        precision = "AMP" if row["precision"].startswith("AMP") else "TF32"
        batch_size = int(row["batch_per_gpu"] or network.batch_sizes[precision])
        name, link = _NVIDIA[row["gpu"]]
        gpu = resolve_gpu(name)
        fabric = Fabric(link=link, link_bytes_per_s=gpu.nvlink_bytes_per_s)
        passes = _PASSES if row["variant"].startswith("pretrain") else 1
        build = partial(_in_container, network.build, precision == "AMP", batch_size, passes)
        if row["model"].startswith(_SENTENCES):
            build = partial(_of_sentences, build, network.published)
        yield Case(
            source="NVIDIA",
            group=f"{network.name}, {row['precision']}, batch {batch_size}, {name}",
            gpu=gpu,
            base=Layout(gpus_per_node=1),
            layout=Layout(gpus_per_node=num_gpus, fabric=fabric),
            published=float(row["throughput"]) / num_gpus / alone[_key(row)],
            seconds=_seconds(build, gpu),
        )


def dlperf_cases(published: Path) -> Iterator[Case]:
    """PyTorch's rows, beside the same on one GPU."""
    rows = [row for row in _read(published / "dlperf_v100_scaling.csv") if "PyTorch" in row["framework"]]
    alone = {_dlperf_key(row): float(row["samples_per_s"]) for row in rows if row["num_gpus"] == "1"}
    gpu = resolve_gpu(_DLPERF_GPU)
    fabric = Fabric(
        link=Link.NVLINK_MESH, link_bytes_per_s=gpu.nvlink_bytes_per_s, network=Network.INFINIBAND,
        network_bytes_per_s=_DLPERF_NETWORK_BYTES_PER_S,
    )  # fmt: skip
    for row in rows:
        num_gpus, num_nodes = int(row["num_gpus"]), int(row["num_nodes"])
        if num_gpus == 1:
            continue
        network = bert_base.pre_training if row["model"].startswith("BERT") else speedups.NETWORKS[0].build
        build = partial(_in_container, network, row["precision"] == "amp", int(row["batch_per_gpu"]), 1)
        yield Case(
            source="DLPerf",
            group=", ".join(_dlperf_key(row)),
            gpu=gpu,
            base=Layout(gpus_per_node=1),
            layout=Layout(gpus_per_node=num_gpus // num_nodes, num_nodes=num_nodes, fabric=fabric),
            published=float(row["samples_per_s"]) / num_gpus / alone[_dlperf_key(row)],
            seconds=_seconds(build, gpu),
        )


def _read(path: Path) -> list[_Row]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _key(row: _Row) -> tuple[str, ...]:
    return tuple(row[column] for column in ("model", "variant", "gpu", "precision", "batch_per_gpu"))


def _dlperf_key(row: _Row) -> tuple[str, ...]:
    return tuple(row[column] for column in ("model", "precision", "batch_per_gpu", "framework"))


@cache
def _in_container(build: Callable[[bool, int], Trace], amp: bool, batch_size: int, passes: int) -> Trace:
    trace = as_in_containers(build(amp, batch_size))
    ops = tuple(
        op if op.phase is Phase.OPTIMIZER else replace(op, count=passes * op.count) for op in trace.ops
    )
    return replace(trace, ops=ops, accumulation=passes) if passes > 1 else trace


def _seconds(
    build: Callable[[], Trace], gpu: GpuSpec
) -> Callable[[Layout, ScalingConstants], tuple[float, float]]:
    """Operators are timed once, whatever constants of scaling are tried."""

    @cache
    def timed() -> Timed:
        return timed_on(build(), gpu)

    @lru_cache(maxsize=256)
    def seconds(layout: Layout, scaling: ScalingConstants) -> tuple[float, float]:
        return step_of(timed(), layout, scaling)

    return seconds


def _of_sentences(build: Callable[[], Trace], published: str) -> Trace:
    """Of batches that vary, which no made-up batch shows."""
    trace = replace(build(), batch_variation=_VARIATION)
    return reducing_behind(trace) if published == _GNMT else trace
