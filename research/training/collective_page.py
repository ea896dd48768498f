"""What was fitted to collectives, as ``collectives.toml`` and as the tables of its page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from research.training.collective_fit import Fit
from research.training.collective_parameters import Spread, table_of
from research.training.collective_tables import ORIGIN, MeasuredCollective
from research.training.judge_collectives import RANKS, SIZES, SOURCES, TOPOLOGIES, Trial, coverage

_HEAD = "| | rows | median error | 90th percentile | inside p10..p90 |\n| --- | ---: | ---: | ---: | ---: |"
STAS = "stas00"


def rendered(fit: Fit, spread: Spread) -> str:
    """The TOML text."""
    lines = [
        (
            "# Written by python -m research.training.fit_collectives: what collectives reach of data sheets."
            " Do not edit."
        )
    ]
    lines += [f"# Fitted to {origin}" for origin in ORIGIN]
    lines += [*_toml(table_of(fit.values, spread)), ""]
    return "\n".join(lines)


def _toml(table: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Numbers before tables, as TOML wants them."""
    for name, value in table.items():
        if not isinstance(value, Mapping):
            yield f"{name} = {_number(value)}"
    for name, value in table.items():
        if isinstance(value, Mapping):
            inner = f"{path}.{name}" if path else name
            is_leaf = any(not isinstance(each, Mapping) for each in value.values())
            if is_leaf:
                yield from ("", f"[{inner}]")
            yield from _toml(value, inner)


def _number(value: float | Sequence[str]) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return "[" + ", ".join(f'"{each}"' for each in value) + "]"


def page(fit: Fit, spread: Spread, trials: Sequence[Trial], judges: Sequence[MeasuredCollective]) -> str:
    """Markdown: errors by what was held out, by topology, and of what only judges."""
    stas = [_whole(fit, rows) for _, rows in sorted(_by_topology(judges).items())]
    parts = [
        _HEAD,
        *(_line(f"**{name}**", _named(trials, name), spread) for name in (SIZES, RANKS, SOURCES, TOPOLOGIES)),
        _line(f"**{STAS}**", stas, spread),
        "",
        _HEAD,
        *(_line(trial.rows[0].topology, [trial], spread) for trial in _named(trials, TOPOLOGIES)),
        *(_line(f"{STAS}: {trial.rows[0].topology}", [trial], spread) for trial in stas),
    ]
    return "\n".join(parts)


def _whole(fit: Fit, rows: Sequence[MeasuredCollective]) -> Trial:
    return Trial(name=STAS, fit=fit, rows=rows, off=fit.off(rows))


def _by_topology(rows: Iterable[MeasuredCollective]) -> Mapping[str, list[MeasuredCollective]]:
    topologies = defaultdict(list)
    for row in rows:
        topologies[row.topology].append(row)
    return topologies


def _named(trials: Sequence[Trial], name: str) -> list[Trial]:
    return [trial for trial in trials if trial.name == name]


def _line(name: str, trials: Sequence[Trial], spread: Spread) -> str:
    errors = np.abs(np.expm1(np.concatenate([trial.off for trial in trials])))
    return (
        f"| {name} | {len(errors):,} | {np.median(errors):.1%} | {np.quantile(errors, 0.9):.0%}"
        f" | {coverage(trials, spread):.0%} |"
    )
