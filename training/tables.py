"""Samples -> what each family's network learns from."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from advisor.core.gpus import load_gpus
from advisor.predict.learned.model import board_features, grouped
from training.fit import Table
from training.overhead import event_shares, floors_of
from training.samples import Samples


def tables(samples: Samples) -> Mapping[str, Table]:
    """By network; each kind and split of its calls weighs the same, however many calls it has.

    The samples are fp32 without TF32, so what computes runs at the vector peak.
    """
    distinct = {id(op): op for op in samples.ops}
    place = {key: i for i, key in enumerate(distinct)}
    where = np.array([place[id(op)] for op in samples.ops])
    floors = floors_of(samples)
    floor_s = np.array([floors[key] for key in zip(samples.gpus, samples.kinds, strict=True)])
    event_share = event_shares(samples)
    by_name = {}
    for calls in grouped(tuple(distinct.values())):
        row_of = np.full(len(distinct), -1)
        row_of[calls.index] = np.arange(len(calls.index))
        rows = row_of[where]
        chosen = np.flatnonzero(rows >= 0)
        rows = rows[chosen]
        boards, peak_flops_per_s, bytes_per_s = _devices(samples.gpus[chosen])
        by_name[calls.network] = Table(
            features=np.concatenate([calls.features[rows], boards], axis=1),
            compute_s=calls.flops[rows] / peak_flops_per_s,
            memory_s=calls.num_bytes[rows] / bytes_per_s,
            floor_s=floor_s[chosen],
            event_share=event_share[chosen],
            time_s=samples.time_s[chosen],
            weight=_weights(samples.kinds[chosen], samples.splits[chosen]),
        )
    return by_name


def _devices(
    gpus: NDArray[np.str_],
) -> tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.float64]]:
    names, index = np.unique(gpus, return_inverse=True)
    specs = [load_gpus()[name] for name in names]
    boards = np.array([board_features(spec) for spec in specs], np.float32)
    peaks = np.array([spec.vector_flops_per_s["fp32"] for spec in specs])
    bandwidths = np.array([spec.memory_bytes_per_s for spec in specs])
    return boards[index], peaks[index], bandwidths[index]


def _weights(kinds: NDArray[np.str_], splits: NDArray[np.str_]) -> NDArray[np.float64]:
    _, group, counts = np.unique(
        np.char.add(np.char.add(kinds, " "), splits), return_inverse=True, return_counts=True
    )
    return np.asarray(len(kinds) / len(counts) / counts[group])
