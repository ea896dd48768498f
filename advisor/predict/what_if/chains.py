"""Chains of streams that Inductor joins into kernels, where a trace tells what made each operand.

    cast(gelu(product)) is one kernel: it reads the product and writes what the next product reads.

A stream reads what another kernel made, and writes what another kernel reads. What joined streams hand on
never leaves the registers. Two are joined unless something that is no stream has to run between them: in
``x + product(norm(x))`` the norm is joined with what makes x, the sum is not. A backward stream computes
again what only it would read of the forward pass.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from advisor.core.values import Flow, Op, Phase, Role
from advisor.operators.work import numel, tensor_bytes

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
    """The streams of an iteration, joined.

    Args:
        ops: of the iteration.
        streams: the places among them of those that may be joined; each tells its flows.
    """

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
        kernels = (_KERNELS_OF_STATISTICS if _has_statistics(op) else 0) + (1 if written else 0)
        return Joined(flow.count * (read + written), flow.count * kernels)

    def _is_written(self, made: int) -> bool:
        """Whether another kernel reads what the calls of a flow make."""
        readers = self._readers.get(made, [])
        # The last of calls that only read each other is what the iteration gives back.
        return all(reader.flow.id == made for reader in readers) or any(
            self._needs(made, reader) for reader in readers
        )

    def _needs(self, made: int, reader: _Call) -> bool:
        is_again = reader.place in self._streams and reader.op.phase is not self._makers[made].op.phase
        return not is_again and not self._joins(made, reader)

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
        if _reduces_image(reader.op) and len(self._readers[source]) > 1:
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


def _has_statistics(op: Op) -> bool:
    """Whether it is a norm of images that looks at them; in inference it only scales."""
    is_of_images = any(name in op.name for name in _IMAGE_NORMS) and "no_training" not in op.name
    return is_of_images and (op.phase is Phase.BACKWARD or op.attributes.get("training", True) is not False)
