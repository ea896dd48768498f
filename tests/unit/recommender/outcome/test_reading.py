"""Reading a data set each epoch: what the network of a machine takes for it, and what that does to a job."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.core.findings.about_options import Reading, Unknown
from advisor.core.input_time import reading
from advisor.core.units import GIB
from advisor.core.values import Bound, Interval, Layout, Option, Plan
from advisor.pricing.instance_types import load_instances
from advisor.report.words.sentences import sentence
from recommender.outcome.feeding import MOST_BITS_PER_S, network_bits_per_s, read_s
from tests.builders import make_estimate, make_gpu, make_job, make_offer, make_plan, make_trace
from tests.findings import among
from tests.recommending import recommend

GIBS = st.floats(0.1, 1e5)


def machine(instance_type: str, gib: float = 0.0, *, num_gpus: int = 1, num_vcpus: int | None = None) -> Plan:
    offer = make_offer("X", 1.0, instance_type=instance_type, num_gpus=num_gpus, num_vcpus=num_vcpus)
    return replace(make_plan("X", 1.0, num_gpus=num_gpus), offer=offer, read_gib=gib)


def option(plan: Plan, *, step_s: float = 0.1, per_epoch: int | None = 1000) -> Option:
    answer = recommend(
        replace(make_trace(), iterations_per_epoch=per_epoch),
        {("X", plan.layout): make_estimate("X", step_s)},
        {"X": make_gpu("X")},
        [plan],
        make_job(iterations=5000),
    )
    return answer.options[0]


def test_a_known_network_gives_half_its_rate():
    """g5.xlarge has 2.5 Gbit/s: 1,000 GiB in 1,000 iterations take 8.6 Gbit each, at 1.25 Gbit/s 6.9 s."""
    each_s = read_s(machine("g5.xlarge", 1000.0), 1000)
    assert each_s is not None
    assert each_s.p50 == pytest.approx(8 * GIB / 1.25e9)
    assert (each_s.p10, each_s.p90) == (pytest.approx(each_s.p50 / 2), pytest.approx(each_s.p50 * 2))


def test_each_node_reads_its_part_over_its_own_network():
    one = machine("g5.48xlarge", 1000.0, num_gpus=8)
    two = replace(one, layout=Layout(gpus_per_node=8, num_nodes=2))
    assert network_bits_per_s(two) == network_bits_per_s(one)
    of_one, of_two = read_s(one, 1000), read_s(two, 1000)
    assert of_one is not None
    assert of_two is not None
    assert of_two.p50 == pytest.approx(of_one.p50 / 2)


def test_terabits_between_gpus_are_not_for_storage():
    assert network_bits_per_s(machine("p5.48xlarge", num_gpus=8)) == MOST_BITS_PER_S


@pytest.mark.parametrize("num_vcpus", [4, None])
def test_an_unknown_network_has_no_more_than_any_known_one_for_its_vcpus(num_vcpus):
    unknown = network_bits_per_s(machine("nobody.knows", num_vcpus=num_vcpus))
    for known in load_instances().values():
        if known.network_bits_per_s is not None and known.vcpus:
            least = known.network_bits_per_s / known.vcpus * (num_vcpus or 8)
            assert 0 < unknown <= least * (1 + 1e-12)


def test_without_a_data_set_nothing_is_read():
    plain = option(machine("g5.xlarge"))
    assert plain.estimate.input_s is None
    assert not {Reading, Unknown(what="reading")} & among(plain.reasons)


def test_what_reads_longer_than_it_computes_is_bound_by_its_input():
    bound = option(machine("g5.xlarge", 1000.0))
    assert bound.estimate.binds is Bound.INPUT
    assert bound.estimate.iteration_s.p50 == pytest.approx(8 * GIB / 1.25e9)
    assert bound.train_s.p50 == pytest.approx(5000 * 8 * GIB / 1.25e9)
    (note,) = (reason for reason in bound.reasons if isinstance(reason, Reading))
    assert note.facts == {
        "of": "each-epoch",
        "gib": 1000.0,
        "time_s": 0.0,
        "read_s": pytest.approx(8 * GIB / 1.25e9),
        "bytes_per_s": 1.25e9 / 8,
        "bits_per_s": 2.5e9,
        "by_storage": False,
        "by_disk": False,
    }


def test_of_terabits_between_gpus_the_note_says_what_storage_gives():
    """p5.48xlarge has 3,200 Gbit/s, and its disks do not hold 40 TB."""
    far = option(machine("p5.48xlarge", 40e12 / GIB, num_gpus=8))
    (note,) = (reason for reason in far.reasons if isinstance(reason, Reading))
    assert note.facts["by_storage"] is True
    text = sentence(note)
    assert "6.2 GB/s, half of the 100 Gbit/s that object storage gives one machine" in text


def test_what_reads_faster_than_it_computes_takes_as_long_as_before():
    hidden = option(machine("p5.48xlarge", 10.0, num_gpus=8))
    assert hidden.train_s.p50 == pytest.approx(option(machine("p5.48xlarge", num_gpus=8)).train_s.p50)
    assert Reading not in {type(reason) for reason in hidden.reasons}


def test_an_epoch_without_a_length_is_said_not_to_be_counted():
    codes = among(option(machine("g5.xlarge", 1000.0), per_epoch=None).reasons)
    assert Unknown(what="reading") in codes


def test_seconds_by_family_and_method_still_add_up_to_the_iteration():
    estimate = reading(make_estimate("X", 0.1), Interval(p10=0.1, p50=0.3, p90=0.9))
    before = make_estimate("X", 0.1)
    assert estimate.loading_s == pytest.approx(0.2)
    for name in ("by_family", "by_method"):
        grown = sum(getattr(estimate, name).values()) - sum(getattr(before, name).values())
        assert grown == pytest.approx(0.2)


@settings(max_examples=25)
@given(GIBS, st.floats(1, 10), st.floats(0.001, 10))
def test_more_data_is_never_faster(gib, more, step_s):
    small, large = (option(machine("g5.xlarge", size), step_s=step_s) for size in (gib, gib * more))
    assert large.time_s.p50 >= small.time_s.p50 * (1 - 1e-9)
    assert large.time_s.p90 >= small.time_s.p90 * (1 - 1e-9)
    assert large.cost_usd.p90 >= small.cost_usd.p90 * (1 - 1e-9)


@settings(max_examples=25)
@given(GIBS, st.sampled_from([1, 4, 8, 48]), st.sampled_from([1, 2, 4]))
def test_an_unknown_network_with_more_vcpus_is_never_slower(gib, vcpus, more):
    few, many = (read_s(machine("nobody.knows", gib, num_vcpus=n), 100) for n in (vcpus, vcpus * more))
    assert few is not None
    assert many is not None
    assert many.p50 <= few.p50
