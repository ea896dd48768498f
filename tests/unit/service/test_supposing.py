"""Which plans stay where a script is supposed to divide its model."""

import pytest

from advisor.core.errors import NoOfferError
from advisor.core.values import WHOLE, Split
from advisor.service.recommend.recommending import that_suit
from tests.builders import make_plan


def test_machines_that_hold_no_whole_copies_are_left_out():
    plans = [make_plan(num_gpus=number) for number in (1, 2, 4, 8)]
    assert [plan.num_gpus for plan in that_suit(plans, Split(tensor=4))] == [4, 8]
    assert that_suit(plans, WHOLE) == plans


def test_where_none_is_left_it_says_what_to_ask_for():
    with pytest.raises(NoOfferError, match=r"tensor-8.pipeline-2 divides none .* a multiple of 16 GPUs"):
        that_suit([make_plan(num_gpus=8)], Split(tensor=8, pipeline=2))


def test_without_plans_somebody_else_says_why():
    assert that_suit([], Split(tensor=8)) == []
