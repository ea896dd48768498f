"""Small calls and networks for tests, and the slow and plain way to evaluate a network."""

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from advisor.core.gpus import catalog_path
from advisor.core.values import AttributeValue, GpuSpec, Op, Phase, Precision, TensorSpec
from advisor.operators.family import power_and_capability
from advisor.predict.knowledge import CONSTANTS, Knowledge, LearnedNetwork
from advisor.predict.learned import NetworkCalls, grouped, shape_of

TABLES = tomllib.loads(catalog_path(CONSTANTS).read_text(encoding="utf-8"))
EXACT = Precision(amp_dtype=None, tf32_matmul=False, tf32_cudnn=False)
Sizes = tuple[int, ...]


def make_call(
    name: str,
    inputs: Sequence[Sizes],
    outputs: Sequence[Sizes],
    attributes: Mapping[str, AttributeValue] | None = None,
    *,
    flops: int = 10**9,
    dtype: str = "float32",
) -> Op:
    """One call of an aten operator; its bytes are four an element."""
    sizes = sum(math.prod(shape) for shape in (*inputs, *outputs))
    return Op(
        name=f"aten::{name}",
        phase=Phase.FORWARD,
        inputs=tuple(TensorSpec(shape=shape, dtype=dtype) for shape in inputs),
        outputs=tuple(TensorSpec(shape=shape, dtype=dtype) for shape in outputs),
        attributes=attributes or {},
        flops=flops,
        bytes=4 * sizes,
        count=1,
    )


def mm(m: int, n: int, k: int, dtype: str = "float32") -> Op:
    return make_call("mm", [(m, k), (k, n)], [(m, n)], flops=2 * m * n * k, dtype=dtype)


def addmm(m: int, n: int, k: int) -> Op:
    return make_call("addmm", [(n,), (m, k), (k, n)], [(m, n)], flops=2 * m * n * k)


def bmm(b: int, m: int, n: int, k: int) -> Op:
    return make_call("bmm", [(b, m, k), (b, k, n)], [(b, m, n)], flops=2 * b * m * n * k)


def baddbmm(b: int, m: int, n: int, k: int) -> Op:
    shapes = [(b, m, n), (b, m, k), (b, k, n)]
    return make_call("baddbmm", shapes, [(b, m, n)], flops=2 * b * m * n * k)


def convolution(
    batch: int,
    c_in: int,
    c_out: int,
    size: int = 14,
    *,
    kernel: int = 3,
    stride: int = 1,
    groups: int = 1,
    is_backward: bool = False,
    **attributes: AttributeValue,
) -> Op:
    """A convolution padded so that its output is as large as its input, over the stride."""
    out = (size + 2 * (kernel // 2) - kernel) // stride + 1
    source, weight = (batch, c_in, size, size), (c_out, c_in // groups, kernel, kernel)
    target = (batch, c_out, out, out)
    facts: dict[str, AttributeValue] = {
        "stride": (stride,) * 2, "padding": (kernel // 2,) * 2, "dilation": (1, 1), "transposed": False,
        "groups": groups,
    }  # fmt: skip
    flops = 2 * math.prod(target) * math.prod(weight[1:])
    if is_backward:
        inputs, outputs = [target, source, weight], [source, weight]
        return make_call("convolution_backward", inputs, outputs, facts | attributes, flops=2 * flops)
    return make_call("convolution", [source, weight], [target], facts | attributes, flops=flops)


def softmax(*shape: int) -> Op:
    return make_call("_softmax", [shape], [shape])


def layer_norm(rows: int, columns: int) -> Op:
    return make_call("native_layer_norm", [(rows, columns), (columns,), (columns,)], [(rows, columns)])


def add(*shape: int, dtype: str = "float32") -> Op:
    return make_call("add.Tensor", [shape, shape], [shape], dtype=dtype)


EXAMPLES = {
    "gemm": mm(256, 128, 64),
    "conv": convolution(8, 16, 32),
    "norm": softmax(64, 1000),
    "pointwise": add(64, 1000),
}


def half(op: Op, dtype: str = "float16") -> Op:
    """The same call on two-byte numbers, or others."""
    inputs, outputs = (
        tuple(replace(tensor, dtype=dtype) for tensor in tensors) for tensors in (op.inputs, op.outputs)
    )
    return replace(op, inputs=inputs, outputs=outputs, bytes=op.bytes // 2)


def scaled_mm(m: int, n: int, k: int, *scales: Sizes) -> Op:
    """A product in FP8 with the scales of both operands, by default one each."""
    shapes = [(m, k), (k, n), *(scales or ((1,), (1,)))]
    op = make_call("_scaled_mm", shapes, [(m, n)], flops=2 * m * n * k, dtype="float8_e4m3fn")
    single = tuple(replace(scale, dtype="float32") for scale in op.inputs[2:])
    return replace(op, inputs=(*op.inputs[:2], *single))


# What runs on tensor cores, by network.
TENSOR_EXAMPLES = {
    "tensor_gemm": half(mm(256, 128, 64)),
    "fp8_gemm": scaled_mm(256, 128, 64),
    "conv16": half(convolution(8, 16, 32)),
    "conv_amd": half(convolution(8, 16, 32)),
}


def calls_of(ops: Sequence[Op], network: str) -> NetworkCalls:
    """What one network knows of them."""
    (calls,) = (calls for calls in grouped(ops) if calls.network == network)
    return calls


def board(gpu: GpuSpec) -> tuple[float, ...]:
    """What networks are given of a GPU unless they say otherwise."""
    (row,) = power_and_capability(np.zeros((1, 0), np.float32), gpu)
    return tuple(row.tolist())


def make_network(num_features: int, seed: int = 0, *, members: int = 3, units: int = 8) -> LearnedNetwork:
    """Random weights that 16 bits hold, and a range of features that cuts some."""
    rng = np.random.default_rng(seed)

    def drawn(*shape: int) -> np.ndarray:
        values = rng.standard_normal(shape) / math.sqrt(shape[-2])
        return values.astype(np.float16).astype(np.float32)

    low = rng.uniform(-3.0, 0.0, num_features).astype(np.float32)
    sizes = [(num_features, units), (units, units), (units, 3)]
    return LearnedNetwork(
        low=low,
        high=low + rng.uniform(2.0, 12.0, num_features).astype(np.float32),
        mean=rng.uniform(0.0, 5.0, num_features).astype(np.float32),
        scale=rng.uniform(1.0, 4.0, num_features).astype(np.float32),
        weights=tuple(drawn(members, *size) for size in sizes),
        biases=tuple(drawn(members, 1, size[1]) for size in sizes),
    )


@cache
def make_networks(seed: int = 0) -> Mapping[str, LearnedNetwork]:
    """One for each family, for the features that calls have and the two of the board."""
    networks = {}
    for family, op in EXAMPLES.items():
        shape = shape_of(op)
        networks[family] = make_network(len(shape.values) + 2, seed)
    return networks


def make_knowledge(seed: int = 0, **changes: object) -> Knowledge:
    """The shipped constants with random networks."""
    facts = {"tables": TABLES, "networks": make_networks(seed), "corrections": {}}
    return Knowledge(**(facts | changes))


def slow_outputs(network: LearnedNetwork, features: Sequence[float]) -> list[list[float]]:
    """What each member says of one row, by loops over single numbers."""
    inputs = []
    for i, value in enumerate(features):
        low, high = float(network.low[i]), float(network.high[i])
        cut = min(max(value, low), high)
        inputs.append((cut - float(network.mean[i])) / float(network.scale[i]))
    outputs = []
    for member in range(len(network.weights[0])):
        values = inputs
        for layer in range(3):
            weight, bias = network.weights[layer][member], network.biases[layer][member][0]
            sums = [
                sum(value * float(weight[i][j]) for i, value in enumerate(values)) + float(bias[j])
                for j in range(weight.shape[1])
            ]
            values = sums if layer == 2 else [x / (1 + math.exp(-x)) for x in sums]
        outputs.append(values)
    return outputs
