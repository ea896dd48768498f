"""An option that waits for its input names the machine of the same GPUs that would feed them."""

from dataclasses import replace

import numpy as np
import pytest

from advisor.core.findings import Finding
from advisor.core.findings.about_options import MoreVcpus
from advisor.core.values import InputWork, Market, Plan
from recommender.outcome.draws import make_draws
from recommender.outcome.spot import SpotTerms
from recommender.ranking.frontier import with_more_vcpus
from tests.builders import (
    ONE_GPU,
    exactly,
    make_estimate,
    make_gpu,
    make_job,
    make_offer,
    make_plan,
    make_trace,
)
from tests.recommending import evaluated as evaluate_all

WORK = InputWork(cpu_s=exactly(1.28), wait_s=0.0, num_workers=None, num_samples=64)


def machine(name: str, usd_per_h: float, num_vcpus: int, market: Market = Market.ON_DEMAND) -> Plan:
    offer = make_offer("X", usd_per_h, instance_type=name, num_vcpus=num_vcpus, market=market)
    return make_plan("X", usd_per_h, id=name, offer=offer)


def notes_of(plans: list[Plan], gpu_s: float = 0.04, work: InputWork = WORK) -> dict[str, Finding]:
    """By plan, what is said of more vCPUs."""
    estimates = {("X", ONE_GPU): make_estimate("X", gpu_s, input=work)}
    draws, terms = make_draws(np.random.default_rng(0)), SpotTerms(preemptions_per_h=0.0)
    judged = list(
        evaluate_all(plans, estimates, {"X": make_gpu("X")}, make_trace(), make_job(), draws, lambda _: terms)
    )
    return {
        item.option.plan.id: note
        for item in with_more_vcpus(judged)
        for note in item.option.reasons
        if isinstance(note, MoreVcpus)
    }


def test_the_cheapest_machine_that_feeds_faster_is_named_with_its_gain():
    notes = notes_of([machine("few", 6.0, 8), machine("more", 8.0, 32), machine("dear", 50.0, 64)])
    assert set(notes) == {"few"}
    facts = notes["few"].facts
    assert (facts["instance_type"], facts["vcpus_per_gpu"]) == ("more", 32)
    assert facts["time_s"] == pytest.approx(4000)
    assert facts["instead_of_time_s"] == pytest.approx(16000)
    assert facts["cost_usd"] == pytest.approx(8.8889, rel=1e-4)
    assert facts["instead_of_cost_usd"] == pytest.approx(26.6667, rel=1e-4)


def test_nothing_is_said_where_the_gpu_is_fed():
    assert notes_of([machine("few", 6.0, 8), machine("more", 8.0, 32)], gpu_s=0.5) == {}


def test_more_vcpus_that_gain_little_and_those_of_another_market_are_no_matter():
    assert notes_of([machine("few", 6.0, 32), machine("more", 8.0, 33)], gpu_s=0.0399) == {}
    assert notes_of([machine("few", 6.0, 8), machine("spot", 1.0, 32, Market.SPOT)]) == {}


def reading(plan: Plan, gib: float) -> Plan:
    """The plan with a data set; nobody knows its network, which is taken to grow with the vCPUs."""
    return replace(plan, read_gib=gib)


@pytest.mark.parametrize(("gib", "is_blamed"), [(1.0, True), (1e6, False)])
def test_vcpus_are_no_matter_where_reading_takes_longer(gib, is_blamed):
    machines = [reading(machine("few", 6.0, 8), gib), reading(machine("more", 8.0, 32), gib)]
    assert bool(notes_of(machines)) == is_blamed


def test_vcpus_that_workers_leave_idle_are_no_matter():
    """The larger machine is done earlier because it starts earlier."""
    machines = [replace(machine("few", 6.0, 8), startup_s=1e6), machine("more", 8.0, 32)]
    assert notes_of(machines, work=replace(WORK, num_workers=2)) == {}
    assert set(notes_of(machines)) == {"few"}
