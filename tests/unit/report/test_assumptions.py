"""Every assumption once, with the GPUs it is about."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from advisor.report.assumptions import by_gpus
from tests.builders import make_estimate


def test_those_of_all_come_first_and_name_nobody() -> None:
    found = by_gpus(
        [make_estimate("T4", assumptions=("own", "shared")), make_estimate("L4", assumptions=("shared",))]
    )
    assert list(found) == [("shared", ""), ("own", "T4")]


def test_counts_tell_estimates_of_one_gpu_apart() -> None:
    found = by_gpus(
        [make_estimate("T4"), make_estimate("T4", num_gpus=8, assumptions=("data parallel",))],
    )
    assert list(found) == [("data parallel", "T4:8")]


def test_the_shorter_list_is_named() -> None:
    estimates = [make_estimate(name, assumptions=("most",)) for name in ("A", "B", "C")]
    estimates += [make_estimate("D", assumptions=("few",))]
    assert list(by_gpus(estimates)) == [("most", "all but D"), ("few", "D")]


def test_no_estimates_rest_on_nothing() -> None:
    assert list(by_gpus([])) == []


TEXTS = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=6).map(tuple)


@given(st.lists(TEXTS, max_size=6))
def test_each_is_told_once_and_whose_it_is_can_be_read_back(all_texts: list[tuple[str, ...]]) -> None:
    estimates = [make_estimate(f"GPU-{i}", assumptions=texts) for i, texts in enumerate(all_texts)]
    found = list(by_gpus(estimates))
    assert len({text for text, _ in found}) == len(found)
    assert {text for text, _ in found} == {text for texts in all_texts for text in texts}
    for text, gpus in found:
        holders = {estimate.gpu for estimate in estimates if text in estimate.assumptions}
        named = set(gpus.removeprefix("all but ").split(", ")) - {""}
        everybody = {estimate.gpu for estimate in estimates}
        assert holders == (named if gpus and not gpus.startswith("all but ") else everybody - named)
