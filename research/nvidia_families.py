"""NVIDIA's other families beside their tables: convolutions in one to three dimensions, and recommenders.

    python -m research.nvidia_families --third-party DIR [--traces DIR]

prints a Markdown table of what each family is off. Families that can be repeated stand in the order of their
names; each second one may fit what convolutions reach, the others judge, and nnU-Net always judges. That was
decided before any error was seen.
"""

from __future__ import annotations

import argparse
import csv
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from advisor.core.gpus import resolve_gpu
from advisor.core.values import GpuSpec, Interval, Trace
from advisor.formats.trace_files import read_trace, write_trace
from advisor.predict.iteration import predict
from advisor.predict.knowledge import Knowledge
from research import hifi_gan, recommenders, ssd
from research.nnunet import nnunet
from research.published import as_in_containers
from research.speedups import FILE, Network, timm_step

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Networks that are left out together.

    Attributes:
        fits: it may fit what convolutions reach.
        units: of its throughput in a sample.
    """

    name: str
    fits: bool
    networks: tuple[Network, ...]
    units: float = 1.0


def _efficientnet(size: str, side: int, batches: dict[str, int]) -> Network:
    return Network(
        name=f"EfficientNet-{size.upper()}",
        published=f"{_CONVNETS}efficientnet",
        variant=f"efficientnet-{size}",
        build=partial(timm_step, f"efficientnet_{size}", side=side),
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
        name="HiFi-GAN",
        fits=True,
        networks=(
            Network(name="HiFi-GAN", published="SpeechSynthesis/HiFiGAN", build=hifi_gan.hifi_gan),
        ),
        units=hifi_gan.FRAMES,
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


def judged(
    folder: Path, traces: Path | None = None, knowledge: Knowledge | None = None
) -> Iterator[Judged]:
    """Every row with its prediction."""
    for row in read_rows(folder):
        predicted = predict(row.trace(traces), row.gpu, knowledge=knowledge).iteration_s
        yield Judged(row=row, predicted=predicted)


def mean_error(rows: Sequence[Judged]) -> float:
    """Of families, each the mean of its rows: families differ in how many rows they have."""
    families = {one.row.family.name for one in rows}
    return statistics.fmean(
        statistics.fmean(abs(one.error) for one in rows if one.row.family.name == name) for name in families
    )


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--third-party", type=Path, required=True)
    parser.add_argument("--traces", type=Path, metavar="DIR", help="where profiles are kept")
    options = parser.parse_args()
    rows = list(judged(options.third_party, options.traces))
    print("| network | GPU | precision | batch | measured, ms | predicted, ms | error | within p10..p90 |")
    print("|---|---|---|---|---|---|---|---|")
    for one in rows:
        row, covered = one.row, "yes" if one.is_covered else "no"
        times = f"{row.step_s * 1e3:.1f} | {one.predicted.p50 * 1e3:.1f} | {one.error:+.0%}"
        print(
            f"| {row.network.name} | {row.gpu.name} | {row.precision} | {row.batch} | {times} | {covered} |"
        )
    for fits in (True, False):
        part = [one for one in rows if one.row.family.fits is fits]
        print(f"\n{'may fit' if fits else 'judge'}: {mean_error(part):.1%}")


if __name__ == "__main__":
    main()
