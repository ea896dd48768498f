"""Equal operators are worked out once, and what was worked out is kept for the same sequence alone."""

from dataclasses import replace

from advisor.core.values import Precision
from advisor.predict.distinct import Same, asked_rates, columns_of, merged, shared
from tests.builders import make_op

FULL = Precision(amp_dtype=None, tf32_matmul=False, tf32_cudnn=True)
ONE, OTHER = make_op("aten::mm", count=2), make_op("aten::add", count=3)
OPS = (ONE, OTHER, replace(ONE, count=5), OTHER)


def test_counts_of_equal_operators_add_up():
    assert merged(OPS) == (replace(ONE, count=7), replace(OTHER, count=6))
    assert merged((ONE, OTHER)) == (ONE, OTHER)


def test_shared_operators_are_equal_in_their_counts_too():
    again = tuple(replace(op) for op in OPS)
    found = shared((*OPS, *again))
    assert found == (*OPS, *again)
    assert len({id(op) for op in found}) == 3


def test_what_is_kept_is_kept_for_one_sequence():
    again = tuple(replace(op) for op in OPS)
    assert merged(OPS) is merged(OPS) is not merged(again)
    assert asked_rates(OPS, FULL) is asked_rates(OPS, FULL)
    assert columns_of(OPS) is columns_of(OPS) is not columns_of(again)
    assert Same(OPS) == Same(OPS) != Same(again)
    assert Same(OPS) != OPS


def test_a_custom_operator_is_named_once():
    ops = (*OPS, make_op("mine::kernel"), make_op("mine::kernel", count=4), make_op("ours::kernel"))
    columns = columns_of(ops)
    assert [columns.names[i] for i in columns.name_index] == ["mm", "add", "mm", "add", *["kernel"] * 3]
    assert columns.custom == ("kernel",)
    assert columns.counts.tolist() == [2, 3, 5, 3, 1, 4, 1]
