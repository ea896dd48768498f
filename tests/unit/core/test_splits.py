"""Names of splits, and which GPUs hold whole copies of a model that is divided so."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.changes import parse_split
from advisor.core.errors import InputError
from advisor.core.values import WHOLE, Layout, Sharding, Split

NUMBERS = st.sampled_from([1, 2, 3, 4, 8])


def test_names_of_several_kinds_make_one_split():
    assert parse_split(["tensor-8", "zero-1", "pipeline-4"]) == Split(
        sharding=Sharding.ZERO_1, tensor=8, pipeline=4
    )
    assert parse_split(["fsdp"]) == parse_split(["zero-3"])
    assert parse_split([]) == WHOLE


@pytest.mark.parametrize(
    "name", ["zero-4", "tensor", "tensor-1", "tensor-0", "pipeline-x", "none", "tensor-99999999999"]
)
def test_what_is_no_split_is_refused(name):
    with pytest.raises(InputError, match=f"--suppose must be some of .*got '{name}'"):
        parse_split([name], "--suppose")


@pytest.mark.parametrize("names", [("zero-1", "zero-3"), ("tensor-2", "tensor-4")])
def test_a_model_is_divided_one_way_of_each_kind(names):
    with pytest.raises(InputError, match="two of one kind"):
        parse_split(names)


@given(st.sampled_from(Sharding), NUMBERS, NUMBERS)
def test_a_name_means_its_split(sharding, tensor, pipeline):
    split = Split(sharding=sharding, tensor=tensor, pipeline=pipeline)
    assert parse_split(filter(None, split.name.split("+"))) == split


@given(NUMBERS, NUMBERS, st.integers(1, 16), st.integers(1, 16))
def test_copies_are_of_all_gpus(tensor, pipeline, per_node, num_nodes):
    split, layout = (
        Split(tensor=tensor, pipeline=pipeline),
        Layout(gpus_per_node=per_node, num_nodes=num_nodes),
    )
    if split.suits(layout):
        copies = split.copies(layout)
        assert copies.num_gpus * split.gpus_per_copy == layout.num_gpus
        # The parts of a layer stay in a node.
        assert copies.gpus_per_node * tensor <= per_node


def test_a_part_of_a_layer_never_leaves_its_node():
    assert not Split(tensor=16).suits(Layout(gpus_per_node=8, num_nodes=2))
    assert Split(tensor=8, pipeline=2).suits(Layout(gpus_per_node=8, num_nodes=2))
    assert WHOLE.copies(Layout(gpus_per_node=8)) == Layout(gpus_per_node=8)
