r"""Whole training steps of Lambda Labs' tables on one board, beside what is predicted.

    python -m research.lambda_steps --steps ../shared/measurements/published/lambda_steps.csv \
        [--fold FOLDER BOARD ...] [--out research/docs/accuracy/lambda.md]

Systems with the same board, and runs that repeat one another, are one row: their median. Traces are those of
``research/lambda_networks.py``, at batches of 8, 64 and 512: a row's own lies on the line through the two
nearest.
"""

from __future__ import annotations

import argparse
import csv
import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from advisor.core.errors import UnknownGpuError
from advisor.core.files import write_atomically
from advisor.core.gpus import resolve_gpu
from advisor.core.values import GpuSpec, Interval, Trace
from advisor.formats.trace_files import read_trace
from advisor.predict.iteration import predict
from advisor.predict.knowledge import STEPS, Knowledge, read_excess, read_knowledge, shipped
from research.gpu_day.steps import Precision
from research.networks import GNMT_TOKENS

TRACES = Path(__file__).parent / "measured" / "lambda_traces"
# Tokens or samples of a batch's one sample, in the unit of the table.
_UNITS = {"resnet50": 1, "bert_base_squad": 1, "bert_large_squad": 1, "gnmt": GNMT_TOKENS}
# Boards whose name the table leaves open, or that are another board with a lower limit.
_FORMER = {"V100-32GB (form not stated)": "V100-SXM-32GB"}
REFERENCE = "A100-SXM-40GB"
# Batches of traces are powers of it, up to one where a larger one changes the rate by a few per cent no more.
_COARSE = 8
BATCHES = (8, 64, 512)
"""Of the traces."""
# Images through a loader of the host's: its time, not the board's. So it is where one tenth of the iterations
# is that much faster than another: all other boards' differ by 9 % at most.
_LOADER, _MOST_SPREAD = "data pytorch", 1.2
_MOST = 512


@dataclass(frozen=True, slots=True, order=True)
class Work:
    """What ran."""

    network: str
    precision: Precision

    @property
    def is_half(self) -> bool:
        """Whether it is in half precision."""
        return self.precision != "tf32"

    def path(self, batch: int) -> Path:
        """Where the trace of that batch is."""
        return TRACES / f"{self.network}-{self.precision}-b{batch}.json.gz"

    def nearest(self, batch: float) -> tuple[int, ...]:
        """The two recorded batches that are nearest."""
        recorded = [each for each in BATCHES if self.path(each).exists()]
        return tuple(sorted(sorted(recorded, key=lambda each: abs(math.log(each / batch)))[:2]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Steps of one network on one board; ``step_s`` is the median of the systems that measured them."""

    work: Work
    gpu: GpuSpec
    batch: float
    step_s: float
    software: str
    """Of what years, of all those systems."""


def read_rows(path: Path) -> list[Row]:
    """One board each; what no trace can repeat is left out (networks, boards of laptops).

    Raises:
        OSError: the file cannot be read.
    """
    found: dict[tuple[Work, str, float], list[tuple[float, str]]] = defaultdict(list)
    gpus: dict[str, GpuSpec] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            gpu = _gpu(row["gpu"])
            is_built = row["model"] in _UNITS and row["batch_per_gpu"] and not _awaits_loader(row)
            if row["num_gpus"] == "1" and is_built and gpu is not None:
                batch, samples_per_s = (
                    float(row["batch_per_gpu"]),
                    float(row["throughput"]) / _UNITS[row["model"]],
                )
                gpus[gpu.name] = gpu
                found[_work(row), gpu.name, batch].append((batch / samples_per_s, row["software"]))
    return [
        Row(
            work=work,
            gpu=gpus[name],
            batch=batch,
            step_s=statistics.median(time_s for time_s, _ in systems),
            software=" and ".join(sorted({software for _, software in systems})),
        )
        for (work, name, batch), systems in sorted(found.items())
    ]


def _gpu(name: str) -> GpuSpec | None:
    if name.endswith("MaxQ") or name == "Quadro-RTX-5000":
        return None  # a laptop's maker sets what its board may draw, and the table does not tell
    try:
        return resolve_gpu(_FORMER.get(name, name))
    except UnknownGpuError:
        return None


def _awaits_loader(row: Mapping[str, str]) -> bool:
    slow, fast = (float(row[f"throughput_{part}"] or 1) for part in ("p10", "p90"))
    return row["note"] == _LOADER or fast > _MOST_SPREAD * slow


def _work(row: Mapping[str, str]) -> Work:
    network, is_half = row["model"], row["precision"] == "fp16"
    is_autocast = network == "resnet50" and row["amp_level"] != "O2"
    return Work(network, ("fp16" if is_autocast else "o2") if is_half else "tf32")


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A row and its prediction."""

    row: Row
    predicted: Interval

    @property
    def error(self) -> float:
        """Relative, of the time: below 0 where the prediction is too fast."""
        return self.predicted.p50 / self.row.step_s - 1

    @property
    def is_inside(self) -> bool:
        """Whether p10..p90 holds what was measured."""
        return self.predicted.p10 <= self.row.step_s <= self.predicted.p90


@cache
def trace_of(work: Work, batch: int) -> Trace:
    """The committed trace."""
    return read_trace(work.path(batch))


def judge(rows: Sequence[Row], knowledge: Knowledge | None = None) -> list[Judged]:
    """Each row with its prediction."""

    @cache
    def predicted(work: Work, batch: int, gpu: str) -> Interval:
        return predict(trace_of(work, batch), resolve_gpu(gpu), knowledge=knowledge).iteration_s

    def at(row: Row) -> Interval:
        low, high = row.work.nearest(row.batch)
        below, above = (predicted(row.work, batch, row.gpu.name) for batch in (low, high))
        share = (row.batch - low) / (high - low)
        p50 = below.p50 + share * (above.p50 - below.p50)
        nearer = below if row.batch - low < high - row.batch else above
        return Interval(p10=p50 * nearer.p10 / nearer.p50, p50=p50, p90=p50 * nearer.p90 / nearer.p50)

    return [Judged(row=row, predicted=at(row)) for row in rows]


def relative_errors(judged: Sequence[Judged], reference: str = REFERENCE) -> list[float]:
    """How far a board's speed relative to the reference's is off, by network and precision."""
    by_work: dict[Work, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for one in judged:
        by_work[one.row.work][one.row.gpu.name].append(1 + one.error)
    return [
        statistics.median(ratios) / statistics.median(of_board[reference]) - 1
        for of_board in by_work.values()
        if reference in of_board
        for name, ratios in of_board.items()
        if name != reference
    ]


def page(judged: Sequence[Judged]) -> str:
    """Tables of all, by precision, network and board, and the worst rows."""
    groups: list[tuple[str, list[Judged]]] = [("all", list(judged))]
    groups += _grouped(judged, lambda row: "half precision" if row.work.is_half else "FP32 and TF32")
    groups += _grouped(judged, lambda row: row.work.network)
    groups += _grouped(judged, lambda row: row.software)
    groups += _grouped(judged, lambda row: row.gpu.name)
    header = ["rows", "number", "mean, %", "median, %", "worst, %", "bias, %", "within p10..p90"]
    ratios = [abs(error) for error in relative_errors(judged)]
    relative = (
        f"{100 * statistics.fmean(ratios):.1f} % mean, {100 * max(ratios):.0f} % worst" if ratios else "-"
    )
    worst = sorted(judged, key=lambda one: -abs(one.error))[:10]
    names = [
        f"- {one.row.work.network} {one.row.work.precision}, batch {one.row.batch:g}, {one.row.gpu.name}:"
        f" {one.error:+.0%}"
        for one in worst
    ]
    return "\n".join(
        [
            *(f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header))),
            *(f"| {' | '.join((name, *_figures(own)))} |" for name, own in groups),
            f"\nSpeed relative to an {REFERENCE}: {relative}.\n",
            "Worst rows:\n",
            *names,
            "",
        ]
    )


def _grouped(judged: Sequence[Judged], name_of: Callable[[Row], str]) -> Iterator[tuple[str, list[Judged]]]:
    for name in sorted({name_of(one.row) for one in judged}):
        yield name, [one for one in judged if name_of(one.row) == name]


def _figures(own: Sequence[Judged]) -> Iterator[str]:
    errors = [abs(one.error) for one in own]
    yield str(len(own))
    yield from (
        f"{100 * cut:.1f}" for cut in (statistics.fmean(errors), statistics.median(errors), max(errors))
    )
    yield f"{100 * statistics.fmean(one.error for one in own):+.1f}"
    yield f"{statistics.fmean(one.is_inside for one in own):.0%}"


def left_out(rows: Sequence[Row], folds: Sequence[Sequence[str]]) -> list[Judged]:
    """Each row by trainings that saw no step of its board; by what ships where no fold names the board.

    Args:
        rows: all of them.
        folds: a folder that ``python -m research.training --leave-out`` and ``python -m
            research.training.fit_steps --leave-out`` wrote to, then the boards they left out.
    """
    judged = []
    for folder, *boards in folds:
        networks, excess = read_knowledge(Path(folder)).networks, read_excess(Path(folder) / STEPS)
        own = [row for row in rows if row.gpu.name in boards]
        judged += judge(own, replace(shipped(), networks=networks, excess=excess))
    named = {board for _, *boards in folds for board in boards}
    return judged + judge([row for row in rows if row.gpu.name not in named])


_HEAD = """# Whole steps on boards that were left out

Written by `python -m research.lambda_steps`; do not edit. Errors are of the time: below 0 where a prediction
is too fast. Lambda Labs measured these steps from 2020 to 2022 with NVIDIA's scripts (no licence stated:
figures). Boards are left out by architecture: the A100s; the other boards of Ampere; those before.

| | |
|---|---|
| fitted | operators in a step over operators alone (`catalogs/steps.toml`); convolutions: ResNet-50 in fp16 |
| left out | of both: all boards of an architecture |
| chose | how far element-wise operators may differ from 0: these boards, NVIDIA's rows, whole training runs |
| only judged it | timm's families, steps of an H100, NeuSight's iterations in FP32, Llama's steps |

Four figures were chosen for intervals: what is left of a family's error in a step (0.55), by how much labs
differ (5 %), how sure a host's launches are (0.3), and a recurrent layer's error (0.33). Since one lab tells
what steps add to element-wise operators, that is as unsure as it is large
([decision 139](../../../docs/decisions/0139-errors-that-one-lab-cannot-tell.md)).

How many steps of each source intervals hold, and of ratios of two boards: [by source](coverage.md). MLPerf's
submissions are a floor ([page](mlperf.md)): no script repeats them, so no interval can hold them.

Rows by architecture left out, below, are of before the intervals of decision 139 and waits of decision 138.
With today's predictions BERT-base, BERT-large and GNMT are 7.3, 8.9 and 11.3 % off, and p10..p90 holds 85, 79
and 76 %; ResNet-50 would need convolutions trained again without each architecture. All steps with what ships
are 8.0 % off.

| mean error, % | without the fit | with it |
|---|---|---|
| these steps, networks as shipped | 10.3 | 7.9 |
| [NVIDIA's published rows](../methods/roofline.md) | 8.3 | 8.0 |
| [whole training runs](training-runs.md) | 6.6 | 7.3 |
| [timm's families](convolutions.md) that only judge | 9.4 | 8.0 |
| timm's families that trained convolutions | 5.2 | 7.1 |
| 39 steps of [an H100](gpu-day.md), six of which trained convolutions | 15.7 | 14.2 |

Left out, since the script is not known well enough to repeat: SSD (most rows state no batch), Transformer-XL
(Lambda's A100 runs at 0.56 of what NVIDIA states for the same network, board and precision), Tacotron 2,
WaveGlow, NCF; systems that read images through PyTorch's loader; laptops' boards and the Quadro RTX 5000. So
is one rented Quadro RTX 6000 with a slow loader: a tenth of its iterations is 1.4 times as fast as another.
Those of all other rows differ by 9 % at most.

Until November 2026 the mean error was 18.1 %, GNMT's 31.6. Most of that were the scripts:

- GNMT's throughput counts words, and 22 % of what its padded batches compute is padding
  (`research/networks.py`). Its loss keeps logs of probabilities in FP32 also in a half model, and gradients
  are clipped (`research/gnmt.py`): 6 to 9 % of a step in half precision. NVIDIA's rows ran the same apex O2.
- BERT's optimizer in FP32 waits for the GPU once for each of 391 tensors, so none of its launches hide behind
  other phases (`research/bert_adam.py`, `advisor/predict/host.py`).
- A cell of a recurrent layer costs what eight kernels of an H100 with cuDNN 9 say, a quarter of what a V100
  took with cuDNN 7 (`catalogs/recurrent.toml`).

Two constants came from these rows. Half of the FP32 lanes of GA10x and AD10x do integers as well:
convolutions reach 0.60 of all lanes (six boards before decision 126, since then RTX 3080 and 3090). TF32 on
tensor cores of half rate reaches 0.85 (BERT on the RTX 3090, up to 19 % too slow before). GNMT judges on
that board (7 % too
slow before, now 2), and the RTX 3080 with software of 2020 (6 to 13 % too fast, as all of that year; 2 to 5 %
before).

**What is left.** Software: steps of 2022 are 4 % off without bias, those of 2020 and 2021 8 % too fast. An
A100-SXM-40GB ran BERT 22 % slower in half precision with the container of 2020. The worst rows are not the
boards':

| row, measured in 2021 as TF32 | error | predicted in FP32 |
|---|---|---|
| GNMT, RTX A5000; A4000 | -43; -39 % | -14; -13 % |
| BERT-base, A40; BERT-large, A40; A5000 | -32; -28; -28 % | -2; +5; +5 % |

These five ran without TF32, whatever the table says: on the A5000 GNMT takes 3.0 times as long as in half
precision, on the A6000 and A100 1.7 to 2.0. Transformer-XL, which judges nothing here, says so of the A40 and
A5000 too: half precision is 2.3 times as fast there, 1.4 to 1.9 times on other boards of Ampere (RTX 3080:
2.0). But the A4000 has 1.8, and BERT-base on the same A5000 ran in TF32. So nothing that the table states
tells such rows. They stay in all figures: BERT-large has batches too small to tell them by times alone.
Without them and with what ships, steps are 7.1 % off instead of 8.0, speed relative to an A100 7.3 instead
of 8.4, at worst 25 instead of 34.

**Speed relative to an A100** hangs on software. In half precision, steps of 2020 are 13 % too fast on A100s,
which were new, and right on the mean on other Ampere boards; those of 2022 are 2 % too fast and 2 too slow.
Comparing only steps of one year does not help (9.4 %).

GNMT in half precision on a V100 of March or April 2020 is 24 and 39 % too fast; that of 2022, a third faster
with nearly the same batch, 10 %. A batch of 260 is no multiple of 8, which cuDNN 7 asked for.
"""


def main() -> None:
    """Write the page, or print its tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--steps", type=Path, required=True, metavar="FILE")
    parser.add_argument(
        "--fold", action="append", default=[], nargs="+", metavar=("FOLDER", "BOARD"), help="boards left out"
    )
    parser.add_argument("--out", type=Path, metavar="FILE")
    options = parser.parse_args()
    text = f"{_HEAD}\n{page(left_out(read_rows(options.steps), options.fold))}"
    if options.out is not None:
        write_atomically(options.out, text.encode())
    print(text)


if __name__ == "__main__":
    main()
