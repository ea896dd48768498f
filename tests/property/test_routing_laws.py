"""Laws of choices by scores that nobody computes: all are chosen equally often, none twice by one row."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
from advisor.payload.fake.values import spread_choices  # noqa: E402 - needs torch

pytestmark = pytest.mark.torch
aten = torch.ops.aten


@st.composite
def scores(draw):
    shape = draw(st.lists(st.integers(1, 7), min_size=1, max_size=3))
    dim = draw(st.integers(-len(shape), len(shape) - 1))
    return torch.zeros(shape), dim


def counts(chosen, num_choices):
    return chosen.flatten().bincount(minlength=num_choices)


@given(scores(), st.data())
def test_the_largest_are_all_choices_equally_often_and_distinct_in_a_row(given_scores, data):
    values, dim = given_scores
    num_choices = values.shape[dim]
    count = data.draw(st.integers(1, num_choices))
    result = values.topk(count, dim)
    chosen, supposed = spread_choices(aten.topk.default, (values, count, dim), {}, result)
    assert chosen is result[1]
    assert supposed.shape == chosen.shape
    assert counts(supposed, num_choices).max() - counts(supposed, num_choices).min() <= 1
    in_rows = supposed.movedim(dim, -1).flatten(0, -2) if values.dim() > 1 else supposed[None]
    assert all(len(set(row)) == count for row in in_rows.tolist())


@given(scores(), st.booleans(), st.sampled_from([aten.argmax.default, aten.max.dim]))
def test_so_is_the_largest_alone(given_scores, keeps_dim, func):
    values, dim = given_scores
    result = func(values, dim, keeps_dim)
    chosen, supposed = spread_choices(func, (values, dim, keeps_dim), {}, result)
    assert supposed.shape == chosen.shape
    assert counts(supposed, values.shape[dim]).max() - counts(supposed, values.shape[dim]).min() <= 1


@given(st.integers(1, 5), st.integers(1, 9), st.data())
def test_draws_of_a_row_are_among_its_choices(rows, num_choices, data):
    count = data.draw(st.integers(1, num_choices))
    weights = torch.ones(rows, num_choices)
    drawn = weights.multinomial(count)
    chosen, supposed = spread_choices(aten.multinomial.default, (weights, count), {}, drawn)
    assert supposed.shape == chosen.shape
    assert counts(supposed, num_choices).max() - counts(supposed, num_choices).min() <= 1
    assert all(len(set(row)) == count for row in supposed.tolist())


def test_the_dimension_may_be_named_or_left_out():
    values = torch.zeros(3, 4)
    largest = values.topk(2)
    named = spread_choices(aten.topk.default, (values, 2), {"dim": 1}, largest)
    default = spread_choices(aten.topk.default, (values, 2), {}, largest)
    assert named[1].tolist() == default[1].tolist() == [[0, 1], [2, 3], [0, 1]]
    assert spread_choices(aten.argmax.default, (values,), {}, values.argmax())[1].tolist() == 0
