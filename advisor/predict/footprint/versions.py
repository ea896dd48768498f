"""Versions of a script that hold less: what each change does to memory and to the time of an iteration."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from advisor.core.values import WHOLE, GpuSpec, Interval, Layout, Phase, Sharding, Split, TensorSpec, Trace
from advisor.operators.work import tensor_bytes
from advisor.predict.batch_share import BatchShare
from advisor.predict.distinct import Same, SameTrace
from advisor.predict.exchange.collectives import shares_state
from advisor.predict.exchange.data_parallel import Exchange
from advisor.predict.exchange.zero import SharedModel, exchange_of_zero, shared_state_ranks
from advisor.predict.footprint.blocks import Blocks
from advisor.predict.footprint.need import need_bytes
from advisor.predict.footprint.overheads import Overheads
from advisor.predict.footprint.tensors import Footprint, footprint, sharded
from advisor.predict.what_if.autocast import under_autocast

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
# Each product first makes 16 bits of its weights again. At which share of the memory's rate nobody measured.
_DEQUANTIZED_BYTES, _DEQUANTIZE_SHARE, _SIGMA_QLORA = 2.5, 0.5, 0.2
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


Timed = Callable[[SameTrace], Mapping[Phase, float]]
"""Seconds of the operators of a trace on the same GPUs, by phase."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """The script with some changes, on one GPU of a layout.

    Attributes:
        slowdown: of kernels while GPUs exchange, as a share of their time.
        seconds: of an iteration of as many samples as the script as it is.
        sigma: of the logarithm of their ratio to that.
        sigma_activations: of activations that were not recorded.
        batch: of one pass, over the profiled one.
        split: how the model is divided.
        alters: the model that comes out is another.
    """

    trace: Trace
    gpu: GpuSpec
    layout: Layout
    tensors: Footprint
    beside: Overheads
    seconds: StepSeconds
    timed: Timed
    slowdown: float
    sigma: float = 0.0
    sigma_activations: float = 0.0
    batch: float = 1.0
    split: Split = WHOLE
    alters: bool = False

    def need_bytes(self, batch: float | None = None) -> Interval:
        """What one GPU must hold, with another share of the batch if one is given."""
        share = self.batch if batch is None else batch
        return need_bytes(self.tensors, self.beside, share, sigma_activations=self.sigma_activations)


def with_autocast(version: Version) -> Version | None:
    """Products in bf16, or in fp16 where the GPU has no bf16."""
    rates = version.gpu.tensor_flops_per_s
    dtype = "bfloat16" if "bf16" in rates else "float16" if "fp16" in rates else None
    changed = None if dtype is None else _under_autocast(SameTrace(version.trace), dtype)
    tensors = None if changed is None else footprint(changed, version.layout, version.split)
    if changed is None or tensors is None:
        return None
    by_phase = version.timed(SameTrace(changed))
    return replace(
        version,
        trace=changed,
        tensors=tensors,
        seconds=replace(
            version.seconds,
            forward=by_phase[Phase.FORWARD],
            backward=by_phase[Phase.BACKWARD],
            optimizer=by_phase[Phase.OPTIMIZER],
        ),
        sigma=math.hypot(version.sigma, _SIGMA_PRECISION),
    )


@lru_cache(maxsize=8)
def _under_autocast(same: SameTrace, dtype: str) -> Trace | None:
    return under_autocast(same.trace, dtype)


def with_bf16_weights(version: Version) -> Version | None:
    """Weights, gradients and optimizer state in bf16 as well; products too, where they are not yet."""
    if "bf16" not in version.gpu.tensor_flops_per_s or not _trains_in_full_precision(version.trace):
        return None
    lowered = version if version.trace.precision.amp_dtype else with_autocast(version)
    if lowered is None:
        return None
    tensors = lowered.tensors
    halved = replace(
        tensors,
        weights=tensors.weights / 2,
        gradients=tensors.gradients / 2,
        gradients_at_peak=tensors.gradients_at_peak / 2,
        optimizer=tensors.optimizer / 2,
        step_temporary=tensors.step_temporary / 2,
        buckets=tensors.buckets / 2,
        copies=0.0,
    )
    return replace(lowered, tensors=halved, alters=True)


def with_8_bit_optimizer(version: Version) -> Version | None:
    """An optimizer that keeps its state in eight bits, such as bitsandbytes'."""
    tensors = version.tensors
    if not _trains_in_full_precision(version.trace) or not tensors.optimizer:
        return None
    return replace(version, tensors=replace(tensors, optimizer=tensors.optimizer * _EIGHT_BIT))


def with_lora(version: Version) -> Version | None:
    """Fine-tuning that trains adapters of low rank beside weights that stay as they are."""
    share = _trained_share(version.trace)
    if share is None:
        return None
    tensors, seconds = version.tensors, version.seconds
    frozen = replace(
        tensors,
        weights=tensors.weights * (1 + share),
        gradients=tensors.gradients * share,
        gradients_at_peak=tensors.gradients_at_peak * share,
        optimizer=tensors.optimizer * share,
        step_temporary=tensors.step_temporary * share,
        buckets=tensors.buckets * share,
    )
    return replace(
        version,
        tensors=frozen,
        seconds=replace(
            seconds, backward=_LORA_BACKWARD * seconds.backward, optimizer=share * seconds.optimizer
        ),
        sigma=math.hypot(version.sigma, _SIGMA_LORA),
        alters=True,
    )


def with_qlora(version: Version) -> Version | None:
    """As with LoRA, with the matrices of layers in four bits, of which each product makes 16 first."""
    adapted, matrices = with_lora(version), _in_layers(version.trace, version.tensors.blocks)
    if adapted is None or not matrices:
        return None
    elements = sum(math.prod(tensor.shape) for tensor in matrices)
    saved = sum(map(tensor_bytes, matrices)) - elements * _QLORA_BYTES
    if not 0 < saved < adapted.tensors.weights:
        return None
    rate = _DEQUANTIZE_SHARE * version.gpu.memory_bytes_per_s
    made_s = version.trace.accumulation * elements * _DEQUANTIZED_BYTES / rate
    seconds = adapted.seconds
    return replace(
        adapted,
        tensors=replace(adapted.tensors, weights=adapted.tensors.weights - saved),
        seconds=replace(seconds, forward=seconds.forward + made_s, backward=seconds.backward + made_s),
        sigma=math.hypot(adapted.sigma, _SIGMA_QLORA),
    )


def with_checkpointing(version: Version) -> Version | None:
    """Activations kept between blocks alone, and computed again within: one more forward pass of them."""
    tensors, blocks, seconds = version.tensors, version.tensors.blocks, version.seconds
    most = max(tensors.activations, tensors.most_activations)
    within, outside = most * (1 - blocks.outside_share) / blocks.num, most * blocks.outside_share
    kept = blocks.num * blocks.boundary_bytes + max(within, outside)
    if not blocks.boundary_bytes or kept >= most:
        return None
    return replace(
        version,
        tensors=replace(
            tensors,
            activations=min(kept, tensors.activations),
            most_activations=kept,
        ),
        seconds=replace(seconds, backward=seconds.backward + (1 - blocks.outside_share) * seconds.forward),
        sigma_activations=_SIGMA_CHECKPOINTED,
    )


def with_sharding(version: Version, sharding: Sharding) -> Version | None:
    """The model shared by the GPUs of the layout; gathers of weights do not all hide behind the passes."""
    split = version.split
    layout, seconds, tensors = split.copies(version.layout), version.seconds, version.tensors
    is_shared = split.sharding is not Sharding.NONE or shares_state(version.trace)
    if is_shared or layout.num_gpus == 1 or (sharding is Sharding.HYBRID and layout.num_nodes == 1):
        return None
    exchange = exchange_of_zero(
        SharedModel(
            weights_bytes=tensors.weights, gradients_bytes=tensors.gradients, blocks=tensors.blocks.num
        ),
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


def with_batch(version: Version, batch: float) -> Version:
    """Smaller passes, as many more of them; kernels of a small batch fill a GPU less well."""
    share = BatchShare(batch=batch)
    slower, seconds = share.time / batch, version.seconds
    slow = replace(seconds, forward=slower * seconds.forward, backward=slower * seconds.backward)
    return replace(version, batch=batch, seconds=slow, sigma=math.hypot(version.sigma, share.sigma))


def _in_layers(trace: Trace, blocks: Blocks) -> list[TensorSpec]:
    """The matrices that each layer has; the words' and the head's stay in 16 bits."""
    if not blocks.repeats:
        return []
    stepped = _parameters(Same(trace.ops))
    counts = Counter(tensor.shape for tensor in stepped)
    return [t for t in stepped if len(t.shape) == 2 and counts[t.shape] >= blocks.num]


def _parameters(same: Same) -> tuple[TensorSpec, ...]:
    """What the optimizer steps over: the first list of its call."""
    steps = [op for op in same.ops if op.phase is Phase.OPTIMIZER]
    lists = [op.inputs[: len(op.outputs)] for op in steps if len(op.outputs) > 1]
    return max(lists, key=lambda tensors: len(tensors), default=())


def _trains_in_full_precision(trace: Trace) -> bool:
    return _stepped(Same(trace.ops))[0]


def _trained_share(trace: Trace) -> float | None:
    """Of the weights, what adapters beside every matrix have; None for a model without matrices."""
    return _stepped(Same(trace.ops))[1]


@lru_cache(maxsize=8)
def _stepped(same: Same) -> tuple[bool, float | None]:
    """Whether the optimizer steps over matrices in full precision, and what adapters would leave of them."""
    steps = [op for op in same.ops if op.phase is Phase.OPTIMIZER]
    is_full = any(t.dtype == _FULL and len(t.shape) > 1 for op in steps for t in op.inputs)
    shapes = [t.shape for t in max(steps, key=lambda op: len(op.inputs)).inputs] if steps else []
    matrices = [shape for shape in shapes if len(shape) == 2 and min(shape) > _RANK]
    if not matrices:
        return is_full, None
    adapters = sum(_RANK * sum(shape) for shape in matrices)
    return is_full, min(adapters / sum(map(math.prod, shapes)), 1.0)
