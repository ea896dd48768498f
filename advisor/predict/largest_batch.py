"""The largest batch that one GPU can hold, sought from where a straight line would put it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import pairwise
from operator import itemgetter
from types import MappingProxyType

from advisor.core import values
from advisor.operators.cycles import StreamedCall, plain_work, stream_costs
from advisor.operators.work import tensor_bytes
from advisor.predict.batch_share import BatchShare
from advisor.predict.distinct import Blocks, SameTrace, kept
from advisor.predict.exchange.collectives import shares_state
from advisor.predict.exchange.data_parallel import Exchange, SharedModel, exchange_of_zero, shared_state_ranks
from advisor.predict.footprint import Footprint, Overheads, footprint, need_bytes, overheads, sharded
from advisor.predict.interval import spread
from advisor.predict.what_if.precision import under_autocast

Need = Callable[[float], values.Interval]
"""What one GPU must hold with a share of the profiled batch in each pass."""

# A batch that is larger by more is not worth a guess.
_MOST_SHARE = 1024
# A share is found to so many parts.
_PARTS = 1000


def largest_batch(trace: values.Trace, need: Need, limit_bytes: float) -> values.LargestBatch:
    """The most samples of an iteration that fit into so much memory, its number of passes held."""
    passes = trace.accumulation
    share = largest_share(need, limit_bytes)
    if trace.batch_size is None:
        return values.LargestBatch(share=share, certain=None, likely=None)
    samples = max(trace.batch_size // passes, 1)

    limit = samples * _MOST_SHARE
    none, all_of_it = need(0.0).p90, need(1.0).p90
    guess = samples * _on_a_line(none, all_of_it, limit_bytes)
    certain = _most(lambda num: need(num / samples).p90 <= limit_bytes, limit, guess)
    likely = _most(lambda num: need(num / samples).p50 <= limit_bytes, limit, samples * share)
    return values.LargestBatch(share=share, certain=passes * certain, likely=passes * likely)


def largest_share(need: Need, limit_bytes: float) -> float:
    """Of the profiled batch, what fits more likely than not; 0 where what no batch needs is too much."""
    guess = _PARTS * _on_a_line(need(0.0).p50, need(1.0).p50, limit_bytes)
    fits = _most(lambda parts: need(parts / _PARTS).p50 <= limit_bytes, _PARTS * _MOST_SHARE, guess)
    return fits / _PARTS


def arguments_of_largest(
    trace: values.Trace, largest: values.LargestBatch, defaults: Mapping[str, int] = MappingProxyType({})
) -> list[str] | None:
    """The arguments with the largest batch that is likely to fit; None where none of them is the batch.

    ``defaults`` are options of the script that count in samples, each with its value where it is not given.
    """
    samples = None if trace.batch_size is None else str(trace.batch_size // trace.accumulation)
    left_out = [name for name, value in defaults.items() if str(value) == samples]
    arguments = list(trace.arguments)
    if len(left_out) == 1 and left_out[0] not in arguments:
        arguments += [left_out[0], str(samples)]
    places = [
        place
        for place, (name, value) in enumerate(pairwise(arguments), start=1)
        if name.startswith("-") and "batch" in name and value == samples
    ]
    if len(places) != 1 or not largest.likely:
        return None
    arguments[places[0]] = str(largest.likely // trace.accumulation)
    return arguments


def _on_a_line(none: float, all_of_it: float, limit_bytes: float) -> float:
    """The share of the batch whose need is the limit, if it grows evenly."""
    if all_of_it <= none:
        return _MOST_SHARE if none <= limit_bytes else 0.0
    return (limit_bytes - none) / (all_of_it - none)


def _most(fits: Callable[[int], bool], limit: int, guess: float) -> int:
    """The largest number up to the limit that fits, where each smaller one does; 0 where 1 does not.

    Sought from a guess, by steps that double until they have passed it, then by halving.
    """
    low, high, step = 0, limit + 1, 1
    at = min(max(int(guess), 1), limit)
    while low < at < high:
        low, high, at = (at, high, at + step) if fits(at) else (low, at, at - step)
        step *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


# What a block's recomputation holds follows from what operators give, not from what they save.
_SIGMA_CHECKPOINTED = 0.2
# Eight of 32 bits, and a constant for every 256 values (Dettmers et al., ICLR 2022).
_EIGHT_BIT = 1 / 4 + 1 / 256
# Adapters of this rank beside every matrix (Hu et al., ICLR 2022).
_RANK = 16
# Without the gradients of its weights, the backward pass has half its products; casts and norms stay.
_LORA_BACKWARD, _SIGMA_LORA = 0.65, 0.15
# Of a base in four bits: 4, and 0.127 more of a constant for every 64 that is itself quantized (Dettmers et
# al., "QLoRA", NeurIPS 2023).
_QLORA_BYTES = 4.127 / 8
# A changed script was never profiled; the same width as that of a what-if of precision.
_SIGMA_PRECISION = 0.1
_FULL = "float32"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSeconds:
    """What an iteration takes, part by part; ``rest`` is what no change of these concerns."""

    forward: float
    backward: float
    optimizer: float
    exchange: float
    rest: float

    @property
    def total(self) -> float:
        """Of the iteration."""
        return self.forward + self.backward + self.optimizer + self.exchange + self.rest


Timed = Callable[[SameTrace], Mapping[values.Phase, float]]
"""Seconds of the operators of a trace on the same GPUs, by phase."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedScript:
    """The script with some changes, on one GPU of a layout."""

    trace: values.Trace
    gpu: values.GpuSpec
    layout: values.Layout
    tensors: Footprint
    beside: Overheads
    seconds: StepSeconds
    """Of an iteration of as many samples as the script as it is."""
    timed: Timed
    slowdown: float
    """Of kernels while GPUs exchange, as a share of their time."""
    sigma: float = 0.0
    """Of the logarithm of their ratio to that."""
    sigma_activations: float = 0.0
    """Of activations that were not recorded."""
    batch: float = 1.0
    """Of one pass, over the profiled one."""
    split: values.Split = values.WHOLE
    """How the model is divided."""
    alters: bool = False
    """The model that comes out is another."""

    def need_bytes(self, batch: float | None = None) -> values.Interval:
        """What one GPU must hold, with another share of the batch if one is given."""
        share = self.batch if batch is None else batch
        return need_bytes(self.tensors, self.beside, share, sigma_activations=self.sigma_activations)


def with_autocast(version: FittedScript) -> FittedScript | None:
    """Products in bf16, or in fp16 where the GPU has no bf16."""
    rates = version.gpu.tensor_flops_per_s
    dtype = "bfloat16" if "bf16" in rates else "float16" if "fp16" in rates else None
    changed = None if dtype is None else _under_autocast(SameTrace(version.trace), dtype)
    tensors = None if changed is None else footprint(changed, version.layout, version.split)
    if changed is None or tensors is None:
        return None
    by_phase = {phase.value: s for phase, s in version.timed(SameTrace(changed)).items()}
    seconds = replace(version.seconds, **by_phase)
    sigma = math.hypot(version.sigma, _SIGMA_PRECISION)
    return replace(version, trace=changed, tensors=tensors, seconds=seconds, sigma=sigma)


@lru_cache(maxsize=8)
def _under_autocast(same: SameTrace, dtype: str) -> values.Trace | None:
    return under_autocast(same.trace, dtype)


def with_bf16_weights(version: FittedScript) -> FittedScript | None:
    """Weights, gradients and optimizer state in bf16 as well; products too, where they are not yet."""
    if "bf16" not in version.gpu.tensor_flops_per_s or not _stepped(version.trace.ops)[0]:
        return None
    lowered = version if version.trace.precision.amp_dtype else with_autocast(version)
    if lowered is None:
        return None
    halved = replace(_scaled(lowered.tensors, 1 / 2), weights=lowered.tensors.weights / 2, copies=0.0)
    return replace(lowered, tensors=halved, alters=True)


def _scaled(tensors: Footprint, share: float) -> Footprint:
    """With such a share of gradients, optimizer state and what belongs to them."""
    return replace(
        tensors,
        gradients=tensors.gradients * share,
        gradients_at_peak=tensors.gradients_at_peak * share,
        optimizer=tensors.optimizer * share,
        step_temporary=tensors.step_temporary * share,
        buckets=tensors.buckets * share,
    )


def with_8_bit_optimizer(version: FittedScript) -> FittedScript | None:
    """An optimizer that keeps its state in eight bits, such as bitsandbytes'."""
    tensors = version.tensors
    if not _stepped(version.trace.ops)[0] or not tensors.optimizer:
        return None
    return replace(version, tensors=replace(tensors, optimizer=tensors.optimizer * _EIGHT_BIT))


def with_lora(version: FittedScript) -> FittedScript | None:
    """Fine-tuning that trains adapters of low rank beside weights that stay as they are."""
    _, share = _stepped(version.trace.ops)
    if share is None:
        return None
    tensors, seconds = version.tensors, version.seconds
    trained_s = {"backward": _LORA_BACKWARD * seconds.backward, "optimizer": share * seconds.optimizer}
    return replace(
        version,
        tensors=replace(_scaled(tensors, share), weights=tensors.weights * (1 + share)),
        seconds=replace(seconds, **trained_s),
        sigma=math.hypot(version.sigma, _SIGMA_LORA),
        alters=True,
    )


def with_qlora(version: FittedScript) -> FittedScript | None:
    """As with LoRA, with the matrices of layers in four bits, of which each product makes 16 first."""
    adapted, matrices = with_lora(version), _in_layers(version.trace, version.tensors.blocks)
    if adapted is None or not matrices:
        return None
    elements = sum(math.prod(tensor.shape) for tensor in matrices)
    saved = sum(map(tensor_bytes, matrices)) - elements * _QLORA_BYTES
    if not 0 < saved < adapted.tensors.weights:
        return None
    cost, seconds = stream_costs()["four bits"], adapted.seconds
    # Each product first makes 16 bits of its weights again, from four.
    making = StreamedCall(cost=cost, work=plain_work(elements, round(2.5 * elements)))
    made_s = version.trace.accumulation * making.time_s(0.0, version.gpu, version.gpu.memory_bytes_per_s)
    made_share = 2 * made_s / (seconds.total + 2 * made_s)
    return replace(
        adapted,
        tensors=replace(adapted.tensors, weights=adapted.tensors.weights - saved),
        seconds=replace(seconds, forward=seconds.forward + made_s, backward=seconds.backward + made_s),
        sigma=math.hypot(adapted.sigma, made_share * cost.pace_on(version.gpu).sigma),
    )


def with_checkpointing(version: FittedScript) -> FittedScript | None:
    """Activations kept between blocks alone, and computed again within: one more forward pass of them."""
    tensors, blocks, seconds = version.tensors, version.tensors.blocks, version.seconds
    most = max(tensors.activations, tensors.most_activations)
    within, outside = most * (1 - blocks.outside_share) / blocks.num, most * blocks.outside_share
    kept = blocks.num * blocks.boundary_bytes + max(within, outside)
    if not blocks.boundary_bytes or kept >= most:
        return None
    return replace(
        version,
        tensors=replace(tensors, activations=min(kept, tensors.activations), most_activations=kept),
        seconds=replace(seconds, backward=seconds.backward + (1 - blocks.outside_share) * seconds.forward),
        sigma_activations=_SIGMA_CHECKPOINTED,
    )


def with_sharding(version: FittedScript, sharding: values.Sharding) -> FittedScript | None:
    """The model shared by the GPUs of the layout; gathers of weights do not all hide behind the passes."""
    split = version.split
    layout, seconds, tensors = split.copies(version.layout), version.seconds, version.tensors
    is_shared = split.sharding is not values.Sharding.NONE or shares_state(version.trace)
    if is_shared or layout.num_gpus == 1 or (sharding is values.Sharding.HYBRID and layout.num_nodes == 1):
        return None
    model = SharedModel(
        weights_bytes=tensors.weights, gradients_bytes=tensors.gradients, blocks=tensors.blocks.num
    )
    exchange = exchange_of_zero(
        model,
        sharding,
        version.trace,
        seconds.forward + seconds.backward,
        Exchange(seconds=seconds.exchange),
        version.gpu,
        layout,
        slowdown=version.slowdown,
    )
    optimizer_s = seconds.optimizer / shared_state_ranks(sharding, layout)
    changed = replace(seconds, exchange=exchange.seconds, optimizer=optimizer_s)
    return replace(
        version,
        tensors=sharded(tensors, sharding, layout),
        seconds=changed,
        sigma=math.hypot(version.sigma, exchange.sigma_s / changed.total),
        split=replace(split, sharding=sharding),
    )


def with_batch(version: FittedScript, batch: float) -> FittedScript:
    """Smaller passes, as many more of them; kernels of a small batch fill a GPU less well."""
    share = BatchShare(batch=batch)
    slower, seconds = share.time / batch, version.seconds
    slow = replace(seconds, forward=slower * seconds.forward, backward=slower * seconds.backward)
    return replace(version, batch=batch, seconds=slow, sigma=math.hypot(version.sigma, share.sigma))


def _in_layers(trace: values.Trace, blocks: Blocks) -> list[values.TensorSpec]:
    """The matrices that each layer has; the words' and the head's stay in 16 bits."""
    if not blocks.repeats:
        return []
    steps = [op for op in trace.ops if op.phase is values.Phase.OPTIMIZER and len(op.outputs) > 1]
    # What the optimizer steps over is the first list of its call.
    stepped = max((op.inputs[: len(op.outputs)] for op in steps), key=len, default=())
    counts = Counter(tensor.shape for tensor in stepped)
    return [t for t in stepped if len(t.shape) == 2 and counts[t.shape] >= blocks.num]


@kept(8)
def _stepped(ops: tuple[values.Op, ...]) -> tuple[bool, float | None]:
    """Whether the optimizer steps over matrices in full precision, and what adapters would leave of them.

    None for a model without matrices.
    """
    steps = [op for op in ops if op.phase is values.Phase.OPTIMIZER]
    is_full = any(t.dtype == _FULL and len(t.shape) > 1 for op in steps for t in op.inputs)
    shapes = [t.shape for t in max(steps, key=lambda op: len(op.inputs)).inputs] if steps else []
    matrices = [shape for shape in shapes if len(shape) == 2 and min(shape) > _RANK]
    if not matrices:
        return is_full, None
    adapters = sum(_RANK * sum(shape) for shape in matrices)
    return is_full, min(adapters / sum(map(math.prod, shapes)), 1.0)


# Changes of different kinds are combined only where none is enough alone. They are ranked by what they cost
# in time; those after which another model comes out, such as low-rank adapters, come last.

Change = tuple[str, Callable[[FittedScript], FittedScript | None]]
# One of each row at most, in this order.
_KINDS: tuple[tuple[Change, ...], ...] = (
    (("autocast", with_autocast), ("bf16-weights", with_bf16_weights)),
    (("8-bit-optimizer", with_8_bit_optimizer), ("lora", with_lora), ("qlora", with_qlora)),
    (("checkpointing", with_checkpointing),),
    tuple(
        (one.value, partial(with_sharding, sharding=one))
        for one in values.Sharding
        if one is not values.Sharding.NONE
    ),
)
_BY_NAME = {name: change for kind in _KINDS for name, change in kind}
_KIND_OF = {name: place for place, kind in enumerate(_KINDS) for name, _ in kind}
_ACCUMULATION = "accumulation"
CHANGES = (*_BY_NAME, _ACCUMULATION)
"""The names of all changes."""
_MOST_HALVINGS = 11
# Log-normal, of what any change does to the time of an iteration: none of them was profiled.
_SIGMA_LEAST = 0.05
Versions = dict[tuple[str, ...], FittedScript]


def fitted(
    estimate: values.IterationEstimate,
    trace: values.Trace,
    gpu: values.GpuSpec,
    timed: Timed,
    *,
    slowdown: float,
) -> values.IterationEstimate:
    """The estimate with the largest batch, and where it does not fit with what would make it.

    The trace has the batch that each GPU takes; ``slowdown`` is of kernels while GPUs exchange, as a share of
    their time.
    """
    tensors = footprint(trace, estimate.layout, estimate.split)
    if tensors is None:
        return estimate
    beside, limit_bytes = overheads(trace, gpu, estimate.layout), estimate.memory_limit_bytes
    largest = largest_batch(trace, partial(need_bytes, tensors, beside), limit_bytes)
    if estimate.fit is not values.Fit.NO:
        return replace(estimate, largest_batch=largest)
    # Without what receipts corrected.
    whole_s, exchange_s = (s / estimate.correction for s in (estimate.device_s.p50, estimate.communication_s))
    by_phase = {phase.value: seconds for phase, seconds in timed(SameTrace(trace)).items()}
    rest_s = max(whole_s - exchange_s - sum(by_phase.values()), 0.0)
    version = FittedScript(
        trace=trace,
        gpu=gpu,
        layout=estimate.layout,
        tensors=tensors,
        beside=beside,
        seconds=StepSeconds(**by_phase, exchange=exchange_s, rest=rest_s),
        timed=timed,
        slowdown=slowdown,
        split=estimate.split,
    )
    return replace(estimate, largest_batch=largest, remedies=remedies(version, limit_bytes))


def changed(script: FittedScript, names: Iterable[str]) -> FittedScript | None:
    """The script with the changes of these names; None where one of them does not suit it."""
    version: FittedScript | None = script
    for name in names:
        version = None if version is None else _BY_NAME[name](version)
    return version


def remedies(script: FittedScript, limit_bytes: float) -> tuple[values.Remedy, ...]:
    """The changes after which the script fits, as few at once as it takes, the least slow first."""
    versions: Versions = {(): script}
    for _ in range(len(_KINDS) + 1):
        smaller = {}
        for names, version in versions.items():
            # As few passes as fit, none of less than a sample.
            samples, share = _samples(version), largest_share(version.need_bytes, limit_bytes)
            passes = next((2**n for n in range(1, _MOST_HALVINGS) if 2**-n <= share), None)
            if passes is not None and samples is not None and passes <= samples:
                smaller[*names, _ACCUMULATION] = with_batch(version, 1 / passes)
        versions = {
            (*names, name): more
            for names, version in versions.items()
            for kind in _KINDS[_KIND_OF[names[-1]] + 1 if names else 0 :]
            for name, change in kind
            if (more := change(version)) is not None
        }
        found = []
        for names, version in (versions | smaller).items():
            need, sigma = version.need_bytes(), math.hypot(version.sigma, _SIGMA_LEAST)
            slower, fit = version.seconds.total / script.seconds.total, values.Fit.of(need, limit_bytes)
            if fit is not values.Fit.NO:
                remedy = values.Remedy(
                    changes=names, batch_size=_samples(version), need_bytes=need, fit=fit,
                    slower=spread(slower, sigma),
                )  # fmt: skip
                found.append(((version.alters, slower, need.p50), remedy))
        if found:
            return tuple(remedy for _, remedy in sorted(found, key=itemgetter(0)))
    return ()


def _samples(version: FittedScript) -> int | None:
    trace = version.trace
    if trace.batch_size is None:
        return None
    return max(round(trace.batch_size / trace.accumulation * version.batch), 1)
