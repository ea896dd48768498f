"""Cases of what works on sequences: recurrent layers by cuDNN, and fused attention."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.core.values import Phase
from advisor.measure.case import FLOATS, HALF, RATES, Argument, Call, Caps, Case, call, result, tensor
from advisor.measure.draw import Draw, shrunk
from advisor.operators.costs import item_bytes

# cuDNN's numbers of the cells.
_LSTM, _GRU = 2, 3
_GATES = {_LSTM: 4, _GRU: 3}


def recurrent_layers(index: int, caps: Caps) -> Iterator[Case]:
    """LSTM and GRU layers at one rate, forward and backward; their weights lie in one buffer."""
    draw = Draw("rnn", index)
    dtype, tf32 = draw.choice(RATES)
    mode, layers = draw.choice((_LSTM, _GRU)), draw.choice((1, 1, 2, 3))
    steps, batch, width, hidden = _recurrent_sizes(draw, caps, (dtype, tf32), _GATES[mode], layers)
    data = tensor((steps, batch, width), dtype, name="data")
    state = tensor((layers, batch, hidden), dtype, name="state")
    cell = tensor((layers, batch, hidden), dtype, name="cell") if mode == _LSTM else None
    weights = _weights(width, hidden, layers, _GATES[mode], dtype)
    shape: tuple[Argument, ...] = (mode, hidden, 0, layers, False)
    flatten = call("_cudnn_rnn_flatten_weight", weights, 4, width, *shape, False, results=("buffer",))
    how = (*shape, 0.0, True, False, [], None)
    forward = call(
        "_cudnn_rnn", data, weights, 4, result("buffer"), state, cell, *how,
        results=("output", "last_state", "last_cell", "reserve"),
    )  # fmt: skip
    backward = call(
        "_cudnn_rnn_backward", data, weights, 4, result("buffer"), state, cell, result("output"),
        tensor((steps, batch, hidden), dtype), None, None, *how, result("reserve"),
        [True, False, False, True],
    )  # fmt: skip
    yield Case(family="rnn", dtype=dtype, tf32=tf32, prepare=(flatten,), call=forward)
    yield Case(
        family="rnn", dtype=dtype, tf32=tf32, prepare=(flatten, forward), call=backward,
        phase=Phase.BACKWARD,
    )  # fmt: skip


def _recurrent_sizes(
    draw: Draw, caps: Caps, rate: tuple[str, bool], gates: int, layers: int
) -> tuple[int, ...]:
    dtype, tf32 = rate
    sizes = draw.size(8, 256), draw.size(8, 256), draw.size(64, 1024, 8), draw.size(64, 1024, 8)

    def fits(steps: int, batch: int, width: int, hidden: int) -> bool:
        flops = 2 * layers * steps * batch * gates * hidden * (width + 2 * hidden)
        elements = steps * batch * (width + layers * (gates + 2) * hidden)
        return (
            2 * flops <= caps.most_flops(dtype, tf32) and 2 * elements * item_bytes(dtype) <= caps.num_bytes
        )

    return shrunk(sizes, fits)


def _weights(width: int, hidden: int, layers: int, gates: int, dtype: str) -> list[Argument]:
    """For each layer the weights of input and state, and their biases, as ``torch.nn.LSTM`` has them."""
    rows = gates * hidden
    return [
        tensor(shape, dtype, name=f"weight {layer} {position}")
        for layer in range(layers)
        for position, shape in enumerate(
            ((rows, width if layer == 0 else hidden), (rows, hidden), (rows,), (rows,))
        )
    ]


def attention(index: int, caps: Caps) -> Iterator[Case]:
    """Flash attention in half precision, the memory-efficient kernel in all, forward and backward."""
    for dtype in HALF:
        yield from _flash(Draw(f"flash {dtype}", index), caps, dtype)
    for dtype in FLOATS:
        yield from _efficient(Draw(f"efficient {dtype}", index), caps, dtype)


def _flash(draw: Draw, caps: Caps, dtype: str) -> Iterator[Case]:
    query, key, value, gradient = _heads(draw, caps, dtype)
    is_causal = draw.choice((False, True))
    forward = call(
        "_scaled_dot_product_flash_attention", query, key, value, 0.0, is_causal, False,
        results=("out", "sums", "starts_q", "starts_k", "max_q", "max_k", "seed", "offset"),
    )  # fmt: skip
    names = ("out", "sums", "starts_q", "starts_k", "max_q", "max_k")
    backward = call(
        "_scaled_dot_product_flash_attention_backward", gradient, query, key, value,
        *map(result, names), 0.0, is_causal, result("seed"), result("offset"),
    )  # fmt: skip
    yield from _both_ways(dtype, forward, backward)


def _efficient(draw: Draw, caps: Caps, dtype: str) -> Iterator[Case]:
    query, key, value, gradient = _heads(draw, caps, dtype)
    is_causal = draw.choice((False, True))
    forward = call(
        "_scaled_dot_product_efficient_attention", query, key, value, None, True, 0.0, is_causal,
        results=("out", "sums", "seed", "offset"),
    )  # fmt: skip
    backward = call(
        "_scaled_dot_product_efficient_attention_backward", gradient, query, key, value, None,
        *map(result, ("out", "sums", "seed", "offset")), 0.0, [True, True, True, False], is_causal,
    )  # fmt: skip
    yield from _both_ways(dtype, forward, backward)


def _heads(draw: Draw, caps: Caps, dtype: str) -> list[Argument]:
    """Query, key, value and the output's gradient, [B, H, S, D], which lie as [B, S, H, D]."""
    size = draw.choice((32, 64, 64, 64, 128, 128))
    sizes = draw.size(1, 64), draw.size(2, 32), draw.size(64, 4096, draw.choice((1, 64, 64)))

    def fits(batch: int, heads: int, steps: int) -> bool:
        flops = 10 * batch * heads * steps**2 * size
        return (
            flops <= caps.most_flops(dtype)
            and 8 * batch * heads * steps * size * item_bytes(dtype) <= caps.num_bytes
        )

    batch, heads, steps = shrunk(sizes, fits, least=1)
    stride = (steps * heads * size, size, heads * size, 1)
    return [
        tensor((batch, heads, steps, size), dtype, stride=stride, name=name)
        for name in ("query", "key", "value", "gradient")
    ]


def _both_ways(dtype: str, forward: Call, backward: Call) -> Iterator[Case]:
    yield Case(family="attention", dtype=dtype, call=forward)
    yield Case(family="attention", dtype=dtype, prepare=(forward,), call=backward, phase=Phase.BACKWARD)
