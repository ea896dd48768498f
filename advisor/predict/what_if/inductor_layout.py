"""The memory layout that Inductor chooses for a compiled step.

ResNet-50 compiled runs in channels_last whatever its script says, since its convolutions are faster so;
ResNeXt, whose convolutions have groups, trains in the script's. Inductor decides by shapes alone, for a whole
graph at once, since torch 2.1 (torch/_inductor/graph.py, ``decide_layout_opt``), but not on ROCm.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from advisor.core.values import Op, Phase
from advisor.operators.family import base_name
from advisor.predict.what_if.channels_last import only_turned

_SINCE = (2, 1)
_MOST_NODES_A_CONVOLUTION = 300
_FEW_CHANNELS = 64
# Of a weight: channels out and in, before its sides.
_LEAST_DIMENSIONS = 2
# Inductor's own constants: time in channels_last over that in NCHW. Without gradients their mean decides.
_GROUPED, _DEFAULT, _NARROWING, _SMALL = 1.358, 0.823, 0.725, 0.783


def laid_out(ops: tuple[Op, ...], vendor: str, release: str) -> tuple[Op, ...]:
    """The operators of a compiled step as Inductor lays them out; themselves where it leaves them.

    Args:
        ops: of one iteration in eager mode.
        vendor: of the GPUs.
        release: of torch, such as ``2.13.0+cpu``.
    """
    is_chosen = vendor == "NVIDIA" and _is_since(release) and chooses_channels_last(ops)
    # Norms of groups and rows of products become Inductor's own kernels, which read any layout.
    return only_turned(ops) if is_chosen else ops


def chooses_channels_last(ops: Sequence[Op]) -> bool:
    """Inductor's rule, by the convolutions of the forward pass."""
    forward = [op for op in ops if op.phase is Phase.FORWARD]
    convolutions = [op for op in forward if _is_told_convolution(op)]
    calls = sum(op.count for op in convolutions)
    if not calls or sum(op.count for op in forward) >= _MOST_NODES_A_CONVOLUTION * calls:
        return False
    if any(op.phase is Phase.BACKWARD for op in ops):
        is_slower = any(_is_grouped(op) or _is_narrowing(op) for op in convolutions)
        return not is_slower and not all(map(_has_few_channels, convolutions))
    return sum((_time_ratio(op) - 1) * op.flops * op.count for op in convolutions) <= 0


def _is_since(version: str) -> bool:
    """Whether a release has the rule; of an unknown one it is taken to."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return found is None or (int(found[1]), int(found[2])) >= _SINCE


def _is_told_convolution(op: Op) -> bool:
    """Whether it is one whose weight and groups a trace tells; exported profiles do not."""
    has_weight = len(op.inputs) > 1 and len(op.inputs[1].shape) > _LEAST_DIMENSIONS
    return base_name(op.name) == "convolution" and has_weight and "groups" in op.attributes


def _is_grouped(op: Op) -> bool:
    groups = op.attributes["groups"]
    return isinstance(groups, int) and groups > 1 and op.inputs[1].shape[1] > 1


def _is_narrowing(op: Op) -> bool:
    """More than 1 x 1, and half as many channels out as in, or fewer."""
    channels_out, channels_in, side, *_ = op.inputs[1].shape
    return channels_out * 2 <= channels_in and side > 1


def _has_few_channels(op: Op) -> bool:
    return max(op.inputs[1].shape[:2]) <= _FEW_CHANNELS


def _time_ratio(op: Op) -> float:
    if _is_grouped(op):
        return _GROUPED
    if _has_few_channels(op):
        return _SMALL
    return _NARROWING if _is_narrowing(op) else _DEFAULT
