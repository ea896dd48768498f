"""Compiled over eager forward passes of timm's models, on an RTX 4090 with torch 2.4 and 2.9.

    python -m research.compiled_passes --figures timm_benchmarks.csv.gz --recorded DIR [--each]

DIR is written by ``python -m research.timm_recording --forward``. A third of the families of models, drawn
by a hash, only judges; the others chose what joined kernels take longer.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median

from advisor.core.gpus import resolve_gpu
from advisor.core.values import GpuSpec, Launch, Trace
from advisor.predict.iteration import predict
from advisor.predict.what_if.compiled import CHAIN_OVERHEAD, fused, laid_out
from research.training.forward_passes import is_compiled, recorded
from research.training.whole_steps import Row, only_judges

BOARD = "RTX 4090"
OVERHEADS = (1.0, 1.1, 1.2, 1.3, 1.4, 1.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A model in one release: compiled over eager, measured and predicted with each overhead."""

    model: str
    release: str
    measured: float
    predicted: Mapping[float, float]

    @property
    def only_judges(self) -> bool:
        """Whether its family chooses nothing."""
        return only_judges(self.model)

    def off(self, overhead: float = CHAIN_OVERHEAD) -> float:
        """Predicted over measured, less 1."""
        return self.predicted[overhead] / self.measured - 1


def compared(figures: Path, recordings: Path) -> Iterator[Compared]:
    """Each model that was measured both ways in a release, on images of the same side."""
    gpu = resolve_gpu(BOARD)
    for trace, rows in recorded(figures, recordings):
        pairs = dict(_pairs(rows))
        if pairs:
            predicted = ratios(trace, gpu)
            for release, measured in pairs.items():
                yield Compared(
                    model=trace.arguments[0], release=release, measured=measured, predicted=predicted
                )


def _pairs(rows: Sequence[Row]) -> Iterator[tuple[str, float]]:
    """Release, and eager over compiled rate."""
    own = [row for row in rows if row["device"] == BOARD and row["memory_format"] == "nchw"]
    eager = {row["framework_version"]: float(row["samples_per_s"]) for row in own if not is_compiled(row)}
    for row in own:
        if is_compiled(row) and row["framework_version"] in eager:
            yield row["framework_version"], eager[row["framework_version"]] / float(row["samples_per_s"])


def ratios(trace: Trace, gpu: GpuSpec) -> dict[float, float]:
    """Compiled over eager as predicted, by what joined kernels take longer."""
    ops = laid_out(trace.ops, gpu.vendor, trace.versions.get("torch", ""))
    eager_s = predict(trace, gpu).device_s.p50

    def made(overhead: float) -> Trace:
        return replace(trace, ops=fused(ops, overhead=overhead), launch=Launch.COMPILED)

    asked = {*OVERHEADS, CHAIN_OVERHEAD}
    return {overhead: predict(made(overhead), gpu).device_s.p50 / eager_s for overhead in sorted(asked)}


def table(rows: Sequence[Compared]) -> str:
    """Errors by overhead, of those that chose and those that judge, and of no model at all."""
    lines = ["| overhead | torch | chose: models, mean, median off | judged |", "|---:|---|---|---|"]
    for overhead in rows[0].predicted:
        for release in sorted({row.release for row in rows}):
            own = [row for row in rows if row.release == release]
            parts = (
                _errors([row.off(overhead) for row in own if row.only_judges is judges])
                for judges in (False, True)
            )
            lines.append(f"| {overhead:g} | {release} | {' | '.join(parts)} |")
    judged = [row for row in rows if row.only_judges]
    lines += ["", f"That compiling changes nothing: {_errors([1 / row.measured - 1 for row in judged])} off."]
    return "\n".join(lines)


def _errors(off: Sequence[float]) -> str:
    if not off:
        return "-"
    errors = [abs(value) for value in off]
    return f"{len(off)}, {fmean(errors):.1%}, {median(errors):.1%} (bias {median(off):+.1%})"


def main() -> None:
    """Print the table, and each model if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--figures", type=Path, required=True)
    parser.add_argument("--recorded", type=Path, required=True, metavar="DIR")
    parser.add_argument("--each", action="store_true", help="the models that judge, worst first")
    options = parser.parse_args()
    rows = list(compared(options.figures, options.recorded))
    print(table(rows))
    if options.each:
        for row in sorted((row for row in rows if row.only_judges), key=lambda row: -abs(row.off())):
            predicted = row.predicted[CHAIN_OVERHEAD]
            print(f"{row.model}, torch {row.release}: {row.measured:.2f}, predicted {predicted:.2f}")


if __name__ == "__main__":
    main()
