"""Recurrent layers as a trace holds them, at cost."""

from typing import Any

from advisor.core.values import Op, Phase, TensorSpec
from advisor.operators.registry import cost_of

RELU, TANH, LSTM, GRU = range(4)


def make_layers(
    *,
    steps: int = 10,
    batch_size: int = 64,
    width: int = 512,
    hidden: int = 512,
    layers: int = 1,
    mode: int = LSTM,
    proj_size: int = 0,
    bidirectional: bool = False,
    backward: bool = False,
    dtype: str = "float32",
    batch_sizes: tuple[int, ...] = (),
    batch_first: bool = True,
) -> Op:
    """``aten::_cudnn_rnn`` or its backward, with the weights that a real call has."""
    name = "aten::_cudnn_rnn_backward" if backward else "aten::_cudnn_rnn"
    attributes: dict[str, Any] = {
        "mode": mode, "hidden_size": hidden, "proj_size": proj_size, "num_layers": layers,
        "bidirectional": bidirectional, "batch_first": batch_first, "batch_sizes": batch_sizes,
    }  # fmt: skip
    directions, gates = 2 if bidirectional else 1, {RELU: 1, TANH: 1, LSTM: 4, GRU: 3}[mode]
    leading = (batch_size, steps) if batch_first else (steps, batch_size)
    rows = (sum(batch_sizes),) if batch_sizes else leading
    state = proj_size or hidden

    def tensor(*shape: int) -> TensorSpec:
        return TensorSpec(shape=shape, dtype=dtype, stride=None)

    weights: list[TensorSpec] = []
    for layer in range(layers):
        inputs = width if layer == 0 else directions * state
        each = [tensor(gates * hidden, inputs), tensor(gates * hidden, state)]
        each += [tensor(proj_size, hidden)] if proj_size else []
        weights += directions * each
    inputs = (tensor(*rows, width), *weights)
    outputs = (tensor(*rows, directions * state),)
    cost = cost_of(name, inputs, outputs, attributes)
    return Op(
        name=name,
        phase=Phase.BACKWARD if backward else Phase.FORWARD,
        inputs=inputs,
        outputs=outputs,
        attributes=attributes,
        flops=cost.flops,
        bytes=cost.bytes,
        count=1,
    )
