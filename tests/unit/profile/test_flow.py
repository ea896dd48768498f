"""What made a call's operands, and whose gradient it computes."""

import pytest

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # A layer reads the one before, a backward call is of the call whose gradient it computes, and the
        # engine adds gradients of what is used twice.
        ("flows of layers", {
            "mm": ["1 outside parameter 1 new", "3 relu parameter"], "exp": ["1 mm"],
            "mul back": ["1 ones exp of exp"],
            "mm back": [
                "1 mul back parameter 1 new of mm", "1 mul back relu of mm",
                "1 threshold_backward back outside of mm", "2 threshold_backward back parameter of mm",
                "2 threshold_backward back relu of mm",
            ],
            "threshold_backward back": ["1 mm back relu of relu", "2 mm back relu of relu"],
            "add back": ["1 add back mm back", "1 add back mm back", "1 mm back mm back"],
        }),
        ("flows of views", {"mul": ["1 mm"], "sum back": ["1 mul back of a view of mm"],
                            "mm back": ["1 sum back outside of mm"]}),
        # A write makes the tensor anew for its views too.
        ("flows of writes", {"zeros": ["1"], "add_": ["1 zeros"], "mul_": ["1 add_"], "exp": ["1 mul_"]}),
        # One that copies what it overwrites has a backward call all the same.
        ("flows of writes that the backward pass needs undone",
         {"silu_": ["1 mm"], "silu_backward back": ["1 ones clone of silu_"],
          "mm back": ["1 silu_backward back outside of mm"]}),
        ("flows of accumulation", {"add_ back": ["1 gradient mm back"]}),
        # The second time it is nobody's backward call.
        ("flows of checkpointing", {"mm back": ["1 outside parameter 1 new", "1 mul back outside of mm"],
                                    "exp back": ["1 mm back"]}),
        # What an earlier iteration made comes from outside.
        ("flows of spans", {"exp": ["1 outside"]}),
    ],
)  # fmt: skip
def test_what_made_operands(probe, name, expected):
    flows = probe(name)
    assert {key: sorted(flows[key]) for key in expected} == {key: sorted(expected[key]) for key in expected}
    assert not name.endswith(("writes", "spans")) or flows.keys() == expected.keys()


def test_an_evaluation_that_is_left_out_is_outside_and_one_that_is_kept_is_not(probe):
    apart, kept = probe("flows of evaluations")
    assert apart == {"exp": ["1 outside"]}
    assert kept == {"mm": ["1 outside parameter 1 new"], "exp": ["1 mm"]}
