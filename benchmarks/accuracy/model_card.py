"""The model card of the learned weights: what they were trained on, reach, and do not know."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from advisor.predict.knowledge import CARD
from benchmarks.accuracy.knowledge_files import AS_SHIPPED, hashes
from benchmarks.accuracy.results import Results
from benchmarks.accuracy.summary import markdown

_TEXT = """\
# Model card: learned efficiency of kernels

Written on {date} by `python -m benchmarks.accuracy` from `catalogs/{card}`. How it works:
[methods/learned.md](../methods/learned.md); all figures: [report.md](report.md).

- **Predicts** seconds of one operator call on a GPU: the data sheet's rates, or on tensor cores what a
  GPU was fitted to reach of them, times what a network of two hidden layers says is lost. {members}
  members a family, trained from different starts and averaged.
- **Trained on** {rows:,} calls. Figures are used, no row is shipped. Fold `{fold}`, seed {seed}, torch
  {torch}. Sources: {source}.
- **Networks**: `gemm`, `conv`, `norm` and `pointwise` learned from FP32 without TF32 (NeuSight: PyTorch
  2.1, CUDA 12.1). `tensor_gemm` knows FP16, BF16 and, by coupling, TF32; `fp8_gemm` FP8; `conv16` and
  `conv_amd` convolutions.
- **Licence**: of the weights that of this project (Apache-2.0); of the measurements as the sources say;
  NeuSight's are MIT, (c) 2025 Georgia Institute of Technology and Microsoft Corporation.
- **Meant for** comparing GPUs before renting one. Worst where boards throttle or libraries differ: on the
  P4 linear layers of the test split, which ran by other kernels, are predicted 2.8 times too slow, on the
  T4 iterations 15 %.
- **Repeat**: `python -m research.training --kernels DIR --fold {fold} --seed {seed} --out FOLDER`, with the
  folders of the other data sets (`--help`)
- **Does not know**: convolutions in TF32, embeddings, reductions, optimizer steps:
  these stay with the roofline and wave scaling, and the estimate names them. Attention, recurrent layers,
  and in 16 bits norms and element-wise operators have formulas of their own. Backward operators in FP32
  are priced with the efficiency of their forward kernels. GPUs other than those below are taken to be
  like boards of their power limit and compute capability, or of their architecture.

## Weights

{weights}

## Errors

{errors}

## Calls by GPU

{calls}
"""


def model_card(results: Results, folder: Path) -> str:
    """Markdown.

    Args:
        results: of an evaluation.
        folder: with the card of the shipped weights.
    """
    facts = json.loads((folder / CARD).read_text(encoding="utf-8"))
    parameters = facts["parameters"]
    weights = [[family, f"{number:,}"] for family, number in parameters.items()]
    weights += [[name, f"`{digest}`"] for name, digest in hashes(folder).items()]
    return _TEXT.format(
        date=results.date,
        card=CARD,
        rows=sum(facts["rows"].values()),
        weights=markdown(["family, file", "parameters, SHA-256"], weights),
        errors=markdown(["iterations", "rows", "mean / median, %", "within p10..p90"], _errors(results)),
        calls=markdown(["GPU", "calls"], _by_gpu(facts["rows"])),
        **{name: facts[name] for name in ("members", "source", "fold", "seed", "torch")},
    )


def _errors(results: Results) -> list[list[str]]:
    evaluations = [
        (results.evaluated, results.end_to_end["summary"]),
        (AS_SHIPPED, results.shipped.get("summary", {})),
    ]
    return [
        _line(f"{name}, {group}", evaluation[group]["advisor"])
        for name, evaluation in evaluations
        for group in ("all", "clean")
        if group in evaluation
    ]


def _line(name: str, ours: Mapping[str, Any]) -> list[str]:
    errors = f"{100 * ours['mean']:.1f} / {100 * ours['median']:.1f}"
    return [name, str(ours["rows"]), errors, f"{ours['coverage']:.0%}"]


def _by_gpu(rows: Mapping[str, int]) -> list[list[str]]:
    calls: dict[str, int] = {}
    for key, number in rows.items():
        gpu = key.partition(" ")[0]
        calls[gpu] = calls.get(gpu, 0) + number
    return [[gpu, f"{number:,}"] for gpu, number in calls.items()]
