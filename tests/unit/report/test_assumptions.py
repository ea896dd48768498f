"""Every assumption once, with the GPUs it is about."""

from hypothesis import given
from hypothesis import strategies as st

from advisor.core.findings.about_estimates import DataParallel
from advisor.report.estimates import by_gpus
from tests.builders import make_estimate
from tests.findings import sample, texts

OWN, SHARED = texts("own", "shared")


def test_those_of_all_come_first_and_name_nobody():
    groups = by_gpus(
        [make_estimate("T4", assumptions=(OWN, SHARED)), make_estimate("L4", assumptions=(SHARED,))]
    )
    assert list(groups) == [(SHARED, ""), (OWN, "T4")]


def test_counts_tell_estimates_of_one_gpu_apart():
    parallel = sample(DataParallel)
    groups = by_gpus([make_estimate("T4"), make_estimate("T4", num_gpus=8, assumptions=(parallel,))])
    assert list(groups) == [(parallel, "T4:8")]


def test_the_shorter_list_is_named():
    estimates = [make_estimate(name, assumptions=(SHARED,)) for name in ("A", "B", "C")]
    estimates += [make_estimate("D", assumptions=(OWN,))]
    assert list(by_gpus(estimates)) == [(SHARED, "all but D"), (OWN, "D")]


def test_no_estimates_rest_on_nothing():
    assert list(by_gpus([])) == []


ASSUMPTIONS = st.lists(st.sampled_from(texts("a", "b", "c", "d")), max_size=6).map(tuple)


@given(st.lists(ASSUMPTIONS, max_size=6))
def test_each_is_told_once_and_whose_it_is_can_be_read_back(rest_on):
    estimates = [make_estimate(f"GPU-{i}", assumptions=groups) for i, groups in enumerate(rest_on)]
    groups = list(by_gpus(estimates))
    assert len({assumption for assumption, _ in groups}) == len(groups)
    assert {assumption for assumption, _ in groups} == {one for several in rest_on for one in several}
    for assumption, gpus in groups:
        holders = {estimate.gpu for estimate in estimates if assumption in estimate.assumptions}
        named = set(gpus.removeprefix("all but ").split(", ")) - {""}
        everybody = {estimate.gpu for estimate in estimates}
        assert holders == (named if gpus and not gpus.startswith("all but ") else everybody - named)
