"""Compiled steps against PyTorch's dashboards: ``python -m benchmarks.compiled_steps --figures DIR``.

DIR holds ``pytorch_torchbench_inductor_a100.csv`` and ``pytorch_dashboard_amp_a100_partial.csv``: training
steps under autocast on an A100 (2023, Inductor without CUDA graphs). The models that timm has are profiled,
which takes two minutes. A hash of the name draws who chooses the share of bytes that is left, and who judges.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import mean

import advisor
from advisor.core.gpus import resolve_gpu
from advisor.core.values import Trace
from advisor.predict.iteration import predict
from advisor.predict.what_if.compiled import LEFT_SHARE, compiled
from training.drawn import fraction_of

SCRIPT = Path(__file__).with_name("compiled_script.py")
GPU = "A100-SXM-40GB"
# What timm calls the dashboards' models, and the batch that they were measured at.
MODELS = {
    "resnet18": ("resnet18", 16),
    "resnet50": ("resnet50", 32),
    "resnet152": ("resnet152", 32),
    "resnext50_32x4d": ("resnext50_32x4d", 8),
    "vgg16": ("vgg16", 64),
    "mobilenet_v2": ("mobilenetv2_100", 96),
    "mobilenet_v3_large": ("mobilenetv3_large_100", 32),
    "mnasnet1_0": ("mnasnet_100", 32),
    "densenet121": ("densenet121", 4),
    "timm_nfnet": ("dm_nfnet_f0", 128),
    "timm_vision_transformer_large": ("vit_large_patch16_224", 8),
}
SHARES = (0.4, 0.5, 0.6, 0.65, 0.7, 0.8, 1.0)
_JUDGING = 0.5


def measured(folder: Path) -> Mapping[str, float]:
    """Compiled over eager, by model."""
    return {**dict(_dashboard(folder)), **dict(_smoke_test(folder))}


def _smoke_test(folder: Path) -> Iterator[tuple[str, float]]:
    with (folder / "pytorch_torchbench_inductor_a100.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            yield row["model"], float(row["inductor_step_ms"]) / float(row["eager_step_ms_derived"])


def _dashboard(folder: Path) -> Iterator[tuple[str, float]]:
    steps: dict[str, dict[str, float]] = {}
    with (folder / "pytorch_dashboard_amp_a100_partial.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            steps.setdefault(row["model"], {})[row["backend"]] = float(row["step_ms"])
    for model, by_backend in steps.items():
        if {"eager", "inductor no cudagraphs"} <= set(by_backend):
            yield model, by_backend["inductor no cudagraphs"] / by_backend["eager"]


def traces() -> Iterator[tuple[str, Trace]]:
    """Each model's eager step."""
    for name, (timm_name, batch) in MODELS.items():
        settings = {"profile.backend": "fake", "profile.timeout": "5m"}
        yield name, advisor.profile(SCRIPT, [timm_name, str(batch)], settings=settings)


def ratio(trace: Trace, left_share: float) -> float:
    """Compiled over eager, as predicted."""
    fused = compiled(trace, left_share)
    gpu = resolve_gpu(GPU)
    return 1.0 if fused is None else predict(fused, gpu).device_s.p50 / predict(trace, gpu).device_s.p50


def judges(name: str) -> bool:
    """Whether a model judges; the others chose the share."""
    return fraction_of(name) < _JUDGING


def main() -> None:
    """Print the errors of each share, and each model's at the shipped one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--figures", type=Path, required=True)
    figures, recorded = measured(parser.parse_args().figures), dict(traces())
    for share in SHARES:
        off = {name: abs(ratio(trace, share) / figures[name] - 1) for name, trace in recorded.items()}
        chose = mean(value for name, value in off.items() if not judges(name))
        judged = mean(value for name, value in off.items() if judges(name))
        print(f"share {share}: chose {chose:.1%}, judged {judged:.1%}")
    print("| model | batch | compiled / eager | predicted | off | |\n|---|---:|---:|---:|---:|---|")
    for name, trace in recorded.items():
        mine, theirs = ratio(trace, LEFT_SHARE), figures[name]
        cells = name, MODELS[name][1], f"{theirs:.2f}", f"{mine:.2f}", f"{mine / theirs - 1:+.0%}"
        print("| " + " | ".join(map(str, (*cells, "judges" if judges(name) else "chose"))) + " |")


if __name__ == "__main__":
    main()
