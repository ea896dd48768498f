"""Calls that are measured do all their work, and not too much: torch does not check that."""

from collections.abc import Iterator
from math import prod

import pytest

from advisor.core.values import Phase
from advisor.operators.attention import ATTENTION
from advisor.operators.case import Caps, Case
from advisor.operators.family import Family
from advisor.operators.gemm import GEMM
from advisor.operators.recurrent import RECURRENT

CAPS = Caps(flops=10**9, num_bytes=2**26)
LSTM = 2  # as cuDNN counts


def cases_of(family: Family, phase: Phase = Phase.FORWARD) -> Iterator[Case]:
    for generate in family.cases.values():
        for index in range(40):
            yield from (case for case in generate(index, CAPS) if case.phase is phase)


def shape_of(argument) -> list[int]:
    return argument["tensor"]["shape"]


@pytest.mark.parametrize("phase", [Phase.FORWARD, Phase.BACKWARD])
def test_no_product_computes_more_than_allowed(phase):
    for case in cases_of(GEMM, phase):
        left, right = map(shape_of, case.call.arguments[-2:])
        assert CAPS.allow(0, case.dtype, flops=2 * prod(left) * right[-1], tf32=case.tf32)


def test_no_recurrent_layer_computes_more_than_allowed_there_and_back():
    for case in cases_of(RECURRENT):
        data, weights, *_ = case.call.arguments
        steps, batch, _ = shape_of(data)
        elements = sum(prod(shape) for shape in map(shape_of, weights) if len(shape) == 2)
        assert CAPS.allow(0, case.dtype, flops=4 * steps * batch * elements, tf32=case.tf32)


def test_an_lstm_has_a_cell_and_a_gru_has_none():
    has_cell = {
        (case.call.arguments[6] == LSTM, case.call.arguments[5] is not None) for case in cases_of(RECURRENT)
    }
    assert has_cell == {(True, True), (False, False)}


def test_attention_keeps_what_its_backward_pass_reads():
    efficient = "aten::_scaled_dot_product_efficient_attention.default"
    kept = [case.call.arguments[4] for case in cases_of(ATTENTION) if case.call.operator == efficient]
    assert kept == [True] * len(kept) != []
