"""Figures and names that cannot be meant: always one of our errors, which says what would do."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.api import check_kind, texts
from advisor.core.errors import AmbiguousGpuError, InputError, PolicyError, TraceError, UnknownGpuError
from advisor.core.gpus import load_gpus
from advisor.core.limits import check_count, check_number
from advisor.core.values import Job, Plan, Tier
from advisor.formats.trace_files import read_trace
from advisor.predict.iteration import predict
from advisor.pricing.answers import load_offers
from advisor.pricing.sources.protocol import OfferQuery
from advisor.profile import profile
from advisor.site_files.policy_files import read_policies
from advisor.workloads.script_versions import as_written
from recommender import recommend
from recommender.plans.candidates import OwnMachine, cheapest_plans, plans_of_machine, plans_of_offers
from recommender.plans.extras import CloudTerms
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


def machine(**changes: Any) -> OwnMachine:
    facts = {
        "tier": Tier.LOCAL,
        "name": "x",
        "gpu": "L4",
        "num_gpus": 1,
        "usd_per_gpu_h": None,
        "wait_s": None,
    }
    return OwnMachine(**(facts | changes))


MISUSES: dict[str, tuple[Callable[[], Any], str]] = {
    "an unknown market": (
        lambda: OfferQuery(markets=("spott",)), "no market 'spott': choose of on-demand, spot"),
    "no time zone": (lambda: load_offers(OfferQuery(), now=NOW.replace(tzinfo=None)), "has no time zone"),
    "places of own GPUs": (lambda: cheapest_plans(plans_of_machine(machine())), "is not rented"),
    "a plan of another GPU": (
        lambda: WRITTEN.workloads([make_plan("L44")]), "gpus has no L44.* mean 'L4'"),
    "a text for epochs": (
        lambda: answer(job=Job(epochs="3")), "epochs must be a finite number above 0 and at most .*'3'"),
    "half an iteration": (
        lambda: answer(job=Job(iterations=3.5)), "iterations must be a whole number of at least 1"),
    "no iterations in an epoch": (
        lambda: answer(job=Job(epochs=1, iterations_per_epoch=0)), "iterations_per_epoch must be"),
    "a deadline with a unit": (lambda: answer(job=Job(epochs=1, deadline_s="12h")), "deadline_s must be"),
    "a confidence in percent": (lambda: answer(job=Job(epochs=1, confidence=90)), "between 0 and 1"),
    "a text for confidence": (lambda: answer(job=Job(epochs=1, confidence="90%")), "confidence must be"),
    "no workloads": (lambda: answer(workloads=[]), "workloads lacks 1 x L4"),
    "plans twice": (lambda: answer(plans=[*PLANS, *PLANS]), "two plans have the same id"),
    "no catalog": (lambda: as_written(TRACE, {}, Job(epochs=1)).workloads(PLANS), "gpus has no L4"),
    "a text for a world": (
        lambda: profile("train.py", world_size="5"), "world_size must be a whole number of at least 1"),
    "no samples": (lambda: profile("train.py", num_samples=0), "num_samples must be a whole number"),
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


@given(ANYTHING | st.lists(st.text(max_size=3)))
def test_a_list_is_a_list_of_texts_or_refused(value):

    is_good = isinstance(value, list) and all(isinstance(one, str) for one in value)
    assert refused(lambda: texts("x", value)) is not is_good


def test_a_message_stays_short_whatever_was_handed_in():
    with pytest.raises(InputError) as caught:
        check_kind("plan", [TRACE] * 100, Plan, "make one")
    assert len(str(caught.value)) < 400
