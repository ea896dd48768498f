"""The evaluation of networks: as slow loops do it, cut to the range of the training, never overflowing."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from advisor.predict.knowledge import silu
from tests.unit.predict.learned.values import make_network, slow_outputs

NETWORK = make_network(5)
ROWS = arrays.arrays(np.float32, (4, 5), elements=st.floats(-100, 100, width=32))


@given(ROWS, st.integers(0, 5))
def test_outputs_are_those_of_slow_loops(rows, seed):
    network = make_network(5, seed)
    outputs = network.outputs(rows)
    assert outputs.shape == (3, 4, 3)
    for i, row in enumerate(rows):
        expected = np.array(slow_outputs(network, row.tolist()))
        assert outputs[:, i] == pytest.approx(expected, rel=1e-5, abs=1e-5)


@given(ROWS)
def test_beyond_the_range_it_is_as_at_the_edge(rows):
    inside = np.clip(rows, NETWORK.low, NETWORK.high)
    assert (NETWORK.outputs(rows) == NETWORK.outputs(inside)).all()


def test_the_edges_themselves_differ():
    low, high = NETWORK.outputs(NETWORK.low[None]), NETWORK.outputs(NETWORK.high[None])
    assert not np.allclose(low, high)


@pytest.mark.parametrize("value", [math.inf, -math.inf, 3e38, -3e38])
def test_features_without_bound_are_at_the_edge(value):
    edge = NETWORK.high if value > 0 else NETWORK.low
    assert (NETWORK.outputs(np.full((1, 5), value, np.float32)) == NETWORK.outputs(edge[None])).all()


def test_no_rows_give_no_outputs():
    assert NETWORK.outputs(np.zeros((0, 5), np.float32)).shape == (3, 0, 3)


@given(st.floats(-80, 80, width=32))
def test_silu_is_its_definition(value):
    output = float(silu(np.array([value], np.float32))[0])
    assert output == pytest.approx(value / (1 + math.exp(-value)), rel=1e-4, abs=1e-5)


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_silu_never_overflows(value):
    with np.errstate(over="raise", invalid="raise"):
        output = float(silu(np.array([value], np.float32))[0])
    assert math.isfinite(output)
    assert min(value, -0.3) <= output <= max(value, 0.0)
