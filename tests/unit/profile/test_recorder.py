"""What the mode, the recorder and the memory tracker make of a few lines of torch."""

import pytest

pytestmark = pytest.mark.torch


def test_views_and_allocations_are_no_operators(probe):
    assert probe("views") == [["aten::fill_", [2, 4]]]


def test_equal_calls_are_counted_and_others_kept_apart(probe):
    assert probe("equal calls") == [[5, {"alpha": 2}], [1, {"alpha": 3}]]


def test_attributes_have_the_names_of_the_schema(probe):
    convolution, fill = probe("attributes")
    assert convolution == {
        "stride": [2, 2],
        "padding": [1, 1],
        "dilation": [1, 1],
        "transposed": False,
        "output_padding": [0, 0],
        "groups": 1,
    }
    assert fill == {"value": "-inf"}  # JSON has no infinity


def test_phases(probe):
    phases = dict(probe("phases"))
    assert phases["advisor::h2d_copy"] == "forward"
    assert ["aten::mm", "forward"] in probe("phases")
    assert ["aten::mm", "backward"] in probe("phases")
    assert phases["aten::_foreach_norm"] == "optimizer"
    assert phases["aten::_foreach_add_"] == "optimizer"


def test_copies_between_host_and_device(probe):
    copies, value, num_reads = probe("copies")
    assert sum(count for name, count in copies if name == "advisor::h2d_copy") == 2
    assert sum(count for name, count in copies if name == "advisor::d2h_copy") == 3
    assert {name for name, _ in copies} == {"advisor::h2d_copy", "advisor::d2h_copy"}
    assert (value, num_reads) == (0.5, 1)


def test_values_that_nobody_computed(probe):
    assert probe("values") == [False, 0, 0.5, False, [1, 1], [1], [1], [3]]


def test_memory_is_rounded_shared_with_views_and_freed(probe):
    before, during, with_view, kept_by_view, after = probe("memory is freed")
    assert (before, during, with_view, kept_by_view, after) == (0, 4096, 4096, 4096, 0)


def test_memory_by_kind(probe):
    usage = probe("memory of a model")
    parameters = 256 * 256 * 4 + 1024
    assert usage["parameter_bytes"] == usage["gradient_bytes"] == parameters
    assert usage["optimizer_bytes"] == 0
    # The peak is in the backward pass: input, loss, its gradient twice (of the sum, expanded).
    assert usage["peak_bytes"] == 2 * parameters + usage["activation_bytes"]
    assert usage["activation_bytes"] == 102_400 + 2 * 512


def test_the_real_dynamo_comes_when_asked_for(probe):
    assert probe("real dynamo on demand") == [True, "module", True]
