"""Operator times by learned efficiency: the data sheet's rates, and what a network says is lost of them.

    t = launch + F / P * exp(c) + B / D * exp(m)

for F FLOPs and B bytes on a GPU of peak P and bandwidth D. The penalties c and m come from the call's shape
(``shapes``) and the kind of board: its power limit and its compute capability. Rates, SMs and clocks are no
inputs of the network, so a GPU with more of them is never slower. More FLOPs or bytes at the same shape are
never faster; of two shapes the larger may be, by its alignment or, for small kernels, by the network's error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from advisor.core.values import GpuSpec, Op
from advisor.operators.family import Learned, base_name
from advisor.operators.registry import rows
from advisor.predict.learned.network import Network
from advisor.predict.learned.numbers import numbers_of

Floats = NDArray[np.float64]
# Kernels were measured one after the other under load; iterations, which count, as the mean of the fastest
# 5 of 25. So the networks aim below the median: 0.4 of the kernels are faster than predicted. At 0.3 clean
# iterations are predicted half a point worse.
QUANTILE = 0.4
# One member's opinion of a kernel stays within a factor of 50 of the roofline, whatever its weights.
_MOST = 4.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Calls:
    """The calls that one network knows: what does not depend on the GPU.

    Attributes:
        network: its name.
        learned: how it sees them.
        index: where they stand among the operators asked for, [N].
        features: [N, F] without the board's.
        flops: [N]; zero where time goes by bytes alone.
        num_bytes: [N].
    """

    network: str
    learned: Learned
    index: NDArray[np.int64]
    features: NDArray[np.float32]
    flops: Floats
    num_bytes: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTimes:
    """Seconds of one call of each operator, [N], and its log-normal sigma, [N]; NaN where nobody knows."""

    time_s: Floats
    sigma: Floats


def grouped(ops: Sequence[Op]) -> tuple[Calls, ...]:
    """The calls that a network knows by name and shape, by network; at which rates is the GPU's to say."""
    networks = rows().networks_of_name
    members: dict[str, list[tuple[int, tuple[float, ...]]]] = {}
    for i, op in enumerate(ops):
        for learned in networks.get(base_name(op.name), ()):
            values = numbers_of(op, learned)
            if values is not None:
                members.setdefault(learned.name, []).append((i, values))
    return tuple(
        Calls(
            network=name,
            learned=learned,
            index=np.array([i for i, _ in members[name]]),
            features=np.array([values for _, values in members[name]], np.float32),
            flops=np.array([float(ops[i].flops) if learned.counts_flops else 0.0 for i, _ in members[name]]),
            num_bytes=np.array([float(ops[i].bytes) for i, _ in members[name]]),
        )
        for name, (_, learned) in rows().network.items()
        if name in members
    )


def kernel_times(network: Network, calls: Calls, gpu: GpuSpec, peak_flops_per_s: Floats | float) -> CallTimes:
    """Seconds of each call on ``gpu`` without its launch.

    Args:
        network: that knows the calls.
        calls: N calls.
        gpu: the destination.
        peak_flops_per_s: the data sheet's rate each call runs at, [N] or one for all.
    """
    board = calls.learned.board
    low, high = network.low[-board.num_features :], network.high[-board.num_features :]
    boards = np.clip(board.features(calls.features, gpu), low, high).astype(np.float32)
    compute, memory, residual = _penalties(network, calls, boards.tobytes())
    members_s = calls.flops / peak_flops_per_s * compute + calls.num_bytes / gpu.memory_bytes_per_s * memory
    logs = np.log(members_s)
    return CallTimes(time_s=np.exp(logs.mean(axis=0)), sigma=np.sqrt(residual**2 + logs.var(axis=0)))


@lru_cache(maxsize=128)
def _penalties(network: Network, calls: Calls, board: bytes) -> tuple[Floats, Floats, Floats]:
    """exp(c) and exp(m) of each member, [E, N], and the scale of what is left, [N].

    Kept: most GPUs are at the edge of what was measured, and so the same board to the networks.
    """
    boards = np.frombuffer(board, np.float32).reshape(len(calls.index), -1)
    outputs = network.outputs(np.concatenate([calls.features, boards], axis=1)).astype(float)
    compute, memory = (np.exp(np.clip(outputs[..., i], -_MOST, _MOST)) for i in (0, 1))
    return compute, memory, np.exp(np.clip(outputs[..., 2], -6.0, 1.0)).mean(axis=0)
