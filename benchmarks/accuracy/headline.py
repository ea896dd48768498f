"""docs/accuracy/README.md: the headline figures of ``research/docs/accuracy/results.json``, and where the studies are."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.accuracy.summary import cell, markdown

RESULTS = Path(__file__).resolve().parents[2] / "research" / "docs" / "accuracy" / "results.json"

_PAGE = """\
# Accuracy

<!-- written by tools/build_docs.py; do not edit -->

Predictions compared with measurements. The error is predicted / measured - 1; tables show its absolute value in per
cent, as mean / median / p90 / largest. p10..p90 should hold 80 % of the measurements.

- Figures of {date}: every row, operator and GPU is in the [full report]({studies}/report.md), what the weights were
  trained on in the [model card]({studies}/model-card.md).
- To repeat it, or to evaluate your own measurements: [how accuracy is measured](../../research/docs/methods/accuracy.md).

## Iterations

50 iterations of BERT, GPT, OPT and Switch in FP32, measured by NeuSight (ASPLOS'25, MIT licence, (c) 2025 Georgia
Institute of Technology and Microsoft Corporation). The networks were trained on kernels of five GPUs; the
A100-PCIE-80GB is unseen. *Clean* rows are those whose measured operators add up to the measured iteration within 6 %.

{iterations}

## GPUs without training data

The same iterations, each GPU predicted by networks that were trained without it. *Calibrated*: 20 kernels of the GPU
corrected them, as `advisor calibrate` does.

{left_out}

## Published training throughput

Rates of one GPU in FP32, TF32 and mixed precision. Sources: NVIDIA DeepLearningExamples and MosaicML llm-foundry,
whose GPTs ran on eight GPUs that shard the model. One row fitted a constant and is left out. Mean absolute error of
the other {scored}: **{mean:.1%}**.

{throughput}

## Other studies

| what is predicted | judged by | error |
|---|---|---|
| [matrix products]({studies}/products.md) in 16 bits, FP8 and TF32 | shapes held out of the fit | 3 to 8 %; T4 10.3 % |
| [convolutions]({studies}/convolutions.md) in 16 bits | shapes held out of the fit | 27 % |
| the same, training steps of timm's models | RTX 3090 | 11 % |
| the same, forward passes of timm's models | RTX 3090, RTX 4090 | 9 to 14 % |
| [FlashAttention 2]({studies}/fitted.md) | shapes held out of the fit | 9 % |
| [recurrent layers]({studies}/fitted.md) | other shapes on a V100 | 10 %; forward in FP16 13 % |
| [norms, element-wise, embeddings, losses]({studies}/streams.md) in 16 bits | shapes held out of the fit | most under 7 % |
| [compiled steps]({studies}/compiled.md) over eager ones | published ratios | 12 to 17 % |
| [whole training runs]({studies}/training-runs.md): MPT, InternLM-7B, Llama 3 8B | 72, 46 and 23 published runs on up to 1,024 GPUs | 6.9, 6.6 and 5.7 % |
| [steps of Llama-3.2-1B]({studies}/llama.md) | H200, B200 | 8.0 % |
| [ResNet-50 beside MLPerf]({studies}/mlperf.md): never over 10 % faster than the best submission | 16 GPUs | 15; not the RTX 4090 (tinygrad) |
| [several GPUs]({studies}/scaling.md), one node | efficiency of published groups | 4.1 points, 12.6 at worst |
| the same, several nodes | efficiency of published groups | 2.2 points |
| the same, GPTs on 2 to 512 A100 | 1,043 iterations | 7.2 % |
| [collectives]({studies}/collectives.md) | links and networks left out of the fit | 17 % (median) |
| [what-ifs]({studies}/what-if.md) | the same change made in eight scripts, profiled | time at most 1.3 %; `compile` is judged above |
| [memory](../methods/memory.md) | 31 runs | right verdict for 30 |
| [queue waits](../methods/queue-wait.md), [spot](../methods/spot.md), [prices](../methods/prices.md) | replayed logs | by log |
"""


def accuracy_page() -> str:
    """The page, from the results of the last evaluation."""
    return headline(json.loads(RESULTS.read_text(encoding="utf-8")))


def headline(results: Mapping[str, Any]) -> str:
    """Markdown of the headline figures.

    Args:
        results: the document that ``benchmarks.accuracy --report`` publishes.
    """
    scored = [score for score in results["throughput"] if not score["case"]["fitted"]]
    return _PAGE.format(
        date=results["date"],
        studies="../../research/docs/accuracy",
        iterations=_iterations(results["summary"]),
        left_out=_left_out(results["left_out"]),
        throughput=_throughput(scored),
        scored=len(scored),
        mean=statistics.fmean(abs(score["error"]) for score in scored),
    )


def _iterations(summary: Mapping[str, Any]) -> str:
    groups = {
        name: group for name, group in summary.items() if name == "clean" or not name.startswith("clean")
    }
    others = [name for name in summary["all"] if name != "advisor"]
    rows = [
        [name, str(group["advisor"]["rows"]), cell(group["advisor"]), f"{group['advisor']['coverage']:.0%}"]
        + [f"{100 * group[other]['mean']:.1f}" for other in others]
        for name, group in groups.items()
    ]
    return markdown(
        ["rows", "number", "advisor", "within p10..p90", *(f"{name}, mean" for name in others)], rows
    )


def _left_out(left_out: Mapping[str, Any]) -> str:
    rows = []
    for gpu, states in left_out.items():
        ours = [states[state]["summary"]["all"]["advisor"] for state in ("unseen", "calibrated")]
        rows.append([gpu, str(ours[0]["rows"]), *map(cell, ours)])
    return markdown(["GPU left out", "rows", "unseen", "calibrated"], rows)


def _throughput(scored: list[Mapping[str, Any]]) -> str:
    """Rows of one network in all its precisions and on all its GPUs are one line."""
    by_network: dict[str, list[float]] = {}
    for score in scored:
        by_network.setdefault(score["case"]["name"].rsplit(" ", 1)[0], []).append(score["error"])
    rows = [
        [name, str(len(errors)), f"{100 * statistics.fmean(map(abs, errors)):.1f}"]
        + [f"{_percent(min(errors))} .. {_percent(max(errors))}"]
        for name, errors in by_network.items()
    ]
    return markdown(["network", "rows", "mean error, %", "from .. to, %"], rows)


def _percent(value: float) -> str:
    # Nothing has no sign: -0.0 + 0.0 is 0.0.
    return f"{round(100 * value) + 0.0:+.0f}"
