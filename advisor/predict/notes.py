"""What an estimate rests on."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Literal

from advisor.core.findings import Finding, about_estimates
from advisor.core.findings.about_options import RemovedByAttention, Unknown
from advisor.core.values import Bound, FittedConstants, GpuSpec, Method, Op, Precision, Trace
from advisor.operators import attention_kernels
from advisor.operators.family import Family, rate_for
from advisor.predict.constants import described
from advisor.predict.distinct import asked_rates, kept
from advisor.predict.exchange.collective_time import batch_variation
from advisor.predict.exchange.collectives import sharded_over, sharding_group, state_group
from advisor.predict.exchange.data_parallel import BUCKET_BYTES
from advisor.predict.footprint import fragmentation
from advisor.predict.host import HostCall, host_costs, launching_s
from advisor.predict.methods import OpTimes
from advisor.predict.roofline import KERNEL_FLOOR_S, rests_on_unknown_resources
from advisor.predict.step_time import RankStep
from advisor.predict.utilization import lowers, slowdown

# A variation that would read as 0 %.
_LEAST_NOTED = 0.005


def method_notes(trace: Trace, gpu: GpuSpec, constants: FittedConstants, times: OpTimes) -> list[Finding]:
    """Which methods and constants the times come from."""
    used = set(times.constants.values()) - {""}
    notes = [*_attention_notes(trace, gpu), *_learned_notes(constants, times)]
    if trace.compile_mode is not None:
        notes.append(about_estimates.StepCompiled(mode=trace.compile_mode))
    notes += described(constants.origin, used)
    of_rates = (rate_for(*rate, gpu, constants).note for rate in _rates_in_order(trace.ops, trace.precision))
    notes += dict.fromkeys(note for note in of_rates if note is not None)
    families, ops = times.columns.families, times.columns.ops
    caveats = {families[i].caveat(ops[i]) for i in times.by(Method.ROOFLINE)} - {None}
    notes += sorted((note for note in caveats if note is not None), key=lambda note: note.code)
    scaled = [trace.ops[i] for i in times.by(Method.WAVE)]
    if scaled and rests_on_unknown_resources(scaled):
        notes.append(Unknown(what="wave-resources"))
    if times.columns.custom:
        notes.append(Unknown(what="operator", names=list(times.columns.custom)))
    return notes


def _attention_notes(trace: Trace, gpu: GpuSpec) -> Iterator[Finding]:
    """What PyTorch refuses to run, and what it runs without a fused kernel: the first call of each.

    Other vendors' kernels have rules of their own.
    """
    calls = _attention_calls(trace.ops) if gpu.vendor == "NVIDIA" else ()
    refused = [call for call in calls if attention_kernels.is_refused(call, gpu)]
    for call in refused[:1]:
        yield RemovedByAttention(
            gpu=gpu.name,
            backends=[name for name in call.allowed or () if name in attention_kernels.SWITCHES],
            dtype=call.dtype,
            head_size=call.key_size,
        )
    unfused = (
        call
        for call in calls
        if attention_kernels.backend_of(call, gpu) is attention_kernels.AttentionBackend.MATH
        and call not in refused
    )
    for call in islice(unfused, 1):
        yield about_estimates.AttentionUnfused(gpu=gpu.name, dtype=call.dtype, head_size=call.key_size)


@kept(8)
def _attention_calls(ops: Sequence[Op]) -> tuple[attention_kernels.AttentionCall, ...]:
    calls = (attention_kernels.attention_call(op) for op in ops)
    return tuple(dict.fromkeys(call for call in calls if call is not None))


@kept(4)
def _rates_in_order(ops: Sequence[Op], precision: Precision) -> tuple[tuple[str, Family], ...]:
    distinct = dict.fromkeys(asked_rates(ops, precision))
    return tuple(sorted(distinct, key=lambda pair: (pair[0], pair[1].word)))


def _learned_notes(constants: FittedConstants, times: OpTimes) -> list[Finding]:
    if not times.by(Method.LEARNED):
        return []
    notes: list[Finding] = [about_estimates.RatesFrom(of="learned")]
    if constants.learned_share:
        notes.append(about_estimates.CalibratedRates(reached_share=dict(constants.learned_share)))
    if constants.is_share_outdated:
        notes.append(Unknown(what="calibration"))
    if not constants.is_measured:
        notes.append(Unknown(what="board"))
    left, learned = (
        {times.columns.families[i].word for i in times.by(method)}
        for method in (Method.ROOFLINE, Method.LEARNED)
    )
    if left:
        notes.append(about_estimates.NotLearned(families=sorted(left), partly=sorted(left & learned)))
    return notes


def limit_notes(step: RankStep, by_bound: Mapping[Bound, float], *, has_memory: bool) -> list[Finding]:
    """What bounds the iteration, of which ``by_bound`` are the seconds, and what is not counted."""
    trace, num_gpus = step.trace, step.layout.num_gpus
    notes: list[Finding] = [
        about_estimates.HostLaunches(
            of="floor", kernel_s=KERNEL_FLOOR_S, operator_s=host_costs().call_s[HostCall.FORWARD]
        )
    ]
    if step.measured_s is None:
        told_s = asdict(launching_s(trace, step.stepping))
        notes.append(about_estimates.HostLaunches(of="step", launching_s=told_s))
    stated_w, limit_w, gpu = step.layout.power_limit_w, step.power_limit_w, step.gpu
    if step.measured_s is None and lowers(stated_w, gpu):  # it slows the GPU down, or does not count
        slower = None if limit_w is None else slowdown(gpu, limit_w)
        notes.append(
            about_estimates.PowerLimited(limit_w=limit_w or stated_w, tdp_w=gpu.tdp_w, slowdown=slower)
        )
    is_host_bound = max(by_bound, key=lambda bound: by_bound[bound]) is Bound.HOST
    notes.append(about_estimates.HostLaunches(of="bound" if is_host_bound else "hidden"))
    lost = fragmentation()
    by_part = about_estimates.MemoryByPart(fragmentation_p50=lost.p50 - 1, fragmentation_p90=lost.p90 - 1)
    notes.append(by_part if has_memory else Unknown(what="memory-of-profile"))
    if num_gpus > 1 and trace.memory.gradient_bytes is None:
        notes.append(Unknown(what="gradients"))
    if (variation := batch_variation(trace)) >= _LEAST_NOTED:
        notes.append(about_estimates.BatchVariation(variation=variation, waits=num_gpus > 1))
    return [*notes, *_notes_on_several(step)]


def _notes_on_several(step: RankStep) -> Iterator[Finding]:
    trace, num_gpus, split = step.trace, step.layout.num_gpus, step.rank.split
    world, copies = sharded_over(trace), split.copies(step.layout)
    if world not in (None, 1):
        how: Literal["hidden", "as-recorded"] = "as-recorded" if sharding_group(trace) is None else "hidden"
        yield about_estimates.Sharded(how=how, num_gpus=world)
    if world not in (None, num_gpus):
        yield about_estimates.OtherWorld(num_ranks=world, num_gpus=num_gpus)
    if state_group(trace) is not None and num_gpus > 1:
        yield about_estimates.Sharded(how="state", num_gpus=num_gpus)
    if world is None and copies.num_gpus > 1:
        scaling = step.scaling if split.divides_layers else step.scaling.of_gradients(step.layout)
        yield about_estimates.DataParallel(
            bucket_bytes=BUCKET_BYTES, slowdown=step.scaling.slowdown_on(copies), spread=scaling.spread
        )
