"""Fit what kernels that stream cost: passes over their bytes, and clocks by element, row and step.

    python -m research.training.fit_streams --measurements ../shared/measurements --out catalogs/streams.toml

Each quarter of the shapes, by a hash, and each architecture in turn judge what the others told; their errors
are printed, and give the widths.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from advisor.core.files import write_atomically
from advisor.core.gpus import load_gpus
from advisor.core.values import Z90
from advisor.operators.cycles import CHANNEL_NORM, COSTS
from advisor.predict.constants import constants_for
from advisor.predict.roofline import KERNEL_FLOOR_S
from research.training import four_bits
from research.training.batch_norms import KERNELS_ALONE, batch_norm_rows
from research.training.drawn import fraction_of
from research.training.four_bits import MadeWeights, made_weights
from research.training.stream_tables import ORIGIN, MeasuredStream, counted, read_streams

_NUM_FOLDS = 4
# Errors below it count by their square, larger ones by their size.
_HUBER = 0.03
_ROUNDS = 20
_CONVERGED = 1e-9
Floats = NDArray[np.float64]
Logs = Mapping[str, Floats]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """What calls cost, what each architecture takes of it, and what each source of measurements adds."""

    costs: Floats
    pace: Mapping[str, float]
    offset_s: Mapping[str, float]

    def off(self, rows: Sequence[MeasuredStream]) -> Floats:
        """Log(predicted / measured) of each call."""
        added_s = np.array([self.offset_s.get(row.source, KERNEL_FLOOR_S) for row in rows])
        factors = np.array([self.pace.get(row.gpu.architecture, 1.0) for row in rows])
        predicted_s = added_s + factors * (_units_s(rows) @ self.costs)
        return np.asarray(np.log(predicted_s / np.array([row.time_s for row in rows])))


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedStream:
    """One kind: its costs, and by what factor held-out calls are off."""

    kind: str
    fit: Fit
    judged: Logs
    """Log(predicted / measured) of each call by the shapes of the other folds, by GPU."""
    left_out: Logs
    """The same by the other architectures."""
    architecture: Mapping[str, str]

    @property
    def num_rows(self) -> int:
        """Calls that were measured."""
        return sum(map(len, self.judged.values()))

    @property
    def family(self) -> str:
        """What shares widths: of one kind alone there may be a dozen calls, or one GPU's."""
        if self.kind.startswith(CHANNEL_NORM):
            return "batch norm"
        if self.kind == four_bits.KIND:
            return self.kind
        if "norm" in self.kind or "softmax" in self.kind:
            return "norm and softmax"
        return "look-up" if "look-up" in self.kind else "element-wise"


def fitted(rows: Sequence[MeasuredStream]) -> FittedStream:
    """The costs of one kind from its measured calls."""
    fit = fit_of(rows)
    architecture = {row.gpu.name: row.gpu.architecture for row in rows}
    is_alone = len(set(architecture.values())) == 1
    return FittedStream(
        kind=rows[0].kind,
        fit=fit,
        judged=held_out(rows, fold, fit.offset_s),
        left_out={} if is_alone else held_out(rows, lambda row: row.gpu.architecture, fit.offset_s),
        architecture=architecture,
    )


def fitted_to_runs(runs: Sequence[MadeWeights]) -> FittedStream:
    """Clocks of an SM for a weight of four bits; each run is judged by the others.

    Those of all runs together: of a long one the least is loading and packing the weights.
    """
    gpu = load_gpus()[four_bits.GPU]

    def cycles(of: Sequence[MadeWeights]) -> float:
        clocks = sum(run.time_s for run in of) * gpu.num_sms * gpu.boost_clock_hz
        return clocks / sum(run.weights for run in of)

    off = [math.log(cycles([one for one in runs if one != run]) / cycles([run])) for run in runs]
    costs = np.array([cycles(runs) if name == "cycles_per_element" else 0.0 for name in COSTS])
    return FittedStream(
        kind=four_bits.KIND,
        fit=Fit(costs=costs, pace={gpu.architecture: 1.0}, offset_s={}),
        judged={gpu.name: np.array(off)},
        left_out={},
        architecture={gpu.name: gpu.architecture},
    )


def fold(row: MeasuredStream) -> str:
    """Which quarter of the shapes, the same on every GPU."""
    return str(int(_NUM_FOLDS * fraction_of(f"{row.rows} {row.columns} {row.tensors:.3g}")))


def held_out(
    rows: Sequence[MeasuredStream], group_of: Callable[[MeasuredStream], str], offset_s: Mapping[str, float]
) -> Logs:
    """Log errors of each group by a fit to all others, by GPU.

    Args:
        rows: of one kind.
        group_of: what is held out together.
        offset_s: what sources add, by all of their rows, since it is no property of a kernel.
    """
    logs: dict[str, list[float]] = {row.gpu.name: [] for row in rows}
    for group in sorted({group_of(row) for row in rows}):
        judges = [row for row in rows if group_of(row) == group]
        off = fit_of([row for row in rows if group_of(row) != group], offset_s).off(judges)
        for row, log in zip(judges, off.tolist(), strict=True):
            logs[row.gpu.name].append(log)
    return {gpu: np.array(values) for gpu, values in sorted(logs.items())}


def fit_of(rows: Sequence[MeasuredStream], offset_s: Mapping[str, float] | None = None) -> Fit:
    """Costs, none of them negative, paces of architectures, whose logs sum to 0, and sources' offsets.

    Relative errors count by their size (iterated weights), and each GPU of a source as much as another.
    The offsets are fitted as well unless they are given.
    """
    time_s = np.array([row.time_s for row in rows])
    units = _units_s(rows) / time_s[:, None]
    alone_s = dict.fromkeys(KERNELS_ALONE, KERNEL_FLOOR_S)
    known = np.array([(offset_s or alone_s).get(row.source, 0.0) for row in rows]) / time_s
    sources = () if offset_s else sorted({row.source for row in rows} - KERNELS_ALONE)
    added = np.array([[row.source == name for name in sources] for row in rows]) * 1e-6 / time_s[:, None]
    architectures = sorted({row.gpu.architecture for row in rows})
    member = np.array([architectures.index(row.gpu.architecture) for row in rows])
    pairs = [(row.gpu.name, row.source) for row in rows]
    even = 1 / np.sqrt([pairs.count(pair) for pair in pairs])
    weights, log_pace, answer = even, np.zeros(len(architectures)), np.zeros(0)
    for _ in range(_ROUNDS):
        design = np.concatenate([units * np.exp(log_pace)[member, None], added], axis=1)
        answer = nonnegative(design * weights[:, None], (1 - known) * weights)
        share = known + design @ answer
        weights = even / np.sqrt(np.maximum(np.abs(share - 1), _HUBER))
        off = np.bincount(member, weights**2 * np.log(share)) / np.bincount(member, weights**2)
        log_pace -= off + np.mean(log_pace - off)
    fitted_s = dict(zip(sources, (1e-6 * answer[len(COSTS) :]).tolist(), strict=True))
    pace = dict(zip(architectures, np.exp(log_pace).tolist(), strict=True))
    return Fit(costs=answer[: len(COSTS)], pace=pace, offset_s=offset_s or {**alone_s, **fitted_s})


def nonnegative(design: Floats, target: Floats, rounds: int = 500) -> Floats:
    """The least squares of ``design @ x - target`` with no ``x`` below zero, by coordinate descent."""
    normal, gradient = design.T @ design, design.T @ target
    answer = np.zeros(design.shape[1])
    for _ in range(rounds):
        before = answer.copy()
        for i, own in enumerate(normal.diagonal()):
            if own > 0:
                answer[i] = max(0.0, answer[i] + (gradient[i] - normal[i] @ answer) / own)
        if np.abs(answer - before).max() <= _CONVERGED * np.abs(answer).max():
            break
    return answer


def _units_s(rows: Sequence[MeasuredStream]) -> Floats:
    """Seconds of each cost if it were 1, [N, 5]."""
    return np.array([row.work.unit_times_s(row.gpu, _bytes_per_s(row)) for row in rows])


def _bytes_per_s(row: MeasuredStream) -> float:
    bandwidth = "reduction_fraction" if row.is_of_rows else "streaming_fraction"
    return constants_for(row.gpu).fractions[bandwidth] * row.gpu.memory_bytes_per_s


def sigma_of(logs: Iterable[Floats]) -> float:
    """That of a log-normal whose p10..p90 holds four fifths of all errors, every GPU weighing the same."""
    errors = [np.abs(each) for each in logs]
    size = np.concatenate(errors)
    weight = np.concatenate([np.full(len(each), 1 / len(each)) for each in errors])
    order = np.argsort(size)
    share = np.cumsum(weight[order]) / len(errors)
    return float(size[order][np.searchsorted(share, 0.8)]) / Z90


@dataclass(frozen=True, slots=True, kw_only=True)
class Widths:
    """Of a family: by architecture that was measured, and of others, which are never surer."""

    seen: Mapping[str, float]
    unseen: float


def widths_of(fits: Sequence[FittedStream]) -> dict[str, Widths]:
    """By family."""
    widths = {name: _widths([each for each in fits if each.family == name]) for name in _families(fits)}
    widest = max(each.unseen for each in widths.values())
    # One architecture alone does not tell how far another is: no less than any.
    is_judged = {each.family for each in fits if each.left_out}
    return {
        name: each if name in is_judged else replace(each, unseen=widest) for name, each in widths.items()
    }


def _widths(family: Sequence[FittedStream]) -> Widths:
    seen = {name: sigma_of(_logs(family, "judged", name)) for name in _architectures(family)}
    left_out = [logs for each in family for logs in each.left_out.values()]
    return Widths(seen=seen, unseen=max([*seen.values(), *([sigma_of(left_out)] if left_out else [])]))


def _logs(
    family: Sequence[FittedStream], held_out: Literal["judged", "left_out"], architecture: str
) -> list[Floats]:
    """The errors on GPUs of one architecture."""
    by_kind: list[tuple[FittedStream, Logs]] = [(each, getattr(each, held_out)) for each in family]
    return [
        logs
        for each, by_gpu in by_kind
        for gpu, logs in by_gpu.items()
        if each.architecture[gpu] == architecture
    ]


def _families(fits: Sequence[FittedStream]) -> list[str]:
    return sorted({each.family for each in fits})


def _architectures(fits: Sequence[FittedStream]) -> list[str]:
    return sorted({name for each in fits for name in each.architecture.values()})


def render(fits: Sequence[FittedStream]) -> str:
    """The TOML text."""
    lines = ["# Written by python -m research.training.fit_streams: what streaming costs. Do not edit."]
    lines += [f"# Fitted to {origin}" for origin in (*ORIGIN, four_bits.ORIGIN)]
    widths = widths_of(fits)
    for each in fits:
        own = widths[each.family]
        lines += ["", f'["{each.kind}"]']
        lines += [f"{name} = {cost:.4f}" for name, cost in zip(COSTS, each.fit.costs, strict=True)]
        lines += [f"unseen_sigma = {own.unseen:.3f}"]
        lines += [
            f"architectures.{name} = {{ factor = {factor:.3f}, sigma = {own.seen[name]:.3f} }}"
            for name, factor in each.fit.pace.items()
        ]
    return "\n".join([*lines, ""])


def page(fits: Sequence[FittedStream]) -> str:
    """Markdown: the costs, the errors by kind and GPU, and what lies within p10..p90."""
    tables = (_cost_table(fits), _error_table(fits), _width_table(fits))
    return "\n\n".join(map(_markdown, tables))


def _cost_table(fits: Sequence[FittedStream]) -> list[list[str]]:
    rows = [["kind", "calls", "passes", "cycles an element", "a slow one", "a row", "a step", "pace"]]
    for each in fits:
        costs = [f"{round(cost, 4):.3g}" for cost in each.fit.costs]
        pace = ", ".join(f"{name} {factor:.2f}" for name, factor in each.fit.pace.items())
        rows += [[each.kind, f"{each.num_rows:,}", *costs, pace]]
    return rows


def _error_table(fits: Sequence[FittedStream]) -> list[list[str]]:
    rows = [["kind", "GPU", "calls", "unseen shapes", "architecture left out"]]
    for each in fits:
        for gpu, logs in each.judged.items():
            other = [each.left_out[gpu]] if each.left_out else []
            rows += [[each.kind, gpu, f"{len(logs):,}", _error([logs]), _error(other)]]
        means = _error(each.judged.values()), _error(each.left_out.values())
        rows += [[each.kind, "all", f"{each.num_rows:,}", *(f"**{mean}**" for mean in means)]]
    return rows


def _width_table(fits: Sequence[FittedStream]) -> list[list[str]]:
    rows = [["family", "architecture", "calls", "unseen shapes within", "left out within"]]
    for name, widths in widths_of(fits).items():
        family = [each for each in fits if each.family == name]
        for architecture, sigma in widths.seen.items():
            seen, left_out = (_logs(family, held_out, architecture) for held_out in ("judged", "left_out"))
            calls = f"{sum(map(len, seen)):,}"
            rows += [[name, architecture, calls, _within(seen, sigma), _within(left_out, widths.unseen)]]
        every = [logs for each in family for logs in each.left_out.values()]
        rows += [[name, "all", "", "", _within(every, widths.unseen)]]
    return rows


def _error(logs: Iterable[Floats]) -> str:
    means = [float(np.abs(np.expm1(each)).mean()) for each in logs]
    return f"{np.mean(means):.1%}" if means else "-"


def _within(logs: Sequence[Floats], sigma: float) -> str:
    shares = [float((np.abs(each) <= Z90 * sigma).mean()) for each in logs]
    return f"{np.mean(shares):.0%}" if shares else "-"


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "| --- " * len(rows[0]) + "|", *lines[1:]])


def main(say: Callable[[str], object] = print) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--measurements", type=Path, required=True, metavar="DIR")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="streams.toml")
    options = parser.parse_args()
    try:
        kineto = options.measurements.parent / "kineto"
        rows = [*read_streams(options.measurements), *counted(batch_norm_rows(kineto))]
        runs = list(made_weights(options.measurements))
    except FileNotFoundError as error:
        parser.error(f"no {error.filename}: name the folder of measurements.")
    by_kind = groupby(sorted(rows, key=lambda row: row.kind), key=lambda row: row.kind)
    fits = [*(fitted(list(of_kind)) for _, of_kind in by_kind), fitted_to_runs(runs)]
    fits.sort(key=lambda fit: fit.kind)
    write_atomically(options.out, render(fits).encode())
    say(page(fits))


if __name__ == "__main__":
    main()
