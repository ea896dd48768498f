"""Bytes of operators, by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.findings.about_traces import OperatorUnknown
from advisor.core.values import TensorSpec
from advisor.operators.registry import Cost, cost_of
from advisor.operators.work import tensor_bytes


def spec(*shape, dtype="float32", stride=None):
    return TensorSpec(shape=shape, dtype=dtype, stride=stride)


def bytes_of(name, inputs, outputs, **attributes):
    return cost_of("aten::" + name, inputs, outputs, attributes).bytes


@pytest.mark.parametrize(
    ("tensor", "expected"),
    [
        (spec(4, 8), 128),
        (spec(4, 8, dtype="bfloat16"), 64),
        (spec(), 4),
        (spec(4, 8, stride=(0, 1)), 32),
        (spec(4, 8, stride=(0, 0)), 4),
        (spec(0, 8, stride=(0, 1)), 0),
        (spec(4, 8, dtype="int64", stride=(1, 4)), 256),
    ],
)
def test_expanded_dimensions_count_once(tensor, expected):
    assert tensor_bytes(tensor) == expected


TARGETS = spec(10, dtype="int64")


@pytest.mark.parametrize(
    ("name", "inputs", "outputs", "attributes", "expected"),
    [
        ("add", [spec(100), spec(100)], [spec(100)], {}, 1200),
        ("add_", [spec(100), spec(100)], [spec(100)], {}, 1200),
        ("sum", [spec(100)], [spec()], {}, 404),
        ("mm", [spec(3, 5), spec(5, 7)], [spec(3, 7)], {}, 4 * (15 + 35 + 21)),
        ("embedding_dense_backward", [spec(10, 8), TARGETS], [spec(50, 8)], {}, 320 + 80 + 1600),
        # The loss reads one log-probability per target and writes all gradients.
        ("nll_loss_forward", [spec(10, 1000), TARGETS], [spec(), spec()], {}, 40 + 80 + 8),
        ("nll_loss_backward", [spec(), spec(10, 1000), TARGETS, spec()], [spec(10, 1000)], {},
         4 + 80 + 4 + 40000),
        ("native_dropout", [spec(100)], [spec(100), spec(100, dtype="bool")], {}, 900),
        ("_foreach_add_", [spec(10), spec(20)] * 2, [spec(10), spec(20)], {}, 360),
    ],
)  # fmt: skip
def test_by_hand(name, inputs, outputs, attributes, expected):
    assert bytes_of(name, inputs, outputs, **attributes) == expected


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        ((True, True, False), "output weight source"),
        ((True, False, False), "output weight"),
        ((False, True, False), "output source"),
    ],
)
def test_convolution_backward_reads_what_each_gradient_needs(mask, expected):
    sizes = {"output": spec(2, 6, 8, 8), "source": spec(2, 4, 8, 8), "weight": spec(6, 4, 3, 3)}
    outputs = [sizes[name] for name, wanted in zip(("source", "weight"), mask, strict=False) if wanted]
    actual = bytes_of("convolution_backward", list(sizes.values()), outputs, output_mask=mask)
    read = sum(tensor_bytes(sizes[name]) for name in expected.split())
    assert actual == read + sum(tensor_bytes(tensor) for tensor in outputs)


@pytest.mark.parametrize(
    ("name", "inputs", "outputs"),
    [
        # Two shards of 10 and 20 into a buffer of 240, back out of it, and two gradients into it.
        ("all_gather_copy_in", [spec(10), spec(20), spec(240)], [spec(30), spec(240)]),
        ("split_with_sizes_copy", [spec(30), spec(10), spec(20)], [spec(10), spec(20)]),
        ("chunk_cat", [spec(10), spec(20), spec(30)], [spec(30)]),
    ],
)
def test_the_copies_of_fsdp_read_and_write_what_they_move(name, inputs, outputs):
    assert cost_of("fsdp::" + name, inputs, outputs, {}) == Cost(flops=0, bytes=240)


@pytest.mark.parametrize("name", ["aten::_fft_r2c", "aten::linalg_qr", "mine::fused_block"])
def test_a_heavy_operator_without_formula_is_named_and_a_light_one_is_not(name):
    cost = cost_of(name, [spec(100)], [spec(100)], {})
    assert (cost.flops, cost.bytes) == (0, 800)
    assert cost.warning == OperatorUnknown(operator=name)
    assert cost_of("aten::_some_new_gather", [spec(100)], [spec(100)], {}).warning is None


def sparse(entries, dtype="float32", dims=2):
    """A sparse operand as it is recorded: indices and values."""
    return [spec(dims, entries, dtype="int64"), spec(entries, dtype=dtype)]


SIZES = st.integers(1, 5000)


@given(SIZES, SIZES, SIZES, SIZES)
def test_a_sparse_product_costs_by_its_entries_not_by_its_shape(rows, inner, columns, entries):
    out = [spec(rows, columns)]
    from_left = cost_of("aten::_sparse_mm", [*sparse(entries), spec(inner, columns)], out, {})
    assert from_left.flops == 2 * entries * columns
    assert from_left.bytes == entries * (2 * 8 + 4 + 4 * columns) + 4 * rows * columns
    from_right = cost_of("aten::_sparse_mm", [spec(rows, inner), *sparse(entries)], out, {})
    assert from_right.flops == 2 * entries * rows
    addend = cost_of("aten::_sparse_addmm", [spec(), *sparse(entries), spec(inner, columns)], out, {})
    assert addend == from_left
    one, vector = [spec(rows, 1)], [spec(rows)]
    column = cost_of("aten::_sparse_mm", [*sparse(entries), spec(inner, 1)], one, {})
    assert cost_of("aten::_sparse_mm", [*sparse(entries), spec(inner)], vector, {}) == column
    assert from_left.warning is None


@given(SIZES, SIZES, st.integers(1, 512), st.integers(1, 8))
def test_a_bag_reads_the_rows_it_looks_up_whatever_the_table_holds(table, bags, width, per_bag):
    indices = spec(bags * per_bag, dtype="int64")
    out = [spec(bags, width)]
    small = bytes_of("_embedding_bag", [spec(table, width), indices, spec(bags, dtype="int64")], out)
    large = bytes_of("_embedding_bag", [spec(9 * table, width), indices, spec(bags, dtype="int64")], out)
    assert small == large == 4 * width * bags * (per_bag + 1) + 8 * bags * (per_bag + 1)


@given(SIZES, st.integers(1, 512))
def test_adding_sparse_rows_to_a_table_costs_the_rows(rows, width):
    entries = [spec(1, rows, dtype="int64"), spec(rows, width)]
    for table in (rows, 100 * rows):
        added = bytes_of("index_add_", [spec(table, width), *entries], [spec(table, width)])
        assert added == 8 * rows + 3 * 4 * rows * width
