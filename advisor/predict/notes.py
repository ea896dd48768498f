"""What an estimate rests on, in words."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.core.values import FittedConstants, GpuSpec, Method, Trace
from advisor.operators.family import base_name
from advisor.operators.rates import rate_for, wanted_rate
from advisor.operators.registry import is_known
from advisor.predict import wave
from advisor.predict.constants import described
from advisor.predict.exchange.collectives import OTHER_WORLD, SHARDED, sharded_over
from advisor.predict.exchange.data_parallel import ASSUMPTION as DATA_PARALLEL
from advisor.predict.memory import ASSUMPTION as MEMORY
from advisor.predict.memory import UNKNOWN as UNKNOWN_MEMORY
from advisor.predict.methods import OpTime
from advisor.predict.roofline import HOST_DISPATCH_S, KERNEL_FLOOR_S

LEARNED = "learned from FP32 kernels of P4, P100, T4, V100 and A100 (docs/accuracy)"
CORRECTED = "calibrated: of the learned rate this GPU reaches {}"
OUTDATED = "calibrated with networks of another version, so not corrected: run advisor calibrate again"
UNSEEN = "not measured: learned from the boards nearest in power limit and generation, with a wider interval"
NOT_LEARNED = "by the roofline, not learned: {}"
UNKNOWN_GRADIENTS = (
    "data parallel: the size of the gradients is unknown and their exchange not counted; record with"
    " record_shapes=True"
)


def method_notes(
    trace: Trace, gpu: GpuSpec, constants: FittedConstants, times: Sequence[OpTime]
) -> list[str]:
    """Which methods and constants the times come from."""
    used = {time.constant for time in times} - {""}
    notes = _learned_notes(constants, times)
    notes += [f"roofline constants, {source}" for source in described(constants.origin, used)]
    notes += sorted(_rate_notes(trace, gpu, constants, times) | _caveats(times))
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


def _caveats(times: Sequence[OpTime]) -> set[str]:
    return {t.family.caveat(t.op) for t in times if t.method is Method.ROOFLINE} - {""}


def _learned_notes(constants: FittedConstants, times: Sequence[OpTime]) -> list[str]:
    if not any(time.method is Method.LEARNED for time in times):
        return []
    reached = [f"{family} {part:.2f}" for family, part in sorted(constants.learned_share.items())]
    left = _families(times, Method.ROOFLINE)
    partly = left & _families(times, Method.LEARNED)
    named = [f"some {word}" if word in partly else word for word in sorted(left)]
    return [
        LEARNED,
        *([CORRECTED.format(", ".join(reached))] if reached else []),
        *([OUTDATED] if constants.is_share_outdated else []),
        *([] if constants.is_measured else [UNSEEN]),
        *([NOT_LEARNED.format(", ".join(named))] if named else []),
    ]


def _families(times: Sequence[OpTime], method: Method) -> set[str]:
    return {time.family.word for time in times if time.method is method}


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
