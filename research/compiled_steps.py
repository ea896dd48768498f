"""Compiled steps against PyTorch's dashboards.

    python -m research.compiled_steps --figures DIR [--traces DIR]

Figures are ``pytorch_torchbench_inductor_a100.csv`` and ``pytorch_dashboard_amp_a100_partial.csv``: steps of
training under autocast on an A100 (2023, Inductor without CUDA graphs). Recorded are those of models that
timm, torchvision or transformers have, and of small ones that are written down here. An empty folder of
traces is filled with new ones, half a minute each. A hash of the name draws who chooses the share of bytes
that is left, and who judges.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, median

import advisor
from advisor.core.gpus import resolve_gpu
from advisor.core.values import Launch, Trace
from advisor.formats.trace_files import read_trace, write_trace
from advisor.predict.iteration import predict
from advisor.predict.what_if.compiled import fused
from research.training.drawn import fraction_of

SCRIPT = Path(__file__).with_name("compiled_script.py")
RECORDED = Path(__file__).parents[1] / "tests" / "compiled_steps"
GPU = "A100-SXM-40GB"
_ALIKE = {
    "timm": "resnet18 resnet50 resnet152 resnext50_32x4d vgg16 densenet121",
    "torchvision": "alexnet squeezenet1_1 shufflenet_v2_x1_0",
    "torchbench": "phlippe_resnet phlippe_densenet dcgan LearningToPaint pytorch_unet nvidia_deeprecommender",
    "transformers": (
        "AlbertForMaskedLM AlbertForQuestionAnswering XLNetLMHeadModel DebertaV2ForMaskedLM"
        " DebertaV2ForQuestionAnswering PegasusForConditionalGeneration TrOCRForCausalLM"
        " AllenaiLongformerBase MBartForConditionalGeneration BartForConditionalGeneration hf_GPT2_large"
        " hf_T5_large hf_T5 hf_BigBird hf_Reformer"
    ),
}
# Suite and what it calls the dashboards' models.
MODELS = {name: (suite, name) for suite, names in _ALIKE.items() for name in names.split()} | {
    "mobilenet_v2": ("timm", "mobilenetv2_100"),
    "mobilenet_v3_large": ("timm", "mobilenetv3_large_100"),
    "mnasnet1_0": ("timm", "mnasnet_100"),
    "timm_nfnet": ("timm", "dm_nfnet_f0"),
    "timm_vision_transformer_large": ("timm", "vit_giant_patch14_224"),
}
SHARES = (0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
_JUDGING = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A model as it was measured: a batch, and seconds in eager mode and compiled."""

    batch: int
    eager_s: float
    compiled_s: float

    @property
    def ratio(self) -> float:
        """Compiled over eager."""
        return self.compiled_s / self.eager_s


def measured(folder: Path) -> Mapping[str, Step]:
    """The dashboards' steps, by model."""
    return {**dict(_dashboard(folder)), **dict(_smoke_test(folder))}


def _smoke_test(folder: Path) -> Iterator[tuple[str, Step]]:
    for row in _rows(folder / "pytorch_torchbench_inductor_a100.csv"):
        yield row["model"], _step(row, row["eager_step_ms_derived"], row["inductor_step_ms"])


def _dashboard(folder: Path) -> Iterator[tuple[str, Step]]:
    steps: dict[str, dict[str, str]] = {}
    for row in _rows(folder / "pytorch_dashboard_amp_a100_partial.csv"):
        by_backend = steps.setdefault(row["model"], {})
        by_backend[row["backend"]] = row["step_ms"]
        if {"eager", "inductor no cudagraphs"} <= by_backend.keys():
            yield row["model"], _step(row, by_backend["eager"], by_backend["inductor no cudagraphs"])


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        yield from csv.DictReader(file)


def _step(row: Mapping[str, str], eager_ms: str, compiled_ms: str) -> Step:
    return Step(
        batch=int(row["batch_size"]), eager_s=float(eager_ms) / 1e3, compiled_s=float(compiled_ms) / 1e3
    )


def traces(figures: Mapping[str, Step], folder: Path) -> Iterator[tuple[str, Trace]]:
    """Each model's eager step; what the folder lacks is profiled."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (suite, theirs) in MODELS.items():
        path = folder / f"{name}.json.gz"
        if not path.exists():
            settings = {"profile.backend": "fake", "profile.timeout": "10m"}
            write_trace(
                advisor.profile(SCRIPT, [suite, theirs, str(figures[name].batch)], settings=settings), path
            )
        yield name, read_trace(path)


def made(trace: Trace) -> Trace:
    """The step as it was compiled: without graphs, in its script's layout, before Inductor chose one.

    Dynamo skips its own function that clones the inputs, the first operator.
    """
    return replace(trace, ops=(*trace.ops[:1], *fused(trace.ops[1:])), launch=Launch.COMPILED)


def made_by_share(trace: Trace, left_share: float) -> Trace:
    """The same, as if nobody had followed what made the operands."""
    ops = tuple(replace(op, flows=()) for op in trace.ops)
    return replace(trace, ops=(*ops[:1], *fused(ops[1:], left_share=left_share)), launch=Launch.COMPILED)


def seconds(trace: Trace) -> float:
    """An iteration, as predicted."""
    return predict(trace, resolve_gpu(GPU)).device_s.p50


def judges(name: str) -> bool:
    """Whether a model judges; the others chose the share."""
    return fraction_of(name) < _JUDGING


def off_by(figures: Mapping[str, Step], ratios: Mapping[str, float]) -> dict[str, float]:
    """The predicted ratio over the measured one, less 1."""
    return {name: ratio / figures[name].ratio - 1 for name, ratio in ratios.items()}


def _errors(off: Mapping[str, float], *, judging: bool) -> Sequence[float]:
    return [abs(value) for name, value in off.items() if judges(name) is judging]


def main() -> None:
    """Print the errors of each share, and each model's at the shipped ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--figures", type=Path, required=True)
    parser.add_argument("--traces", type=Path, default=RECORDED)
    options = parser.parse_args()
    figures = measured(options.figures)
    recorded = dict(traces(figures, options.traces))
    eager = {name: seconds(trace) for name, trace in recorded.items()}
    print("| share left | chose, mean off | judged |\n|---:|---:|---:|")
    for share in SHARES:
        off = off_by(
            figures,
            {name: seconds(made_by_share(trace, share)) / eager[name] for name, trace in recorded.items()},
        )
        chose, judged = (mean(_errors(off, judging=judging)) for judging in (False, True))
        print(f"| {share} | {chose:.1%} | {judged:.1%} |")
    compiled = {name: seconds(made(trace)) for name, trace in recorded.items()}
    print("\n".join(_table(figures, eager, compiled)))


def _table(
    figures: Mapping[str, Step], eager: Mapping[str, float], compiled: Mapping[str, float]
) -> Iterator[str]:
    ratios = {name: compiled[name] / eager[name] for name in eager}
    off = off_by(figures, ratios)
    yield "| model | batch | eager, ms | predicted | compiled / eager | predicted | off | |"
    yield "|---|---:|---:|---:|---:|---:|---:|---|"
    for name in sorted(eager, key=lambda name: -figures[name].eager_s):
        step = figures[name]
        cells = (name, step.batch, f"{step.eager_s * 1e3:.1f}", f"{eager[name] * 1e3:.1f}")
        last = (f"{step.ratio:.2f}", f"{ratios[name]:.2f}", f"{off[name]:+.0%}")
        yield "| " + " | ".join(map(str, (*cells, *last, "judges" if judges(name) else "chose"))) + " |"
    for word, judging in (("chose", False), ("judged", True)):
        errors = _errors(off, judging=judging)
        yield f"- {word}: {len(errors)} models, mean {mean(errors):.1%}, median {median(errors):.1%}"
    spread = math.sqrt(mean(math.log1p(value) ** 2 for value in off.values()))
    yield f"- sigma of all {len(off)}: {spread:.2f}"


if __name__ == "__main__":
    main()
