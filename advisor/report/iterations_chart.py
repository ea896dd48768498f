"""Estimates as bars: the median time of an iteration on each GPU, and from p10 to p90."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from advisor.core.values import IterationEstimate
from advisor.report.cells import DURATION, TEXT, interval_text
from advisor.report.document import Axis, Chart, Detail, Series, Tone

_LABELS = {
    True: "fits in memory",
    None: "nobody knows whether it fits in memory",
    False: "does not fit in memory",
}
_TONES = {True: None, None: Tone.DOUBTFUL, False: Tone.FAINT}


def iterations_chart(estimates: Sequence[IterationEstimate]) -> Iterator[Chart]:
    """The fastest first; nothing where there is no estimate."""
    drawn = sorted(estimates, key=lambda one: one.iteration_s.p50)
    series = tuple(_series(drawn, fits) for fits in _LABELS if fits in {one.fits_memory for one in drawn})
    if series:
        yield Chart(
            title="Time of an iteration: median, and from p10 to p90",
            x=Axis(TEXT),
            y=Axis(DURATION),
            bars=tuple(map(_name, drawn)),
            series=series,
        )


def _series(estimates: Sequence[IterationEstimate], fits: bool | None) -> Series:
    bars = [(place, one) for place, one in enumerate(estimates) if one.fits_memory is fits]
    points = tuple((place, one.iteration_s.p50) for place, one in bars)
    return Series(_LABELS[fits], points, tuple(_detail(one) for _, one in bars), _TONES[fits])


def _detail(estimate: IterationEstimate) -> Detail:
    times = estimate.iteration_s
    label = f"{_name(estimate)}\n{interval_text(times)}\n{_LABELS[estimate.fits_memory]}"
    return Detail(label=label, y_range=(times.p10, times.p90))


def _name(estimate: IterationEstimate) -> str:
    return estimate.layout.of(estimate.gpu)
