"""NVIDIA's other families beside their tables: convolutions in one to three dimensions, and recommenders.

    python -m research.nvidia_families --third-party DIR --traces DIR

writes research/docs/accuracy/families.md. Of the families in the order of their names each second one may fit
what convolutions reach, the others judge, and nnU-Net always judges: chosen before any error was seen.
"""

from __future__ import annotations

import argparse
import csv
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from advisor.core.files import write_atomically
from advisor.core.gpus import resolve_gpu
from advisor.core.values import GpuSpec, Interval, Trace
from advisor.formats.trace_files import read_trace, write_trace
from advisor.predict.iteration import predict
from advisor.predict.knowledge import Knowledge
from research import recommenders, ssd
from research.nnunet import LOOP_S, nnunet
from research.published import as_in_containers
from research.speedups import FILE, Network, timm_step
from research.training.whole_steps import forward_macs

_CONVNETS = "Classification/ConvNets/"
_GPUS = {
    "V100 SXM2/3 16GB": "V100-SXM-16GB",
    "V100 SXM2/3 32GB": "V100-SXM-32GB",
    "A100 SXM4 40GB": "A100-SXM-40GB",
    "A100 SXM4 80GB": "A100-SXM-80GB",
}
_RESNEXT_BATCHES = {"AMP": 128, "TF32": 64}
_B0_BATCHES, _B4_BATCHES = {"AMP": 256, "TF32": 128}, {"AMP": 64, "TF32": 32}
_THOUSANDS = 1024
PAGE = Path(__file__).resolve().parent / "docs" / "accuracy" / "families.md"
_PUBLISHED_MACS = {
    "EfficientNet-B0": "0.39 G (Tan and Le, 2019)",
    "EfficientNet-B4": "4.2 G (the same)",
    "ResNeXt101-32x4d": "8.0 G (Xie et al., 2017)",
    "SE-ResNeXt101-32x4d": "8.0 G (Hu et al., 2018)",
}
_HEAD = """# NVIDIA's other families

Written by `python -m research.nvidia_families`; do not edit. Rows of one GPU of NVIDIA's
DeepLearningExamples (2020 to 2022). Errors are of the time: below 0 where a prediction is too fast. Of the
families in the order of their names each second one might fit. One constant was fitted, to ResNeXt in FP32
on V100s (`advisor/operators/convolution.py`).

- **TF32 depends on the layout as 16 bits do.** One constant made SSD, which ran with channels last, 45 to
  50 % too slow, and ResNet-50 on an H100 21 %. The network of 16 bits is 14 and 5 % too fast.
- **Groups** reach 0.12 of what other convolutions reach in FP32. ResNeXt was 22 % too fast, EfficientNet
  31.
- **nnU-Net** is, to our knowledge, what NVIDIA's benchmark runs: volumes under autocast with channels last
  and fused norms, leaky ReLU that is not in place, Dice's loss. In 2-D its steps take 8 to 13 ms beside what
  grows with the batch. Lightning's loop with a rich progress bar takes 4.6 ms of a host's CPU in each
  (`research/lightning_loop.py`), and the bar reads the loss, so that the GPU waits and the next step's first
  launches hide behind nothing. With both, 2-D is 14 instead of 20 % off.
- **Volumes** have a law by 81 kernels of our H100 (`research/training/fit_volumes.py`): each block of 128
  filters reads the whole operand, 24 bytes of an SM in a clock, so that 32 channels reach a third of what 128
  do; gradients of weights in 32 bits take 1.7 times as long; channels first are copied to last and back.
  Tensor cores before Ampere, without asynchronous copies, keep what they reach of images. 3-D is 14 instead
  of 19 % off: an A100 in half precision is 12 to 16 % too fast (7 to 26 too slow before), a V100 in FP32 36
  and 25 % (47 and 38). Our H100's U-Nets (2-D, 3-D) are predicted 7 and 14 % too fast.
- **EfficientNet** was 10 to 40 % too fast. Depthwise convolutions take cycles of SMs, whatever the bandwidth,
  by kernels of an H100 (`research/training/fit_depthwise.py`). Half of the error was the script's: RMSprop
  and a moving average go tensor by tensor, and a loss scaler waits for the GPU before them, so that nothing
  hides their 2,600 launches (`advisor/predict/host.py`). SGD of ResNeXt went so, too.
- **NCF** looks up a million rows. Gradients of embeddings were measured for 16,384 picks alone; taken as a
  cost for each pick, they made it 162 % too slow. Beyond these a pick costs what a radix sort moves, which
  was not fitted: half precision is 20 to 29 % too slow. In FP32 on V100s it was twice too slow, by gradients
  of weights: sums of a million rows that few blocks of the product share among more.
- **DLRM**: NVIDIA's kernel of products of all pairs (`dotBasedInteract`) is a stand-in that moves its bytes.
  A product, copies and a gather in its place were 26 % too slow.

Left out: Jasper, QuartzNet, wav2vec 2, FastPitch and Tacotron 2, whose lengths are not stated;
EfficientDet, Mask R-CNN, TFT and MoFlow, which are not short to write; HiFi-GAN, whose convolutions alone
would need 1.4 times the TF32 peak of an A100 and 2.5 times the FP32 peak of a V100, so that NVIDIA counts
something else. Batches of the classifiers are not stated: those of the scripts' settings are assumed.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Networks that are left out together."""

    name: str
    fits: bool
    """It may fit what convolutions reach."""
    networks: tuple[Network, ...]
    units: float = 1.0
    """Of its throughput in a sample."""
    loop_s: float = 0.0
    """In each step, while the GPU waits for the loop around it."""


def _efficientnet(size: str, side: int, batches: dict[str, int]) -> Network:
    return Network(
        name=f"EfficientNet-{size.upper()}",
        published=f"{_CONVNETS}efficientnet",
        variant=f"efficientnet-{size}",
        build=partial(timm_step, f"efficientnet_{size}", side=side, averages=True),
        batch_sizes=batches,
    )


def _dlrm(amp: bool, thousands: int) -> Trace:
    return recommenders.dlrm(amp, thousands * _THOUSANDS)


FAMILIES = (
    Family(
        name="DLRM",
        fits=True,
        networks=(Network(name="DLRM", published="Recommendation/DLRM", variant="small", build=_dlrm),),
        units=_THOUSANDS,
    ),
    Family(
        name="EfficientNet",
        fits=False,
        networks=(_efficientnet("b0", 224, _B0_BATCHES), _efficientnet("b4", 380, _B4_BATCHES)),
    ),
    Family(
        name="NCF",
        fits=False,
        networks=(Network(name="NCF", published="Recommendation/NCF", build=recommenders.ncf),),
    ),
    Family(
        name="ResNeXt",
        fits=True,
        networks=tuple(
            Network(
                name=name,
                published=f"{_CONVNETS}{name.lower()}",
                build=partial(timm_step, name.lower().replace("-", "_").replace("se_", "se")),
                batch_sizes=_RESNEXT_BATCHES,
            )
            for name in ("ResNeXt101-32x4d", "SE-ResNeXt101-32x4d")
        ),
    ),
    Family(
        name="SSD",
        fits=False,
        networks=(Network(name="SSD300", published="Detection/SSD", build=ssd.ssd300),),
    ),
    Family(
        name="nnU-Net",
        fits=False,
        networks=tuple(
            Network(
                name=f"nnU-Net {dims}-D",
                published="Segmentation/nnUNet",
                variant=str(dims),
                build=partial(nnunet, dims),
            )
            for dims in (2, 3)
        ),
        loop_s=LOOP_S,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A published row on one GPU: seconds of a step, and what resembles it."""

    family: Family
    network: Network
    gpu: GpuSpec
    precision: str
    batch: int
    step_s: float

    def trace(self, folder: Path | None = None) -> Trace:
        """The step in NVIDIA's container; kept in a folder, since profiling takes longer than the rest."""
        amp = self.precision.startswith("AMP")
        path = folder and folder / f"{self.network.name} {'amp' if amp else 'full'} {self.batch}.json.gz"
        if path and path.exists():
            return as_in_containers(read_trace(path))
        trace = self.network.build(amp, self.batch)
        if path:
            write_trace(trace, path)
        return as_in_containers(trace)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A row and its prediction."""

    row: Row
    predicted: Interval

    @property
    def error(self) -> float:
        """Of the step's time, below 0 where the prediction is too fast."""
        return self.predicted.p50 / self.row.step_s - 1

    @property
    def is_covered(self) -> bool:
        """Whether the row lies within p10..p90."""
        return self.predicted.p10 <= self.row.step_s <= self.predicted.p90


def read_rows(folder: Path) -> Iterator[Row]:
    """The rows of one GPU that the families' networks can repeat.

    Raises:
        OSError: the folder lacks the table.
    """
    with (folder / FILE).open(newline="") as file:
        lines = [row for row in csv.DictReader(file) if row["n_gpus"] == "1" and not row["flags"]]
    for family in FAMILIES:
        for network in family.networks:
            for line in lines:
                if (line["model"], line["variant"]) != (network.published, network.variant):
                    continue
                precision = "AMP" if line["precision"].startswith("AMP") else "TF32"
                batch = int(line["batch_per_gpu"] or network.batch_sizes[precision])
                yield Row(
                    family=family,
                    network=network,
                    gpu=resolve_gpu(_GPUS[line["gpu"]]),
                    precision=line["precision"],
                    batch=batch,
                    step_s=batch * family.units / float(line["throughput"]),
                )


def judged(folder: Path, traces: Path | None = None, knowledge: Knowledge | None = None) -> Iterator[Judged]:
    """Every row with its prediction."""
    for row in read_rows(folder):
        yield Judged(row=row, predicted=predicted(row, row.trace(traces), knowledge))


def predicted(row: Row, trace: Trace, knowledge: Knowledge | None = None) -> Interval:
    """Of a row's step, with the loop around it."""
    step_s = predict(trace, row.gpu, knowledge=knowledge).iteration_s
    p10, p50, p90 = (each + row.family.loop_s for each in (step_s.p10, step_s.p50, step_s.p90))
    return Interval(p10=p10, p50=p50, p90=p90)


def mean_error(rows: Sequence[Judged]) -> float:
    """Of families, each the mean of its rows: families differ in how many rows they have."""
    families = {one.row.family.name for one in rows}
    return statistics.fmean(
        statistics.fmean(abs(one.error) for one in rows if one.row.family.name == name) for name in families
    )


def page(rows: Sequence[Judged], traces: Path) -> str:
    """What the study writes."""
    lines = [
        _HEAD,
        "| network | multiply-adds a sample, forward | published |",
        "|---|---|---|",
        *_work(rows, traces),
        "",
        "| network | GPU | precision | errors by batch | within p10..p90 |",
        "|---|---|---|---|---|",
    ]
    groups: dict[tuple[str, str, str], list[Judged]] = {}
    for one in rows:
        key = (one.row.network.name, one.row.gpu.name, one.row.precision)
        groups.setdefault(key, []).append(one)
    for key, own in groups.items():
        errors = ", ".join(f"{one.row.batch}: {one.error:+.0%}" for one in own)
        inside = sum(one.is_covered for one in own)
        lines.append(f"| {' | '.join(key)} | {errors} | {inside} of {len(own)} |")
    lines += ["", "| family | rows | mean error | role |", "|---|---|---|---|"]
    for family in FAMILIES:
        own = [one for one in rows if one.row.family is family]
        role = "may fit" if family.fits else "judges"
        lines.append(f"| {family.name} | {len(own)} | {mean_error(own):.1%} | {role} |")
    for fits, words in ((True, "may fit"), (False, "judge")):
        mean = mean_error([one for one in rows if one.row.family.fits is fits])
        lines.append(f"| those that {words}, each counted once | | **{mean:.1%}** | |")
    return "\n".join(lines) + "\n"


def _work(rows: Sequence[Judged], traces: Path) -> Iterator[str]:
    """FLOPs are right before times can be."""
    for name, row in {one.row.network.name: one.row for one in rows}.items():
        macs = forward_macs(row.trace(traces)) / (row.batch * row.family.units)
        yield f"| {name} | {macs / 1e9:.3g} G | {_PUBLISHED_MACS.get(name, '-')} |"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--third-party", type=Path, required=True)
    parser.add_argument("--traces", type=Path, required=True, metavar="DIR", help="where profiles are kept")
    options = parser.parse_args()
    rows = list(judged(options.third_party, options.traces))
    write_atomically(PAGE, page(rows, options.traces).encode())


if __name__ == "__main__":
    main()
