"""GPT-2 large on four A100, by data, tensor and pipeline parallelism: ``end_to_end_distributed.csv``.

``python -m benchmarks.scaling.gpt2_large --measurements DIR`` predicts the three rows; nothing is fitted to
them. They are forward and backward of four sequences in FP32: one a GPU (``dp4``); all on every GPU, which
has a quarter of each layer (``tp4``); and all in one micro-batch, so that one stage works at a time
(``pp4_1``).
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from advisor.core.gpus import resolve_gpu
from advisor.core.values import Collective, IterationEstimate, Layout, Op, TensorSpec, Trace
from advisor.predict.iteration import predict
from benchmarks.accuracy.models import Workload, trace_of
from benchmarks.scaling.megatron import LayerShape, layer

FILE = "end_to_end_distributed.csv"
GPU, RANKS = "A100-SXM-40GB", 4
_LAYERS, _HIDDEN, _HEADS, _LENGTH, _BATCH = 36, 1280, 20, 1024, 4
_WORDS = 50257
_FP32_BYTES = 4


def predicted(configs: Path) -> Mapping[str, IterationEstimate]:
    """By the name of the table's option."""
    gpu, four = resolve_gpu(GPU), Layout(gpus_per_node=RANKS)
    one, whole = (
        trace_of(Workload(model="gpt2_large", mode="train", seq_len=_LENGTH, batch_size=batch), configs)
        for batch in (1, _BATCH)
    )
    return {
        "dp4": predict(one, gpu, four),
        # What a stage hands on is 21 MB, a tenth of a millisecond beside a second.
        "pp4_1": predict(whole, gpu),
        "tp4": predict(_of_a_tensor_rank(whole), gpu, four),
    }


def _of_a_tensor_rank(whole: Trace) -> Trace:
    """What a rank runs: its part of every layer and of the vocabulary."""
    shape = LayerShape(
        hidden=_HIDDEN, heads=_HEADS, length=_LENGTH, batch=_BATCH, ranks=RANKS, dtype="float32"
    )
    layers = (replace(op, count=_LAYERS * op.count) for op in layer(shape).ops)
    words = (_split(op) for op in whole.ops if _has_words(op))
    states_bytes = _LENGTH * _BATCH * _HIDDEN * _FP32_BYTES
    reductions = Collective(kind="all_reduce", num_bytes=states_bytes, world_size=RANKS, count=4 * _LAYERS)
    ops = (*layers, *words)
    return replace(whole, ops=ops, collectives=(reductions,), world_size=RANKS, is_sharded=True)


def _has_words(op: Op) -> bool:
    return any(_WORDS in tensor.shape for tensor in (*op.inputs, *op.outputs))


def _split(op: Op) -> Op:
    def part(tensor: TensorSpec) -> TensorSpec:
        shape = tuple(size // RANKS if size == _WORDS else size for size in tensor.shape)
        return replace(tensor, shape=shape, stride=None)

    return replace(
        op,
        inputs=tuple(map(part, op.inputs)),
        outputs=tuple(map(part, op.outputs)),
        flops=op.flops // RANKS,
        bytes=op.bytes // RANKS,
    )


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measurements", type=Path, required=True)
    measurements = parser.parse_args().measurements
    estimates = predicted(measurements / "model_configs")
    with (measurements / FILE).open(newline="") as file:
        measured = {row["option"]: float(row["measured_ms"]) for row in csv.DictReader(file)}
    print("| parallel by | measured ms | predicted ms (p10 .. p90) | error |\n|---|--:|--:|--:|")
    for option, measured_ms in measured.items():
        p10, p50, p90 = (
            1000 * getattr(estimates[option].iteration_s, name) for name in ("p10", "p50", "p90")
        )
        error = p50 / measured_ms - 1
        print(f"| {option} | {measured_ms:,.0f} | {p50:,.0f} ({p10:,.0f} .. {p90:,.0f}) | {error:+.1%} |")


if __name__ == "__main__":
    main()
