"""Globs, GPUs by name, alias, family and glob."""

import pytest

from advisor.core.gpus import load_gpus
from recommender.policy.model import checked_glob, gpu_members, matches, may_overlap


@pytest.mark.parametrize(
    ("glob", "name", "expected"),
    [
        ("us-*", "us-east-1", True),
        ("US-*", "us-east-1", True),
        ("us-*", "US-EAST-1", True),
        ("us", "us-east-1", False),
        ("us-east-?", "us-east-1", True),
        ("us-east-?", "us-east-10", False),
        ("*", "anything", True),
        ("p4d.*", "p4d.24xlarge", True),
        ("p4d.*", "p4dx24xlarge", False),
    ],
)
def test_globs(glob, name, expected):
    assert matches(glob, name) is expected


@pytest.mark.parametrize("text", ["us-[ew]*", "{us,eu}", "!us", "a,b", "a;b", "a|b", "", " ", "x" * 101])
def test_what_means_something_elsewhere_is_refused(text):
    with pytest.raises(ValueError, match="one name an entry"):
        checked_glob(text)


@pytest.mark.parametrize(
    ("glob", "members"),
    [
        ("A100-80GB", {"A100-PCIE-80GB", "A100-SXM-80GB"}),
        ("a100-sxm*", {"A100-SXM-40GB", "A100-SXM-80GB"}),
        ("NVIDIA A100-SXM4-80GB", {"A100-SXM-80GB"}),
        ("nvidia-tesla-a100", {"A100-SXM-40GB"}),
        ("A100-80G?", {"A100-PCIE-80GB", "A100-SXM-80GB"}),
        ("l4", {"L4"}),
    ],
)
def test_gpus(glob, members):
    assert set(gpu_members(glob)) == members


def test_a_name_is_no_prefix_and_the_star_is_all():
    assert "L40S" not in gpu_members("L40")
    assert set(gpu_members("*")) == set(load_gpus())


@pytest.mark.parametrize(("glob", "words"), [("A1000", "Did you mean"), ("Z9*", "no GPU of the catalog")])
def test_unknown_gpus(glob, words):
    with pytest.raises(ValueError, match=words):
        gpu_members(glob)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("", "", True),
        ("*", "", True),
        ("?", "", False),
        ("a*", "*b", True),
        ("a*c", "ab", False),
        ("a?c", "abc", True),
        ("A*", "a", True),
        ("*-east-*", "us-*-1", True),
        ("*a", "*b", False),
        ("*" * 50 + "a", "*" * 50 + "b", False),
    ],
)
def test_overlap(left, right, expected):
    assert may_overlap(left, right) is expected
    assert may_overlap(right, left) is expected
