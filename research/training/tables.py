"""Samples -> what each network learns from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from advisor.core.gpus import load_gpus
from advisor.core.values import Precision
from advisor.operators.family import wanted_rate
from advisor.operators.registry import family_of, rows
from advisor.predict.constants import constants_for
from advisor.predict.knowledge import Knowledge, Tables, shipped
from advisor.predict.learned import NetworkCalls, grouped, peak_flops_per_s
from research.training.fit import Table
from research.training.overhead import event_shares, floors_of
from research.training.samples import Samples

# What is measured runs in its own dtype: TF32 is off.
_EXACT = Precision(amp_dtype=None, tf32_matmul=False, tf32_cudnn=False)


def in_bursts(knowledge: Knowledge) -> Knowledge:
    """The same for kernels that were measured in bursts, too short for a GPU to lower its clocks."""
    assumed = {
        architecture: {name: value for name, value in table.items() if name != "sustained_clock"}
        for architecture, table in knowledge.tables["assumed"].items()
    }
    return replace(knowledge, tables=Tables(gpu=knowledge.tables["gpu"], assumed=assumed))


def tables(samples: Samples, knowledge: Knowledge | None = None) -> Mapping[str, Table]:
    """By network; each kind and split of its calls weighs the same, however many calls it has.

    Args:
        samples: calls of all networks. One that several know at its rate is of the first of them.
        knowledge: the constants that rates are fractions of, by default as shipped.
    """
    distinct = {id(op): op for op in samples.ops}
    place = {key: i for i, key in enumerate(distinct)}
    where = np.array([place[id(op)] for op in samples.ops])
    asked = np.array([wanted_rate(op, family_of(op), _EXACT) for op in distinct.values()])[where]
    floors = floors_of(samples)
    floor_s = np.array([floors[key] for key in zip(samples.gpus, samples.kinds, strict=True)])
    event_share = event_shares(samples)
    is_free = np.ones(len(samples.ops), bool)
    by_name = {}
    for calls in grouped(tuple(distinct.values())):
        row_of = np.full(len(distinct), -1)
        row_of[calls.index] = np.arange(len(calls.index))
        peaks = _peaks(samples.gpus, asked, calls, in_bursts(knowledge or shipped()))
        chosen = np.flatnonzero((row_of[where] >= 0) & ~np.isnan(peaks) & is_free)
        if not chosen.size:
            continue
        is_free[chosen] = False
        rows = row_of[where][chosen]
        boards, bytes_per_s = _devices(samples.gpus[chosen], calls, rows)
        weight = _weights(samples.kinds[chosen], samples.splits[chosen])
        if calls.learned.few_weigh_more:
            weight *= _rareness(samples.gpus[chosen])
            weight /= weight.mean()
        by_name[calls.network] = Table(
            features=np.concatenate([calls.features[rows], boards], axis=1),
            num_board=boards.shape[1],
            compute_s=calls.flops[rows] / peaks[chosen],
            memory_s=calls.num_bytes[rows] / bytes_per_s,
            floor_s=floor_s[chosen],
            event_share=event_share[chosen],
            time_s=samples.time_s[chosen],
            weight=weight,
        )
    return by_name


def _peaks(
    gpus: NDArray[np.str_], asked: NDArray[np.str_], calls: NetworkCalls, knowledge: Knowledge
) -> NDArray[np.float64]:
    """The FLOP rate that penalties are of, [N]; NaN for GPUs and rates that the network does not know."""
    family, learned = rows().network[calls.network]
    pairs, index = np.unique(np.stack([gpus, asked]), axis=1, return_inverse=True)
    peaks = []
    for name, rate in pairs.T.tolist():
        gpu = load_gpus()[name]
        peak = peak_flops_per_s(rate, family, learned, gpu, constants_for(gpu, knowledge))
        peaks.append(peak if gpu.vendor == learned.vendor else np.nan)
    return np.array(peaks)[index.ravel()]


def _devices(
    gpus: NDArray[np.str_], calls: NetworkCalls, rows: NDArray[np.int64]
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """What the network is given of each call's GPU, [N, K], and that GPU's memory bandwidth, [N]."""
    board = calls.learned.board
    boards = np.empty((len(gpus), board.num_features), np.float32)
    bytes_per_s = np.empty(len(gpus))
    for name in np.unique(gpus):
        spec, own = load_gpus()[str(name)], gpus == name
        boards[own] = board.features(calls.features[rows[own]], spec)
        bytes_per_s[own] = spec.memory_bytes_per_s
    return boards, bytes_per_s


def _weights(kinds: NDArray[np.str_], splits: NDArray[np.str_]) -> NDArray[np.float64]:
    _, group, counts = np.unique(
        np.char.add(np.char.add(kinds, " "), splits), return_inverse=True, return_counts=True
    )
    return np.asarray(len(kinds) / len(counts) / counts[group])


def _rareness(gpus: NDArray[np.str_]) -> NDArray[np.float64]:
    """One over the root of how many calls their GPU has."""
    _, index, counts = np.unique(gpus, return_inverse=True, return_counts=True)
    return np.asarray(1 / np.sqrt(counts[index]))
