"""Seconds of the steps of a recurrent layer, which wait for each other.

A step of B sequences multiplies [B, H] by [H, G H] for G gates. Its time is

    t = cell + latency + max(compute, memory) + traffic * gates' bytes / bandwidth

where the latency of a product whose few thread blocks each sum over H grows with H and falls with the clock,
compute is FLOPs over a share of the peak, and memory is the recurrent weights over a share of the bandwidth.
``cell`` is what the launches of a step cost, by kind of cell. All are fitted to DeepBench's layers on a V100
(``python -m research.training.fit_recurrent``): newer GPUs and libraries get the same, and a wide interval.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypedDict, Unpack

from advisor.core.gpus import catalog_path
from advisor.core.values import GpuSpec

# Tensor cores take rows by this many.
_ROWS = 32
# Bytes that a gate's element-wise work moves for each of its outputs.
_GATE_BYTES = 16
# The clock that latencies are given for, and how they grow with H: of 1, 1.3 and 1.6
# chosen by the errors of held-out shapes, which therefore judge a little too kindly.
_CLOCK_HZ = 1.5e9
_GROWTH = 1.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """The products of a recurrent operator that wait for each other, all of one shape but for the rows.

    Attributes:
        num_by_rows: how many steps have how many sequences, over all layers and directions.
        outputs: columns of a step's product.
        depth: what it sums over.
        weight_bytes: what each step reads again.
        gates: G; 1 for a plain cell.
        hidden: H.
    """

    num_by_rows: Mapping[int, int]
    outputs: int
    depth: int
    weight_bytes: int
    gates: int
    hidden: int
    is_backward: bool

    @property
    def flops(self) -> int:
        """Of all steps; the rest of the operator's FLOPs are products of all steps at once."""
        return 2 * self.outputs * self.depth * sum(rows * num for rows, num in self.num_by_rows.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class StepConstants:
    """What the steps of one rate and direction cost.

    Attributes:
        cell_s: by number of gates.
        latency_s: of 1,000 hidden units at 1.5 GHz.
        compute: share of the peak FLOP rate.
        memory: share of the bandwidth at which weights come.
        traffic: how often the gates' bytes pass.
        sigma: log-normal, on architectures that were measured.
    """

    cell_s: Mapping[int, float]
    latency_s: float
    compute: float
    memory: float
    traffic: float
    sigma: float
    architectures: frozenset[str]


def steps_time_s(steps: Steps, constants: StepConstants, gpu: GpuSpec, peak_flops_per_s: float) -> float:
    """Seconds of all steps."""
    latency_s = constants.latency_s * math.pow(steps.hidden / 1000, _GROWTH) * _CLOCK_HZ / gpu.boost_clock_hz
    memory_s = steps.weight_bytes / (constants.memory * gpu.memory_bytes_per_s)
    row_flops = 2 * steps.outputs * steps.depth
    gate_bytes = constants.traffic * _GATE_BYTES * steps.gates * steps.hidden

    def step_s(rows: int) -> float:
        compute_s = -(-rows // _ROWS) * _ROWS * row_flops / (constants.compute * peak_flops_per_s)
        gates_s = rows * gate_bytes / gpu.memory_bytes_per_s
        return constants.cell_s[steps.gates] + latency_s + max(compute_s, memory_s) + gates_s

    return math.fsum(num * step_s(rows) for rows, num in steps.num_by_rows.items())


class _Shares(TypedDict):
    latency_s: float
    compute: float
    memory: float
    traffic: float
    sigma: float


@cache
def step_constants() -> Mapping[tuple[str, bool], StepConstants]:
    """Those of ``catalogs/recurrent.toml``, by ``"vector"`` or ``"tensor"`` and whether it is backward.

    Raises:
        CatalogError: the file is missing.
    """
    document = tomllib.loads(catalog_path("recurrent.toml").read_text(encoding="utf-8"))
    return {
        (cores, direction == "backward"): _constants(**table)
        for cores, directions in document["steps"].items()
        for direction, table in directions.items()
    }


def _constants(
    *, cell_s: Mapping[str, float], architectures: Sequence[str], **shares: Unpack[_Shares]
) -> StepConstants:
    """A table of the file, whose keys are texts."""
    return StepConstants(
        cell_s={int(gates): seconds for gates, seconds in cell_s.items()},
        architectures=frozenset(architectures),
        **shares,
    )
