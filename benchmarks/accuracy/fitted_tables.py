"""Tables of attention and recurrent layers, whose formulas have few constants."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.accuracy.kernels import KernelErrors
from benchmarks.accuracy.summary import markdown

UNSEEN_SHAPES, LEFT_OUT = "unseen shapes", "architecture left out"
_LEGEND = {
    UNSEEN_SHAPES: "Every fifth of the shapes predicted by constants that were fitted to the others.",
    LEFT_OUT: "Every architecture predicted by constants that were fitted to the others.",
}


def fitted_tables(errors: Sequence[KernelErrors]) -> Iterator[tuple[str, str]]:
    """Title and Markdown of both splits; nothing where nothing was asked for."""
    for split, legend in _LEGEND.items():
        chosen = [one for one in errors if one.split == split]
        if chosen:
            yield f"Attention and recurrent layers, {split}", f"{legend}\n\n{_table(chosen)}"


def _table(errors: Sequence[KernelErrors]) -> str:
    """A row a kernel and GPU; the last of a kernel is the mean over its GPUs."""
    header = ["kernel", "GPU", "calls", "mean / median / p90, %", "bias, %", "within p10..p90"]
    lines = [
        [
            one.kind,
            one.gpu,
            f"{one.rows:,}",
            " / ".join(f"{100 * value:.1f}" for value in (one.mean, one.median, one.p90)),
            f"{100 * one.bias:+.1f}",
            f"{one.coverage:.0%}",
        ]
        for one in errors
    ]
    return markdown(header, lines)
