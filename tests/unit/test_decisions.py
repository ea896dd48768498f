"""Cases whose arithmetic is written out by hand; the recommender must come to the same figures."""

import re
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

from advisor.core.findings.about_estimates import RetuneLearningRate
from advisor.core.findings.about_options import (
    RemovedByBudget,
    RemovedByDeadline,
    RemovedByMemory,
    RemovedBySpot,
)
from advisor.core.units import GB
from advisor.core.values import (
    Checkpoints,
    CheckpointUse,
    Collective,
    IterationEstimate,
    Market,
    Merit,
    Option,
    PickName,
    Plan,
    Quantiles,
    RankWork,
    Recommendation,
    Tier,
    Trace,
    Work,
)
from advisor.pricing.sources.protocol import OfferQuery
from advisor.pricing.sources.snapshot import SnapshotSource
from advisor.report.option_facts import selection
from advisor.report.recommendation import assumptions_document, recommendation_document
from advisor.report.words import sentence
from recommender.outcome.spot import SpotTerms, best_checkpoint_interval_h, makespan_and_billed_h
from recommender.plans.candidates import plans_of_offers
from recommender.plans.extras import CloudTerms
from recommender.ranking.frontier import nearest
from recommender.ranking.value import Worth, preference, total_usd
from recommender.ranking.what_ifs import best_what_if
from tests.builders import HOUR_S, make_estimate, make_job, make_offer, make_plan, make_trace
from tests.findings import said
from tests.recommendations import make_option
from tests.recommending import make_script
from tests.unit.decisions import TOLERANCE, around, cost_usd, decide, option_of, reasons, time_h
from tests.unit.report.printed import on_screen


class TestCase1FrontierBudgetDeadline:
    PLANS = (make_plan("X", 3.0), make_plan("Y", 0.9), make_plan("Z", 1.2))
    ESTIMATES = (make_estimate("X", 0.10), make_estimate("Y", 0.25), make_estimate("Z", 0.30))

    def decide(self, **limits: float) -> Recommendation:
        return decide(list(self.PLANS), list(self.ESTIMATES), make_job(**limits))

    def test_time_and_cost(self):
        answer = self.decide()
        times = [time_h(answer, name).p50 for name in "XYZ"]
        assert times == pytest.approx([2.7778, 6.9444, 8.3333], abs=TOLERANCE)
        costs = [cost_usd(answer, name) for name in "XYZ"]
        assert costs == pytest.approx([8.3333, 6.25, 10.00], abs=TOLERANCE)

    def test_frontier(self):
        assert self.decide().frontier == ("X", "Y")

    def test_budget(self):
        answer = self.decide(budget_usd=7)
        assert answer.recommended == "Y"
        assert answer.frontier == ("Y",)
        assert answer.options[0].removed_by == (RemovedByBudget.code,)

    def test_deadline(self):
        answer = self.decide(deadline_s=4 * HOUR_S)
        assert answer.recommended == "X"
        assert answer.options[1].removed_by == (RemovedByDeadline.code,)

    def test_nothing_feasible_names_the_nearest(self):
        answer = self.decide(budget_usd=7, deadline_s=4 * HOUR_S)
        assert answer.recommended is None
        assert answer.frontier == ()
        by_id = {near.option.plan.id: near for near in nearest(answer.options, answer.job)}
        assert set(by_id) == {"X", "Y"}
        assert by_id["X"].over_budget_usd == pytest.approx(1.3333, abs=TOLERANCE)
        assert by_id["X"].late_s == 0
        assert by_id["Y"].late_s / HOUR_S == pytest.approx(2.9444, abs=TOLERANCE)
        assert by_id["Y"].over_budget_usd == 0


class TestCase2ClusterAgainstCloud:
    PLANS = (
        make_plan("X", 3.0),
        make_plan("C", 0.5, tier=Tier.CLUSTER, wait_s=Quantiles(p50=3 * HOUR_S, p90=8 * HOUR_S)),
    )
    ESTIMATES = (make_estimate("X", 0.10), make_estimate("C", 0.12))

    def test_time_cost_and_frontier(self):
        answer = decide(list(self.PLANS), list(self.ESTIMATES), make_job())
        assert time_h(answer, "C").p50 == pytest.approx(6.3333, abs=TOLERANCE)
        assert time_h(answer, "C").p90 == pytest.approx(11.3333, abs=TOLERANCE)
        assert cost_usd(answer, "C") == pytest.approx(1.6667, abs=TOLERANCE)
        assert set(answer.frontier) == {"X", "C"}

    def test_a_deadline_counts_the_wait(self):
        answer = decide(list(self.PLANS), list(self.ESTIMATES), make_job(deadline_s=4 * HOUR_S))
        assert answer.frontier == ("X",)
        (late,) = (option for option in answer.options if option.plan.id == "C")
        assert late.removed_by == (RemovedByDeadline.code,)
        assert late.p_within_deadline is not None
        assert late.p_within_deadline < 0.9

    def test_the_wait_from_which_renting_pays(self):
        # 8.3333 + 2 x 2.7778 = 1.6667 + 2 x (w + 3.3333): w = 2.7778 h.
        plans = [self.PLANS[0], replace(self.PLANS[1], wait_s=Quantiles(p50=HOUR_S, p90=HOUR_S))]
        answer = decide(plans, list(self.ESTIMATES), make_job(value_of_time_usd_per_h=2.0))
        for plan_id in ("X", "C"):
            words = reasons(answer, plan_id)
            assert "renting X pays once the wait exceeds 2 h 47 min at $2/h" in words
        assert answer.recommended == "C"

    @pytest.mark.parametrize(("wait_h", "recommended"), [(2.77, "C"), (2.79, "X")])
    def test_from_there_on_it_is_recommended(self, wait_h, recommended):
        wait_s = Quantiles(p50=wait_h * HOUR_S, p90=wait_h * HOUR_S)
        plans = [self.PLANS[0], replace(self.PLANS[1], wait_s=wait_s)]
        answer = decide(plans, list(self.ESTIMATES), make_job(value_of_time_usd_per_h=2.0))
        assert answer.recommended == recommended


class TestCase3Spot:
    TERMS = SpotTerms(preemptions_per_h=0.4, checkpoint_h=0.02, restart_h=0.1, reacquire_h=0.5)

    def hours(self, interval_h: float | None) -> tuple[float, float]:
        terms = SpotTerms(
            preemptions_per_h=0.4,
            checkpoint_interval_h=interval_h,
            checkpoint_h=0.02,
            restart_h=0.1,
            reacquire_h=0.5,
        )
        makespan, billed = makespan_and_billed_h(np.array([8.0]), terms, rate_per_h=0.4, reacquire_h=0.5)
        return float(makespan[0]), float(billed[0])

    def test_without_checkpoints(self):
        assert self.hours(None) == pytest.approx((73.479, 61.232), abs=1e-3)

    def test_best_interval(self):
        best = best_checkpoint_interval_h(self.TERMS)
        assert best == pytest.approx(0.3162, abs=TOLERANCE)
        assert self.hours(best) == pytest.approx((11.371, 9.476), abs=1e-3)

    def test_hourly_checkpoints(self):
        assert self.hours(1.0) == pytest.approx((12.585, 10.49), abs=5e-3)

    def decide(self, interval_h: float | None) -> Recommendation:
        plans = [make_plan("S", 1.0, market=Market.SPOT), make_plan("D", 3.0)]
        estimates = [make_estimate("S", 0.288), make_estimate("D", 0.288)]
        return decide(
            plans, estimates, make_job(), spot=replace(self.TERMS, checkpoint_interval_h=interval_h)
        )

    def test_on_demand(self):
        answer = self.decide(None)
        assert time_h(answer, "D").p50 == pytest.approx(8.0)
        assert cost_usd(answer, "D") == pytest.approx(24.0)

    def test_without_checkpoints_it_is_refused_with_the_number(self):
        answer = self.decide(None)
        assert answer.frontier == ("D",)
        assert answer.options[0].removed_by == (RemovedBySpot.code,)
        words = reasons(answer, "S")
        assert "73.5 h of training and $61.23 are expected without checkpoints" in words
        assert "with one every 19 min: 11.4 h and $9.48" in words

    @pytest.mark.parametrize("interval_h", [0.3162, 1.0])
    def test_with_checkpoints_it_is_a_choice(self, interval_h):
        answer = self.decide(interval_h)
        assert set(answer.frontier) == {"S", "D"}
        assert "(least is lost at 19 min)" in said(answer.options[0].script_changes)


class TestCase4EpochsToSteps:
    PLANS = (make_plan("T", 1.0), make_plan("T", 8.0, num_gpus=8))
    ESTIMATES = (make_estimate("T", 0.2), make_estimate("T", 0.2 / 0.9, num_gpus=8))

    def test_weak_scaling(self):
        answer = decide(list(self.PLANS), list(self.ESTIMATES), make_job(epochs=90))
        one, eight = answer.options
        assert one.iterations == 1_801_710
        assert eight.iterations == 225_270
        assert time_h(answer, "T").p50 == pytest.approx(100.095, abs=1e-3)
        assert time_h(answer, "8xT").p50 == pytest.approx(13.9056, abs=3e-3)
        assert cost_usd(answer, "T") == pytest.approx(100.10, abs=0.01)
        assert cost_usd(answer, "8xT") == pytest.approx(111.24, abs=0.01)
        assert set(answer.frontier) == {"T", "8xT"}


class TestCase5MemoryFirst:
    def test_what_does_not_fit_stays_visible_with_the_reason(self):
        need = 31 * GB
        estimates = [
            make_estimate("SMALL", 0.2, memory_bytes=need, memory_limit_bytes=24 * GB),
            make_estimate("LARGE", 0.2, memory_bytes=need, memory_limit_bytes=40 * GB),
        ]
        answer = decide([make_plan("SMALL", 0.6), make_plan("LARGE", 2.0)], estimates, make_job())
        small = answer.options[0]
        assert answer.recommended == "LARGE"
        assert answer.frontier == ("LARGE",)
        assert (small.feasible, small.removed_by) == (False, (RemovedByMemory.code,))
        assert "does not fit" in sentence(small.reasons[0])
        assert "would fit" in sentence(small.reasons[0])


class TestCase6WholeMachine:
    def test_host_and_gpu_are_priced_together(self):
        query = OfferQuery(regions=("us-central1",), gpus=("A100-SXM-40GB",), markets=(Market.ON_DEMAND,))
        offers = [offer for part in SnapshotSource().offers(query) for offer in part.offers]
        (offer,) = (offer for offer in offers if offer.instance_type == "a2-highgpu-1g")
        (plan,) = plans_of_offers([offer], terms=CloudTerms(startup_s=0.0))
        answer = decide([plan], [make_estimate(plan.gpu, 0.036)], make_job())
        assert cost_usd(answer, plan.id) == pytest.approx(0.739477 + 2.933908, abs=1e-6)


class TestCase7BillingMinimum:
    def test_twenty_seconds_cost_a_minute(self):
        plan = make_plan("X", 3.6, minimum_billed_s=60.0)
        answer = decide([plan], [make_estimate("X", 0.1)], make_job(iterations=200))
        option = answer.options[0]
        assert option.train_s.p50 == pytest.approx(20.0)
        assert option.cost_usd.p50 == pytest.approx(0.06)
        assert sum(option.cost_breakdown_usd.values()) == pytest.approx(0.06)

    def test_so_they_do_by_an_offer_billed_by_the_second(self):
        offer = make_offer("X", 3.6, minimum_billed_s=60.0)
        (plan,) = plans_of_offers([offer], terms=CloudTerms(startup_s=0.0))
        answer = decide([plan], [make_estimate("X", 0.1)], make_job(iterations=200))
        assert cost_usd(answer, plan.id) == pytest.approx(0.06)


class TestCase8NearTie:
    PLANS = (make_plan("P", 5.0), make_plan("Q", 49.5 / 10.2))

    def decide(self, *more: tuple[Plan, IterationEstimate]) -> Recommendation:
        estimates = [make_estimate(name, around(s)) for name, s in (("P", 0.36), ("Q", 0.3672))]
        plans = [*self.PLANS, *(plan for plan, _ in more)]
        return decide(plans, [*estimates, *(estimate for _, estimate in more)], make_job())

    def test_neither_pushes_the_other_off(self):
        assert set(self.decide().frontier) == {"P", "Q"}

    def test_both_are_called_a_tie(self):
        answer = self.decide()
        by_id = {option.plan.id: option for option in answer.options}
        assert (by_id["P"].tie_with, by_id["Q"].tie_with) == ("Q", "P")
        assert "tie with Q" in reasons(answer, "P")

    def test_so_is_one_that_is_a_little_worse_in_both(self):
        worse = (make_plan("R", 5.0), make_estimate("R", around(0.3685)))
        answer = self.decide(worse)
        assert set(answer.frontier) == {"P", "Q"}
        (option,) = (option for option in answer.options if option.plan.id == "R")
        assert option.feasible
        assert option.tie_with in ("P", "Q")


class TestCase11AnUnknownWaitIsNotZero:
    PLANS = (
        make_plan(
            "C", 40.0, num_gpus=8, market=Market.SPOT, wait_s=Quantiles(p50=2 * HOUR_S, p90=24 * HOUR_S)
        ),
        make_plan("D", 2.0, num_gpus=4, wait_s=Quantiles(p50=0.1 * HOUR_S, p90=0.5 * HOUR_S)),
    )
    ESTIMATES = (make_estimate("C", 0.288, num_gpus=8), make_estimate("D", 0.864, num_gpus=4))
    NEVER = SpotTerms(preemptions_per_h=0.0, checkpoint_interval_h=None)

    def decide(self, plans: tuple[Plan, ...]) -> Recommendation:
        job = make_job(deadline_s=8 * HOUR_S)
        return decide(list(plans), list(self.ESTIMATES), job, spot=self.NEVER)

    def test_only_what_is_there_in_time_meets_the_deadline(self):
        answer = self.decide(self.PLANS)
        assert answer.recommended == "4xD"
        assert answer.options[0].removed_by == (RemovedByDeadline.code,)
        assert time_h(answer, "8xC").p90 == pytest.approx(25.0, abs=0.01)
        assert time_h(answer, "4xD").p90 == pytest.approx(6.5, abs=0.01)

    def test_with_the_wait_taken_as_nothing_it_would_have_passed(self):
        answer = self.decide((replace(self.PLANS[0], wait_s=None), self.PLANS[1]))
        assert answer.options[0].feasible
        assert time_h(answer, "8xC").p90 == pytest.approx(1.0, abs=0.01)

    def test_what_nobody_tells_is_assumed_by_class_and_keeps_it_out(self):
        rented = [
            make_offer("B200-SXM-180GB", 40.0, num_gpus=8, market=Market.SPOT),
            make_offer("L4", 2.0, num_gpus=4),
        ]
        assumed = plans_of_offers(rented, terms=CloudTerms(startup_s=0.0))
        waits_s = [plan.wait_s for plan in assumed]
        scarce, common = (
            replace(plan, wait_s=wait_s) for plan, wait_s in zip(self.PLANS, waits_s, strict=True)
        )
        by_id = {o.plan.id: o.p_within_deadline for o in self.decide((scarce, common)).options}
        assert by_id["8xC"] < 0.92
        assert (
            by_id["8xC"]
            < decide(
                [self.PLANS[1], replace(scarce, wait_s=None)],
                list(self.ESTIMATES),
                make_job(deadline_s=8 * HOUR_S),
                spot=self.NEVER,
            )
            .options[1]
            .p_within_deadline
        )


class TestCase9FreeIsNotFree:
    def test_a_cluster_without_a_cost_warns(self):
        plan = make_plan("C", None, tier=Tier.CLUSTER)
        answer = decide([plan], [make_estimate("C", 0.1)], make_job())
        option = answer.options[0]
        assert option.cost_usd.p50 == 0
        assert "cost unknown" in said(option.reasons)
        assert "no hourly cost" in said(answer.warnings)

    def test_recommended_says_that_the_cost_is_unknown(self):
        answer = decide([make_plan("C", None, tier=Tier.CLUSTER)], [make_estimate("C", 0.1)], make_job())
        assert answer.recommended == "C"
        assert answer.rule is not None
        assert "what it costs is unknown" in sentence(answer.rule)


class TestCase17AScriptThatHoldsTheGlobalBatch:
    TRACE = make_trace(
        batch_size=32,
        iterations_per_epoch=40_037,  # 1,281,167 / 32
        world_size=8,
        collectives=(Collective(kind="all_reduce", num_bytes=10**8, world_size=8, count=1),),
        work_elsewhere=RankWork(world_size=1, batch_size=256, accumulation=1, flops=0),
    )

    def options(self, trace: Trace) -> dict[int, Option]:
        counts = (1, 4, 8)
        plans = [make_plan("T", float(count), num_gpus=count) for count in counts]
        estimates = [make_estimate("T", 0.2, num_gpus=count) for count in counts]
        recommendation = decide(plans, estimates, make_job(epochs=1), trace)
        return {option.plan.num_gpus: option for option in recommendation.options}

    def test_it_takes_as_many_steps_on_any_number_of_gpus(self):
        assert {option.iterations for option in self.options(self.TRACE).values()} == {5005}

    def test_four_gpus_take_64_samples_each_and_no_hint_names_another_batch(self):
        option = self.options(self.TRACE)[4]
        assert "holds its global batch of 256, 64 a GPU, as two profiles show" in said(option.reasons)
        assert RetuneLearningRate not in {type(change) for change in option.script_changes}
        assert "128" not in said(option.script_changes)

    def test_a_script_that_holds_the_batch_of_a_gpu_is_told_apart(self):
        work = RankWork(world_size=1, batch_size=32, accumulation=1, flops=0)
        four = self.options(replace(self.TRACE, work_elsewhere=work))[4]
        assert four.iterations == 10_010
        assert "a step takes 128 samples instead of 256" in said(four.script_changes)


class TestCase15Folding:
    MINUTES_AND_USD: ClassVar = {"P": (10.0, 9.53), "Q": (10.2, 0.66), "R": (10.3, 0.05), "S": (25.0, 0.04)}

    def decide(self, names: str = "PQRS") -> Recommendation:
        points = {name: self.MINUTES_AND_USD[name] for name in names}
        plans = [make_plan(name, usd / minutes * 60) for name, (minutes, usd) in points.items()]
        estimates = [make_estimate(name, minutes * 0.06) for name, (minutes, _) in points.items()]
        return decide(plans, estimates, make_job(iterations=1000))

    def test_rows_that_save_little_are_folded_into_their_neighbour(self):
        answer = self.decide()
        assert {o.plan.id: o.folded_into for o in answer.options} == {
            "P": "R",
            "Q": "R",
            "R": None,
            "S": None,
        }
        assert [option.plan.id for _, option in selection(answer, 15)] == ["R", "S"]
        assert "2 like it, up to 18 s faster, up to $9.48 dearer" in reasons(answer, "R")

    @pytest.mark.parametrize("names", ["PQRS", "QRS", "PRS", "PQR", "PR"])
    def test_r_is_recommended(self, names):
        assert self.decide(names).recommended == "R"


class TestCase16IrrelevantAlternatives:
    HOURS_AND_USD: ClassVar = {"A": (10.0, 20.0), "B": (5.0, 35.0), "C": (4.0, 60.0), "X": (6.0, 55.0)}

    def decide(self, names: str, value: float) -> Recommendation:
        points = {name: self.HOURS_AND_USD[name] for name in names}
        plans = [make_plan(name, usd / hours) for name, (hours, usd) in points.items()]
        estimates = [make_estimate(name, hours * 3.6) for name, (hours, _) in points.items()]
        return decide(plans, estimates, make_job(iterations=1000, value_of_time_usd_per_h=value))

    @pytest.mark.parametrize(
        ("value", "best"), [(1.0, "A"), (2.9, "A"), (3.1, "B"), (24.9, "B"), (25.1, "C"), (99.0, "C")]
    )
    def test_what_an_hour_is_worth_decides(self, value, best):
        assert self.decide("ABC", value).recommended == best
        assert self.decide("ABCX", value).recommended == best
        for other in {"A", "B", "C"} - {best}:
            assert self.decide("ABC".replace(other, ""), value).recommended == best

    @pytest.mark.parametrize("value", [1.0, 2.9, 3.1, 24.9, 25.1, 99.0])
    def test_the_order_of_the_rest_stays(self, value):
        def order(names: str) -> str:
            options = self.decide(names, value).options
            return "".join(
                o.plan.id for o in sorted(options, key=lambda o: preference(o, Worth(hour_usd=value)))
            )

        for names in ("ABC", "AB", "BC", "AC", "ABX", "BCX"):
            assert order(names) == "".join(name for name in order("ABCX") if name in names)


class TestCase18SafestWithoutADeadline:
    def test_the_least_cost_at_p90_of_what_is_not_preempted(self):
        plans = [
            make_plan("E", 0.60),
            make_plan("F", 10.90, num_gpus=8),
            make_plan("G", 0.45, market=Market.SPOT),
        ]
        estimates = [make_estimate("E", 3.6), make_estimate("F", 28.8, num_gpus=8), make_estimate("G", 3.6)]
        answer = decide(
            plans,
            estimates,
            make_job(iterations=1000),
            spot=SpotTerms(preemptions_per_h=0.0, checkpoint_h=0.0),
        )
        by_id = {option.plan.id: option.cost_usd.p90 for option in answer.options}
        assert by_id == pytest.approx({"E": 0.60, "8xF": 10.90, "G": 0.45})
        assert next(pick.plan_id for pick in answer.picks if pick.name is PickName.SAFEST) == "E"


class TestCase19WhatIfOnTheSameMachine:
    def answer(self) -> Recommendation:
        m, k = make_option("M", 3.55, 34.54), make_option("K", 14.0, 62.00)
        changed = [("M", 2.00, 19.46), ("K", 3.53, 15.65)]
        what_ifs = (
            make_option(name, hours, usd, plan=make_plan(name, id=f"{name}+bf16"), what_if="bf16")
            for name, hours, usd in changed
        )
        return Recommendation(
            script=make_script(), job=make_job(), options=(m, k),
            frontier=("M",), recommended="M", rule=None, warnings=(),
            what_ifs=tuple(what_ifs),
        )  # fmt: skip

    def test_the_machine_is_compared_with_itself_and_another_would_then_be_recommended(self):
        change = best_what_if(self.answer())
        assert change is not None
        assert change.same is not None
        assert change.instead is not None
        assert (change.same.plan.id, change.instead.plan.id) == ("M+bf16", "K+bf16")

    def test_it_says_so_in_two_sentences(self):
        answer = self.answer()
        document = recommendation_document(answer, top=None, what_if=best_what_if(answer))
        text = on_screen(document, 200)
        assert "2 h for $19.46 instead of 3 h 33 min for $34.54: $15.08 and 1 h 33 min less" in text
        assert "Then aws k.xlarge us-east-1 on-demand, 3 h 32 min for $15.65, would be recommended." in text


def row(answer: Recommendation, merit: Merit) -> tuple[str, tuple[Work, ...]]:
    """The listed option of this merit, and the work that it takes."""
    (listed,) = [listed for listed in answer.shortlist if merit in listed.merits]
    return listed.option.plan.id, listed.option.work


class TestCase20CheckpointsByWhatWasSeen:
    TERMS = SpotTerms(
        preemptions_per_h=0.4,
        checkpoint_interval_h=0.3162,
        checkpoint_h=0.02,
        restart_h=0.1,
        reacquire_h=0.5,
        sigma_rate=0.0,
        sigma_reacquire=0.0,
    )

    def answer(self, use: CheckpointUse) -> Recommendation:
        plans = [make_plan("D", 3.0), make_plan("S", 1.0, market=Market.SPOT)]
        estimates = [make_estimate(name, 0.288) for name in "DS"]
        trace = make_trace(checkpoints=Checkpoints(use=use))
        return decide(plans, estimates, make_job(iterations=100_000), trace, self.TERMS)

    def test_a_script_that_resumes_takes_the_spot_machine(self):
        answer = self.answer(CheckpointUse.RESUMES)
        assert answer.recommended == "S"
        assert option_of(answer, "S").work == ()
        # 9.48 + 2 x 11.371, within the luck of 999 draws.
        assert total_usd(option_of(answer, "S"), Worth()) == pytest.approx(32.22, rel=0.02)

    @pytest.mark.parametrize("use", [CheckpointUse.NONE, CheckpointUse.SAVES])
    def test_one_that_does_not_is_asked_to_and_stays_on_demand(self, use):
        answer = self.answer(use)
        assert answer.recommended == "D"
        spot = option_of(answer, "S")
        assert (spot.work, spot.feasible) == ((Work.CHECKPOINTS,), True)
        assert total_usd(spot, Worth()) == pytest.approx(9.48 + 25 + 2 * 11.871, rel=0.02)
        assert total_usd(option_of(answer, "D"), Worth()) == pytest.approx(40.0)
        assert answer.as_it_is == answer.chosen
        assert answer.with_work == spot

    def test_the_answer_says_what_checkpoints_would_make_it(self):
        answer = self.answer(CheckpointUse.NONE)
        text = on_screen(recommendation_document(answer, top=None), 200)
        assert "Use" not in text
        assert row(answer, Merit.WITH_WORK) == ("S", (Work.CHECKPOINTS,))
        assert "if train.py resumed from checkpoints (--checkpoints resumes), take 1 x S" in text


class TestCase21WorkInTheOpen:
    PLANS = (make_plan("A", 2.0), make_plan("B", 6.0, num_gpus=8))
    ESTIMATES = (make_estimate("A", 0.45), make_estimate("B", 0.72, num_gpus=8))

    def test_work_counts_and_is_shown(self):
        answer = decide(list(self.PLANS), list(self.ESTIMATES), make_job(iterations=80_000))
        totals = {option.plan.id: total_usd(option, Worth()) for option in answer.options}
        assert totals == pytest.approx({"A": 40.0, "8xB": 42.0})
        assert answer.recommended == "A"
        assert answer.with_work is not None
        assert Work.DDP in answer.with_work.work
        assert row(answer, Merit.WITH_WORK)[0] == "8xB"
        screen = on_screen(recommendation_document(answer, top=None, is_short=True), 200)
        assert re.search(r"with work.*8 x B on-demand +DDP .* \$12\.00", screen)
        text = on_screen(assumptions_document(answer), 200)
        assert "the least expected cost and time at $2/h, work on the script counted: $20.00 and 10 h" in text

    def test_a_script_that_has_ddp_takes_the_eight(self):
        reduced = Collective(kind="all_reduce", num_bytes=10**8, world_size=8, count=1)
        trace = make_trace(world_size=8, collectives=(reduced,))
        answer = decide(list(self.PLANS), list(self.ESTIMATES), make_job(iterations=10_000), trace)
        assert answer.recommended == "8xB"
        assert total_usd(option_of(answer, "8xB"), Worth()) == pytest.approx(16.0)

    def test_dearer_work_is_shown_beside_the_script_as_it_is(self):
        job = make_job(iterations=80_000, change_usd=10.0)
        answer = decide(list(self.PLANS), list(self.ESTIMATES), job)
        assert answer.recommended == "8xB"
        assert answer.as_it_is == option_of(answer, "A")
        assert row(answer, Merit.AS_IT_IS) == ("A", ())
        text = on_screen(recommendation_document(answer, top=None), 200)
        assert "First: add DDP: $10.00 and 30 min (--explain 1)." in text
