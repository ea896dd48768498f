"""Laws of FLOPs and bytes: they scale with the batch, are never negative, and parts add up."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.findings.about_traces import OperatorUnknown
from advisor.core.values import TensorSpec
from advisor.operators.registry import Cost, cost_of, flops_of
from advisor.operators.work import item_bytes, tensor_bytes

sizes = st.integers(1, 64)
shapes = st.lists(sizes, min_size=1, max_size=4).map(tuple)
dtypes = st.sampled_from(["float64", "float32", "float16", "bfloat16", "int64", "bool"])
POINTWISE = ("add", "mul", "relu", "gelu", "tanh_backward", "_softmax", "native_layer_norm", "clone")
REDUCTIONS = ("sum", "mean", "amax", "linalg_vector_norm", "mse_loss")
FILLS = ("zero_", "fill_", "ones_like", "uniform_", "_foreach_zero_")


def spec(*shape: int, dtype: str = "float32", stride: tuple[int, ...] | None = None) -> TensorSpec:
    return TensorSpec(shape=shape, dtype=dtype, stride=stride)


def cost(name: str, inputs: list[TensorSpec], outputs: list[TensorSpec], **attributes: Any) -> Cost:
    return cost_of(f"aten::{name}", inputs, outputs, attributes)


@given(shapes, dtypes, st.data())
def test_an_expanded_dimension_counts_as_one(shape, dtype, data):
    where = data.draw(st.integers(0, len(shape) - 1))
    stride = tuple(0 if i == where else 1 for i in range(len(shape)))
    expanded = spec(*shape, dtype=dtype, stride=stride)
    whole = spec(*shape, dtype=dtype, stride=(1,) * len(shape))
    assert tensor_bytes(expanded) * shape[where] == tensor_bytes(whole)


@given(shapes, dtypes, st.data())
def test_a_tensor_with_an_empty_dimension_has_no_bytes(shape, dtype, data):
    where = data.draw(st.integers(0, len(shape)))
    emptied = (*shape[:where], 0, *shape[where:])
    stride = tuple(data.draw(st.sampled_from([0, 1])) for _ in emptied)
    assert tensor_bytes(spec(*emptied, dtype=dtype, stride=stride)) == 0


@pytest.mark.parametrize(
    ("bits", "names"),
    [
        (128, "complex128"),
        (64, "float64 int64 uint64 complex64"),
        (32, "float32 int32 uint32 complex32"),
        (16, "float16 bfloat16 int16 uint16"),
        (8, "int8 uint8 bool float8_e5m2 float8_e4m3fn"),
    ],
)
def test_a_dtype_has_the_bytes_of_its_bits(bits, names):
    assert {item_bytes(name) * 8 for name in names.split()} == {bits}


@given(st.sampled_from(POINTWISE), shapes, dtypes)
def test_halving_the_precision_changes_bytes_alone(name, shape, dtype):
    wide = cost(name, [spec(*shape, dtype="float32")], [spec(*shape, dtype="float32")])
    narrow = cost(name, [spec(*shape, dtype="float16")], [spec(*shape, dtype="float16")])
    assert (narrow.flops, 2 * narrow.bytes) == (wide.flops, wide.bytes)


@given(st.sampled_from(FILLS), shapes, dtypes)
def test_fills_write_once_whatever_they_are_given(name, shape, dtype):
    tensor = spec(*shape, dtype=dtype)
    assert cost(name, [tensor], [tensor]) == Cost(flops=0, bytes=tensor_bytes(tensor))


@given(shapes, dtypes, dtypes)
def test_a_copy_reads_the_source_and_writes_the_target(shape, source_dtype, target_dtype):
    target, source = spec(*shape, dtype=target_dtype), spec(*shape, dtype=source_dtype)
    expected = tensor_bytes(source) + tensor_bytes(target)
    assert cost("copy_", [target, source], [target]).bytes == expected
    assert cost("_to_copy", [source], [target]).bytes == expected


@given(shapes, dtypes, dtypes, st.sampled_from(["h2d", "d2h"]))
def test_the_link_carries_the_larger_side_once(shape, one, other, way):
    costs = cost_of(f"advisor::{way}_copy", [spec(*shape, dtype=one)], [spec(*shape, dtype=other)], {})
    assert costs == Cost(flops=0, bytes=math.prod(shape) * max(item_bytes(one), item_bytes(other)))


@given(sizes, sizes, sizes, st.integers(65, 10**6))
def test_a_look_up_does_not_depend_on_the_size_of_the_table(rows, width, table, larger):
    index, taken = spec(rows, dtype="int64"), spec(rows, width)
    for name in ("embedding", "index_select", "gather", "index"):
        small = cost(name, [spec(table, width), index], [taken]).bytes
        assert small == cost(name, [spec(larger, width), index], [taken]).bytes
        assert small == 2 * 4 * rows * width + 8 * rows


@given(sizes, sizes, st.integers(64, 10**6))
def test_scattering_in_place_leaves_the_rest_of_the_target_alone(rows, width, table):
    index, values, target = spec(rows, dtype="int64"), spec(rows, width), spec(table, width)
    touched = 8 * rows + 3 * 4 * rows * width
    assert cost("index_add_", [target, index, values], [target]).bytes == touched
    copied = cost("index_add", [target, index, values], [target]).bytes
    assert copied == touched + 2 * tensor_bytes(target)


@given(shapes, st.integers(1, 5))
def test_a_fused_step_does_not_write_gradients(shape, num_tensors):
    # Parameters, gradients and two moments: all are read, all but the gradients written.
    lists = [spec(*shape)] * (4 * num_tensors)
    costs = cost("_fused_adamw_", lists, lists, num_tensors=num_tensors)
    assert costs.bytes == (4 + 3) * num_tensors * 4 * math.prod(shape)
    assert costs.flops == 12 * num_tensors * math.prod(shape)


@given(sizes, sizes, sizes, sizes)
def test_pooling_backward_does_not_read_the_forwards_input(batch, channels, side, pooled):
    gradient, source = spec(batch, channels, pooled, pooled), spec(batch, channels, side, side)
    indices = spec(batch, channels, pooled, pooled, dtype="int64")
    costs = cost("max_pool2d_with_indices_backward", [gradient, source, indices], [source])
    assert costs.bytes == batch * channels * ((4 + 8) * pooled**2 + 4 * side**2)


@given(st.sampled_from(POINTWISE + REDUCTIONS), sizes, shapes, st.integers(2, 5))
def test_work_scales_with_the_batch(name, batch, rest, times):
    def of(count: int) -> Cost:
        tensor = spec(count, *rest)
        return cost(name, [tensor], [tensor])

    assert (of(times * batch).flops, of(times * batch).bytes) == (
        times * of(batch).flops,
        times * of(batch).bytes,
    )


@given(sizes, sizes, sizes, sizes)
def test_equal_products_under_other_names_cost_the_same(batch, rows, inner, columns):
    left, right, result = spec(rows, inner), spec(inner, columns), spec(rows, columns)
    expected = 2 * rows * inner * columns
    assert cost("mm", [left, right], [result]).flops == expected
    assert cost("addmm", [spec(columns), left, right], [result]).flops == expected
    many = [spec(batch, *tensor.shape) for tensor in (left, right, result)]
    assert cost("bmm", many[:2], many[2:]).flops == batch * expected
    assert cost("baddbmm", [many[2], *many[:2]], many[2:]).flops == batch * expected
    assert cost("addbmm", [result, *many[:2]], [result]).flops == batch * expected
    assert cost("mv", [left, spec(inner)], [spec(rows)]).flops == 2 * rows * inner


def convolution(batch: int, channels: int, filters: int, side: int, taps: int) -> list[TensorSpec]:
    """Gradient of the result, source, weight of a convolution without padding."""
    result = side - taps + 1
    return [
        spec(batch, filters, result, result),
        spec(batch, channels, side, side),
        spec(filters, channels, taps, taps),
    ]


convolutions = st.tuples(sizes, sizes, sizes, st.integers(5, 20), st.integers(1, 5))


@given(convolutions)
def test_a_convolution_is_the_product_of_its_unfolded_source(facts):
    batch, channels, filters, side, taps = facts
    result, source, weight = convolution(*facts)
    positions = batch * (side - taps + 1) ** 2
    product = cost(
        "mm",
        [spec(positions, channels * taps**2), spec(channels * taps**2, filters)],
        [spec(positions, filters)],
    )
    assert cost("convolution", [source, weight], [result], transposed=False).flops == product.flops


@given(convolutions, st.booleans(), st.booleans(), st.booleans())
def test_the_gradients_of_a_convolution_add_up(facts, transposed, wants_bias, wants_both):
    gradient, source, weight = tensors = convolution(*facts)

    def of(*mask: bool) -> Cost:
        outputs = [tensor for tensor, wanted in zip((source, weight), mask, strict=False) if wanted]
        return cost("convolution_backward", tensors, outputs, output_mask=mask, transposed=transposed)

    of_source, of_weight = of(True, False, False), of(False, True, False)
    forward = cost("convolution", [source, weight], [gradient], transposed=transposed).flops
    assert of_source.flops == of_weight.flops == forward
    assert of(True, True, wants_bias).flops == 2 * forward
    # The gradient of one is read from the other, and each is as large as its tensor.
    assert of_source.bytes == tensor_bytes(gradient) + tensor_bytes(weight) + tensor_bytes(source)
    assert of_weight.bytes == of_source.bytes
    # Together they read the gradient of the result once.
    assert of(True, True, False).bytes == of_source.bytes + of_weight.bytes - tensor_bytes(gradient)
    assert of(False, False, wants_both).flops == 0


@given(convolutions)
def test_a_transposed_convolution_is_the_gradient_of_one(facts):
    result, source, weight = convolution(*facts)
    forward = cost("convolution", [source, weight], [result], transposed=False).flops
    assert cost("convolution", [result, weight], [source], transposed=True).flops == forward


@given(sizes, sizes, sizes, sizes, sizes)
def test_attention_is_two_products_and_its_gradient_five(batch, queries, keys, width, value_width):
    query, key, value = spec(batch, queries, width), spec(batch, keys, width), spec(batch, keys, value_width)
    scores = 2 * batch * queries * keys
    name = "_scaled_dot_product_flash_attention"
    assert cost(name, [query, key, value], []).flops == scores * (width + value_width)
    backward = cost(f"{name}_backward", [spec(batch, queries, value_width), query, key, value], [])
    assert backward.flops == scores * (3 * width + 2 * value_width)


@given(st.integers(0, 3), sizes, sizes, st.integers(1, 3), st.booleans(), st.integers(0, 8))
def test_a_recurrent_layer_costs_its_weights_at_each_position(mode, width, hidden, layers, both, projected):
    gates, directions = {0: 1, 1: 1, 2: 4, 3: 3}[mode], 2 if both else 1
    state = projected or hidden
    weights = 0
    for layer in range(layers):
        inputs = width if layer == 0 else state * directions
        weights += directions * (gates * hidden * (inputs + state) + hidden * projected)
    attributes = {
        "mode": mode, "hidden_size": hidden, "proj_size": projected, "num_layers": layers,
        "bidirectional": both,
    }  # fmt: skip
    forward = cost("_cudnn_rnn", [spec(5, 3, width)], [], **attributes).flops
    assert forward == 2 * 5 * 3 * weights
    assert cost("_cudnn_rnn_backward", [spec(5, 3, width)], [], **attributes).flops == 2 * forward


@given(sizes, st.integers(1, 5), st.integers(1, 5))
def test_a_pool_looks_at_its_whole_window(side, height, width):
    result = spec(2, 3, side, side)
    for kernel in ((height, width), (height,)):
        taps = height * (width if len(kernel) == 2 else height)
        costs = cost("avg_pool2d", [spec(2, 3, side, side)], [result], kernel_size=kernel)
        assert costs.flops == 6 * side**2 * taps


@given(st.lists(shapes, min_size=1, max_size=4))
def test_an_operator_of_lists_costs_the_sum_of_its_parts(parts):
    tensors = [spec(*shape) for shape in parts]
    for plain, listed in (("mul", "_foreach_mul"), ("sqrt", "_foreach_sqrt_")):
        single = [cost(plain, [tensor], [tensor]) for tensor in tensors]
        together = cost(listed, tensors, tensors)
        assert together.flops == sum(one.flops for one in single)
        assert together.bytes == sum(one.bytes for one in single)
    assert cost("_foreach_norm", tensors, [spec()]).flops == sum(math.prod(shape) for shape in parts)


@given(st.text("abcdefghijklmnopqrstuvwxyz_", min_size=1, max_size=12), shapes, dtypes)
def test_whatever_the_operator_costs_are_never_negative(name, shape, dtype):
    tensor = spec(*shape, dtype=dtype)
    costs = cost_of(f"mine::{name}", [tensor], [tensor], {})
    assert (costs.flops, costs.bytes) == (0, 2 * tensor_bytes(tensor))
    assert costs.warning == OperatorUnknown(operator=f"mine::{name}")
    assert flops_of(f"advisor::{name}", [tensor], [tensor], {}) == 0
