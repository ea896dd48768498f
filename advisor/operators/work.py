"""The arithmetic behind FLOPs and bytes: what families count with.

A multiply-add counts two, as in ``torch.utils.flop_counter``, with which matrix products, convolutions
and attention agree; like there, a causal mask does not halve attention (the trace keeps ``is_causal``).
Cheap operators have a nominal count per element: they are bound by memory, and the figure only has to
say so.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import cast

from advisor.core.values import AttributeValue, TensorSpec

Tensors = Sequence[TensorSpec]
Attributes = Mapping[str, AttributeValue]
# Inputs, outputs, attributes -> FLOPs or bytes of one call.
Formula = Callable[[Tensors, Tensors, Attributes], int]

_ITEM_BYTES = {
    "float64": 8, "int64": 8, "uint64": 8, "complex64": 8, "float32": 4, "int32": 4, "uint32": 4,
    "complex32": 4, "float16": 2, "bfloat16": 2, "int16": 2, "uint16": 2, "int8": 1, "uint8": 1,
    "bool": 1, "complex128": 16,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class PerElement:
    """A nominal FLOP count of a cheap operator."""

    of_output: int = 0
    """FLOPs per element of the first output, or of all if the operator works on lists: norms return
    statistics beside it, dropout a mask."""
    of_input: int = 0
    """The same of the first input, for reductions."""

    def flops(self, inputs: Tensors, outputs: Tensors) -> int:
        """Of the tensors that count."""
        return self.of_output * sum(map(numel, outputs)) + self.of_input * sum(map(numel, inputs))


# Copies, fills, look-ups and random numbers: no arithmetic worth counting.
MOVES = PerElement()
# Of a radix sort, for a key: eight passes, each reading and writing its 64 bits and its position.
SORTED_BYTES = 8 * 2 * 16


def numel(tensor: TensorSpec) -> int:
    """Elements of a tensor."""
    return prod(tensor.shape)


def folded_shape(tensor: TensorSpec) -> tuple[int, ...]:
    """The same for a matrix and its transpose, and without dimensions of one element.

    Products may give a gradient transposed; reductions leave such dimensions, and broadcasts add them.

    >>> folded_shape(TensorSpec(shape=(1, 8, 4), dtype="float32"))
    (4, 8)
    """
    return tuple(sorted(size for size in tensor.shape if size != 1))


def tensor_bytes(tensor: TensorSpec) -> int:
    """Bytes of a tensor's distinct elements.

    >>> tensor_bytes(TensorSpec(shape=(8, 4), dtype="float16", stride=(0, 1)))
    8
    """
    stride = tensor.stride if tensor.stride is not None else (1,) * len(tensor.shape)
    elements = 1
    for size, step in zip(tensor.shape, stride, strict=True):
        # A stride of 0 shows one element many times; a size of 0 leaves none.
        elements *= size if step != 0 or size == 0 else 1
    return elements * item_bytes(tensor.dtype)


def item_bytes(dtype: str) -> int:
    """Bytes of one element; formats that torch adds later are small floats, so 1."""
    return _ITEM_BYTES.get(dtype, 1)


def total_bytes(tensors: Tensors) -> int:
    """Bytes of several tensors."""
    return sum(tensor_bytes(tensor) for tensor in tensors)


def each_once(inputs: Tensors, outputs: Tensors, attributes: Attributes) -> int:  # noqa: ARG001
    """Bytes if every tensor is read or written once: what holds for most operators."""
    return total_bytes(inputs) + total_bytes(outputs)


def first_list(tensors: Tensors, attributes: Attributes) -> Tensors:
    """The tensors of the operator's first list argument."""
    return tensors[: cast("int", attributes["num_tensors"])]


def tiles(size: int, tile: int) -> int:
    """How many tiles cover a size."""
    return -(-size // tile)


def padding(size: int, tile: int) -> float:
    """Log of what a size grows by when it is rounded up to whole tiles.

    >>> padding(64, 32)
    0.0
    """
    return math.log(tiles(size, tile) * tile / size)


def alignment(size: int) -> float:
    """Log2 of the largest power of two up to 8 that divides a size: what vectorised loads need."""
    return math.log2(math.gcd(size, 8))
