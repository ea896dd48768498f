"""Predicted against actual: who is compared, and how the intervals held."""

import pytest

from advisor.core.values import Interval, Quantiles, RunStatus
from advisor.review.savings import Accuracy, accuracy_of, predicted_s
from advisor.store.ledger import Run
from tests.team import make_entry, make_run


def accuracy(*runs: Run, **changes: object) -> Accuracy:
    return accuracy_of(runs, {"entry": make_entry(**changes)})


def followed(hours: float = 2.0, usd: float | None = 10.0, **changes: object) -> Run:
    return make_run(usd=usd, recommendation_id="entry", duration_s=hours * 3600, **changes)


def test_a_run_at_the_bound_is_within_it():
    held = accuracy(followed(2.0), followed(3.0), followed(3.001)).time
    assert (held.num, held.num_within_p50, held.num_within_p90) == (3, 1, 2)
    assert held.expected_within_p90 == pytest.approx(2.7)
    assert held.median_ratio == 1.5


def test_costs_have_a_record_of_their_own():
    held = accuracy(followed(usd=15.0), followed(usd=16.0), followed(usd=None)).cost
    assert (held.num, held.num_within_p90) == (2, 1)


@pytest.mark.parametrize(
    "changes",
    [
        {"status": RunStatus.FAILED},
        {"status": RunStatus.INTERRUPTED},
        {"status": RunStatus.LOST},
        {"gpu": "L4"},
        {"num_gpus": 2},
        {"provider": "gcp"},
        {"market": None},
    ],
)
def test_who_did_not_finish_or_ran_elsewhere_is_not_compared(changes):
    compared = accuracy(followed(**changes))
    assert compared.comparisons == ()
    assert compared.time is compared.cost is None
    assert compared.num_elsewhere == (0 if "status" in changes else 1)


def test_runs_without_a_known_recommendation_are_not_compared():
    assert accuracy(make_run(), make_run(recommendation_id="lost")).comparisons == ()


def test_a_run_of_unknown_length_is_not_compared():
    assert accuracy(make_run(recommendation_id="entry", duration_s=None)).time is None


def test_the_time_of_training_is_compared_where_it_is_known_apart_from_the_wait():
    steps = Interval(p10=0.1, p50=0.5, p90=0.6)
    entry = make_entry(iteration_s=steps, num_iterations=1000)
    assert predicted_s(entry) == Quantiles(p50=500.0, p90=600.0)
    assert predicted_s(make_entry(iteration_s=steps)) == entry.time_s


def test_each_gpu_has_a_record():
    entries = {"a": make_entry("a"), "b": make_entry("b", gpu="L4")}
    runs = make_run(recommendation_id="a"), make_run(recommendation_id="b", gpu="L4")
    assert list(accuracy_of(runs, entries).by_gpu) == ["A10G", "L4"]
