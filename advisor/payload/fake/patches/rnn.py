"""LSTM and GRU by cuDNN's kernel.

C++ chooses cuDNN for CUDA tensors only; ours would be unrolled into thousands of small operators.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from ...protocol import Warned
from .autocast import to_autocast

if TYPE_CHECKING:
    from advisor.payload.session import Session

# cuDNN's numbers for the kinds of cell.
_RELU, _TANH, _LSTM, _GRU = 0, 1, 2, 3


def install(session: Session) -> None:
    """Wrap the functions that ``torch.nn.modules.rnn`` calls."""
    functions = vars(torch.nn.modules.rnn)["_VF"]
    kinds = (("rnn_relu", _RELU), ("rnn_tanh", _TANH), ("lstm", _LSTM), ("gru", _GRU))
    for name, kind in kinds:
        _wrap(session, functions, name, kind)


def _wrap(session: Session, functions: object, name: str, kind: int) -> None:
    original = getattr(functions, name)

    def run(*args: Any) -> object:
        if not session.is_fake(args[0]):
            return original(*args)
        # Packed: data, batch_sizes, hidden, weights, ...; else: data, hidden, weights, ..., batch_first.
        if isinstance(args[3], bool):
            data, hidden, weights, _, layers, dropout, train, bidirectional, batch_first = args
            sizes: list[int] = []
        else:
            data, batch_sizes, hidden, weights, _, layers, dropout, train, bidirectional = args
            sizes, batch_first = batch_sizes.tolist(), False
        state, cell = hidden if kind == _LSTM else (hidden, None)
        per_layer = len(weights) // (layers * (2 if bidirectional else 1))
        if train:
            session.warn(Warned.RECURRENT_MEMORY)
        result = _call(
            data, list(weights), per_layer, state, cell, kind, layers, batch_first,
            dropout, train, bidirectional, sizes,
        )  # fmt: skip
        return result[:3] if kind == _LSTM else result[:2]

    setattr(functions, name, run)


def _call(
    data: Any, weights: list[Any], per_layer: int, state: Any, cell: Any, kind: int, layers: int,
    batch_first: bool, dropout: float, train: bool, bidirectional: bool, sizes: list[int],
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    data, state, cell, *weights = to_autocast(data, state, cell, *weights)
    # On CUDA the weights are views of one flat buffer, so this one takes no memory.
    buffer = torch.empty(0, dtype=data.dtype, device=data.device)
    hidden_size = (state if cell is None else cell).shape[-1]
    return torch._cudnn_rnn(
        data, weights, per_layer, buffer, state, cell, kind, hidden_size, 0, layers, batch_first,
        float(dropout), bool(train), bool(bidirectional), sizes, None,
    )  # fmt: skip
