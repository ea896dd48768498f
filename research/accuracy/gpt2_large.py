"""GPT-2 large on four A100, by data, tensor and pipeline parallelism: ``end_to_end_distributed.csv``.

``python -m research.accuracy.gpt2_large --measurements DIR`` predicts the three rows; nothing is fitted to
them. They are forward and backward of four sequences in FP32: one a GPU (``dp4``); all on every GPU, which
has a quarter of each layer (``tp4``); and all in one micro-batch, so that one stage works at a time
(``pp4_1``).
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Mapping
from pathlib import Path

from advisor.core.gpus import resolve_gpu
from advisor.core.values import IterationEstimate, Layout, Split
from advisor.predict.exchange.data_parallel import COMMUNICATION
from advisor.predict.iteration import predict
from advisor.predict.step_time import OTHERS, waits_s
from benchmarks.accuracy.models import Workload, trace_of

FILE = "end_to_end_distributed.csv"
GPU, RANKS = "A100-SXM-40GB", 4
_LENGTH, _BATCH = 1024, 4


def predicted(configs: Path) -> Mapping[str, IterationEstimate]:
    """By the name of the table's option."""
    gpu, four = resolve_gpu(GPU), Layout(gpus_per_node=RANKS)
    one, whole = (
        trace_of(Workload(model="gpt2_large", mode="train", seq_len=_LENGTH, batch_size=batch), configs)
        for batch in (1, _BATCH)
    )
    stages = Split(pipeline=RANKS, micro_batches=1)
    return {
        "dp4": predict(one, gpu, four),
        "pp4_1": predict(whole, gpu, four, split=stages),
        "tp4": predict(whole, gpu, four, split=Split(tensor=RANKS)),
    }


def table(estimates: Mapping[str, IterationEstimate], measured_s: Mapping[str, float]) -> str:
    """Of each option what was measured, what is predicted, and what of it is no kernel."""
    lines = [
        "| parallel by | measured ms | predicted ms (p10 .. p90) | error | the slowest GPU | exchange |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for option, seconds in measured_s.items():
        time, waits = estimates[option].iteration_s, waits_s(estimates[option])
        p10, p50, p90, late, sent = (
            f"{1000 * each:,.0f}"
            for each in (time.p10, time.p50, time.p90, waits[OTHERS], waits[COMMUNICATION])
        )
        error = f"{time.p50 / seconds - 1:+.1%}"
        lines.append(
            f"| {option} | {1000 * seconds:,.0f} | {p50} ({p10} .. {p90}) | {error} | {late} | {sent} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measurements", type=Path, required=True)
    measurements = parser.parse_args().measurements
    with (measurements / FILE).open(newline="") as file:
        measured_s = {row["option"]: float(row["measured_ms"]) / 1000 for row in csv.DictReader(file)}
    print(table(predicted(measurements / "model_configs"), measured_s))


if __name__ == "__main__":
    main()
