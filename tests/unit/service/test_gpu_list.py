"""GPUs of the catalog: which are left, and which limit leaves none."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.errors import InputError, NoOfferError
from advisor.core.gpus import load_gpus
from advisor.core.units import GIB
from advisor.service.listening import Listener
from advisor.service.prices.query_limits import list_gpus

LARGEST_GIB = max(spec.memory_bytes for spec in load_gpus().values()) / GIB


def names(**asked: Any) -> list[str]:
    return [spec.name for spec in list_gpus(asked.pop("names", ()), Listener(), **asked)]


def test_without_a_limit_all_are_listed_and_names_only_once():
    assert names() == [*load_gpus()]
    assert names(names=("L4", "NVIDIA L4", "T4")) == ["L4", "T4"]


@given(st.sampled_from([None, "nvidia", "AMD"]), st.floats(0, LARGEST_GIB) | st.none())
def test_what_is_left_is_what_the_limits_say(vendor, least_gib):
    expected = [
        spec.name
        for spec in load_gpus().values()
        if (vendor is None or spec.vendor.lower() == vendor.lower())
        and (least_gib is None or spec.memory_bytes >= least_gib * GIB)
    ]
    if expected:
        assert names(vendor=vendor, min_memory_gib=least_gib) == expected
    else:
        with pytest.raises(NoOfferError):
            names(vendor=vendor, min_memory_gib=least_gib)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"names": ("L4:8",)}, "'L4:8' asks for a number of GPUs"),
        ({"vendor": "nvidai"}, "Did you mean 'nvidia'"),
        ({"min_memory_gib": -1}, "min_memory_gib must be a finite number"),
    ],
)
def test_what_cannot_be_meant_is_refused(asked, words):
    with pytest.raises(InputError, match=words):
        names(**asked)


def test_the_limit_that_leaves_none_is_named_with_what_there_is_without_it():
    with pytest.raises(NoOfferError) as caught:
        names(names=("L4",), min_memory_gib=100)
    assert "no GPU is left with min_memory_gib 100: without it there are 1, the largest" in str(caught.value)
