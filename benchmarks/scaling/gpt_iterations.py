"""Iterations of GPT on 2 to 512 A100 by Megatron-LM, split by tensors, layers and data, as vTrain measured.

``python -m benchmarks.scaling.gpt_iterations --measurements DIR`` predicts each from the operators of one
layer (``benchmarks.scaling.megatron``) and the times of collectives. Which passes run again in backward was
not recorded, so four constants are fitted to a third of the rows that a hash chose; the others judge. It
profiles 93 shapes of a layer, some ten minutes of a core.

A pipeline of P stages and M micro-batches takes ``M + P - 1`` times what a stage takes of one (Narayanan et
al., "Efficient large-scale language model training", SC 2021). The machines have 8 A100 behind NVSwitch and
InfiniBand at 800 Gb/s a node (Bang et al., "vTrain", MICRO 2024).
"""

from __future__ import annotations

import argparse
import csv
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from functools import cache
from itertools import product
from pathlib import Path

from advisor.core.gpus import resolve_gpu
from advisor.core.values import Fabric, Layout, Link, Network
from advisor.predict.exchange.collective_time import collective_time
from advisor.predict.iteration import HOST, predict
from benchmarks.scaling.megatron import LayerShape, layer
from training.drawn import fraction_of

FILE = "vtrain_ground_truth_gpt_a100.csv"
GPU = "A100-SXM-80GB"
FITTED_SHARE = 1 / 3
_GPUS_PER_NODE, _NETWORK_BYTES_PER_S = 8, 100e9
_VOCABULARY, _HALF_BYTES = 51_200, 2
# A multiply-add of the logits is two operations, once forward and twice backward, at this rate in fp16.
_LOGITS_FLOPS_PER_S = 250e12
# Adam in mixed precision reads and writes so many bytes of each parameter's states.
_STEP_BYTES, _STEP_SHARE = 16, 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Iteration:
    """One measured iteration."""

    tensor: int
    data: int
    pipeline: int
    num_gpus: int
    micro_batches: int
    num_layers: int
    shape: LayerShape
    measured_s: float

    @property
    def is_fitted(self) -> bool:
        """Whether it serves to fit."""
        names = (self.tensor, self.data, self.pipeline, self.micro_batches, self.num_layers)
        return fraction_of(" ".join(map(str, (*names, *astuple(self.shape))))) < FITTED_SHARE


@dataclass(frozen=True, slots=True, kw_only=True)
class Constants:
    """What Megatron does that one layer's operators do not tell.

    Attributes:
        kernels: their time over the predicted one; above 1 as passes run again.
        host_s: which the host takes of a layer and micro-batch, whatever the GPU does.
        exchanges: time of a layer's all-reduces over the predicted one, as they stop the GPU.
        logits: time of the vocabulary's product over that at its rate.
    """

    kernels: float
    host_s: float
    exchanges: float
    logits: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Seconds of an iteration's parts; of a layer and micro-batch, of a micro-batch, and of all of it."""

    kernels_s: float
    exchanges_s: float
    logits_s: float
    sends_s: float
    gradients_s: float
    step_s: float


def read(published: Path) -> Iterator[Iteration]:
    """All of the table."""
    with (published / FILE).open(newline="") as file:
        for row in csv.DictReader(file):
            figures = {name: int(row[name]) for name in _COLUMNS}
            yield Iteration(
                tensor=figures["tp"],
                data=figures["dp"],
                pipeline=figures["pp"],
                num_gpus=figures["num_gpus"],
                micro_batches=figures["global_batch"] // (figures["micro_batch"] * figures["dp"]),
                num_layers=figures["num_layers"],
                shape=LayerShape(
                    hidden=figures["hidden_size"], heads=figures["attention_heads"],
                    length=figures["sequence_length"], batch=figures["micro_batch"], ranks=figures["tp"],
                ),
                measured_s=float(row["step_ms"]) / 1000,
            )  # fmt: skip


_COLUMNS = (
    "tp", "dp", "pp", "num_gpus", "global_batch", "micro_batch", "num_layers", "hidden_size",
    "attention_heads", "sequence_length",
)  # fmt: skip


def parts_of(iteration: Iteration) -> Parts:
    """The predicted parts of an iteration."""
    shape, gpu = iteration.shape, resolve_gpu(GPU)
    per_node = min(iteration.num_gpus, _GPUS_PER_NODE)
    tensor = _among(min(iteration.tensor, per_node), -(-iteration.tensor // per_node))
    states_bytes = _HALF_BYTES * shape.length * shape.batch * shape.hidden
    parameters = 12 * shape.hidden**2 * iteration.num_layers / iteration.pipeline + _VOCABULARY * shape.hidden
    parameters /= iteration.tensor
    # Ranks that hold the same part lie as many GPUs apart as tensors are split over, and share the network.
    apart = min(iteration.tensor, per_node)
    within = min(iteration.data, per_node // apart)
    nodes = -(-iteration.data // within)
    gradients_bytes = _HALF_BYTES * parameters * (apart if nodes > 1 else 1)
    logits_flops = 6 * shape.length * shape.batch * shape.hidden * _VOCABULARY / iteration.tensor
    several_nodes = iteration.num_gpus > _GPUS_PER_NODE
    neighbours = _among(1, 2) if several_nodes else _among(2, 1)
    return Parts(
        kernels_s=_kernels_s(shape),
        exchanges_s=4 * collective_time("all_reduce", states_bytes, tensor, gpu).seconds,
        logits_s=logits_flops / _LOGITS_FLOPS_PER_S,
        sends_s=2 * collective_time("send", states_bytes, neighbours, gpu).seconds,
        gradients_s=collective_time("all_reduce", gradients_bytes, _among(within, nodes), gpu).seconds,
        step_s=_STEP_BYTES * parameters / (_STEP_SHARE * gpu.memory_bytes_per_s),
    )


def _among(gpus_per_node: int, num_nodes: int) -> Layout:
    fabric = Fabric(
        link=Link.NVSWITCH, link_bytes_per_s=resolve_gpu(GPU).nvlink_bytes_per_s, network=Network.INFINIBAND,
        network_bytes_per_s=_NETWORK_BYTES_PER_S,
    )  # fmt: skip
    return Layout(gpus_per_node=gpus_per_node, num_nodes=num_nodes, fabric=fabric)


@cache
def _kernels_s(shape: LayerShape) -> float:
    families = predict(layer(shape), resolve_gpu(GPU)).by_family
    return sum(seconds for family, seconds in families.items() if family != HOST)


def predicted_s(iteration: Iteration, parts: Parts, constants: Constants) -> float:
    """Seconds of an iteration."""
    on_gpu_s = constants.kernels * parts.kernels_s + constants.exchanges * parts.exchanges_s
    stage_s = iteration.num_layers / iteration.pipeline * max(on_gpu_s, constants.host_s)
    sends_s = parts.sends_s if iteration.pipeline > 1 else 0.0
    turns = iteration.micro_batches + iteration.pipeline - 1
    logits_s = iteration.micro_batches * constants.logits * parts.logits_s
    return turns * (stage_s + sends_s) + logits_s + parts.gradients_s + parts.step_s


def fitted(iterations: Sequence[tuple[Iteration, Parts]]) -> Constants:
    """Those of the least mean error on the rows that fit."""
    fit = [pair for pair in iterations if pair[0].is_fitted]
    grid = (
        Constants(kernels=kernels, host_s=host_s, exchanges=exchanges, logits=logits)
        for kernels, host_s, exchanges, logits in product(
            (1.0, 1.1, 1.2, 1.3, 1.4, 1.5), (0.003, 0.0032, 0.0034, 0.0036, 0.0038), (1, 1.5, 2, 3), (0, 1, 2)
        )
    )
    return min(grid, key=lambda constants: statistics.fmean(errors(fit, constants)))


def errors(iterations: Iterable[tuple[Iteration, Parts]], constants: Constants) -> list[float]:
    """The absolute error of each, relative to what was measured."""
    return [
        abs(predicted_s(iteration, parts, constants) / iteration.measured_s - 1)
        for iteration, parts in iterations
    ]


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measurements", type=Path, required=True)
    published = parser.parse_args().measurements / "published"
    rows = [(iteration, parts_of(iteration)) for iteration in read(published)]
    constants = fitted(rows)
    print(f"{constants}\n\n| rows | number | mean | median | 90 % | largest |\n|---|--:|--:|--:|--:|--:|")
    for name, chosen in _groups(rows):
        off = sorted(errors(chosen, constants))
        figures = (statistics.fmean(off), statistics.median(off), off[int(0.9 * len(off))], off[-1])
        print(f"| {name} | {len(off):,} | " + " | ".join(f"{figure:.1%}" for figure in figures) + " |")


def _groups(
    rows: Sequence[tuple[Iteration, Parts]],
) -> Iterator[tuple[str, list[tuple[Iteration, Parts]]]]:
    judging = [row for row in rows if not row[0].is_fitted]
    yield "fit", [row for row in rows if row[0].is_fitted]
    yield "judge", judging
    yield "judge, one node", [row for row in judging if row[0].num_gpus <= _GPUS_PER_NODE]
    yield "judge, 64 to 512 GPUs", [row for row in judging if row[0].num_gpus > _GPUS_PER_NODE]


if __name__ == "__main__":
    main()
