"""Nodes of a graph as operators: what runs, what it costs, and what runs backward."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.accuracy.fx_ops import accumulate_ops, backward_ops, forward_ops, kind_of, product
from benchmarks.accuracy.op_traces import read_op_traces
from research.tests.harness.builders import make_node
from tests.shared import SHARED, needs_shared

sizes = st.integers(1, 64)


def module(name, inputs=((8, 64),), output=(8, 64)):
    return make_node(target=f"model.layers.0.{name}", kind="call_module", inputs=inputs, output=output)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ln_1", "layer_norm"), ("LayerNorm", "layer_norm"), ("final_layer_norm", "layer_norm"),
        ("attn_dropout", "dropout"), ("drop", "dropout"), ("wte", "embedding"), ("embed_tokens", "embedding"),
        ("position_embeddings", "embedding"), ("activation_fn", "relu"), ("activation", "tanh"),
        ("query", "linear"), ("fc1", "linear"), ("lm_head", "linear"), ("decoder", "linear"),
    ],
)  # fmt: skip
def test_modules_are_told_by_their_names(name, kind):
    assert kind_of(module(name)) == kind


@pytest.mark.parametrize("target", ["view", "permute", "size", "getattr", "split"])
def test_views_and_shapes_run_nothing(target):
    node = make_node(target=target, kind="call_method")
    assert kind_of(node) == ""
    assert forward_ops(node) == backward_ops(node) == accumulate_ops(node) == ()


def test_numbers_and_inputs_run_nothing():
    assert forward_ops(make_node(target="add", output=(1,))) == ()
    assert forward_ops(make_node(target="h.0.weight", kind="get_attr")) == ()
    assert forward_ops(make_node(target="input_ids", kind="placeholder")) == ()


@given(m=sizes, n=sizes, k=sizes, batch=st.integers(2, 8))
def test_products_count_their_flops(m, n, k, batch):
    linear = module("fc1", inputs=((2, m, k),), output=(2, m, n))
    addmm = make_node("addmm", inputs=((n,), (m, k), (k, n)), output=(m, n))
    matmul = make_node("matmul", inputs=((batch, m, k), (batch, k, n)), output=(batch, m, n))
    assert product(linear) == (1, 2 * m, n, k)
    assert product(addmm) == (1, m, n, k)
    assert product(matmul) == (batch, m, n, k)
    for node, flops in ((linear, 4 * m * n * k), (addmm, 2 * m * n * k), (matmul, 2 * batch * m * n * k)):
        (forward,) = forward_ops(node)
        assert forward.flops == flops
        # The gradients of both operands cost what the product did, each.
        assert [op.flops for op in backward_ops(node)] == [flops, flops]


@given(rows=sizes, columns=st.integers(2, 64))
def test_streaming_operators_count_their_bytes(rows, columns):
    shape = (rows, columns)
    whole = 4 * rows * columns
    assert forward_ops(make_node("gelu", inputs=(shape,), output=shape))[0].bytes == 2 * whole
    assert forward_ops(make_node("add", inputs=(shape, shape), output=shape))[0].bytes == 3 * whole
    assert forward_ops(make_node("truediv", inputs=(shape, (1,)), output=shape))[0].bytes == 2 * whole
    assert (
        forward_ops(make_node("contiguous", "call_method", inputs=(shape,), output=shape))[0].bytes
        == 2 * whole
    )
    (softmax,) = backward_ops(make_node("softmax", inputs=(shape,), output=shape))
    assert softmax.bytes == 3 * whole


def test_a_sum_passes_its_gradient_on():
    assert backward_ops(make_node("add", inputs=((8, 64), (8, 64)))) == ()


def test_only_parameters_gather_gradients():
    (weight,) = accumulate_ops(module("fc1", inputs=((8, 32),), output=(8, 64)))
    assert weight.inputs[0].shape == (32, 64)
    (norm,) = accumulate_ops(module("ln_1"))
    assert norm.inputs[0].shape == (64,)
    assert accumulate_ops(make_node("gelu")) == ()
    assert accumulate_ops(make_node("matmul", inputs=((2, 8, 8), (2, 8, 8)), output=(2, 8, 8))) == ()


@pytest.mark.shared
@needs_shared
def test_nearly_all_measured_time_has_an_operator():
    layers = dict.fromkeys(("bert_large", "gpt2_large", "gpt3_27", "gpt3_xl", "opt_13"), 24)
    for trace in read_op_traces(SHARED / "measurements" / "op_traces", layers):
        total_s = sum(node.count * node.forward_s for node in trace.nodes)
        known_s = sum(node.count * node.forward_s for node in trace.nodes if forward_ops(node))
        assert known_s > 0.97 * total_s, trace.workload
        backward_s = sum(node.count * node.backward_s for node in trace.nodes)
        known_s = sum(node.count * node.backward_s for node in trace.nodes if backward_ops(node))
        assert known_s >= 0.99 * backward_s, trace.workload
