"""Kernels of a profiler's timeline as values, and equal launches counted together."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import replace

from advisor.core.values import Kernel, Op
from advisor.kineto.events import DeviceEvent


def kernels_of(events: Sequence[DeviceEvent]) -> tuple[Kernel, ...]:
    """The kernels among the events; none if one carries no grid, as launches of CUDA graphs do.

    Such operators are measured, but cannot be scaled by waves.
    """
    kernels = [event for event in events if event.kind == "kernel"]
    if not all(kernel.args.get("grid") and kernel.args.get("block") for kernel in kernels):
        return ()
    return tuple(kernel_of(event) for event in kernels)


def kernel_of(event: DeviceEvent) -> Kernel:
    """The launch and duration of a kernel event."""
    args = event.args
    return Kernel(
        name=event.name,
        grid=_three(args["grid"]),
        block=_three(args["block"]),
        registers_per_thread=args.get("registers per thread"),
        shared_bytes=args.get("shared memory"),
        duration_s=event.duration_s,
    )


def _three(numbers: Sequence[int]) -> tuple[int, int, int]:
    x, y, z = (*map(int, numbers), 1, 1)[:3]
    return x, y, z


def merged(ops: Iterable[Op]) -> tuple[Op, ...]:
    """Equal launches become one Op with a count and mean durations, in order of first appearance."""
    groups: dict[object, list[Op]] = {}
    for op in ops:
        launches = tuple(
            (k.name, k.grid, k.block, k.registers_per_thread, k.shared_bytes) for k in op.kernels
        )
        attributes = tuple(sorted(op.attributes.items()))
        key = (op.name, op.phase, op.inputs, op.outputs, attributes, op.flops, op.bytes, launches)
        groups.setdefault(key, []).append(op)
    return tuple(_mean(group) for group in groups.values())


def _mean(group: Sequence[Op]) -> Op:
    kernels = tuple(
        replace(same[0], duration_s=statistics.fmean(kernel.duration_s for kernel in same))
        for same in zip(*(op.kernels for op in group), strict=True)
    )
    measured_s = statistics.fmean(op.measured_s or 0.0 for op in group)
    return replace(group[0], count=len(group), measured_s=measured_s, kernels=kernels)
