"""How far constants of collectives are off where they were not fitted, and how wide answers must be.

Four trials: sizes by a hash, numbers of ranks by a hash, each source where another measured the same topology
(another host), and each topology (a fabric as nobody measured it).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from advisor.core.values import Z90, Link, Network
from research.training.collective_fit import Fit, Grouped, fit_of
from research.training.collective_parameters import NETWORK_LATENCY_SIGMA, NO_SPREAD, Floats, Spread
from research.training.collective_tables import UNKNOWN_NETWORK, MeasuredCollective
from research.training.drawn import fraction_of

SIZES, RANKS, SOURCES, TOPOLOGIES = "sizes", "numbers of ranks", "another host", "topology left out"
_JUDGED_SHARE = 0.2
# A share of the time above which a row tells of latency, or of the rate.
_MOSTLY = 0.8
# What hosts and versions of NCCL change, whatever else is known: with 0.1, a quarter of stas00 lay outside.
_LEAST_SIGMA = 0.13
# The few machines with PCIe that the tables have agree by chance: Lambda's thirteen differ by more
# (research/docs/accuracy/scaling.md). This was the width before boards shared bridges.
_PCIE_SIGMA = 0.27
_ONLY_LATENCY = replace(NO_SPREAD, latency=1.0, network_latency=1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Rows that a fit did not see."""

    name: str
    """What was held out, of what sort."""
    fit: Fit
    """Of the others."""
    rows: Sequence[MeasuredCollective]
    """[N]."""
    off: Floats
    """Log(predicted / measured), [N]."""

    def latency_share(self) -> Floats:
        """The part of each predicted time that does not grow with the size, [N]."""
        return Grouped(self.rows).times(self.fit, _ONLY_LATENCY).sigma


def judged(rows: Sequence[MeasuredCollective]) -> Iterator[Trial]:
    """All trials, one after the other; each fits anew."""
    sizes = [
        row for row in rows if row.fits and _is_drawn(f"half octave {round(2 * math.log2(row.num_bytes))}")
    ]
    yield _trial(SIZES, rows, sizes)
    yield _trial(RANKS, rows, list(_drawn_ranks(rows)))
    yield from _by_source(rows)
    yield from _by_topology(rows)


def _trial(name: str, rows: Sequence[MeasuredCollective], out: Sequence[MeasuredCollective]) -> Trial:
    held = {id(row) for row in out}
    fit = fit_of([row for row in rows if row.fits and id(row) not in held])
    return Trial(name=name, fit=fit, rows=out, off=fit.off(out))


def _is_drawn(text: str) -> bool:
    return fraction_of(text) < _JUDGED_SHARE


def _drawn_ranks(rows: Sequence[MeasuredCollective]) -> Iterator[MeasuredCollective]:
    """Of boards with some number of GPUs, where the others tell of the same boards."""
    counts = defaultdict(set)
    for row in rows:
        counts[row.topology].add(row.group.num_gpus)
    for row in rows:
        is_judge = _is_drawn(f"{row.topology}, {row.group.num_gpus} ranks")
        if row.fits and len(counts[row.topology]) > 1 and is_judge:
            yield row


def _by_source(rows: Sequence[MeasuredCollective]) -> Iterator[Trial]:
    sources = defaultdict(set)
    for row in rows:
        sources[row.topology].add(row.source)
    for name in sorted({row.source for row in rows}):
        others = {topology for topology, own in sources.items() if own - {name}}
        out = [row for row in rows if row.fits and row.source == name and row.topology in others]
        if out:
            yield _trial(SOURCES, rows, out)


def _by_topology(rows: Sequence[MeasuredCollective]) -> Iterator[Trial]:
    for name in sorted({row.topology for row in rows}):
        yield _trial(TOPOLOGIES, rows, [row for row in rows if row.topology == name])


def spread_of(trials: Sequence[Trial]) -> Spread:
    """Sigmas by which four fifths of the errors lie between the tenth and the ninetieth percentile."""
    hosts, left_out = _named(trials, SOURCES), _named(trials, TOPOLOGIES)
    within = [trial for trial in hosts if any(row.group.num_nodes == 1 for row in trial.rows)]
    of_host = _sigma(_mostly_rate(within))
    roads = {}
    for road in [*Link, *Network]:
        own = [trial for trial in left_out if trial.rows[0].topology.startswith(f"{road},")]
        if own:
            least = _PCIE_SIGMA if road is Link.PCIE else of_host
            roads[road.value] = max(of_host, least, _sigma(_mostly_rate(own)))
    unknown = [trial for trial in left_out if trial.rows[0].topology == UNKNOWN_NETWORK]
    return Spread(
        latency=max(_sigma(_mostly_latency(hosts)), _sigma(_mostly_latency(left_out))),
        network_latency=NETWORK_LATENCY_SIGMA,
        unknown_network=_sigma(_all(unknown)),
        unseen=max(sigma for name, sigma in roads.items() if name not in (Link.HOST, Network.TCP)),
        roads=roads,
    )


def coverage(trials: Iterable[Trial], spread: Spread) -> float:
    """The share of rows between the tenth and ninetieth percentile."""
    inside = [
        np.abs(trial.off) <= Z90 * Grouped(trial.rows).times(trial.fit, spread).sigma for trial in trials
    ]
    return float(np.concatenate(inside).mean())


def _named(trials: Sequence[Trial], name: str) -> list[Trial]:
    return [trial for trial in trials if trial.name == name]


def _weights(rows: Sequence[MeasuredCollective]) -> Floats:
    """Each layout of a board weighs as much as another, and in the second row each board, [2, N].

    However many kinds and sizes a table has of it. What lies between a board and its neighbours (sockets,
    IOMMU, containers) is the same in all of its layouts, so these may tell of less than they seem to.
    """
    boards = [(row.source, row.board) for row in rows]
    layouts = [(*board, replace(row.group, kind="")) for board, row in zip(boards, rows, strict=True)]
    return np.array([_shares(layouts), _shares(boards)])


def _shares(keys: Sequence[Hashable]) -> list[float]:
    counts = Counter(keys)
    return [1 / counts[key] for key in keys]


Errors = tuple[Floats, Floats]
"""Sizes [N] and both weights [2, N]."""


def _all(trials: Sequence[Trial]) -> Errors:
    """Of all trials."""
    return (
        np.concatenate([np.abs(trial.off) for trial in trials]),
        np.concatenate([_weights(trial.rows) for trial in trials], axis=1),
    )


def _mostly_rate(trials: Sequence[Trial]) -> Errors:
    errors, weights = _all(trials)
    chosen = np.concatenate([trial.latency_share() for trial in trials]) < 1 - _MOSTLY
    return errors[chosen], weights[:, chosen]


def _mostly_latency(trials: Sequence[Trial]) -> Errors:
    known = [trial for trial in trials if trial.rows[0].topology != UNKNOWN_NETWORK]
    errors, weights = _all(known)
    chosen = np.concatenate([trial.latency_share() for trial in known]) > _MOSTLY
    return errors[chosen], weights[:, chosen]


def _sigma(errors: Errors) -> float:
    """That of a log-normal whose p10..p90 holds four fifths of the errors by either weight."""
    sizes, weights = errors
    order = np.argsort(sizes)
    below = np.cumsum(weights[:, order], axis=1) / weights.sum(axis=1, keepdims=True)
    wanted = [float(sizes[order][np.searchsorted(one, 0.8)]) for one in below]
    return max(max(wanted) / Z90, _LEAST_SIGMA)
