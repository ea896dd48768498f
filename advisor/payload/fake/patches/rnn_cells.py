"""LSTMCell and GRUCell by CUDA's fused kernels.

C++ chooses them for CUDA tensors only; ours would run each gate's arithmetic by kernels of its own, ten
times as many, and loops over cells are made of little else.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import torch

from ...replacing import replace
from .autocast import to_autocast

if TYPE_CHECKING:
    from advisor.payload.session import Session

aten = torch.ops.aten


def install(session: Session) -> None:
    """Wrap the functions that ``nn.LSTMCell`` and ``nn.GRUCell`` call."""
    functions = vars(torch.nn.modules.rnn)["_VF"]
    lstm, gru = functions.lstm_cell, functions.gru_cell

    def lstm_cell(data: torch.Tensor, state: Iterable[object], *weights: Any) -> object:
        if not session.is_fake(data) or None in _biases(weights):
            return lstm(data, state, *weights)
        (data, hidden, cell), weights = to_autocast(data, *state), to_autocast(*weights)
        gates = _gates(data, hidden, weights)
        return aten._thnn_fused_lstm_cell(*gates, cell, *_biases(weights))[:2]

    def gru_cell(data: torch.Tensor, hidden: torch.Tensor, *weights: Any) -> object:
        if not session.is_fake(data) or None in _biases(weights):
            return gru(data, hidden, *weights)
        (data, hidden), weights = to_autocast(data, hidden), to_autocast(*weights)
        return aten._thnn_fused_gru_cell(*_gates(data, hidden, weights), hidden, *_biases(weights))[0]

    replace(functions, lstm_cell=lstm_cell, gru_cell=gru_cell)


def _biases(weights: Any) -> list[object]:
    # Without biases the kernels exist, too, but have no shape rules.
    return [*weights[2:4]] if len(weights) == 4 else [None]


def _gates(data: torch.Tensor, hidden: torch.Tensor, weights: Any) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.matmul(data, weights[0].t()), torch.matmul(hidden, weights[1].t())
