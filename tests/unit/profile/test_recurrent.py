"""What cuDNN's recurrent layers give and keep, by sizes alone."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
from advisor.payload.fake import rescue  # noqa: E402 - needs torch

pytestmark = pytest.mark.torch
LSTM, GRU = 2, 3
SIZES = st.integers(1, 5)


class Mode:
    def empty(self, shape: Any, dtype: Any) -> Any:
        return torch.empty(tuple(shape), dtype=dtype, device="meta")


def tensor(*shape: int, dtype: Any = torch.float32) -> Any:
    return torch.empty(shape, dtype=dtype, device="meta")


def run(data: Any, kind: int, hidden: int, layers: int, *, proj: int = 0, train: bool = True) -> Any:
    batch = data.shape[1]
    state = tensor(layers, batch, proj or hidden, dtype=data.dtype)
    cell = tensor(layers, batch, hidden, dtype=data.dtype) if kind == LSTM else None
    buffer = tensor(0)
    return rescue.recurrent_forward(
        Mode(), data, [], 4, buffer, state, cell, kind, hidden, proj, layers, False, 0.0, train, False, [],
        None,
    )  # fmt: skip


def test_three_layers_of_each_kind(probe):
    # 28 rows of FP32, 3 layers of 2 directions of 16 units, and 2 outputs of 32 between the layers.
    rows, units, between = 7 * 4, 3 * 2 * 16, 2 * 32
    expected = [4 * rows * (kept * units + between) for kept in (5, 4, 1)]
    assert probe("reserve space") == [expected[0], 0, expected[1], 0, expected[2], 0]


@given(SIZES, SIZES, SIZES, SIZES, st.sampled_from([torch.float32, torch.float16]))
def test_the_reserve_holds_at_least_what_backward_reads(length, batch, hidden, layers, dtype):
    output, state, cell, reserve, _ = run(tensor(length, batch, 3, dtype=dtype), LSTM, hidden, layers)
    assert output.shape == (length, batch, hidden)
    assert output.dtype is state.dtype is cell.dtype is dtype
    gates_and_cells = 5 * length * batch * hidden * layers
    between = (layers - 1) * length * batch * hidden
    assert reserve.numel() == (gates_and_cells + between) * dtype.itemsize


@given(SIZES, SIZES)
def test_longer_sequences_keep_more(length, batch):
    short, long = (run(tensor(n, batch, 3), GRU, 4, 2)[3].numel() for n in (length, length + 1))
    assert short < long


def test_a_projection_narrows_the_output_and_what_feeds_the_next_layer():
    output, state, cell, reserve, _ = run(tensor(5, 2, 3), LSTM, 8, 2, proj=3)
    assert (output.shape, state.shape, cell.shape) == ((5, 2, 3), (2, 2, 3), (2, 2, 8))
    assert reserve.numel() == 4 * 10 * (2 * 5 * 8 + 3)


def test_nothing_is_kept_in_evaluation():
    assert run(tensor(5, 2, 3), LSTM, 8, 2, train=False)[3].numel() == 0
