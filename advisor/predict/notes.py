"""What an estimate rests on, in words."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.predict import wave
from advisor.predict.distributed import ASSUMPTION as DATA_PARALLEL
from advisor.predict.exchange import OTHER_WORLD, SHARDED, sharded_over
from advisor.predict.families import base_name, is_known
from advisor.predict.memory import ASSUMPTION as MEMORY
from advisor.predict.memory import UNKNOWN as UNKNOWN_MEMORY
from advisor.predict.methods import OpTime
from advisor.predict.roofline import HOST_DISPATCH_S, KERNEL_FLOOR_S, rate_for, wanted_rate
from advisor.types import FittedConstants, GpuSpec, Method, Trace

LEARNED = "learned efficiency of kernels, measured in FP32 on P4, P100, T4, V100 and A100 (docs/accuracy)"
CORRECTED = "corrected by a calibration: the part of the learned rate that this GPU reaches is {}"
UNSEEN = (
    "no kernels of this GPU were measured: efficiency is that of the measured boards nearest in power limit"
    " and generation, and the interval wider"
)
UNKNOWN_GRADIENTS = (
    "data parallel: the profile has no shapes, so the size of the gradients is unknown and their exchange"
    " is not counted; record with record_shapes=True"
)
# Less than this part of the time is not worth a name.
_LEAST_SHARE = 0.005


def method_notes(
    trace: Trace, gpu: GpuSpec, constants: FittedConstants, times: Sequence[OpTime]
) -> list[str]:
    """Which methods and constants the times come from."""
    used = {time.constant.partition(".")[0] for time in times} - {""}
    notes = _learned_notes(constants, times)
    notes += [f"roofline constants, {source}" for source in constants.sources] if used else []
    notes += sorted(_rate_notes(trace, gpu, constants, times))
    custom = sorted({base_name(t.op.name) for t in times if not is_known(t.op)})
    scaled = [t.op for t in times if t.method is Method.WAVE]
    if scaled and wave.rests_on_unknown_resources(scaled):
        notes.append(wave.ASSUMPTION)
    if custom:
        notes.append(f"custom operators, only their bytes are known: {', '.join(custom)}")
    return notes


def _rate_notes(trace: Trace, gpu: GpuSpec, constants: FittedConstants, times: Sequence[OpTime]) -> set[str]:
    wanted = {(wanted_rate(t.op, t.family, trace.precision), t.family) for t in times}
    return {rate_for(name, family, gpu, constants).note for name, family in wanted} - {""}


def _learned_notes(constants: FittedConstants, times: Sequence[OpTime]) -> list[str]:
    if not any(time.method is Method.LEARNED for time in times):
        return []
    shares: dict[str, float] = {}
    total_s = sum(time.time_s for time in times)
    for time in times:
        if time.method is Method.ROOFLINE:
            name = base_name(time.op.name)
            shares[name] = shares.get(name, 0.0) + time.time_s / total_s
    learned_s = sum(time.time_s for time in times if time.method is Method.LEARNED)
    reached = [f"{family} {part:.2f}" for family, part in sorted(constants.learned_share.items())]
    named = [f"{name} {share:.1%}" for name, share in _largest_first(shares) if share >= _LEAST_SHARE]
    return [
        f"{learned_s / total_s:.0%} of the time by {LEARNED}",
        *([CORRECTED.format(", ".join(reached))] if reached else []),
        *([] if constants.is_measured else [UNSEEN]),
        *([f"not learned, by the roofline: {', '.join(named)} of the time"] if named else []),
    ]


def _largest_first(shares: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(shares.items(), key=lambda item: -item[1])


def limit_notes(trace: Trace, num_gpus: int, host_s: float, *, has_memory: bool) -> list[str]:
    """What bounds the iteration, and what is not counted."""
    floor_us, host_us = KERNEL_FLOOR_S * 1e6, HOST_DISPATCH_S * 1e6
    notes = [f"each kernel takes {floor_us:g} us or more, each operator {host_us:g} us of the host"]
    if host_s:
        notes.append("bound by the host: larger batches or CUDA graphs help more than a faster GPU")
    notes.append(MEMORY if has_memory else UNKNOWN_MEMORY)
    if num_gpus > 1 and trace.memory.gradient_bytes is None:
        notes.append(UNKNOWN_GRADIENTS)
    world = sharded_over(trace)
    if world is not None:
        notes.append(SHARDED.format(world=world))
        return notes if world == num_gpus else [*notes, OTHER_WORLD.format(world=world, num_gpus=num_gpus)]
    return [*notes, DATA_PARALLEL] if num_gpus > 1 else notes
