"""The largest batches that timm's benchmark could train on an RTX 3090, beside what is predicted to fit.

The benchmark tries batches of 512, 384, 256, 192 ... and keeps the first that does not run out of memory:
one below 512 fits, and the next larger does not. ``largest_batches.csv`` holds what our traces of the same
networks hold by part. A third of the families of networks, drawn by a hash, judge; to the others the
allocator's fragmentation is fitted (``catalogs/memory.toml``).

    python -m research.memory.largest_batches [--figures timm_benchmarks.csv.gz --recorded DIR]

DIR holds traces of ``python -m research.timm_recording``; with both the table is written anew.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist

from advisor.core.gpus import resolve_gpu
from advisor.core.values import Fit, Layout, MemoryEstimate, Trace
from advisor.formats.trace_files import read_trace
from advisor.operators.convolution import CONVOLUTION
from advisor.operators.gemm import GEMM
from advisor.predict.distinct import Blocks
from advisor.predict.footprint import Footprint, Overheads, footprint, need_of, overheads_of
from research.training.drawn import fraction_of

TABLE = Path(__file__).with_name("largest_batches.csv")
GPU = resolve_gpu("RTX-3090")
_LAYOUT = Layout(gpus_per_node=1)
_TRIED = (512, 384, 256, 192, 128, 96, 64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1)
_JUDGED_SHARE = 1 / 3
_COLUMNS = ("model", "family", "batch", "has_convolutions", "fixed_bytes", "activation_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Largest:
    """A network, and the largest batch that could be trained."""

    model: str
    family: str
    batch: int
    has_convolutions: bool
    fixed_bytes: float
    """What its tensors hold at the peak of a pass whatever the batch."""
    activation_bytes: float
    """What they hold besides with this batch."""

    @property
    def only_judges(self) -> bool:
        """Whether it is of the third of families that fits nothing."""
        return fraction_of(self.family) < _JUDGED_SHARE

    @property
    def too_large(self) -> int | None:
        """The batch that ran out of memory; None where the largest that was tried fits."""
        place = _TRIED.index(self.batch)
        return _TRIED[place - 1] if place else None

    @property
    def beside(self) -> Overheads:
        """What the process holds besides."""
        words = {GEMM.word} | ({CONVOLUTION.word} if self.has_convolutions else set())
        return overheads_of(frozenset(words), GPU, _LAYOUT)

    def need(self, batch: int) -> MemoryEstimate:
        """What the GPU has to hold with a batch."""
        return need_of(self._footprint(), self.beside, batch / self.batch)

    def held_bytes(self, batch: int) -> float:
        """By tensors, with a batch."""
        return sum(self._footprint().parts(batch / self.batch).values())

    def _footprint(self) -> Footprint:
        return replace(_NOTHING, weights=self.fixed_bytes, activations=self.activation_bytes)


_NOTHING = Footprint(
    weights=0.0,
    gradients=0.0,
    optimizer=0.0,
    gradients_at_peak=0.0,
    activations=0.0,
    most_activations=0.0,
    copies=0.0,
    step_temporary=0.0,
    kept=0.0,
    buckets=0.0,
    blocks=Blocks(num=1, boundary_bytes=0.0, outside_share=0.0),
)


def networks() -> list[Largest]:
    """The rows of the table."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return [
            Largest(
                model=row["model"],
                family=row["family"],
                batch=int(row["batch"]),
                has_convolutions=row["has_convolutions"] == "1",
                fixed_bytes=float(row["fixed_bytes"]),
                activation_bytes=float(row["activation_bytes"]),
            )
            for row in csv.DictReader(file)
        ]


def verdicts(network: Largest) -> Iterator[bool]:
    """Whether what fits is predicted to, and whether what does not is not."""
    limit_bytes = GPU.memory_bytes
    yield network.need(network.batch).fit(limit_bytes) is not Fit.NO
    if network.too_large is not None:
        yield network.need(network.too_large).fit(limit_bytes) is Fit.NO


def covered(network: Largest) -> bool:
    """Whether neither verdict is surely wrong: what fits may, and what does not may not."""
    limit_bytes = GPU.memory_bytes
    least = network.need(network.batch).need_bytes.p10
    most = math.inf
    if network.too_large is not None:
        most = network.need(network.too_large).need_bytes.p90
    return least <= limit_bytes < most


def fitted(rows: Sequence[Largest]) -> tuple[float, float]:
    """Mean and standard deviation of the logarithm of fragmentation: the likeliest for these rows."""
    bounds = [(_most_lost(one, one.batch), _most_lost(one, one.too_large)) for one in rows]

    def likelihood(mean: float, sigma: float) -> float:
        normal = NormalDist(mean, sigma)
        odds = (normal.cdf(most) - normal.cdf(least) for most, least in bounds)
        return sum(math.log(max(p, 1e-4)) for p in odds)

    grid = itertools.product((i / 200 for i in range(30)), (i / 200 for i in range(2, 30)))
    return max(grid, key=lambda pair: likelihood(*pair))


def _most_lost(network: Largest, batch: int | None) -> float:
    """The logarithm of the fragmentation with which a batch just fits; far below 0 without one."""
    if batch is None:
        return -100.0
    room = GPU.memory_bytes - sum(part.p50 for part in network.beside.parts.values())
    return math.log(room / network.held_bytes(batch))


def _written(figures: Path, folder: Path) -> None:
    with gzip.open(figures, "rt", encoding="utf-8", newline="") as file:
        largest = {
            row["model"]: int(row["batch_size"])
            for row in csv.DictReader(file)
            if (row["mode"], row["memory_format"], row["framework_version"]) == ("train", "nchw", "1.12")
        }
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for path in sorted(folder.glob("*.json.gz")):
            model = path.name.removesuffix(".json.gz")
            writer.writerow(_row(model, largest[model], read_trace(path)))


def _row(model: str, batch: int, trace: Trace) -> tuple[object, ...]:
    from research.training.whole_steps import family_of_model

    tensors = footprint(trace, _LAYOUT)
    assert tensors is not None
    held = sum(tensors.parts().values())
    has_convolutions = any("convolution" in op.name for op in trace.ops)
    fixed, activations = held - tensors.activations, tensors.activations
    return model, family_of_model(model), batch, int(has_convolutions), round(fixed), round(activations)


def main() -> None:
    """Fit, and judge what ships."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--figures", type=Path)
    parser.add_argument("--recorded", type=Path, metavar="DIR")
    options = parser.parse_args()
    if options.figures and options.recorded:
        _written(options.figures, options.recorded)
    rows = networks()
    mean, sigma = fitted([row for row in rows if not row.only_judges])
    low, mid, high = (math.exp(NormalDist(mean, sigma).inv_cdf(p)) for p in (0.1, 0.5, 0.9))
    print(f"fragmentation: low {low:.3f}, mid {mid:.3f}, high {high:.3f}")
    for name, only_judges in (("fitted", False), ("judged", True)):
        these = [row for row in rows if row.only_judges is only_judges]
        right = [one for row in these for one in verdicts(row)]
        inside = sum(covered(row) for row in these)
        print(
            f"{name}: {sum(right)} of {len(right)} right; {inside} of {len(these)} networks inside p10 .. p90"
        )


if __name__ == "__main__":
    main()
