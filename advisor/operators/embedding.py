"""Look-ups: embeddings and the other ways to pick rows and elements."""

from collections.abc import Iterator
from math import prod

from advisor.core.values import Op, Phase
from advisor.operators import work
from advisor.operators.case import FLOATS, Caps, Case, Draw, call, shrunk, tensor
from advisor.operators.cycles import StreamedCall, plain_work, scatter_work, stream_costs
from advisor.operators.family import Family, base_name, each, names
from advisor.operators.work import MOVES, Attributes, PerElement, Tensors, item_bytes, numel, total_bytes

# Kinds of ``streams.toml``: bitsandbytes looks up what each four bits stand for.
_LOOK_UPS = {"embedding": "look-up", "dequantize_4bit": "four bits"}


def _scatters(inputs: Tensors, outputs: Tensors, attributes: Attributes) -> int:  # noqa: ARG001
    """Reads indices and values; reads and writes as many elements of the target."""
    *indices, values = inputs[1:] or inputs
    return total_bytes(indices) + 3 * work.tensor_bytes(values)


def _gathers_bags(inputs: Tensors, outputs: Tensors, attributes: Attributes) -> int:  # noqa: ARG001
    """Reads the row of each index, not the whole table, and writes a sum of each bag."""
    table, indices = inputs[:2]
    rows = numel(indices) * table.shape[-1] * item_bytes(table.dtype)
    return rows + total_bytes(inputs[1:]) + total_bytes(outputs)


def _sparse_product_bytes(inputs: Tensors, outputs: Tensors, attributes: Attributes) -> int:  # noqa: ARG001
    """Entries, a row of the dense matrix for each of them, and the result: no cache holds the rows."""
    values = _entries(inputs)[1]
    rows = numel(values) * _dense_width(inputs, outputs) * item_bytes(values.dtype)
    return total_bytes(_entries(inputs)) + rows + total_bytes(outputs)


def _entries(inputs: Tensors) -> Tensors:
    first = _first_of_entries(inputs)
    return inputs[first : first + 2]


def _dense_width(inputs: Tensors, outputs: Tensors) -> int:
    """Columns of a dense right operand, which may be a vector, or rows of a dense left one."""
    if _first_of_entries(inputs) + 2 == len(inputs):
        return outputs[0].shape[0]
    return prod(outputs[0].shape[1:])


def _first_of_entries(inputs: Tensors) -> int:
    """Where the indices stand.

    Raises ValueError: nowhere: a profile of a real GPU tells a sparse operand by its shape.
    """
    return [tensor.dtype for tensor in inputs].index("int64")


def _stream(op: Op) -> StreamedCall | None:
    """An SM looks up an element in about two clocks, whatever its dtype; gradients are sorted first."""
    name = base_name(op.name)
    if not op.inputs or not op.outputs or name not in (*_LOOK_UPS, "embedding_dense_backward"):
        return None
    if name in _LOOK_UPS:
        looked_up = plain_work(prod(op.outputs[0].shape), op.bytes)
        return StreamedCall(cost=stream_costs()[_LOOK_UPS[name]], work=looked_up)
    table, width = op.outputs[0].shape[0], max(op.outputs[0].shape[-1], 1)
    scattered = scatter_work(prod(op.inputs[0].shape) // width, table, width, op.bytes)
    return StreamedCall(cost=stream_costs()["look-up backward"], work=scattered)


def _cases(index: int, caps: Caps) -> Iterator[Case]:
    draw = Draw("lookup", index)
    dtype = draw.choice(FLOATS)
    sizes = draw.size(256, 65536), draw.size(16, 2048, 8), draw.size(64, 65536)
    rows, width, picks = shrunk(
        sizes, lambda rows, width, picks: caps.allow(4 * max(rows, picks) * width, dtype)
    )
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
    others=names(
        "dequantize_4bit _embedding_bag_backward _embedding_bag_dense_backward index_select_backward"
    ),
    # A multiply-add for each entry and each column of the dense matrix.
    flops=each(
        "_sparse_mm _sparse_addmm",
        lambda inputs, outputs, _: 2 * _entries(inputs)[0].shape[-1] * _dense_width(inputs, outputs),
    ),
    nominal={
        **each(
            "embedding_dense_backward index_add scatter_add index_put _index_put_impl scatter_reduce",
            PerElement(of_input=1),
        ),
        **each("embedding index index_select gather scatter index_copy index_fill embedding_renorm", MOVES),
        **each("_coalesce sparse_mask", MOVES),
    },
    traffic={
        # As many elements are read as written, not the whole table, and the indices.
        **each(
            "embedding index index_select gather sparse_mask",
            lambda inputs, outputs, _: 2 * total_bytes(outputs) + total_bytes(inputs[1:]),
        ),
        **each("_embedding_bag _embedding_bag_forward_only", _gathers_bags),
        **each("_sparse_mm _sparse_addmm", _sparse_product_bytes),
        # Sorts keys and adds up values of equal ones.
        "_coalesce": lambda inputs, *others: (
            work.SORTED_BYTES * inputs[0].shape[-1] + work.each_once(inputs, *others)
        ),
        **each("index_add_ scatter_add_ index_put_ _index_put_impl_ scatter_ index_copy_", _scatters),
        # The same into a copy of the target.
        **each(
            "index_add scatter_add index_put scatter index_copy",
            lambda inputs, *others: _scatters(inputs, *others) + 2 * work.tensor_bytes(inputs[0]),
        ),
    },
    stream=_stream,
    cases={"embedding": _cases},
)
