"""A transformer whose shapes are consistent, as a trace would have it."""

from typing import Any

from advisor.core.values import MemoryUse, Op, Phase, TensorSpec, Trace
from advisor.predict.what_if.batch import made_op
from tests.builders import make_trace

DTYPE, ITEM = "bfloat16", 2


def tensor(*shape: int) -> TensorSpec:
    """Of half precision."""
    return TensorSpec(shape=shape, dtype=DTYPE)


def op(
    name: str,
    inputs: tuple[TensorSpec, ...],
    outputs: tuple[TensorSpec, ...],
    count: int,
    phase: Phase = Phase.FORWARD,
) -> Op:
    """With the cost of its shapes."""
    return made_op(f"aten::{name}", phase, inputs, outputs, {}, count)


def transformer(
    layers: int = 8,
    heads: int = 8,
    head: int = 64,
    length: int = 128,
    batch: int = 4,
    words: int = 2_000,
    **changes: Any,
) -> Trace:
    """Pre-norm layers with queries, keys and values in one product, fused attention, and Adam."""
    width, rows = heads * head, batch * length
    stream, inner = tensor(batch, length, width), tensor(batch, length, 4 * width)
    one_head = tensor(batch, heads, length, head)
    weights = {
        "attend": tensor(width, 3 * width), "project": tensor(width, width),
        "widen": tensor(width, 4 * width), "narrow": tensor(4 * width, width),
    }  # fmt: skip
    ops: list[Op] = [
        op("native_layer_norm", (stream, tensor(width), tensor(width)), (stream,), 2 * layers),
        op("_scaled_dot_product_flash_attention", (one_head,) * 3, (one_head,), layers),
        op("gelu", (inner,), (inner,), layers),
        op("add", (stream, stream), (stream,), 2 * layers),
        op("mm", (tensor(rows, width), tensor(width, words)), (tensor(rows, words),), 1),
        op("gelu_backward", (inner, inner), (inner,), layers, Phase.BACKWARD),
        op("native_layer_norm_backward", (stream, stream), (stream,), 2 * layers, Phase.BACKWARD),
    ]
    for weight in weights.values():
        (k, n) = weight.shape
        ops.append(op("addmm", (tensor(n), tensor(rows, k), weight), (tensor(rows, n),), layers))
        ops.append(op("mm", (tensor(rows, n), tensor(n, k)), (tensor(rows, k),), layers, Phase.BACKWARD))
        ops.append(op("mm", (tensor(k, rows), tensor(rows, n)), (weight,), layers, Phase.BACKWARD))
    held = (*list(weights.values()) * layers, *[tensor(width)] * 2 * layers, tensor(words, width))
    ops.append(op("_foreach_addcdiv_", held * 3, held, 1, Phase.OPTIMIZER))
    num_bytes = sum(ITEM * one.shape[0] * (one.shape[1] if len(one.shape) > 1 else 1) for one in held)
    activations = layers * 12 * rows * width * ITEM + rows * words * ITEM
    memory = MemoryUse(
        parameter_bytes=num_bytes,
        gradient_bytes=num_bytes,
        optimizer_bytes=2 * num_bytes,
        activation_bytes=activations,
        peak_bytes=4 * num_bytes + activations,
        pass_activation_bytes=activations,
        pass_peak_bytes=4 * num_bytes + activations,
    )
    facts = {"ops": tuple(ops), "memory": memory, "batch_size": batch, "accumulation": 1}
    return make_trace(**(facts | changes))
