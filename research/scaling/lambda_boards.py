"""Lambda's runs on 2 to 16 boards of one machine, beside the same on one board of the same machine.

The time of a step on one board is measured, so only what boards cost each other is judged. Left out:

- networks that exchange nothing (Transformer-XL keeps 0.99 on a machine whose 0.6 GB/s would need three times
  its step), state no batch (SSD), or ran few iterations of speech of all lengths (Tacotron 2, WaveGlow);
- machines whose one board was not run, or whose boards are of a form that nobody stated.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from pathlib import Path

from advisor.core.errors import AdvisorError
from advisor.core.fabrics import board_fabric, linked
from advisor.core.gpus import resolve_gpu
from advisor.core.values import GpuSpec, Layout, Link
from advisor.predict.exchange.collective_time import ScalingConstants
from advisor.predict.exchange.collectives import exchanged_bytes
from research.networks import GNMT_TOKENS
from research.scaling.cases import Case
from research.scaling.fitting import BOARDS
from research.scaling.lambda_networks import NETWORKS
from research.scaling.steps import Timed, step_of, timed_on

FILE = "lambda_steps.csv"
_Row = Mapping[str, str]
_GPUS = {"RTX-3080": "RTX-3080-10GB"}
_PER_SAMPLE = {"gnmt": GNMT_TOKENS}
# Virtual machines whose boards exchange through the host. The table names those with A100; that the others
# are such was inferred from these rows' own efficiencies (research/docs/accuracy/scaling.md).
_VIRTUAL = re.compile(r"_v1$|^LambdaCloud_4x|^LambdaCloud_2xQuadro")
# Bridges of two boards, which no table states: data sheets of the A100 PCIe, and of the others that have any.
_BRIDGES_BYTES_PER_S, _BRIDGE_BYTES_PER_S = {"A100-PCIE-40GB": 300e9, "A100-PCIE-80GB": 300e9}, 56.25e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What joins the boards of a machine."""

    name: str
    gpu: GpuSpec
    num_gpus: int
    is_bridged: bool = False
    """Whether NVLink joins its boards in pairs."""

    @property
    def link(self) -> Link:
        """Without bridges."""
        return Link.HOST if _VIRTUAL.search(self.name) else board_fabric(self.gpu).link

    @property
    def layout(self) -> Layout:
        """Of all its boards."""
        link, rate = self.link, None
        if self.is_bridged and self.num_gpus == 2:
            link, rate = Link.NVLINK_PAIRS, _BRIDGES_BYTES_PER_S.get(self.gpu.name, _BRIDGE_BYTES_PER_S)
        elif self.is_bridged:
            # Every second hop of a ring is a bridge, so two rings share what a board has of PCIe.
            rate = 2 * self.gpu.pcie_bytes_per_s
        return Layout(gpus_per_node=self.num_gpus, fabric=linked(self.gpu, link, rate))


def lambda_cases(published: Path) -> Iterator[Case]:
    """Rows of several boards whose network can be built."""
    with (published / FILE).open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["model"] in NETWORKS and row["batch_per_gpu"]]
    alone = {(_kind(row), _work(row)): float(row["throughput"]) for row in rows if row["num_gpus"] == "1"}
    found = []
    for row in rows:
        machine, rate = _machine(row), alone.get((_kind(row), _work(row)))
        if machine is not None and machine.num_gpus > 1 and rate is not None:
            step_s = float(row["batch_per_gpu"]) * _PER_SAMPLE.get(row["model"], 1.0) / rate
            found.append((row, machine, rate, step_s))
    bridged = {
        machine.name for row, machine, rate, step_s in found if _is_bridged(row, machine, rate, step_s)
    }
    for row, unbridged, rate, step_s in found:
        machine, half = replace(unbridged, is_bridged=unbridged.name in bridged), row["precision"] == "fp16"
        yield Case(
            source=BOARDS,
            group=machine.gpu.name,
            name=f"{machine.name}, {row['model']}, {row['precision'][:4]}",
            gpu=machine.gpu,
            base=Layout(gpus_per_node=1),
            layout=machine.layout,
            published=float(row["throughput"]) / machine.num_gpus / rate,
            seconds=partial(_seconds, row["model"], half, machine.gpu.name, step_s),
        )


def _is_bridged(row: _Row, machine: Machine, rate: float, step_s: float) -> bool:
    """Whether boards exchange gradients, none of which hides, sooner than their PCIe could send them.

    Through the host all crosses a board's PCIe twice.
    """
    if row["model"] != "gnmt" or machine.link not in (Link.PCIE, Link.HOST):
        return False
    lost_s = machine.num_gpus * rate / float(row["throughput"]) * step_s - step_s
    crossings = (2 if machine.link is Link.HOST else 1) * 2 * (machine.num_gpus - 1) / machine.num_gpus
    gradients = exchanged_bytes(NETWORKS["gnmt"](row["precision"] == "fp16")) or 0
    return lost_s < crossings * gradients / machine.gpu.pcie_bytes_per_s


def _machine(row: _Row) -> Machine | None:
    try:
        gpu = resolve_gpu(_GPUS.get(row["gpu"], row["gpu"]))
    except AdvisorError:
        return None
    return Machine(name=row["system"], gpu=gpu, num_gpus=int(row["num_gpus"]))


def _kind(row: _Row) -> str:
    """The machine's name without the number of its boards."""
    return re.sub(r"(^|_)\d+x", r"\1", row["system"])


def _work(row: _Row) -> tuple[str, ...]:
    columns = ("model", "precision", "batch_per_gpu", "memory_format", "amp_level", "note")
    return tuple(row[column] for column in columns)


@cache
def _timed(model: str, half: bool, gpu: str) -> Timed:
    return timed_on(NETWORKS[model](half), resolve_gpu(gpu))


@lru_cache(maxsize=2**17)
def _seconds(
    model: str, half: bool, gpu: str, step_s: float, layout: Layout, scaling: ScalingConstants
) -> tuple[float, float]:
    return step_of(_timed(model, half, gpu).lasting(step_s), layout, scaling)
