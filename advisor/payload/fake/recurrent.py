"""What cuDNN's recurrent layers give back and keep for their backward pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from .making import Maker

# cuDNN does not publish the size of its reserve space. Backward needs, per layer, step and unit: the
# activations of the gates, the cell of an LSTM, and for a GRU the hidden part of its candidate
# (Appleyard et al., "Optimizing Performance of Recurrent Neural Networks on GPUs", 2016).
_KEPT_BY_MODE = {0: 1, 1: 1, 2: 5, 3: 4}


def forward(mode: Maker, *arguments: Any) -> object:
    """Results of ``aten::_cudnn_rnn``, with an estimate of the reserve space that torch takes for empty."""
    data, _, _, buffer, hidden, cell, kind, hidden_size, proj_size, layers = arguments[:10]
    train, bidirectional = arguments[12:14]
    directions = 2 if bidirectional else 1
    out_size = (proj_size or hidden_size) * directions
    shape = (*data.shape[:-1], out_size)
    rows = data.shape[:-1].numel()
    # Every layer's output but the last's, which is the result, feeds the next layer.
    kept = layers * directions * _KEPT_BY_MODE[kind] * hidden_size + (layers - 1) * out_size
    reserve_bytes = rows * kept * data.element_size() if train else 0
    return (
        mode.empty(shape, data.dtype),
        mode.empty(hidden.shape, hidden.dtype),
        mode.empty(cell.shape if cell is not None else (0,), data.dtype),
        mode.empty((reserve_bytes,), torch.uint8),
        buffer,
    )


def backward(mode: Maker, *arguments: Any) -> object:
    """Gradients of ``aten::_cudnn_rnn_backward``."""
    data, weights, _, _, hidden, cell = arguments[:6]

    def like(tensor: torch.Tensor) -> object:
        return None if tensor is None else mode.empty(tensor.shape, tensor.dtype)

    return like(data), like(hidden), like(cell), [like(weight) for weight in weights]
