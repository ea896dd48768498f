"""What made a call's operands, and whose gradient it computes."""

import pytest

pytestmark = pytest.mark.torch


def test_a_layer_reads_the_one_before_and_the_first_what_comes_from_outside(probe):
    flows = probe("flows of layers")
    assert flows["mm"] == ["1 outside parameter 1 new", "3 relu parameter"]
    assert flows["exp"] == ["1 mm"]


def test_a_backward_call_is_of_the_call_whose_gradient_it_computes(probe):
    flows = probe("flows of layers")
    assert flows["mul back"] == ["1 ones exp of exp"]
    assert sorted(flows["mm back"]) == [
        "1 mul back parameter 1 new of mm",
        "1 mul back relu of mm",
        "1 threshold_backward back outside of mm",
        "2 threshold_backward back parameter of mm",
        "2 threshold_backward back relu of mm",
    ]
    assert flows["threshold_backward back"] == ["1 mm back relu of relu", "2 mm back relu of relu"]


def test_the_engine_adds_gradients_of_what_is_used_twice(probe):
    assert probe("flows of layers")["add back"][0] == "1 mm back mm back"


def test_undoing_a_view_is_of_what_was_viewed(probe):
    flows = probe("flows of views")
    assert flows["mul"] == ["1 mm"]
    assert flows["sum back"] == ["1 mul back of a view of mm"]
    assert flows["mm back"] == ["1 sum back outside of mm"]


def test_a_write_makes_the_tensor_anew_for_its_views_too(probe):
    assert probe("flows of writes") == {
        "zeros": ["1"], "add_": ["1 zeros"], "mul_": ["1 add_"], "exp": ["1 mul_"]
    }  # fmt: skip


def test_a_write_that_copies_what_it_overwrites_has_a_backward_call_all_the_same(probe):
    flows = probe("flows of writes that the backward pass needs undone")
    assert flows["silu_"] == ["1 mm"]
    assert flows["silu_backward back"] == ["1 ones clone of silu_"]
    assert flows["mm back"] == ["1 silu_backward back outside of mm"]


def test_gradients_of_an_earlier_pass_are_told_from_those_on_their_way(probe):
    assert probe("flows of accumulation")["add_ back"] == ["1 gradient mm back"]


def test_checkpointing_runs_the_forward_pass_again(probe):
    """The second time it is nobody's backward call."""
    flows = probe("flows of checkpointing")
    assert flows["mm back"] == ["1 outside parameter 1 new", "1 mul back outside of mm"]
    assert flows["exp back"] == ["1 mm back"]


def test_what_an_earlier_iteration_made_comes_from_outside(probe):
    assert probe("flows of spans") == {"exp": ["1 outside"]}


def test_an_evaluation_that_is_left_out_is_outside_and_one_that_is_kept_is_not(probe):
    apart, kept = probe("flows of evaluations")
    assert apart == {"exp": ["1 outside"]}
    assert kept == {"mm": ["1 outside parameter 1 new"], "exp": ["1 mm"]}
