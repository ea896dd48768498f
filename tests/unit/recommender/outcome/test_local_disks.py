"""A data set that a machine's own disks hold is copied once where reading it each epoch takes longer."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.core.findings.about_estimates import EditScript
from advisor.core.findings.about_options import Reading
from advisor.core.units import GIB
from advisor.core.values import Layout, Market, Option, Plan
from advisor.report.words import sentence
from recommender.outcome.feeding import copied_locally, network_bits_per_s, read_s
from recommender.outcome.spot import SpotTerms, restarting, terms_of_plans
from tests.builders import make_estimate, make_gpu, make_job, make_offer, make_plan, make_trace
from tests.findings import among
from tests.recommending import recommend

PER_EPOCH = 1000


def machine(
    gib: float, instance_type: str = "p5.48xlarge", *, num_nodes: int = 1, market: Market = Market.ON_DEMAND
) -> Plan:
    offer = make_offer("X", 1.0, instance_type=instance_type, num_gpus=8, market=market)
    layout = Layout(gpus_per_node=8, num_nodes=num_nodes)
    return replace(make_plan("X", 1.0, num_gpus=8), offer=offer, layout=layout, read_gib=gib)


def option(plan: Plan, *, epochs: int = 90, step_s: float = 0.1, spot: SpotTerms | None = None) -> Option:
    answer = recommend(
        replace(make_trace(), iterations_per_epoch=8 * PER_EPOCH),
        {("X", plan.layout): make_estimate("X", step_s)},
        {"X": make_gpu("X")},
        [plan],
        make_job(iterations=8 * PER_EPOCH * epochs),
        spot=spot,
    )
    return answer.options[0]


def codes(one: Option) -> set[object]:
    return among((*one.reasons, *one.script_changes))


def test_three_terabytes_are_copied_in_nine_minutes_and_read_at_the_rate_of_the_disks():
    """3,000 GiB at 6.25 GB/s, half of 100 Gbit/s; then 3.2 GB a step from 30.4 TB that read 30.4 GB/s."""
    one = option(machine(3000.0))
    assert (
        one.plan.copied_s == one.plan.download_s == one.plan.startup_s == pytest.approx(3000 * GIB / 6.25e9)
    )
    assert one.estimate.iteration_s.p50 == pytest.approx(3000 * GIB / PER_EPOCH / 30.4e9)
    assert one.time_s.p50 == pytest.approx(one.plan.copied_s + 90 * 3000 * GIB / 30.4e9)
    assert EditScript(what="use-nvme") in codes(one)
    (told,) = (found for found in one.reasons if isinstance(found, Reading))
    assert told.of == "local-copy"
    assert told.facts["read_s"] == pytest.approx(one.estimate.iteration_s.p50)  # which binds
    assert sentence(told).startswith("3,000 GiB of data are copied")
    assert "in 8 min 35 s" in sentence(told) or "in 9 min" in sentence(told)


def test_a_single_epoch_is_read_where_it_is():
    one = option(machine(3000.0), epochs=1)
    assert one.plan.copied_s == 0
    assert EditScript(what="use-nvme") not in codes(one)
    assert "local-copy" not in {found.of for found in one.reasons if isinstance(found, Reading)}


@pytest.mark.parametrize(
    ("gib", "instance_type"),
    [(0.0, "p5.48xlarge"), (30.5e12 / GIB, "p5.48xlarge"), (1.0, "p3.16xlarge"), (1.0, "nobody.knows")],
)
def test_disks_that_do_not_hold_it_or_that_nobody_knows_get_no_copy(gib, instance_type):
    assert copied_locally(machine(gib, instance_type)) is None


def test_no_disk_writes_faster_than_it_may():
    """8 TB of p4d write 4 GB/s, less than half of the 100 Gbit/s that come."""
    copying = copied_locally(machine(3000.0, "p4d.24xlarge"))
    assert copying is not None
    assert copying.copied_s == pytest.approx(3000 * GIB / 4e9)


def test_each_node_copies_all_and_reads_its_part():
    one, two = (copied_locally(machine(3000.0, num_nodes=n)) for n in (1, 2))
    assert one is not None
    assert two is not None
    assert two.copied_s == one.copied_s
    of_one, of_two = read_s(one, PER_EPOCH), read_s(two, PER_EPOCH)
    assert of_one is not None
    assert of_two is not None
    assert of_two.p50 == pytest.approx(of_one.p50 / 2)


def test_a_slow_network_takes_longer_to_copy_and_costs_more():
    """The rate may be half of its median: at p90 the copy takes twice as long, and so does what is billed."""
    once, sure = (option(machine(gib), epochs=20, step_s=0.5) for gib in (3000.0, 0.0))
    assert once.plan.copied_s > 0
    slower_s = once.time_s.p90 - sure.time_s.p90
    assert slower_s == pytest.approx(2 * once.plan.copied_s, rel=0.02)
    assert once.cost_usd.p90 - sure.cost_usd.p90 == pytest.approx(slower_s / 3600, rel=0.02)
    assert once.expected.wait_s == pytest.approx(0.0, abs=1e-3)


def test_a_spot_machine_that_comes_back_copies_again():
    plan = copied_locally(machine(3000.0, market=Market.SPOT))
    assert plan is not None
    terms = SpotTerms(preemptions_per_h=0.5, restart_h=0.1)
    assert restarting(plan, terms).restart_h == pytest.approx(0.1 + plan.copied_s / 3600)
    terms_of = terms_of_plans(terms, None)
    assert terms_of(plan) is terms_of(replace(plan, id="another"))
    assert terms_of(replace(plan, copied_s=0.0)).restart_h == 0.1
    # Restarts are billed: the same work costs more than on disks that stay.
    stays = replace(plan, copied_s=0.0, read_gib=0.0)
    assert option(plan, spot=terms).train_s.p50 > option(stays, spot=terms).train_s.p50


def test_a_machine_that_is_taken_away_all_the_time_copies_nothing():
    plan = machine(3000.0, market=Market.SPOT)
    assert option(plan, spot=SpotTerms(preemptions_per_h=0.1)).plan.copied_s > 0
    assert option(plan, spot=SpotTerms(preemptions_per_h=60.0, restart_h=0.0)).plan.copied_s == 0


def test_what_has_copied_does_not_copy_again():
    plan = option(machine(3000.0)).plan
    again = option(plan)
    assert again.plan == plan


@settings(max_examples=25)
@given(st.floats(1, 3e4), st.integers(1, 200), st.floats(0.001, 10))
def test_disks_of_its_own_never_make_a_machine_slower_at_p90(gib, epochs, step_s):
    """An unknown machine with enough vCPUs gets as much from storage as p5.48xlarge, and has no disks."""
    own = option(machine(gib), epochs=epochs, step_s=step_s)
    unknown = machine(gib, "nobody.knows")
    assert unknown.offer is not None
    without = replace(unknown, offer=replace(unknown.offer, num_vcpus=10**5))
    assert network_bits_per_s(without) == network_bits_per_s(machine(gib))
    other = option(without, epochs=epochs, step_s=step_s)
    assert own.time_s.p90 <= other.time_s.p90 * (1 + 1e-9)


@settings(max_examples=25)
@given(st.floats(1, 3e4), st.integers(1, 100), st.integers(1, 100))
def test_once_worth_it_a_copy_stays_so_with_more_epochs(gib, epochs, more):
    few, many = (option(machine(gib), epochs=n).plan.copied_s for n in (epochs, epochs + more))
    assert many >= few
