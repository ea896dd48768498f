"""Fit what each kernel of fused attention reaches, and how sure that is.

    python -m research.training.fit_attention --measurements DIR --out catalogs/attention.toml

DIR holds ``tensor_cores`` and ``published``. One set of constants a kernel and direction, for all GPUs:
what differs between GPUs is their data sheets. Widths are those of measurements that were held out: of
other shapes (one in five, five times) where the architecture was measured, of other architectures else.
"""

from __future__ import annotations

import argparse
import json
import random
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from advisor.core.files import write_atomically
from advisor.core.values import Z90
from advisor.operators.attention_kernels import (
    AttentionBackend,
    AttentionKernel,
    padded,
    rate_flops_per_s,
    seconds,
)
from advisor.predict.roofline import KERNEL_FLOOR_S
from research.training.attention_tables import ORIGIN, Measured, read_attention
from research.training.least_squares import least_squares

FOLDS = 5
_SIZES = (32, 64, 96, 128, 160, 192, 224, 256)
# Heads of this size are in every table.
_COMMON = _SIZES.index(128)
# The first guess: a table that tells nothing of a constant leaves it there. Of efficiencies it is their ratio
# to that of common heads, as FlashAttention 2 and 3 have it.
_START = AttentionKernel(
    efficiency=dict(zip(_SIZES, (0.4, 0.52, 0.62, 0.65, 0.62, 0.62, 0.62, 0.62), strict=True)),
    measured_sizes=frozenset(),
    uneven=0.87,
    start_tiles=0.7,
    tail=0.4,
    traffic=1.0,
    is_mma_sync=False,
    sigma=0.1,
    sigma_unseen=0.2,
    architectures=frozenset(),
)
_HELD = 0.1
# Seconds that a source adds to a call, and the passes over a cache's bytes.
_START_SOURCE_S, _START_PASSES = 4e-6, 1.5
# Of one GPU, source and mask; more would only repeat themselves.
_MOST_ROWS = 150

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """A kernel, and what its sources add: seconds a call, and passes over what a cache is written."""

    kernel: AttentionKernel
    added_s: Mapping[str, float]
    passes: Mapping[str, float]

    def time_s(self, row: Measured) -> float:
        """What the row's source should have timed."""
        rate = rate_flops_per_s(self.kernel, row.gpu, "bf16")
        own_s = KERNEL_FLOOR_S + seconds(row.call, self.kernel, row.gpu, rate)
        cache_s = self.passes.get(row.source, 0.0) * row.cache_bytes / row.gpu.memory_bytes_per_s
        return own_s + self.added_s.get(row.source, 0.0) + cache_s


def fit(rows: Sequence[Measured]) -> Fitted:
    """Constants of rows of one kernel and direction; every architecture weighs the same."""
    chosen = thinned(rows)
    sources = sorted({row.source for row in chosen})
    weights = _weights(chosen)
    is_mma_sync = rows[0].backend is AttentionBackend.FLASH_2
    logs = np.log([row.time_s for row in chosen])
    start = np.log(
        [
            *_START.efficiency.values(),
            _START.uneven,
            _START.start_tiles,
            _START.tail,
            _START.traffic,
            *[_START_SOURCE_S] * len(sources),
            *[_START_PASSES] * len(sources),
        ]
    )

    def residuals(parameters: Floats) -> Floats:
        fitted = _fitted(np.exp(parameters), sources, is_mma_sync)
        errors = np.log([fitted.time_s(row) for row in chosen]) - logs
        away = parameters - start
        away[: len(_SIZES)] -= (1 - 1e-3) * away[_COMMON]
        return np.concatenate([weights * errors, _HELD * away])

    return _fitted(np.exp(least_squares(residuals, start)), sources, is_mma_sync)


def _fitted(values: Floats, sources: Sequence[str], is_mma_sync: bool) -> Fitted:
    num = len(_SIZES)
    uneven, start_tiles, tail, traffic = values[num : num + 4].tolist()
    added, passes = np.split(values[num + 4 :], 2)
    kernel = replace(
        _START,
        efficiency=dict(zip(_SIZES, values[:num].tolist(), strict=True)),
        uneven=uneven,
        start_tiles=start_tiles,
        tail=tail,
        traffic=traffic,
        is_mma_sync=is_mma_sync,
    )
    return Fitted(
        kernel=kernel,
        added_s=dict(zip(sources, added.tolist(), strict=True)),
        passes=dict(zip(sources, passes.tolist(), strict=True)),
    )


def thinned(rows: Iterable[Measured]) -> list[Measured]:
    """At most ``_MOST_ROWS`` of one GPU, source and mask, drawn by chance, the same every time."""
    groups: dict[tuple[str, str, bool], list[Measured]] = {}
    for row in rows:
        groups.setdefault((row.gpu.name, row.source, row.call.is_causal), []).append(row)
    draw = random.Random(0)  # noqa: S311 - a sample, no secret
    return [row for group in groups.values() for row in draw.sample(group, min(len(group), _MOST_ROWS))]


def _weights(rows: Sequence[Measured]) -> Floats:
    """Of residuals, whose squares add up."""
    return np.sqrt(len(rows) * _shares([row.gpu.architecture for row in rows]))


def _shares(names: Sequence[str]) -> Floats:
    """What each row counts where every name weighs the same, [N]; they add up to 1."""
    _, index, counts = np.unique(names, return_inverse=True, return_counts=True)
    return np.asarray(1 / len(counts) / counts[index])


def shape_fold(row: Measured) -> int:
    """Which fifth of the shapes it is of; the same on every GPU."""
    call = row.call
    shape = (call.batch_heads, call.queries, call.keys, call.key_size, call.is_causal)
    return zlib.crc32(repr(shape).encode()) % FOLDS


def architecture_of(row: Measured) -> str:
    """Of its GPU: twins are left out together."""
    return row.gpu.architecture


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Rows with what was predicted of them by constants that were fitted without."""

    rows: Sequence[Measured]
    predicted_s: Floats

    @property
    def log_errors(self) -> Floats:
        """Positive where a prediction is too slow, [N]."""
        return np.asarray(np.log(self.predicted_s / np.array([row.time_s for row in self.rows])))


def held_out(rows: Sequence[Measured], group_of: Callable[[Measured], str | int]) -> Judged:
    """Every group predicted by a fit to the others; what its sources add is of a fit to all.

    A source's own overhead is no property of a kernel, and an architecture may be the only one of a source.
    """
    overheads = fit(rows)
    by_group: dict[str | int, list[Measured]] = {}
    for row in rows:
        by_group.setdefault(group_of(row), []).append(row)
    judged: list[Measured] = []
    predicted: list[float] = []
    for group, own in by_group.items():
        others = [row for row in rows if group_of(row) != group]
        if not others:
            continue
        fitted = replace(overheads, kernel=fit(others).kernel)
        judged += own
        predicted += [fitted.time_s(row) for row in own]
    return Judged(rows=judged, predicted_s=np.array(predicted))


def sigma_of(judged: Judged, default: float) -> float:
    """Such that p10..p90 holds four of five, every GPU weighing the same."""
    if not judged.rows:
        return default
    errors = np.abs(judged.log_errors)
    order = np.argsort(errors)
    weights = _shares([row.gpu.name for row in judged.rows])[order]
    return float(errors[order][np.searchsorted(np.cumsum(weights), 0.8)]) / Z90


def by_kernel(rows: Iterable[Measured]) -> dict[tuple[AttentionBackend, bool], list[Measured]]:
    """Rows of each kernel and direction."""
    groups: dict[tuple[AttentionBackend, bool], list[Measured]] = {}
    for row in rows:
        groups.setdefault((row.backend, row.call.is_backward), []).append(row)
    return groups


def fit_kernels(rows: Iterable[Measured]) -> dict[tuple[AttentionBackend, bool], AttentionKernel]:
    """All kernels, with widths of what was held out."""
    return {key: _with_widths(own) for key, own in sorted(by_kernel(rows).items())}


def _with_widths(rows: Sequence[Measured]) -> AttentionKernel:
    sigma = sigma_of(held_out(rows, shape_fold), _START.sigma)
    unseen = sigma_of(held_out(rows, architecture_of), _START.sigma_unseen)
    return replace(
        fit(rows).kernel,
        sigma=sigma,
        sigma_unseen=max(unseen, sigma),
        architectures=frozenset(row.gpu.architecture for row in rows),
        measured_sizes=frozenset(padded(row.call.key_size) for row in rows),
    )


def render(kernels: Mapping[tuple[AttentionBackend, bool], AttentionKernel]) -> str:
    """The catalog's text."""
    lines = [
        (
            "# Written by python -m research.training.fit_attention: what kernels of attention reach."
            " Do not edit."
        )
    ]
    lines += ["# Fitted to published measurements:", *(f"# - {line}" for line in ORIGIN)]
    for (backend, is_backward), kernel in kernels.items():
        lines += ["", f"[kernel.{backend}.{'backward' if is_backward else 'forward'}]"]
        table = ", ".join(f"{size} = {share:.3f}" for size, share in kernel.efficiency.items())
        lines += [f"efficiency = {{ {table} }}", f"is_mma_sync = {str(kernel.is_mma_sync).lower()}"]
        names = ("uneven", "start_tiles", "tail", "traffic", "sigma", "sigma_unseen")
        lines += [f"{name} = {getattr(kernel, name):.3f}" for name in names]
        lines += [f"measured_sizes = {sorted(kernel.measured_sizes)}"]
        lines += [f"architectures = {json.dumps(sorted(kernel.architectures))}"]
    return "\n".join([*lines, ""])


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--measurements", type=Path, required=True, metavar="DIR")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE.toml")
    options = parser.parse_args()
    try:
        rows = read_attention(options.measurements)
    except FileNotFoundError as error:
        parser.error(f"no {error.filename}: name the folder of measurements.")
    text = render(fit_kernels(rows))
    write_atomically(options.out, text.encode())


if __name__ == "__main__":
    main()
