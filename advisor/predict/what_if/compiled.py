"""A step as ``torch.compile`` makes it: chains of what streams through memory run as one kernel each.

    relu(norm(product)) in eager mode reads and writes memory twice; compiled it reads once and writes once.

Inductor joins chains of element-wise operators, norms and reductions; products stay library calls, and so
do casts of weights, whose results products read. A trace that was followed tells the chains. Of an older one
a share of the bytes is left, chosen on published training steps (docs/methods/compiled.md); there a chain
ends at a product or a norm, so as many kernels of element-wise operators are left to be launched.
"""

import re
from collections import Counter, deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from advisor.core.findings.about_traces import CompileSeen
from advisor.core.values import Flow, Launch, Op, Phase, Role, Trace
from advisor.operators.elementwise import ELEMENTWISE
from advisor.operators.family import base_name
from advisor.operators.norm import NORM
from advisor.operators.registry import family_of
from advisor.operators.work import numel, tensor_bytes
from advisor.predict.distinct import kept
from advisor.predict.what_if.channels_last import only_turned
from advisor.predict.what_if.held_tensors import Shape, is_of, parameter_shapes

# What a batch of images is divided by is known when kernels have seen all of it: one sums up parts, one adds
# those up. Norms of rows keep their row.
_IMAGE_NORMS, _KERNELS_OF_STATISTICS = ("batch_norm", "group_norm"), 2
# Among so many flows is looked for what has to run between two streams: unrolled loops have thousands.
_MOST_FLOWS = 1000
# A result so much smaller than its image is a sum over pixels.
_LEAST_REDUCTION, _IMAGE_DIMENSIONS = 4, 4


class Joined(NamedTuple):
    """What all calls of one operator are of the kernels that they are joined into."""

    num_bytes: int
    kernels: int


class _Call(NamedTuple):
    number: int
    place: int
    op: Op
    flow: Flow


class Chains:
    """The streams of an iteration, joined: those at the places that may be; each tells its flows."""

    def __init__(self, ops: Sequence[Op], streams: Collection[int]) -> None:
        self._streams = frozenset(streams)
        told = ((i, op, flow) for i, op in enumerate(ops) for flow in op.flows)
        self._calls = [_Call(number, *call) for number, call in enumerate(told)]
        self._known: dict[tuple[int, int], bool] = {}
        self._makers: dict[int, _Call] = {}
        self._sources: dict[int, set[int]] = {}
        self._readers: dict[int, list[_Call]] = {}
        for call in self._calls:
            self._makers.setdefault(call.flow.id, call)
            self._sources.setdefault(call.flow.id, set()).update(_flows_of(call.flow))
            for source in set(_flows_of(call.flow)):
                self._readers.setdefault(source, []).append(call)

    def joined(self) -> dict[int, Joined]:
        """By place, each stream's part."""
        found: dict[int, Joined] = {}
        for call in self._calls:
            if call.place in self._streams:
                before = found.get(call.place, Joined(0, 0))
                own = self._of_call(call)
                found[call.place] = Joined(before.num_bytes + own.num_bytes, before.kernels + own.kernels)
        return found

    def _of_call(self, call: _Call) -> Joined:
        op, flow = call.op, call.flow
        read = sum(
            tensor_bytes(tensor)
            for place, (tensor, source) in enumerate(zip(op.inputs, flow.sources, strict=True))
            if source not in flow.sources[:place] and not self._joins(source, call)
        )
        written = tensor_bytes(op.outputs[0]) if op.outputs and self._is_written(flow.id) else 0
        # Of a norm of images that looks at them; in inference it only scales.
        is_of_images = any(name in op.name for name in _IMAGE_NORMS) and "no_training" not in op.name
        looks = op.phase is Phase.BACKWARD or op.attributes.get("training", True) is not False
        kernels = (_KERNELS_OF_STATISTICS if is_of_images and looks else 0) + (1 if written else 0)
        return Joined(flow.count * (read + written), flow.count * kernels)

    def _is_written(self, made: int) -> bool:
        readers, phase = self._readers.get(made, []), self._makers[made].op.phase
        # The last of calls that only read each other is what the iteration gives back.
        if all(reader.flow.id == made for reader in readers):
            return True
        needing = (one for one in readers if one.place not in self._streams or one.op.phase is phase)
        return not all(self._joins(made, reader) for reader in needing)

    def _joins(self, source: int, reader: _Call) -> bool:
        """Whether a call gets what a stream makes without a way through memory; asked from both ends."""
        key = source, reader.number
        if key not in self._known:
            self._known[key] = self._are_joined(source, reader)
        return self._known[key]

    def _are_joined(self, source: int, reader: _Call) -> bool:
        maker = self._makers.get(source)
        if maker is None or maker.place not in self._streams or reader.place not in self._streams:
            return False
        if maker.op.phase is not reader.op.phase:
            return False
        if len(self._readers[source]) > 1 and _reduces_image(reader.op):
            return False
        others = (other for other in _flows_of(reader.flow) if other != source)
        return not any(self._lies_between(source, other) for other in others)

    def _lies_between(self, source: int, flow: int) -> bool:
        """Whether what is no stream lies on the shortest way from a flow back to one that it rests on."""
        found = {flow: not self._is_stream(flow)}
        ahead = deque([flow])
        while ahead and source not in found and len(found) < _MOST_FLOWS:
            last = ahead.popleft()
            for before in self._sources.get(last, ()):
                if before not in found:
                    found[before] = found[last] or not self._is_stream(before)
                    ahead.append(before)
        return found.get(source, False)

    def _is_stream(self, flow: int) -> bool:
        maker = self._makers.get(flow)
        return maker is not None and maker.place in self._streams


def _flows_of(flow: Flow) -> Iterator[int]:
    return (source for source in flow.sources if source > max(Role))


def _reduces_image(op: Op) -> bool:
    """Whether it sums over pixels, as squeeze and excitation do: in another order than what makes them."""
    if not op.outputs or len(op.inputs[0].shape) != _IMAGE_DIMENSIONS:
        return False
    return _LEAST_REDUCTION * numel(op.outputs[0]) <= numel(op.inputs[0])


# ResNet-50 compiled runs in channels_last whatever its script says, since its convolutions are faster so;
# ResNeXt, whose convolutions have groups, trains in the script's. Inductor decides by shapes alone, for a
# whole graph at once, since torch 2.1 (torch/_inductor/graph.py, ``decide_layout_opt``), but not on ROCm.

_SINCE = (2, 1)
_MOST_NODES_A_CONVOLUTION = 300
_FEW_CHANNELS = 64
# Of a weight: channels out and in, before its sides.
_LEAST_DIMENSIONS = 2
# Inductor's own constants: time in channels_last over that in NCHW. Without gradients their mean decides.
_GROUPED, _DEFAULT, _NARROWING, _SMALL = 1.358, 0.823, 0.725, 0.783


def laid_out(ops: tuple[Op, ...], vendor: str, release: str) -> tuple[Op, ...]:
    """The operators of a compiled step as Inductor of a release of torch lays them out, or leaves them."""
    found = re.match(r"(\d+)\.(\d+)", release)
    has_rule = found is None or (int(found[1]), int(found[2])) >= _SINCE  # of an unknown one it is taken to
    is_chosen = vendor == "NVIDIA" and has_rule and chooses_channels_last(ops)
    # Norms of groups and rows of products become Inductor's own kernels, which read any layout.
    return only_turned(ops) if is_chosen else ops


def chooses_channels_last(ops: Sequence[Op]) -> bool:
    """Inductor's rule, by the convolutions of the forward pass."""
    forward = [op for op in ops if op.phase is Phase.FORWARD]
    # Whose weight and groups a trace holds; exported profiles do not.
    named = [op for op in forward if base_name(op.name) == "convolution" and "groups" in op.attributes]
    convolutions = [op for op in named if len(op.inputs) > 1 and len(op.inputs[1].shape) > _LEAST_DIMENSIONS]
    calls = sum(op.count for op in convolutions)
    if not calls or sum(op.count for op in forward) >= _MOST_NODES_A_CONVOLUTION * calls:
        return False
    if any(op.phase is Phase.BACKWARD for op in ops):
        is_slower = any(_is_grouped(op) or _is_narrowing(op) for op in convolutions)
        return not is_slower and not all(map(_has_few_channels, convolutions))
    return sum((_time_ratio(op) - 1) * op.flops * op.count for op in convolutions) <= 0


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


FUSED = "advisor::fused"
DEFAULT = "default"
# Of the bytes that streams move in eager mode. Chosen on training steps of PyTorch's dashboards (A100, 2023,
# BSD-3-Clause) by `python -m research.compiled_steps`.
LEFT_SHARE = 0.3
# What joined kernels take longer than their bytes at the bandwidth of plain streams. Chosen on compiled
# passes of timm's models (RTX 4090, torch 2.4 and 2.9, Apache-2.0) by `python -m research.compiled_passes`.
CHAIN_OVERHEAD = 1.2
_STREAMING = frozenset({NORM.word, ELEMENTWISE.word})
# Modes whose launches are recorded once and replayed.
_GRAPHS = frozenset({"reduce-overhead", "max-autotune"})
_TOLD = frozenset({"ignored", "measured"})
_PASSES = (Phase.FORWARD, Phase.BACKWARD)
# Their results' shapes follow from values, where a compiled graph ends.
_BREAK = frozenset({"nonzero", "masked_select", "_unique2", "unique_dim", "bincount", "repeat_interleave"})
# A judgement: chains of a few operators are all whole in pieces as long as this.
_LEAST_OPERATORS_OF_A_GRAPH = 50


def is_compiled(trace: Trace) -> bool:
    """Whether the script compiles already; older traces only warn of it."""
    return trace.compile_mode is not None or any(
        isinstance(one, CompileSeen) and one.how in _TOLD for one in trace.warnings
    )


def graph_breaks(trace: Trace) -> int:
    """How often values decide a shape in the forward pass; 0 where that leaves graphs of some length."""
    forward, num_breaks = [op for op in trace.ops if op.phase is Phase.FORWARD], 0
    for op in forward:
        name = base_name(op.name)
        is_masked = name == "index" and any(one.dtype in ("bool", "uint8") for one in op.inputs[1:])
        num_breaks += op.count * (name in _BREAK or is_masked)
    is_often = num_breaks * _LEAST_OPERATORS_OF_A_GRAPH > sum(op.count for op in forward)
    return num_breaks if is_often else 0


def compiled(trace: Trace) -> Trace | None:
    """The script's trace with its model compiled; None if it is already, or nothing could be fused."""
    if is_compiled(trace) or fused(trace.ops) == trace.ops:
        return None
    return replace(trace, compile_mode=DEFAULT, iteration_s=None)


def as_run(trace: Trace, vendor: str) -> Trace:
    """What runs of a trace of eager operators: the same, or fused and laid out where the step is compiled."""
    if trace.compile_mode is None or trace.launch is not Launch.EAGER:
        return trace
    launch = Launch.GRAPH if trace.compile_mode in _GRAPHS else Launch.COMPILED
    return replace(trace, ops=_as_run(trace.ops, vendor, trace.versions.get("torch", "")), launch=launch)


@kept(8)
def _as_run(ops: tuple[Op, ...], vendor: str, release: str) -> tuple[Op, ...]:
    return fused(laid_out(ops, vendor, release))


@kept(8)
def fused(
    ops: tuple[Op, ...], *, overhead: float = CHAIN_OVERHEAD, left_share: float = LEFT_SHARE
) -> tuple[Op, ...]:
    """The operators with chains of streams joined; where nothing is, the operators themselves.

    Args:
        overhead: of the bytes of chains.
        left_share: of the bytes that streams move, where the operators do not tell what made their operands.
    """
    streams = [i for i, op in enumerate(ops) if op.flows and _streaming_word(op)]
    return tuple(_by_chains(ops, streams, overhead, left_share)) if streams else _by_share(ops, left_share)


def _by_chains(ops: Sequence[Op], streams: Sequence[int], overhead: float, left_share: float) -> Iterator[Op]:
    """The operators, with what is left of streams; those that are whole in other kernels are gone."""
    parts, weights = Chains(ops, streams).joined(), _weights(ops)
    for i, op in enumerate(ops):
        part = parts.get(i)
        if part is None:
            # Most streams that a change of the script added are casts.
            share = 1.0 if _is_cast_of(op, weights) else left_share
            yield _joined(op, share, share) if _streaming_word(op) else op
        elif part.num_bytes:
            num_bytes = min(overhead * part.num_bytes, op.bytes * op.count)
            yield _part(op, num_bytes, max(part.kernels, 1))


def _by_share(ops: tuple[Op, ...], left_share: float) -> tuple[Op, ...]:
    """The same of a trace that does not tell what made which operand."""
    weights = _weights(ops)
    words = ["" if _is_cast_of(op, weights) else _streaming_word(op) for op in ops]
    # Calls of element-wise operators by phase, and of others.
    streams, others = Counter[Phase](), Counter[Phase]()
    for op, word in zip(ops, words, strict=True):
        (streams if word == ELEMENTWISE.word else others)[op.phase] += op.count
    joined = []
    for op, word in zip(ops, words, strict=True):
        # What a batch norm divides by is known when a kernel has seen the batch; rows stay on their SM.
        kernels = 2.0 if "batch_norm" in op.name else 1.0
        if word == ELEMENTWISE.word:  # there is a chain for each product or norm at most
            kernels = min(others[op.phase] / streams[op.phase], 1.0)
        joined.append(_joined(op, left_share, kernels) if word else op)
    return tuple(joined)


def _streaming_word(op: Op) -> str:
    word = family_of(op).word
    is_whole = op.name != FUSED and op.phase in _PASSES and op.bytes > 0
    return word if word in _STREAMING and is_whole else ""


def _weights(ops: Sequence[Op]) -> frozenset[Shape]:
    """Of the matrices and kernels that the optimizer steps over."""
    return frozenset(shape for shape in parameter_shapes(ops) if len(shape) > 1)


def _is_cast_of(op: Op, weights: frozenset[Shape]) -> bool:
    is_cast = base_name(op.name) == "_to_copy"
    return is_cast and any(is_of(weights, tensor) for tensor in op.inputs)


def _joined(op: Op, left_share: float, kernels: float) -> Op:
    """The operator's part of the kernels it is joined into, which move less together."""
    return _part(op, op.bytes * op.count * left_share, max(round(op.count * kernels), 1))


def _part(op: Op, num_bytes: float, kernels: int) -> Op:
    return replace(
        op,
        name=FUSED,
        count=kernels,
        bytes=int(num_bytes / kernels),
        flops=op.flops * op.count // kernels,
        measured_s=None,
        kernels=(),
    )
