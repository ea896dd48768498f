"""Which GPUs a command gets, as CUDA reads ``CUDA_VISIBLE_DEVICES``."""

import pytest

from advisor.core.devices import Device
from advisor.receipt.command import VARIABLE, gpus_seen


def cards(*names: str) -> list[Device]:
    return [Device(name=name, memory_bytes=None, used_bytes=None, utilization=None) for name in names]


@pytest.mark.parametrize(
    ("which", "num_visible"),
    [
        (None, 4),
        ("0", 1),
        ("0,2", 2),
        ("3, 1", 2),
        ("0,9,1", 1),
        ("0,-1,1", 1),
        ("0,²,1", 1),
        ("0,--1", 1),
        ("GPU-8932f937,GPU-1234", 2),
    ],
)
def test_how_many_are_visible(which, num_visible):
    seen = gpus_seen(cards(*["NVIDIA L4"] * 4), {} if which is None else {VARIABLE: which})
    assert (seen.name, seen.num_visible, seen.num_all) == ("L4", num_visible, 4)


@pytest.mark.parametrize("which", ["", "-1", "NoDevFiles,"])
def test_none_visible_is_none(which):
    assert gpus_seen(cards("NVIDIA L4") if which != "NoDevFiles," else [], {VARIABLE: which}) is None


def test_no_card_is_none():
    assert gpus_seen([], {}) is None


def test_of_several_kinds_the_first_visible_counts_and_a_stranger_keeps_its_name():
    mixed = cards("NVIDIA L4", "NVIDIA GeForce GTX 9999")
    seen = gpus_seen(mixed, {VARIABLE: "1,0"})
    assert seen.name == "NVIDIA GeForce GTX 9999"
