"""Fit what kernels that stream in 16 bits cost: passes over their bytes, cycles an element and a row.

    python -m training.fit_streams --published ../shared/measurements/published --out catalogs/streams.toml

A quarter of the shapes, by a hash, and each architecture in turn judge what the others told; their errors
are printed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from advisor.core.files import write_atomically
from advisor.predict.constants import constants_for
from advisor.predict.interval import Z90
from advisor.predict.roofline import KERNEL_FLOOR_S
from training.drawn import fraction_of
from training.stream_tables import ORIGIN, MeasuredStream, read_streams

JUDGED_SHARE = 0.25
# Element-wise kinds; norms and softmax are of the family whose bandwidth is that of reductions.
_ELEMENTWISE = frozenset({"arithmetic", "curve", "curve backward"})
_NUM_COSTS = 3
# Errors below it count by their square, larger ones by their size.
_HUBER = 0.03
_ROUNDS = 20
# What clocks, heat and libraries change from day to day.
_LEAST_SIGMA = 0.1
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedStream:
    """One kind: its costs, and by what factor held-out calls are off.

    Attributes:
        costs: passes, cycles an element and a row.
        judged: log(predicted / measured) of shapes that were held out, by GPU.
        left_out: the same of all shapes of an architecture that was left out.
    """

    kind: str
    costs: Floats
    judged: dict[str, Floats]
    left_out: dict[str, Floats]
    num_rows: int

    @property
    def sigma(self) -> float:
        """On architectures that were measured."""
        return max(_sigma(self.judged.values()), _LEAST_SIGMA)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """What calls cost, and what each source of measurements adds to a call."""

    costs: Floats
    offset_s: Mapping[str, float]

    def off(self, rows: Sequence[MeasuredStream]) -> dict[str, Floats]:
        """Log(predicted / measured) of each call, by GPU."""
        added_s = np.array([self.offset_s.get(row.source, KERNEL_FLOOR_S) for row in rows])
        logs = np.log((added_s + _costs_s(rows) @ self.costs) / np.array([row.time_s for row in rows]))
        names = np.array([row.gpu.name for row in rows])
        return {str(name): logs[names == name] for name in np.unique(names)}


def fitted(rows: Sequence[MeasuredStream]) -> FittedStream:
    """The costs of one kind from its measured calls."""
    fit = fit_of([row for row in rows if not is_judge(row)])
    judges = [row for row in rows if is_judge(row)] or list(rows)
    architectures = sorted({row.gpu.architecture for row in rows})
    left_out: dict[str, Floats] = {}
    for name in architectures if len(architectures) > 1 else ():
        others = [row for row in rows if row.gpu.architecture != name]
        left_out |= fit_of(others).off([row for row in rows if row.gpu.architecture == name])
    return FittedStream(
        kind=rows[0].kind,
        costs=fit_of(rows).costs,
        judged=fit.off(judges),
        left_out=left_out,
        num_rows=len(rows),
    )


def is_judge(row: MeasuredStream) -> bool:
    """A quarter of the shapes, the same on every GPU."""
    return fraction_of(f"{row.rows} {row.columns}") < JUDGED_SHARE


def fit_of(rows: Sequence[MeasuredStream]) -> Fit:
    """Passes, cycles an element and a row, none of them negative; each source adds an offset of its own.

    Relative errors count by their size (iterated weights), and each GPU of a source as much as another.
    """
    time_s = np.array([row.time_s for row in rows])
    sources = [(row.gpu.name, row.source) for row in rows]
    names = sorted({row.source for row in rows})
    offsets = np.array([[row.source == name for name in names] for row in rows])
    design = np.concatenate([_costs_s(rows), 1e-6 * offsets], axis=1) / time_s[:, None]
    even = 1 / np.sqrt([sources.count(source) for source in sources])
    weights = even
    for _ in range(_ROUNDS):
        answer = nonnegative(design * weights[:, None], weights)
        weights = even / np.sqrt(np.maximum(np.abs(design @ answer - 1), _HUBER))
    offset_s = dict(zip(names, (1e-6 * answer[_NUM_COSTS:]).tolist(), strict=True))
    return Fit(costs=answer[:_NUM_COSTS], offset_s=offset_s)


def nonnegative(design: Floats, target: Floats, rounds: int = 500) -> Floats:
    """The least squares of ``design @ x - target`` with no ``x`` below zero, by coordinate descent."""
    normal, gradient = design.T @ design, design.T @ target
    answer = np.zeros(design.shape[1])
    for _ in range(rounds):
        for i, own in enumerate(normal.diagonal()):
            if own > 0:
                answer[i] = max(0.0, answer[i] + (gradient[i] - normal[i] @ answer) / own)
    return answer


def _costs_s(rows: Sequence[MeasuredStream]) -> Floats:
    """Seconds of one pass, of one cycle for each element and for each row, [N, 3]."""
    return np.array([_seconds(row) for row in rows])


def _seconds(row: MeasuredStream) -> tuple[float, float, float]:
    fractions = constants_for(row.gpu).fractions
    bandwidth = "streaming_fraction" if row.kind in _ELEMENTWISE else "reduction_fraction"
    bytes_per_s = fractions[bandwidth] * row.gpu.memory_bytes_per_s
    cycles_per_s = row.gpu.num_sms * row.gpu.boost_clock_hz
    return row.num_bytes / bytes_per_s, row.rows * row.columns / cycles_per_s, row.rows / cycles_per_s


def _sigma(logs: Iterable[Floats]) -> float:
    """That of a log-normal whose p10..p90 holds four fifths of each GPU's errors, on average."""
    return float(np.mean([np.quantile(np.abs(each), 0.8) for each in logs])) / Z90


def render(fits: Sequence[FittedStream], rows: Sequence[MeasuredStream]) -> str:
    """The TOML text."""
    unseen = [each.left_out for each in fits if each.left_out]
    pooled = _sigma(logs for left_out in unseen for logs in left_out.values())
    lines = ["# Written by python -m training.fit_streams: what streaming in 16 bits costs. Do not edit."]
    lines += [f"# Fitted to {origin}" for origin in ORIGIN]
    for each in fits:
        passes, of_element, of_row = each.costs
        names = sorted({row.gpu.architecture for row in rows if row.kind == each.kind})
        lines += ["", f'["{each.kind}"]', f"passes = {passes:.3f}", f"cycles_per_element = {of_element:.4f}"]
        own = _sigma(each.left_out.values()) if each.left_out else pooled
        lines += [f"cycles_per_row = {of_row:.1f}", f"sigma = {each.sigma:.3f}"]
        lines += [f"unseen_sigma = {max(own, pooled, each.sigma):.3f}", f"architectures = {_quoted(names)}"]
    return "\n".join([*lines, ""])


def _quoted(names: Sequence[str]) -> str:
    return "[" + ", ".join(f'"{name}"' for name in names) + "]"


def page(fits: Sequence[FittedStream]) -> str:
    """Markdown: the errors by kind and GPU."""
    head = (
        "| kind | calls | passes | cycles an element | a row | unseen shapes | architecture left out |",
        "| --- | ---: | ---: | ---: | ---: | --- | --- |",
    )
    lines = [
        f"| {each.kind} | {each.num_rows} | {each.costs[0]:.2f} | {each.costs[1]:.2f} | {each.costs[2]:.0f}"
        f" | {_errors(each.judged)} | {_errors(each.left_out)} |"
        for each in fits
    ]
    return "\n".join([*head, *lines, ""])


def _errors(logs: dict[str, Floats]) -> str:
    if not logs:
        return "measured on one alone"
    mean = {name: float(np.abs(np.expm1(each)).mean()) for name, each in logs.items()}
    parts = ", ".join(f"{name} {error:.0%}" for name, error in mean.items())
    return f"**{np.mean(list(mean.values())):.0%}** ({parts})"


def main(say: Callable[[str], object] = print) -> None:
    """Command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--published", type=Path, required=True, metavar="DIR")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="streams.toml")
    options = parser.parse_args()
    try:
        rows = read_streams(options.published)
    except FileNotFoundError as error:
        parser.error(f"no {error.filename}: name the folder of published measurements.")
    kinds = sorted({row.kind for row in rows})
    fits = [fitted([row for row in rows if row.kind == kind]) for kind in kinds]
    write_atomically(options.out, render(fits, rows).encode())
    say(page(fits))


if __name__ == "__main__":
    main()
