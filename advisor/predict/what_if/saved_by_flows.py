"""What backward operators read of the forward pass, where a trace tells what made their operands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from advisor.core.values import Flow, Op, Phase, Role, TensorSpec
from advisor.operators.work import item_bytes, numel, tensor_bytes
from advisor.predict.what_if.saved import FULL_BYTES, Read
from advisor.predict.what_if.weights import num_parameters


class _Kind(NamedTuple):
    """What calls of one flow made: their result at a position, or casts of it for another flow."""

    source: int
    position: int
    dtype: str
    cast_for: int | None = None


class SavedByFlows:
    """Reads of a trace that was followed.

    Args:
        ops: of an iteration.
        accumulation: passes of it.
    """

    def __init__(self, ops: Sequence[Op], accumulation: int) -> None:
        self._makers: dict[int, Op] = {}
        self._made: dict[int, float] = {}
        self._parameters: dict[int, int] = {}
        self._readers: dict[_Kind, float] = {}
        for op in ops:
            for flow in op.flows:
                own = self._parameters.get(flow.id, 0) + num_parameters([flow])
                self._parameters[flow.id] = own
                self._makers.setdefault(flow.id, op)
                self._made[flow.id] = self._made.get(flow.id, 0.0) + flow.count / accumulation
        for op in ops:
            if op.phase is Phase.BACKWARD:
                for read in self.reads(op):
                    number = read.weight * op.count / accumulation
                    self._readers[read.kind] = self._readers.get(read.kind, 0.0) + number

    def reads(self, op: Op) -> Iterator[Read[_Kind]]:
        """What the forward pass made; parameters and data only as copies in lower precision."""
        for flow in op.flows:
            for tensor, source in zip(op.inputs, flow.sources, strict=True):
                read = self._read(tensor, source, flow)
                if read is not None:
                    yield Read(*read, flow.count / op.count)

    def _read(self, tensor: TensorSpec, source: int, flow: Flow) -> tuple[_Kind, int] | None:
        cast = _Kind(source, 0, tensor.dtype, flow.forward)
        if source in (Role.PARAMETER, Role.OUTSIDE):
            is_cast = item_bytes(tensor.dtype) < FULL_BYTES
            return (cast, tensor_bytes(tensor)) if is_cast else None
        maker = self._makers.get(source)
        if maker is None or maker.phase is Phase.BACKWARD:
            return None
        sizes = {i: numel(one) for i, one in enumerate(maker.outputs) if one.dtype == tensor.dtype}
        if not sizes:
            return cast, tensor_bytes(tensor)
        # A view keeps all of what it is a view of.
        position = max(sizes, key=lambda i: (sizes[i] == numel(tensor), sizes[i]))
        return _Kind(source, position, tensor.dtype), tensor_bytes(maker.outputs[position])

    def num_tensors(self, kind: _Kind) -> float:
        """A cast has one reader, but for those of parameters; what layers share has several."""
        readers = self._readers[kind]
        if kind.source == Role.PARAMETER and kind.cast_for in self._parameters:
            return min(readers, self._parameters[kind.cast_for])
        return readers if kind.cast_for is not None else min(readers, self._made.get(kind.source, readers))
