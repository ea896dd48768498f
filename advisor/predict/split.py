"""A model divided among GPUs: what each runs, what they exchange, and whether it can be."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import exp

from advisor.core.errors import InputError
from advisor.core.values import Z90, GpuSpec, Layout, MemoryUse, Op, Phase, Split, TensorSpec, Trace
from advisor.operators.family import base_name, names
from advisor.operators.work import tensor_bytes
from advisor.predict.batch_share import BatchShare, memory_at
from advisor.predict.distinct import SameTrace, blocks_of, made_bytes
from advisor.predict.exchange.collective_time import CollectiveTime, collective_time
from advisor.predict.exchange.collectives import sharded_over
from advisor.predict.exchange.data_parallel import Exchange, together
from advisor.predict.footprint import copied_bytes
from advisor.predict.what_if.batch import recosted

# Of M micro-batches and P stages all but the first stage wait for the first micro-batch, so that an
# iteration takes ``M + P - 1`` times what a stage takes of one. Each stage holds the activations of up to P
# of them, if a backward pass goes before the next forward one (Narayanan et al., SC 2021).


def _part(count: int, share: float) -> int:
    return math.ceil(round(count * share, 6))


def _stepped(op: Op, num_layers: int, share: float) -> Op:
    """The step over a stage's parameters: of shapes that each layer has, its share."""
    size = len(op.outputs) if op.outputs and len(op.inputs) % len(op.outputs) == 0 else len(op.inputs)
    if size < num_layers:
        return op
    lists = [op.inputs[start : start + size] for start in range(0, len(op.inputs), size)]
    inputs = tuple(tensor for one in lists for tensor in _kept(one, num_layers, share))
    cut = recosted(op, inputs, tuple(_kept(op.outputs, num_layers, share)))
    # Its measured time would be a floor of the parts, even where the share is all.
    return replace(cut, measured_s=None, kernels=())


def _kept(tensors: Sequence[TensorSpec], num_layers: int, share: float) -> Iterator[TensorSpec]:
    left = {
        shape: _part(count, share) if count >= num_layers else count
        for shape, count in Counter(tensor.shape for tensor in tensors).items()
    }
    for tensor in tensors:
        if left[tensor.shape]:
            left[tensor.shape] -= 1
            yield tensor


def in_micro_batches(share: BatchShare, trace: Trace, split: Split) -> BatchShare:
    """The same samples in as many passes as let the stages be fastest.

    More passes leave stages less idle, and smaller ones fill a GPU less well.
    """
    if split.pipeline == 1 and split.micro_batches is None:
        return share
    passes, samples = round(trace.accumulation * share.passes), (trace.batch_size or 0) * share.whole
    wanted = [split.micro_batches] if split.micro_batches else [passes]
    while split.micro_batches is None and 2 * wanted[-1] <= samples:
        wanted.append(2 * wanted[-1])

    def of(number: int) -> BatchShare:
        return BatchShare(passes=number / trace.accumulation, batch=share.whole * trace.accumulation / number)

    return of(min(wanted, key=lambda number: (1 + (split.pipeline - 1) / number) * of(number).time))


def in_flight(trace: Trace, split: Split) -> Trace:
    """The trace with the activations of as many passes as a stage holds."""
    passes = min(split.pipeline, trace.accumulation)
    return trace if passes == 1 else replace(trace, memory=memory_at(trace, passes))


# Heads, the inner width and the vocabulary are divided: the first product of a pair by its columns, the
# second by its rows (Shoeybi et al., "Megatron-LM", arXiv 1909.08053). What works on the stream between
# blocks, such as norms and sums, stays whole. A trace has shapes, but not which product comes first: of
# each that dimension is divided which is not the stream's.

_PRODUCTS, _BATCHED = names("mm addmm"), names("bmm baddbmm")
# Where less of the products' work has the stream's width, the model is no transformer.
_LEAST_SHARE = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Widths:
    """Sizes by which shapes are read."""

    hidden: int
    """The stream's."""
    tokens: int
    """Rows of the stream."""
    divided: frozenset[int]
    """Of what layers make of it: queries, heads' values, the inner width, words."""
    groups: frozenset[int]
    """First dimensions of batched products, a batch times its heads."""
    stream_bytes: float
    """Of the stream, as products give it."""


def widths_of(ops: Sequence[Op]) -> Widths | None:
    """The widths of a transformer; None for any other model."""
    forward = [op for op in ops if op.phase is Phase.FORWARD]
    products = [op for op in forward if _is_product(op)]
    sizes: Counter[int] = Counter()
    for op in products:
        for size in set(op.inputs[-1].shape):
            sizes[size] += op.count
    if not sizes:
        return None
    hidden = max(sizes, key=lambda size: (sizes[size], size))
    with_stream = [op for op in products if hidden in op.inputs[-1].shape]
    if _flops(with_stream) < _LEAST_SHARE * _flops(products):
        return None
    rows: Counter[int] = Counter()
    for op in with_stream:
        rows[op.inputs[-2].shape[0]] += op.count
    tokens = max(rows, key=lambda size: rows[size])
    given = [op.outputs[0] for op in with_stream if op.outputs[0].shape == (tokens, hidden)]
    return Widths(
        hidden=hidden,
        tokens=tokens,
        divided=frozenset(size for op in with_stream for size in op.inputs[-1].shape) - {hidden},
        groups=frozenset(op.inputs[-1].shape[0] for op in forward if base_name(op.name) in _BATCHED),
        stream_bytes=max(map(tensor_bytes, given), default=0),
    )


def _flops(ops: Sequence[Op]) -> int:
    return sum(op.flops * op.count for op in ops)


def _is_product(op: Op) -> bool:
    is_named = base_name(op.name) in _PRODUCTS
    return is_named and len(op.outputs) == 1 and [len(t.shape) for t in op.inputs[-2:]] == [2, 2]


def divided_ops(ops: Sequence[Op], widths: Widths, ranks: int) -> tuple[Op, ...]:
    """What one of so many ranks runs, operator by operator in the same order."""
    return tuple(_divided(op, widths, ranks) for op in ops)


def _divided(op: Op, widths: Widths, ranks: int) -> Op:
    if _is_product(op):
        return _divided_product(op, widths, ranks)

    def part(tensor: TensorSpec) -> TensorSpec:
        axis = _axis(tensor.shape, widths, is_weight=op.phase is Phase.OPTIMIZER)
        return tensor if axis is None else along(tensor, axis, ranks)

    return recosted(op, tuple(map(part, op.inputs)), tuple(map(part, op.outputs)))


def _axis(shape: tuple[int, ...], widths: Widths, *, is_weight: bool) -> int | None:
    """The dimension of a tensor that is divided; None where each rank has all of it."""
    if len(shape) == 4:
        heads = (1, 2), (2, 1)
        return next((axis for axis, other in heads if shape[0] * shape[other] == widths.tokens), None)
    if len(shape) == 3 and shape[0] * shape[1] != widths.tokens and shape[1] > 1:
        return 0 if shape[0] in widths.groups else 1 if shape[0] * shape[2] == widths.tokens else None
    if shape and shape[-1] in widths.divided:
        return len(shape) - 1
    if len(shape) == 2 and shape[0] in widths.divided and shape[0] != widths.tokens:
        return 0
    return 0 if is_weight and shape == (widths.hidden, widths.hidden) else None


def _divided_product(op: Op, widths: Widths, ranks: int) -> Op:
    """Of ``[m, k] x [k, n]`` one of the three is divided, in all tensors that have it."""
    *bias, left, right = op.inputs
    (out,) = op.outputs
    (m, k), n = left.shape, right.shape[1]
    axis, known = "", widths.divided | {widths.hidden}
    # The likeliest first: rows of a stream, or sums over them.
    if {k, n} <= known and (m == widths.tokens or k != widths.tokens):
        axis = "k" if k in widths.divided and n not in widths.divided else "n"
    elif {m, n} <= known:
        axis = "n" if n in widths.divided and m not in widths.divided else "m"
    if axis == "m":
        tensors = (*bias, along(left, 0, ranks), right), (along(out, 0, ranks),)
    elif axis == "k":
        tensors = (*bias, along(left, 1, ranks), along(right, 0, ranks)), (out,)
    elif axis == "n":
        with_bias = (along(t, len(t.shape) - 1, ranks) for t in bias if t.shape)
        tensors = (*with_bias, left, along(right, 1, ranks)), (along(out, 1, ranks),)
    else:
        return op
    return recosted(op, *tensors)


def along(tensor: TensorSpec, axis: int, ranks: int) -> TensorSpec:
    """A rank's part of a tensor along one dimension, rounded up; dimensions outside of it move together."""
    size = tensor.shape[axis]
    part = -(-size // ranks)
    shape = tuple(part if i == axis else other for i, other in enumerate(tensor.shape))
    if tensor.stride is None:
        return replace(tensor, shape=shape)
    inner = tensor.stride[axis]
    stride = tuple(step // size * part if step > inner else step for step in tensor.stride)
    return replace(tensor, shape=shape, stride=stride)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """One of the GPUs that a model is divided among: of the last stage, which has the head besides layers."""

    trace: Trace
    """What it runs."""
    undivided: Trace
    """The same stage with whole layers, operator by operator."""
    split: Split
    num_layers: int
    """Of the stage."""
    in_layers: tuple[bool, ...]
    """Whether each operator runs in layers."""
    stream_bytes: float
    """What one layer hands to the next, for one pass of the profiled batch."""


def why_undivided(trace: Trace, split: Split) -> str | None:
    """Why the layers of a script cannot be divided so; None where they can."""
    blocks = blocks_of(trace)
    if split.divides_layers and (not blocks.repeats or blocks.num < split.pipeline):
        return f"{trace.script!r} has no layers that repeat as often"
    if split.tensor > 1 and widths_of(trace.ops) is None:
        return f"the products of {trace.script!r} are not those of a transformer"
    return None


def rank_of(trace: Trace, split: Split) -> Rank:
    """The part of a GPU; all of the script where layers are not divided.

    Raises InputError: the model has no layers that could be divided so.
    """
    if not split.divides_layers:
        none = (False,) * len(trace.ops)
        return Rank(trace=trace, undivided=trace, split=split, num_layers=0, in_layers=none, stream_bytes=0.0)
    return _rank_of(SameTrace(trace), split)


@lru_cache(maxsize=8)
def _rank_of(same: SameTrace, split: Split) -> Rank:
    trace, blocks = same.trace, blocks_of(same.trace)
    if (why := why_undivided(trace, split)) is not None:
        raise InputError(f"{split.name}: {why}.")
    widths, num_layers = widths_of(trace.ops), -(-blocks.num // split.pipeline)
    in_layers = [
        op.phase is not Phase.OPTIMIZER and op.count // trace.accumulation >= blocks.num for op in trace.ops
    ]
    share, staged = num_layers / blocks.num, []
    # The busiest stage runs its share of layers, and all that is outside of them.
    for op, is_inside in zip(trace.ops, in_layers, strict=True):
        if op.phase is Phase.OPTIMIZER:
            op = _stepped(op, blocks.num, share)
        staged.append(replace(op, count=_part(op.count, share)) if is_inside else op)
    ops = tuple(staged)
    if widths is not None and split.tensor > 1:
        ops = divided_ops(staged, widths, split.tensor)
    return Rank(
        trace=_with_ops(trace, ops),
        undivided=replace(trace, ops=tuple(staged)),
        split=split,
        num_layers=num_layers,
        in_layers=tuple(in_layers),
        stream_bytes=blocks.boundary_bytes if widths is None else widths.stream_bytes,
    )


def _with_ops(trace: Trace, ops: tuple[Op, ...]) -> Trace:
    part = replace(trace, ops=ops, iteration_s=None)
    own, all_ops = ([op for op in one if op.phase is Phase.FORWARD] for one in (ops, trace.ops))
    weights = _ratio(_stepped_bytes(ops), _stepped_bytes(trace.ops))
    if weights is None:
        weights = _ratio(_flops(own), _flops(all_ops)) or 1.0
    activations = _ratio(made_bytes(own), made_bytes(all_ops)) or 1.0
    return replace(part, memory=_memory(trace, copied_bytes(part), weights, activations))


def _memory(trace: Trace, copies: float, weights: float, activations: float) -> MemoryUse:
    """The memory of a rank that holds such shares of weights and activations, and so many bytes of copies."""
    memory, before = trace.memory, copied_bytes(trace)

    def held(num_bytes: int | None) -> int | None:
        return None if num_bytes is None else round(max(num_bytes - before, 0) * activations + copies)

    def state(num_bytes: float | None) -> int | None:
        return None if num_bytes is None else round(num_bytes * weights)

    pass_bytes = memory.peak_bytes if memory.pass_peak_bytes is None else memory.pass_peak_bytes
    held_bytes = memory.pass_activation_bytes
    held_bytes = memory.activation_bytes if held_bytes is None else held_bytes
    peak = None
    if pass_bytes is not None and held_bytes is not None:
        # Of the step, which has no activations, all is state and what is made beside it.
        step_bytes = memory.peak_bytes if (memory.peak_bytes or 0) > pass_bytes else None
        pass_peak = (state(pass_bytes - held_bytes) or 0) + (held(held_bytes) or 0)
        peak = max(pass_peak, state(step_bytes) or 0)
    return replace(
        memory,
        parameter_bytes=state(memory.parameter_bytes),
        gradient_bytes=state(memory.gradient_bytes),
        optimizer_bytes=state(memory.optimizer_bytes),
        activation_bytes=held(memory.activation_bytes),
        peak_bytes=peak,
        pass_activation_bytes=held(memory.pass_activation_bytes),
        pass_peak_bytes=None if memory.pass_peak_bytes is None else pass_peak,
        most_activation_bytes=held(memory.most_activation_bytes),
    )


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _stepped_bytes(ops: Sequence[Op]) -> int:
    steps = [op.inputs for op in ops if op.phase is Phase.OPTIMIZER]
    largest = max(steps, key=lambda inputs: len(inputs), default=())
    return sum(map(tensor_bytes, largest))


# Log-normal, of an iteration of a script that was never profiled.
_SIGMA_SHARDED = 0.05
_SIGMA_DIVIDED = 0.1


def check_split(trace: Trace, split: Split, layouts: Iterable[Layout]) -> None:
    """Refuse what cannot be meant.

    Raises InputError: the script divides its model itself, or a layout does not suit.
    """
    if split.is_none:
        return
    if sharded_over(trace) is not None:
        raise InputError(
            f"{trace.script!r} divides its model itself, among {trace.world_size} ranks: {split.name} cannot"
            " be supposed on top. Leave it out."
        )
    for layout in layouts:
        if not split.suits(layout):
            raise InputError(
                f"{split.name} does not divide {layout.num_gpus} GPUs into copies of the model: take a"
                f" multiple of {split.gpus_per_copy} GPUs, in nodes of a multiple of {split.tensor}."
            )


def sigma_of_split(split: Split, layout: Layout) -> float:
    """Log-normal, of the time of an iteration, by what dividing the model leaves unknown."""
    if split.divides_layers:
        return _SIGMA_DIVIDED
    return 0.0 if split.is_none or layout.num_gpus == 1 else _SIGMA_SHARDED


# Ranks that divide layers all-reduce the stream after attention and after the inner product, forward and
# backward; once more behind the words and in front of them (Shoeybi et al., arXiv 1909.08053). Stages hand
# on the stream, and its gradient back: each rank a part, which the next stage's ranks gather (Narayanan et
# al., SC 2021).

_REDUCTIONS_OF_A_LAYER, _REDUCTIONS_OF_WORDS = 4, 2
_FREE = CollectiveTime(seconds=0.0, sigma=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """Of one pass."""

    layers: Exchange
    """What a stage exchanges for its layers, and with the next stage."""
    words: Exchange
    """What it exchanges besides."""

    def of_passes(self, passes: int) -> Exchange:
        """Of so many passes."""
        of_one = together(self.layers, self.words)
        return Exchange(seconds=passes * of_one.seconds, sigma_s=passes * of_one.sigma_s)


def exchange_within(rank: Rank, batch: float, gpu: GpuSpec, layout: Layout) -> Within:
    """What one pass exchanges, of a batch over the profiled one."""
    split, num_bytes = rank.split, rank.stream_bytes * batch
    reduce, send, gather = _FREE, _FREE, _FREE
    group = Layout(gpus_per_node=split.tensor, fabric=layout.fabric)
    if split.tensor > 1:
        reduce = collective_time("all_reduce", num_bytes, group, gpu)
    if split.pipeline > 1:
        # A stage sends to the next node where there are several, with all GPUs of its own at once.
        per_node = layout.gpus_per_node if layout.num_nodes > 1 else 2
        next_to = Layout(gpus_per_node=per_node, num_nodes=min(layout.num_nodes, 2), fabric=layout.fabric)
        send = collective_time("send", num_bytes / split.tensor, next_to, gpu)
        gather = collective_time("all_gather", num_bytes, group, gpu)
    return Within(
        layers=_sum((_REDUCTIONS_OF_A_LAYER * rank.num_layers, reduce), (2, send), (2, gather)),
        words=_sum((_REDUCTIONS_OF_WORDS, reduce)),
    )


def _sum(*parts: tuple[int, CollectiveTime]) -> Exchange:
    """Slow machines are slow in all of it."""
    seconds = sum(count * time.seconds for count, time in parts)
    late_s = sum(count * time.seconds * exp(Z90 * time.sigma) for count, time in parts)
    return Exchange(seconds=seconds, sigma_s=(late_s - seconds) / Z90)
