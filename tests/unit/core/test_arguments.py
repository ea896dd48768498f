"""What Python callers hand in by mistake: always one of our errors, which says what would do."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.errors import AmbiguousGpuError, InputError, PolicyError, TraceError, UnknownGpuError
from advisor.core.gpus import load_gpus, resolve_gpu
from advisor.core.limits import check_count, check_each, check_kind, check_number
from advisor.core.values import Job, Plan, Tier
from advisor.formats.trace_files import read_trace
from advisor.predict.iteration import predict
from advisor.pricing.answers import load_offers
from advisor.pricing.sources.protocol import OfferQuery
from advisor.profile import profile
from advisor.profile.callables import profile_callable
from advisor.site_files.policy_files import read_policies
from advisor.workloads.script_versions import as_written
from recommender import Conditions, recommend
from recommender.conditions import facts_of_plan
from recommender.outcome.spot import SpotTerms
from recommender.plans.candidates import Machine, cheapest_plans, plans_of_machine, plans_of_offers
from recommender.plans.extras import CloudTerms
from recommender.policy import explain, judge_plan
from tests.builders import make_offer, make_plan, make_trace

ROOT = Path(__file__).resolve().parents[3]
NOW = datetime(2026, 11, 21, tzinfo=UTC)
TRACE = make_trace()
OFFERS = (make_offer("L4"),)
TERMS = CloudTerms(startup_s=300)
PLANS = plans_of_offers(OFFERS, terms=TERMS)
GPUS = load_gpus()
POLICY = read_policies([ROOT / "examples/policies/startup.yaml"])
WRITTEN = as_written(TRACE, GPUS, Job(epochs=1))
WORKLOADS = WRITTEN.workloads(PLANS)


def answer(**changes: Any) -> Any:
    given = {"workloads": WORKLOADS, "plans": PLANS, "job": Job(epochs=1)}
    return recommend(**({**given, "rng": np.random.default_rng(0)} | changes))


def machine(**changes: Any) -> Machine:
    facts = {
        "tier": Tier.LOCAL,
        "name": "x",
        "gpu": "L4",
        "num_gpus": 1,
        "usd_per_gpu_h": None,
        "wait_s": None,
    }
    return Machine(**(facts | changes))


MISUSES: dict[str, tuple[Callable[[], Any], str]] = {
    "a text for a list": (lambda: OfferQuery(gpus="L4"), r"gpus must be a list, got 'L4': such as"),
    "no list": (lambda: OfferQuery(regions=None), "regions must be a list, got None"),
    "a number for a list": (
        lambda: OfferQuery(num_gpus=8), r"num_gpus must be a list, got 8: such as \(1, 8\)"),
    "no GPU in a list": (lambda: OfferQuery(num_gpus=(1, 0)), "each of num_gpus must be a whole number"),
    "a value for a name": (lambda: OfferQuery(gpus=(GPUS["L4"],)), "each of gpus must be of type str"),
    "an unknown market": (
        lambda: OfferQuery(markets=("spott",)), "no market 'spott': choose of on-demand, spot"),
    "a text for a price": (
        lambda: OfferQuery(max_usd_per_h="5"), "number above 0 and at most 1,000,000,000, got '5'"),
    "a text for a query": (lambda: load_offers("L4", now=NOW), "query must be of type OfferQuery"),
    "a day for a moment": (lambda: load_offers(OfferQuery(), now=NOW.date()), "now must be of type datetime"),
    "no time zone": (lambda: load_offers(OfferQuery(), now=NOW.replace(tzinfo=None)), "has no time zone"),
    "a text for an age": (lambda: load_offers(OfferQuery(), now=NOW, max_age_s="1d"), "max_age_s must be"),
    "a negative boot": (lambda: CloudTerms(startup_s=-1), "startup_s must be a finite number of at least 0"),
    "a boot with a unit": (lambda: CloudTerms(startup_s="5m"), "startup_s must be a finite number"),
    "no download": (lambda: CloudTerms(startup_s=1, download_bits_per_s=0), "number above 0, got 0"),
    "negative hours": (lambda: SpotTerms(restart_h=-2), "restart_h must be a finite number of at least 0"),
    "seconds for a wait": (lambda: CloudTerms(startup_s=1, wait_s=5), "wait_s must be of type Quantiles"),
    "a number of answers": (
        lambda: load_offers(OfferQuery(), now=NOW, answers=5), "answers must be a list, got 5"),
    "a text for freshness": (lambda: load_offers(OfferQuery(), now=NOW, fresh_s="1d"), "fresh_s must be"),
    "no interval": (lambda: SpotTerms(checkpoint_interval_h=0), "checkpoint_interval_h must be"),
    "a path for a trace": (lambda: predict("x.trace.json", GPUS["L4"]), r"trace must be of type Trace"),
    "a name to predict on": (lambda: predict(TRACE, "L4"), r"gpu must be of type GpuSpec, got 'L4'"),
    "no GPU to predict on": (lambda: predict(TRACE, GPUS["L4"], 0), "num_gpus must be a whole number"),
    "half a GPU": (lambda: predict(TRACE, GPUS["L4"], 1.5), "num_gpus must be a whole number .* got 1.5"),
    "yes for a number of GPUs": (lambda: predict(TRACE, GPUS["L4"], True), "whole number .* got True"),
    "a path for knowledge": (lambda: predict(TRACE, GPUS["L4"], knowledge=5), "of type Knowledge or None"),
    "no GPU in a machine": (lambda: machine(num_gpus=0), "num_gpus must be a whole number of at least 1"),
    "half a GPU in a machine": (lambda: machine(num_gpus=0.5), "num_gpus must be a whole number"),
    "a number for a wait": (lambda: machine(wait_s=60), "wait_s must be of type Quantiles or None, got 60"),
    "a GPU for its name": (lambda: machine(gpu=GPUS["L4"]), "gpu must be of type str"),
    "a name for a machine": (lambda: plans_of_machine("node1"), "machine must be of type Machine"),
    "a negative cost": (lambda: machine(usd_per_gpu_h=-1), "usd_per_gpu_h must be"),
    "all that was found": (
        lambda: plans_of_offers(load_offers(OfferQuery(gpus=("L4",)), now=NOW), terms=TERMS), "in .offers"),
    "one offer": (lambda: plans_of_offers(OFFERS[0], terms=TERMS), "offers must be a list"),
    "no terms": (lambda: plans_of_offers(OFFERS, terms=None), "terms must be of type CloudTerms"),
    "a number of quotas": (
        lambda: plans_of_offers(OFFERS, terms=TERMS, quotas=5), "quotas must be a list, got 5"),
    "a quota as a mapping": (
        lambda: plans_of_offers(OFFERS, terms=TERMS, quotas=[{}]), "each of quotas must be of type Quota"),
    "a price for rates": (lambda: plans_of_offers(OFFERS, terms=TERMS, catalog=[0.1]), "each of catalog"),
    "places of offers": (lambda: cheapest_plans(OFFERS), "each of plans must be of type Plan"),
    "places of own GPUs": (lambda: cheapest_plans(plans_of_machine(machine())), "is not rented"),
    "a swap": (lambda: as_written(PLANS, GPUS, Job(epochs=1)), "trace must be of type Trace"),
    "a plan of another GPU": (
        lambda: WRITTEN.workloads([make_plan("L44")]), "gpus has no L44.* mean 'L4'"),
    "a job as a mapping": (lambda: answer(job={"epochs": 3}), "job must be of type Job"),
    "a text for epochs": (
        lambda: answer(job=Job(epochs="3")), "epochs must be a finite number above 0 and at most .*'3'"),
    "half an iteration": (
        lambda: answer(job=Job(iterations=3.5)), "iterations must be a whole number of at least 1"),
    "no iterations in an epoch": (
        lambda: answer(job=Job(epochs=1, iterations_per_epoch=0)), "iterations_per_epoch must be"),
    "a rate for spot terms": (
        lambda: answer(conditions=Conditions(spot=5)), "spot must be of type SpotTerms, got 5"),
    "buckets in a list": (
        lambda: answer(conditions=Conditions(interruptions=[])), "interruptions must be of type Mapping"),
    "a sum for what was spent": (
        lambda: answer(policy=POLICY, conditions=Conditions(spent=5)), "spent must be of type Spent"),
    "a deadline with a unit": (lambda: answer(job=Job(epochs=1, deadline_s="12h")), "deadline_s must be"),
    "a confidence in percent": (lambda: answer(job=Job(epochs=1, confidence=90)), "between 0 and 1"),
    "a text for confidence": (lambda: answer(job=Job(epochs=1, confidence="90%")), "confidence must be"),
    "no workloads": (lambda: answer(workloads=[]), "workloads lacks 1 x L4"),
    "estimates for workloads": (lambda: answer(workloads=[WORKLOADS[0].estimate]), "each of workloads"),
    "offers for plans": (lambda: answer(plans=OFFERS), "each of plans must be of type Plan"),
    "plans twice": (lambda: answer(plans=[*PLANS, *PLANS]), "two plans have the same id"),
    "no catalog": (lambda: as_written(TRACE, {}, Job(epochs=1)).workloads(PLANS), "gpus has no L4"),
    "a seed for a generator": (lambda: answer(rng=0), "rng must be of type Generator, got 0"),
    "a mapping for a policy": (lambda: answer(policy={"version": 1}), "policy must be of type Policy"),
    "a plan under a mapping": (lambda: judge_plan(PLANS[0], {"version": 1}), "read_policies"),
    "a mapping to explain": (
        lambda: explain(facts_of_plan(PLANS[0], SpotTerms()), {"version": 1}), "of type Policy, "),
    "one path": (lambda: read_policies("policy.yaml"), "paths must be a list, got 'policy.yaml'"),
    "a policy as a mapping": (lambda: read_policies([{"version": 1}]), "policies are read from files"),
    "one text for arguments": (
        lambda: profile(ROOT / "examples/train_dcgan.py", "--epochs 1"), "arguments must be a list"),
    "a name for a pretended GPU": (lambda: profile("train.py", gpu="T4"), r"pretend\('T4'\) makes one"),
    "no script": (lambda: profile(None), "script must be of type str or Path, got None"),
    "a number for a script": (lambda: profile(5), "script must be of type str or Path, got 5"),
    "a text for a timeout": (lambda: profile("train.py", timeout_s="5"), "timeout_s must be a finite number"),
    "a text for a world": (
        lambda: profile("train.py", world_size="5"), "world_size must be a whole number of at least 1"),
    "no samples": (lambda: profile("train.py", num_samples=0), "num_samples must be a whole number"),
    "a text for fake data": (lambda: profile("train.py", fake_data="x"), "fake_data must be a list"),
    "a version for an interpreter": (
        lambda: profile("train.py", python=5), "python must be of type str or Path or None, got 5"),
    "no backend": (lambda: profile("train.py", backend=None), "backend must be of type str"),
    "a result for a step": (lambda: profile_callable(5), "step must be of type Callable, got 5"),
    "a model for a setup": (lambda: profile_callable(print, setup=5), "setup must be of type Callable"),
    "a text for a batch": (lambda: profile_callable(print, batch_size="8"), "batch_size must be a whole"),
    "no trace": (lambda: read_trace(None), "path must be of type str or Path, got None"),
    "a number for a GPU": (lambda: resolve_gpu(5), "name must be of type str, got 5"),
}  # fmt: skip


@pytest.mark.parametrize(("misuse", "message"), MISUSES.values(), ids=MISUSES)
def test_a_misuse_is_told_where_it_happens(misuse, message):
    with pytest.raises(InputError, match=message):
        misuse()


@pytest.mark.parametrize(
    ("misuse", "error"),
    [
        (lambda: GPUS["L5"], UnknownGpuError),
        (lambda: GPUS["A100"], AmbiguousGpuError),
        (lambda: profile("/nowhere/train.py"), InputError),
        (lambda: read_trace("/nowhere/trace.json"), TraceError),
        (lambda: read_policies(["/nowhere/policy.yaml"]), PolicyError),
    ],
)
def test_what_is_not_there_is_our_error(misuse, error):
    with pytest.raises(error):
        misuse()


def test_what_is_meant_well_still_passes():
    assert answer().recommended == PLANS[0].id
    assert answer(plans=tuple(PLANS), job=Job(epochs=np.float64(0.5), iterations_per_epoch=np.int64(9)))
    assert plans_of_offers(iter(OFFERS), terms=TERMS) == PLANS
    assert WRITTEN.workloads(iter(PLANS)) == WORKLOADS
    assert read_policies([str(ROOT / "examples/policies/startup.yaml")]).rules
    assert GPUS["nvidia l4"] is GPUS["L4"]
    assert "nvidia l4" not in GPUS
    assert len(list(GPUS)) == len(GPUS)


def test_integers_of_numpy_are_as_good_as_pythons():
    four = np.int64(4)
    estimate = predict(TRACE, GPUS["L4"], four)
    assert estimate == predict(TRACE, GPUS["L4"], 4)
    assert type(estimate.num_gpus) is int  # JSON knows no other
    query = OfferQuery(gpus=("L4",), num_gpus=(np.int64(8),))
    assert load_offers(query, now=NOW).offers == load_offers(replace(query, num_gpus=(8,)), now=NOW).offers
    assert len(load_offers(query, now=NOW).offers) > 0
    plans = plans_of_machine(machine(num_gpus=four))
    assert plans == plans_of_machine(machine(num_gpus=4))
    assert [type(plan.num_gpus) for plan in plans] == [int] * 3
    assert as_written(TRACE, GPUS, Job(iterations=four)).workloads(PLANS) == as_written(
        TRACE, GPUS, Job(iterations=4)
    ).workloads(PLANS)


ANYTHING = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.lists(st.integers())
)


def refused(call: Callable[[], None]) -> bool:
    try:
        call()
    except InputError:
        return True
    return False


@given(ANYTHING)
def test_a_number_is_finite_and_large_enough_or_refused(value):
    is_good = isinstance(value, int | float) and 1 <= value < float("inf")
    assert refused(lambda: check_number("x", value, least=1)) is not is_good


@given(ANYTHING | st.integers(-2, 2).map(np.int64) | st.floats().map(np.float64))
def test_a_count_is_whole_and_1_or_more_or_refused(value):
    is_good = type(value) in (int, np.int64) and value >= 1
    assert refused(lambda: check_count("x", value)) is not is_good


@given(ANYTHING)
def test_a_list_is_a_list_or_refused(value):
    assert refused(lambda: check_each("x", value, int, "give numbers")) is not isinstance(value, list)


def test_a_message_stays_short_whatever_was_handed_in():
    with pytest.raises(InputError) as caught:
        check_kind("plan", [TRACE] * 100, Plan, "make one")
    assert len(str(caught.value)) < 400
