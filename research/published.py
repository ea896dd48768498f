"""Predictions beside published training throughput.

``python -m research.published --third-party DIR`` profiles our examples, two Transformers and, by
transformers, BERT-large with the published batch sizes and prints a Markdown table. DIR holds NVIDIA's
DeepLearningExamples and MosaicML's llm-foundry tables. Rows that served to fit an assumed constant
(``assumed_constants.toml`` of the training) are marked and not scored.
"""

from __future__ import annotations

import argparse
import csv
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

from advisor.core.gpus import resolve_gpu
from advisor.core.values import GpuSpec, Interval, Trace
from advisor.predict.iteration import predict
from advisor.predict.knowledge import Knowledge
from advisor.predict.what_if.channels_last import in_channels_last
from advisor.profile import profile
from research import bert, networks
from research.training_runs.judged import in_passes, step_s
from research.training_runs.mosaic import FLASH_1, mosaic_layout, mpt_recipe

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
# Tokens in a sequence of the base Transformer-XL, whose module would import torch.
_XL_LENGTH = 192
_GNMT_BATCH = 128
_MPT_LENGTH = 2048


def _of_one(trace: Trace, gpu: GpuSpec, knowledge: Knowledge | None) -> Interval:
    return predict(trace, gpu, knowledge=knowledge).iteration_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One published row: what resembles it, and how to find its throughput."""

    name: str
    gpu: str
    build: Callable[[], Trace]
    """A trace of one iteration."""
    units: float
    """What one iteration of one GPU processes, in the unit of the throughput."""
    file: str
    where: tuple[tuple[str, str], ...]
    column: str
    fitted: bool
    """It served to fit a constant."""
    seconds: Callable[[Trace, GpuSpec, Knowledge | None], Interval] = _of_one
    """Of an iteration, by its trace, GPU and what is known."""


def as_in_containers(trace: Trace) -> Trace:
    """NVIDIA's containers let TF32 replace FP32 in products too, which PyTorch since 1.12 does not."""
    return replace(trace, precision=replace(trace.precision, tf32_matmul=True, tf32_cudnn=True))


def _nvidia(
    name: str,
    published: tuple[str, str],
    where: dict[str, str],
    build: Callable[[], Trace],
    units: float,
    *,
    fitted: bool = False,
) -> Case:
    """A row of NVIDIA's table, one GPU.

    Args:
        name: of the network.
        published: the GPU's name here and there.
        where: the row's other columns.
        build: a trace of one iteration.
        units: of one iteration.
        fitted: it served to fit a constant.
    """
    gpu, their_gpu = published
    return Case(
        name=f"{name} {where['precision']}",
        gpu=gpu,
        build=build,
        units=units,
        file="nvidia_dle_train_perf.csv",
        where=(("gpu", their_gpu), ("n_gpus", "1"), *where.items()),
        column="throughput",
        fitted=fitted,
    )


@cache
def resnet_50(amp: bool, batch_size: int) -> Trace:
    """Our example as NVIDIA's scripts train it: channels last under autocast, first without.

    Raises:
        ProfileError: it cannot be profiled here.
    """
    flags = ("--amp",) if amp else ()
    trace = profile(EXAMPLES / "train_resnet50.py", ("--batch-size", str(batch_size), *flags))
    return (in_channels_last(trace) or trace) if amp else trace


def _resnet(published: tuple[str, str], precision: str, *, fitted: bool = False) -> Case:
    build = partial(resnet_50, _is_amp(precision), 256)
    where = {"model": "Classification/ConvNets/resnet50v1.5", "precision": precision}
    return _nvidia("ResNet-50", published, where, build, 256, fitted=fitted)


def _bert(published: tuple[str, str], precision: str, batch_size: int, variant: str) -> Case:
    model = bert.fine_tuning if variant == "finetune" else partial(bert.pre_training, 128)
    name = "BERT-large fine-tuning" if variant == "finetune" else "BERT-large 128 tokens"
    where = {
        "model": bert.PUBLISHED, "variant": variant, "precision": precision, "batch_per_gpu": str(batch_size)
    }  # fmt: skip
    return _nvidia(name, published, where, _build(model, precision, batch_size), batch_size)


def _transformer(published: tuple[str, str], precision: str, num_tokens: int) -> Case:
    where = {
        "model": "Translation/Transformer", "precision": precision, "batch_per_gpu": str(num_tokens)
    }  # fmt: skip
    build = _build(networks.transformer, precision, num_tokens)
    return _nvidia("Transformer (big)", published, where, build, num_tokens)


def _transformer_xl(published: tuple[str, str], precision: str, batch_size: int) -> Case:
    where = {
        "model": "LanguageModeling/Transformer-XL", "variant": "Base model", "precision": precision,
        "batch_per_gpu": str(batch_size),
    }  # fmt: skip
    build = _build(networks.transformer_xl, precision, batch_size)
    return _nvidia(f"Transformer-XL (base, {batch_size})", published, where, build, batch_size * _XL_LENGTH)


def _gnmt(published: tuple[str, str], precision: str) -> Case:
    where = {"model": "Translation/GNMT", "precision": precision}
    build = _build(networks.gnmt, precision, _GNMT_BATCH)
    return _nvidia("GNMT v2", published, where, build, _GNMT_BATCH * networks.GNMT_TOKENS)


def _build(model: Callable[[bool, int], Trace], precision: str, batch_size: int) -> Callable[[], Trace]:
    return lambda: as_in_containers(model(_is_amp(precision), batch_size))


def _is_amp(precision: str) -> bool:
    return precision.startswith("AMP")


def _mpt(gpu: str, published: str, size: str, batch: int, passes: int) -> Case:
    """A row of eight GPUs that share the model."""
    recipe = mpt_recipe(size, length=_MPT_LENGTH, batch=batch)
    return Case(
        name=f"GPT {size} bf16",
        gpu=gpu,
        build=lambda: in_passes(recipe.profiled(), passes),
        units=passes * batch * _MPT_LENGTH,
        file="mpt_llmfoundry_train.csv",
        where=(
            ("model", f"MPT-{size}"), ("gpu", published), ("n_gpus", "8"), ("seq_len", str(_MPT_LENGTH)),
            ("precision", "amp_bf16"), ("microbatch", str(batch)),
        ),
        column="tokens_per_s_per_gpu",
        fitted=False,
        seconds=_of_eight,
    )  # fmt: skip


def _of_eight(trace: Trace, gpu: GpuSpec, knowledge: Knowledge | None) -> Interval:
    return step_s(trace, gpu, mosaic_layout(8, gpu), FLASH_1, knowledge=knowledge)


_V100_16 = ("V100-SXM-16GB", "V100 SXM2/3 16GB")
_V100_32 = ("V100-SXM-32GB", "V100 SXM2/3 32GB")
_A100_40 = ("A100-SXM-40GB", "A100 SXM4 40GB")
_A100_80 = ("A100-SXM-80GB", "A100 SXM4 80GB")
CASES = (
    _resnet(_V100_16, "FP32"),
    _resnet(_V100_32, "FP32"),
    _resnet(_V100_16, "AMP-FP16"),
    _resnet(_A100_80, "TF32", fitted=True),
    _resnet(_A100_80, "AMP-FP16"),
    _bert(_V100_32, "FP32", 32, "pretrain/seq128"),
    _bert(_V100_32, "AMP-FP16", 64, "pretrain/seq128"),
    _bert(_A100_80, "TF32", 128, "pretrain/seq128"),
    _bert(_A100_80, "AMP-FP16", 256, "pretrain/seq128"),
    _bert(_V100_32, "FP32", 8, "finetune"),
    _bert(_V100_32, "AMP-FP16", 16, "finetune"),
    _bert(_A100_80, "TF32", 32, "finetune"),
    _bert(_A100_80, "AMP-FP16", 32, "finetune"),
    _transformer(_V100_16, "FP32", 5120),
    _transformer(_V100_16, "AMP-FP16", 2560),
    _transformer(_V100_32, "FP32", 10240),
    _transformer(_V100_32, "AMP-FP16", 5120),
    _transformer(_A100_40, "TF32", 10240),
    _transformer(_A100_40, "AMP-FP16", 10240),
    _transformer_xl(_V100_16, "FP32", 16),
    _transformer_xl(_V100_16, "AMP-FP16", 16),
    _transformer_xl(_V100_16, "AMP-FP16", 32),
    _transformer_xl(_A100_40, "TF32", 32),
    _transformer_xl(_A100_40, "AMP-FP16", 32),
    _gnmt(_V100_16, "FP32"),
    _gnmt(_V100_16, "AMP-FP16"),
    _gnmt(_A100_40, "TF32"),
    _gnmt(_A100_40, "AMP-FP16"),
    _mpt("A100-SXM-80GB", "a100_80gb", "350m", 32, 2),
    _mpt("A100-SXM-80GB", "a100_80gb", "760m", 24, 2),
    _mpt("A100-SXM-80GB", "a100_80gb", "1b", 14, 4),
    _mpt("H100-SXM-80GB", "h100_80gb", "760m", 24, 2),
    _mpt("H100-SXM-80GB", "h100_80gb", "1b", 14, 1),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Throughput published and predicted, in the published unit; p10 and p90 of the prediction."""

    case: Case
    published: float
    low: float
    predicted: float
    high: float

    @property
    def error(self) -> float:
        """Relative, positive where the prediction is too fast."""
        return self.predicted / self.published - 1

    @property
    def covered(self) -> bool:
        """Whether the published figure lies between p10 and p90."""
        return self.low <= self.published <= self.high


def published(case: Case, folder: Path) -> float:
    """The figure of the one row a case names; of several (other batch settings) the mean.

    Raises:
        LookupError: there is none.
    """
    with (folder / case.file).open(newline="") as file:
        throughputs = [
            float(row[case.column])
            for row in csv.DictReader(file)
            if all(row[column] == value for column, value in case.where)
        ]
    if not throughputs:
        raise LookupError(f"no row for {case}")
    return statistics.fmean(throughputs)


def scores(folder: Path, knowledge: Knowledge | None = None) -> Iterator[Score]:
    """Every case, in order."""
    for case in CASES:
        interval = case.seconds(case.build(), resolve_gpu(case.gpu), knowledge)
        yield Score(
            case=case,
            published=published(case, folder),
            low=case.units / interval.p90,
            predicted=case.units / interval.p50,
            high=case.units / interval.p10,
        )


def table(judged: Sequence[Score]) -> str:
    """Markdown: a row a case, fitted ones marked."""
    lines = [
        "| model | GPU | published /s | predicted /s (p10 .. p90) | error | |",
        "|---|---|---|---|---|---|",
    ]
    for s in judged:
        note = "fitted" if s.case.fitted else ("covered" if s.covered else "outside")
        span = f"{s.predicted:,.0f} ({s.low:,.0f} .. {s.high:,.0f})"
        lines.append(
            f"| {s.case.name} | {s.case.gpu} | {s.published:,.0f} | {span} | {s.error:+.0%} | {note} |"
        )
    return "\n".join(lines)


def mean_error(judged: Sequence[Score]) -> float:
    """Mean absolute error of the rows that were not fitted."""
    return statistics.fmean(abs(score.error) for score in judged if not score.case.fitted)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--third-party", type=Path, required=True)
    judged = list(scores(parser.parse_args().third_party))
    scored = sum(not score.case.fitted for score in judged)
    print(table(judged))
    print(f"\nMean absolute error of the {scored} rows that were not fitted: {mean_error(judged):.1%}.")


if __name__ == "__main__":
    main()
