"""The report of an evaluation: ``report.md`` with all tables, and charts beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from advisor.core.errors import InputError
from advisor.core.files import write_atomically
from advisor.core.gpus import catalog_path
from advisor.predict.knowledge import CARD
from benchmarks.accuracy.model_card import model_card
from benchmarks.accuracy.results import Results
from benchmarks.accuracy.summary import markdown
from benchmarks.accuracy.tables import all_tables

_SOURCES = """\
Measurements and other predictors: NeuSight (ASPLOS'25), (c) 2025 Georgia Institute of Technology and
Microsoft Corporation, MIT licence: PyTorch 2.1, CUDA 12.1, FP32 without TF32. Published throughput: NVIDIA
DeepLearningExamples and MosaicML llm-foundry. Labels are not free of error: where operators were measured one
by one, the row says how far their sum is from the iteration; within 6 % it is clean. What every column means:
[how accuracy is measured](../methods/accuracy.md); `micro` is the predictor of Li et al.; a `u` after the
name of an operator is a tensor with a number."""


def write_report(results: Results, folder: Path) -> None:
    """Write ``report.md``, its charts, ``model-card.md`` and ``results.json``; the folder is made.

    Raises:
        InputError: matplotlib is not installed.
        OSError: the folder cannot be written.
    """
    try:
        from benchmarks.accuracy.charts import write_charts
    except ImportError as error:
        raise InputError(f"charts need matplotlib ({error}): pip install 'gpu-advisor[dev]'.") from error
    folder.mkdir(parents=True, exist_ok=True)
    evaluation = results.end_to_end
    captions = write_charts(evaluation["rows"], evaluation["summary"], folder)
    images = "\n\n".join(f"![{caption}]({name})" for name, caption in captions.items())
    sections = [f"## {title}\n\n{text}" for title, text in all_tables(results)]
    page = "\n\n".join([_head(results), sections[0], images, *sections[1:]])
    write_atomically(folder / "report.md", f"{page}\n".encode())
    document = json.dumps(_rounded(results.to_publish()), indent=0, allow_nan=False)
    write_atomically(folder / "results.json", f"{document}\n".encode())
    write_atomically(folder / "model-card.md", model_card(results, catalog_path(CARD).parent).encode())


def _rounded(value: Any) -> Any:
    """Five digits of every number; more are noise."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, Mapping):
        return {key: _rounded(part) for key, part in value.items()}
    return [_rounded(part) for part in value] if isinstance(value, list | tuple) else value


def _head(results: Results) -> str:
    files = [
        [name, file, f"`{digest}`"]
        for name, digests in results.hashes.items()
        for file, digest in digests.items()
    ]
    return "\n\n".join(
        [
            "# Accuracy",
            f"Written on {results.date} by\n\n```\n{results.command}\n```",
            _SOURCES,
            markdown(["knowledge", "file", "SHA-256"], files),
        ]
    )
