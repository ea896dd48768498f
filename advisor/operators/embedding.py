"""Look-ups: embeddings and the other ways to pick rows and elements."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from advisor.core.values import Op, Phase
from advisor.operators.case import FLOATS, Caps, Case, call, tensor
from advisor.operators.cycles import Stream, stream_costs
from advisor.operators.draw import Draw, shrunk
from advisor.operators.family import Family, base_name, each, names
from advisor.operators.row_kernels import plain_work, scatter_work
from advisor.operators.work import (
    MOVES,
    Attributes,
    PerElement,
    Tensors,
    item_bytes,
    tensor_bytes,
    total_bytes,
)

# --- Bytes -----------------------------------------------------------------------------------------


def _gathers(inputs: Tensors, outputs: Tensors, attributes: Attributes) -> int:  # noqa: ARG001
    """Reads as many elements as it writes, not the whole table, and the indices."""
    return 2 * total_bytes(outputs) + total_bytes(inputs[1:])


def _scatters(inputs: Tensors, outputs: Tensors, attributes: Attributes) -> int:  # noqa: ARG001
    """Reads indices and values; reads and writes as many elements of the target."""
    *indices, values = inputs[1:] or inputs
    return total_bytes(indices) + 3 * tensor_bytes(values)


def _scatters_into_copy(inputs: Tensors, outputs: Tensors, attributes: Attributes) -> int:
    """The same into a copy of the target."""
    return _scatters(inputs, outputs, attributes) + 2 * tensor_bytes(inputs[0])


# --- Time ------------------------------------------------------------------------------------------


def _stream(op: Op) -> Stream | None:
    """An SM looks up an element in about two clocks, whatever its dtype; gradients are sorted first."""
    name = base_name(op.name)
    if not op.inputs or not op.outputs or name not in ("embedding", "embedding_dense_backward"):
        return None
    if name == "embedding":
        return Stream(cost=stream_costs()["look-up"], work=plain_work(prod(op.outputs[0].shape), op.bytes))
    table, width = op.outputs[0].shape[0], max(op.outputs[0].shape[-1], 1)
    work = scatter_work(prod(op.inputs[0].shape) // width, table, width, op.bytes)
    return Stream(cost=stream_costs()["look-up backward"], work=work)


# --- What is measured ------------------------------------------------------------------------------


def _cases(index: int, caps: Caps) -> Iterator[Case]:
    """Embeddings forward and backward, and the other ways to pick rows and elements."""
    draw = Draw("lookup", index)
    dtype = draw.choice(FLOATS)
    sizes = draw.size(256, 65536), draw.size(16, 2048, 8), draw.size(64, 65536)

    def fits(rows: int, width: int, picks: int) -> bool:
        return 4 * max(rows, picks) * width * item_bytes(dtype) <= caps.num_bytes

    rows, width, picks = shrunk(sizes, fits)
    table, indices = tensor((rows, width), dtype), tensor((picks,), "int64", below=rows)
    picked = tensor((picks, width), dtype)
    wide = tensor((picks, width), "int64", below=rows)
    forward = (
        call("embedding", table, indices),
        call("index_select", table, 0, indices),
        call("index.Tensor", table, [indices]),
        call("gather", table, 0, wide),
    )
    backward = (
        call("embedding_dense_backward", picked, indices, rows, -1, False),
        call("index_add_", table, 0, indices, picked),
    )
    for operation in forward:
        yield Case(family="embedding", dtype=dtype, call=operation)
    for operation in backward:
        yield Case(family="embedding", dtype=dtype, phase=Phase.BACKWARD, call=operation)


EMBEDDING = Family(
    word="embedding",
    others=names("_embedding_bag _embedding_bag_dense_backward index_select_backward"),
    nominal={
        **each(
            "embedding_dense_backward index_add scatter_add index_put _index_put_impl scatter_reduce",
            PerElement(of_input=1),
        ),
        **each("embedding index index_select gather scatter index_copy index_fill embedding_renorm", MOVES),
    },
    traffic={
        **each("embedding index index_select gather", _gathers),
        **each("index_add_ scatter_add_ index_put_ _index_put_impl_ scatter_ index_copy_", _scatters),
        **each("index_add scatter_add index_put scatter index_copy", _scatters_into_copy),
    },
    stream=_stream,
    cases={"embedding": _cases},
)
