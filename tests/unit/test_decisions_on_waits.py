"""Case of a cluster that states no wait: its arithmetic is written out by hand."""

import pytest

from advisor.core.findings.about_options import RemovedByDeadline, RentOrWait
from advisor.core.values import AssumedWait, Quantiles, Recommendation, Tier
from recommender.outcome.spot import SpotTerms
from tests.builders import HOUR_S, make_estimate, make_job, make_plan
from tests.unit.decisions import decide, option_of, time_h


class TestCase28AClusterThatStatesNoWait:
    """2.0 h of training for nothing after an assumed wait; 1.5 h for 6.00 USD after 0.1 h at most 0.3."""

    ASSUMED = AssumedWait(
        p50=0.5 * HOUR_S, p90=8 * HOUR_S, levels=(0.1, 0.5, 0.9, 0.99),
        waits_s=(0.0, 0.5 * HOUR_S, 8 * HOUR_S, 12 * HOUR_S),
    )  # fmt: skip
    PLANS = (
        make_plan("C", 0.0, tier=Tier.CLUSTER, wait_s=ASSUMED),
        make_plan("D", 4.0, wait_s=Quantiles(p50=0.1 * HOUR_S, p90=0.3 * HOUR_S)),
    )
    ESTIMATES = (make_estimate("C", 0.072), make_estimate("D", 0.054))

    def decide(self, deadline_h: float | None) -> Recommendation:
        job = make_job(
            deadline_s=None if deadline_h is None else deadline_h * HOUR_S, value_of_time_usd_per_h=2.0
        )
        never = SpotTerms(preemptions_per_h=0.0, checkpoint_interval_h=None)
        return decide(list(self.PLANS), list(self.ESTIMATES), job, spot=never)

    def test_its_time_is_that_of_the_training_and_of_the_assumed_wait(self):
        time = time_h(self.decide(None), "C")
        assert (time.p50, time.p90) == (pytest.approx(2.5, abs=0.01), pytest.approx(10.0, abs=0.01))

    @pytest.mark.parametrize("deadline_h", [4.0, 11.0, 13.9])
    def test_no_deadline_relies_on_the_wait(self, deadline_h):
        """9 of 10 would be there in 10 h, but nobody knows that of this cluster."""
        answer = self.decide(deadline_h)
        assert option_of(answer, "C").removed_by == (RemovedByDeadline.code,)
        assert answer.recommended == "D"

    def test_a_deadline_beyond_the_longest_wait_is_met(self):
        assert option_of(self.decide(14.1), "C").feasible

    def test_without_a_deadline_it_is_the_cluster_and_the_answer_says_until_which_wait(self):
        answer = self.decide(None)
        own, rented = (option_of(answer, name).expected for name in "CD")
        total_usd = [one.counted_usd + 2.0 * one.time_s / HOUR_S for one in (own, rented)]
        assert answer.recommended == ("C" if total_usd[0] < total_usd[1] else "D")
        (advice,) = [r for r in option_of(answer, "C").reasons if isinstance(r, RentOrWait)]
        even_h = (6.0 + 2.0 * rented.time_s / HOUR_S) / 2.0 - 2.0
        assert advice.break_even_wait_s == pytest.approx(even_h * HOUR_S, rel=1e-3)
