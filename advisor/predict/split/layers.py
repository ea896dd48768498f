"""The layers of a transformer divided among GPUs of a node, as Megatron-LM divides them.

Heads, the inner width and the vocabulary are divided: the first product of a pair by its columns, the second
by its rows (Shoeybi et al., "Megatron-LM", arXiv 1909.08053). What works on the stream between blocks, such
as norms and sums, stays whole. A trace has shapes, but not which product comes first: of each that
dimension is divided which is not the stream's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from advisor.core.values import Op, Phase, TensorSpec
from advisor.operators.family import base_name, names
from advisor.operators.work import tensor_bytes
from advisor.predict.what_if.batch import recosted

_PRODUCTS, _BATCHED = names("mm addmm"), names("bmm baddbmm")
# Where less of the products' work has the stream's width, the model is no transformer.
_LEAST_SHARE = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Widths:
    """Sizes by which shapes are read.

    Attributes:
        hidden: the stream's.
        tokens: rows of the stream.
        divided: of what layers make of it: queries, heads' values, the inner width, words.
        groups: first dimensions of batched products, a batch times its heads.
        stream_bytes: of the stream, as products give it.
    """

    hidden: int
    tokens: int
    divided: frozenset[int]
    groups: frozenset[int]
    stream_bytes: float


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
    tokens = rows.most_common(1)[0][0]
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
        return (
            1 if shape[0] * shape[2] == widths.tokens else 2 if shape[0] * shape[1] == widths.tokens else None
        )
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
    axis = next(_divided_sizes((*left.shape, right.shape[1]), widths), None)
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


def _divided_sizes(sizes: Sequence[int], widths: Widths) -> Iterator[str]:
    """Which of m, k and n may be divided, the likeliest first: rows of a stream, or sums over them."""
    m, k, n = sizes
    known = widths.divided | {widths.hidden}
    if {k, n} <= known and (m == widths.tokens or k != widths.tokens):
        yield "n" if n in widths.divided else "k" if k in widths.divided else "n"
    if {m, n} <= known:
        yield "m" if m in widths.divided else "n" if n in widths.divided else "m"


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
