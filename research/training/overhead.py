"""What timing a kernel from the host adds to it.

Launches are queued, so a measured call takes ``max(floor, event + kernel)``: the host's interval between two
calls, or the kernel and its events. NeuSight's element-wise kernels, fitted with both free, have an event
overhead of 0.4 to 0.5 of the floor on every GPU; it is taken as 0.45.

Recordings of ``advisor measure`` are timed without the host: what a call measures is its launch and its
kernel, ``KERNEL_FLOOR_S + kernel``, as predictions add them up.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from advisor.predict.roofline import KERNEL_FLOOR_S
from research.training import data_sets
from research.training.samples import Samples

EVENT_SHARE = 0.45
_LOW_QUANTILE = 0.005
# Calls this near to the shortest are bound by the host as well; their median is what a host usually takes.
_NEAR = 1.1
_MOST = 2.0
Floats = NDArray[np.float64]
Floors = Mapping[tuple[str, str], float]


def floors_of(samples: Samples) -> Floors:
    """Seconds the host usually takes for one of the shortest calls, by (GPU, kind), from the training split.

    A kind whose smallest call is large (convolutions) shows no floor of its own and gets at most twice its
    GPU's typical one; a GPU without a training split gets the typical one of the others, since the host is
    most of it. Kinds that were timed on the device have the launch alone, and tell nothing of the others.
    """
    on_device = _is_on_device(samples)
    pairs = set(zip(samples.gpus[on_device].tolist(), samples.kinds[on_device].tolist(), strict=True))
    return _host_floors(samples.where(~on_device)) | dict.fromkeys(pairs, KERNEL_FLOOR_S)


def event_shares(samples: Samples) -> Floats:
    """The part of its floor that a call measures beside its kernel, [N]."""
    return np.where(_is_on_device(samples), 1.0, EVENT_SHARE)


def _is_on_device(samples: Samples) -> NDArray[np.bool_]:
    flags = [data_set.flag for data_set in data_sets.DATA_SETS if data_set.is_timed_on_device]
    return np.isin(samples.sources, flags)


def _host_floors(samples: Samples) -> dict[tuple[str, str], float]:
    shortest: dict[str, dict[str, float]] = {}
    in_training = samples.splits == "train"
    for gpu, kind in sorted(set(zip(samples.gpus.tolist(), samples.kinds.tolist(), strict=True))):
        chosen = in_training & (samples.gpus == gpu) & (samples.kinds == kind)
        if chosen.any():
            shortest.setdefault(gpu, {})[kind] = _usual_s(samples.time_s[chosen])
    typical = {
        gpu: float(np.median(list(shortest_of_one.values()))) for gpu, shortest_of_one in shortest.items()
    }
    anywhere = float(np.median(list(typical.values()))) if typical else 0.0
    return {
        (gpu, kind): min(
            shortest.get(gpu, {}).get(kind, np.inf), _MOST * min(typical.get(gpu, np.inf), 1.5 * anywhere)
        )
        if kind in shortest.get(gpu, {})
        else min(typical.get(gpu, anywhere), anywhere)
        for gpu, kind in set(zip(samples.gpus.tolist(), samples.kinds.tolist(), strict=True))
    }


def _usual_s(time_s: Floats) -> float:
    return float(np.median(time_s[time_s <= _NEAR * np.quantile(time_s, _LOW_QUANTILE)]))


def observed_s(call_s: Floats, floor_s: Floats) -> Floats:
    """What a measurement shows of a call that takes ``call_s``; its launch is among what is timed anyway.

    >>> observed_s(np.array([3e-6, 1.002e-3]), np.array([3e-5, 3e-5])).round(7).tolist()
    [3e-05, 0.0010135]
    """
    return np.maximum(floor_s, EVENT_SHARE * floor_s + call_s - KERNEL_FLOOR_S)


def call_s(observed: float, floor_s: float) -> float:
    """Seconds of a call, its launch included, of which a measurement well above the floor shows ``observed``.

    >>> round(call_s(0.0010135, 3e-5), 7)
    0.001002
    """
    return observed - EVENT_SHARE * floor_s + KERNEL_FLOOR_S
