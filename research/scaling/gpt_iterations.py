"""Iterations of GPT on 2 to 512 A100 by Megatron-LM, split by tensors, layers and data, as vTrain measured.

``python -m research.scaling.gpt_iterations --measurements DIR [--layers FOLDER]`` predicts each as a plan:
the operators of one whole layer (``research.scaling.megatron``) as often as the model has layers, divided
by ``advisor.predict.split``. Which passes run again in backward was not recorded, and a layer's operators do
not tell what the host of Megatron takes. So each row is predicted twice: with nothing fitted, and with four
constants that are fitted to a third of the rows that a hash chose; the others judge. It profiles 30 layers,
some five minutes of a core; FOLDER keeps them for the next time.

The machines have 8 A100 behind NVSwitch and InfiniBand at 800 Gb/s a node (Bang et al., "vTrain", MICRO
2024). Rows that divide a layer over two nodes (6) are left out: no plan does.
"""

from __future__ import annotations

import argparse
import csv
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path

from advisor.core.gpus import resolve_gpu
from advisor.core.values import Fabric, Layout, Link, Network, Split, Trace
from advisor.formats.trace_files import read_trace, write_trace
from advisor.predict.iteration import predict
from advisor.predict.split import exchange_within, rank_of
from advisor.predict.step_time import HOST, OTHERS, STAGES
from research.scaling.megatron import LayerShape, layer
from research.training.drawn import fraction_of

FILE = "vtrain_ground_truth_gpt_a100.csv"
GPU = "A100-SXM-80GB"
FITTED_SHARE = 1 / 3
_WAITS = (HOST, OTHERS, STAGES)
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
    def split(self) -> Split:
        """How the model is divided."""
        return Split(tensor=self.tensor, pipeline=self.pipeline, micro_batches=self.micro_batches)

    @property
    def layout(self) -> Layout:
        """Whole machines, or a part of one."""
        per_node = min(self.num_gpus, _GPUS_PER_NODE)
        fabric = Fabric(
            link=Link.NVSWITCH, link_bytes_per_s=resolve_gpu(GPU).nvlink_bytes_per_s,
            network=Network.INFINIBAND, network_bytes_per_s=_NETWORK_BYTES_PER_S,
        )  # fmt: skip
        return Layout(gpus_per_node=per_node, num_nodes=self.num_gpus // per_node, fabric=fabric)

    @property
    def is_fitted(self) -> bool:
        """Whether it serves to fit."""
        names = (self.tensor, self.data, self.pipeline, self.micro_batches, self.num_layers)
        return fraction_of(" ".join(map(str, (*names, *astuple(self.shape))))) < FITTED_SHARE


@dataclass(frozen=True, slots=True, kw_only=True)
class Constants:
    """What Megatron does that one layer's operators do not tell."""

    kernels: float
    """Their time over the predicted one; above 1 as passes run again."""
    host_s: float
    """Which the host takes of a layer and micro-batch, whatever the GPU does."""
    exchanges: float
    """Time of a layer's all-reduces over the predicted one, as they stop the GPU."""
    logits: float
    """Time of the vocabulary's product over that at its rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Seconds of an iteration's parts; of a layer and micro-batch, of a micro-batch, and of all of it.

    ``unfitted_s`` is all of it as the product has it, with words and step beside it.
    """

    kernels_s: float
    exchanges_s: float
    logits_s: float
    sends_s: float
    gradients_s: float
    step_s: float
    unfitted_s: float


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


def parts_of(iteration: Iteration, layers: Path | None) -> Parts:
    """The predicted parts of an iteration."""
    shape, gpu, split = iteration.shape, resolve_gpu(GPU), iteration.split
    gpt = _gpt(iteration, layers)
    estimate = predict(gpt, gpu, iteration.layout, split=split)
    within, reductions = (
        exchange_within(rank_of(gpt, one), 1.0, gpu, iteration.layout)
        for one in (split, replace(split, pipeline=1))
    )
    num_layers = -(-iteration.num_layers // iteration.pipeline)
    each_s = reductions.layers.seconds / iteration.num_layers
    exchanged_s = within.of_passes(iteration.micro_batches).seconds
    logits_flops = 6 * shape.length * shape.batch * shape.hidden * _VOCABULARY / iteration.tensor
    logits_s = logits_flops / _LOGITS_FLOPS_PER_S
    parameters = _parameters(iteration) / iteration.tensor
    step_s = _STEP_BYTES * parameters / (_STEP_SHARE * gpu.memory_bytes_per_s)
    kernels_s = sum(seconds for family, seconds in estimate.by_family.items() if family not in _WAITS)
    return Parts(
        kernels_s=kernels_s / (num_layers * iteration.micro_batches),
        exchanges_s=each_s,
        logits_s=logits_s,
        sends_s=within.layers.seconds - num_layers * each_s,
        gradients_s=max(estimate.communication_s - exchanged_s, 0.0),
        step_s=step_s,
        unfitted_s=estimate.iteration_s.p50 + iteration.micro_batches * logits_s + step_s,
    )


def _parameters(iteration: Iteration) -> float:
    """Of a stage that has the words besides its layers."""
    hidden = iteration.shape.hidden
    return 12 * hidden**2 * iteration.num_layers / iteration.pipeline + _VOCABULARY * hidden


def _gpt(iteration: Iteration, layers: Path | None) -> Trace:
    """All layers and micro-batches on one GPU, without words and without a step."""
    trace = _layer(replace(iteration.shape, ranks=1), layers)
    calls, passes = iteration.num_layers * iteration.micro_batches, iteration.micro_batches
    whole = _parameters(replace(iteration, pipeline=1))
    # Of a stage the layers' share of the gradients shrinks, not that of the words.
    words_share = _parameters(iteration) / whole * iteration.pipeline
    return replace(
        trace,
        ops=tuple(replace(op, count=op.count * calls) for op in trace.ops),
        memory=replace(trace.memory, gradient_bytes=round(_HALF_BYTES * whole * words_share)),
        accumulation=passes,
        batch_size=passes * iteration.shape.batch,
    )


@cache
def _layer(shape: LayerShape, layers: Path | None) -> Trace:
    """The layer's trace, from the folder if it is there."""
    if layers is None:
        return layer(shape)
    path = layers / f"{shape.hidden}-{shape.heads}-{shape.length}-{shape.batch}.json.gz"
    if not path.exists():
        write_trace(layer(shape), path)
    return read_trace(path)


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


def errors(iterations: Iterable[tuple[Iteration, Parts]], constants: Constants | None) -> list[float]:
    """The absolute error of each, relative to what was measured; without constants as a plan has it."""
    return [
        abs(
            (parts.unfitted_s if constants is None else predicted_s(iteration, parts, constants))
            / iteration.measured_s
            - 1
        )
        for iteration, parts in iterations
    ]


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measurements", type=Path, required=True)
    parser.add_argument("--layers", type=Path, help="folder that keeps the profiled layers")
    arguments = parser.parse_args()
    iterations = [one for one in read(arguments.measurements / "published") if one.split.suits(one.layout)]
    rows = [(iteration, parts_of(iteration, arguments.layers)) for iteration in iterations]
    constants = fitted(rows)
    print(f"{constants}\n\n| rows | number | mean | median | 90 % | largest |\n|---|--:|--:|--:|--:|--:|")
    for name, chosen in _groups(rows):
        print(_line(name, errors(chosen, constants)))
        print(_line(f"{name}, nothing fitted", errors(chosen, None)))


def _line(name: str, errors_of_rows: Sequence[float]) -> str:
    off = sorted(errors_of_rows)
    figures = (statistics.fmean(off), statistics.median(off), off[int(0.9 * len(off))], off[-1])
    return f"| {name} | {len(off):,} | " + " | ".join(f"{figure:.1%}" for figure in figures) + " |"


def _groups(rows: Sequence[tuple[Iteration, Parts]]) -> Iterator[tuple[str, list[tuple[Iteration, Parts]]]]:
    judging = [row for row in rows if not row[0].is_fitted]
    yield "fit", [row for row in rows if row[0].is_fitted]
    yield "judge", judging
    yield "judge, one node", [row for row in judging if row[0].num_gpus <= _GPUS_PER_NODE]
    yield "judge, 64 to 512 GPUs", [row for row in judging if row[0].num_gpus > _GPUS_PER_NODE]


if __name__ == "__main__":
    main()
