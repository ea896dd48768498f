"""Figures and names that cannot be meant: always one of our errors, which says what would do."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from advisor.api import check_kind, texts
from advisor.config.settings import Settings
from advisor.core import errors, limits
from advisor.core.errors import (
    AdvisorError,
    AmbiguousGpuError,
    InputError,
    PolicyError,
    TraceError,
    UnknownGpuError,
    did_you_mean,
)
from advisor.core.gpus import load_gpus
from advisor.core.limits import check_count, check_number
from advisor.core.units import exact_duration, parse_duration_s
from advisor.core.values import Job, Market, Plan, Tier
from advisor.formats.trace_files import read_trace
from advisor.predict.iteration import predict
from advisor.pricing.answers import load_offers
from advisor.pricing.sources.protocol import OfferQuery
from advisor.profile import profile
from advisor.site_files.policy_files import read_policies
from advisor.workloads.script_versions import as_written
from recommender import recommend
from recommender.engine import check_job
from recommender.plans.candidates import OwnMachine, cheapest_plans, plans_of_machine, plans_of_offers
from recommender.plans.extras import CloudTerms
from tests.builders import make_offer, make_plan, make_trace
from tests.recommending import num_iterations

ROOT = Path(__file__).resolve().parents[3]
NOW = datetime(2026, 11, 21, tzinfo=UTC)
TRACE = make_trace()
OFFERS = (make_offer("L4"),)
TERMS = CloudTerms(startup_s=300)
PLANS = plans_of_offers(OFFERS, terms=TERMS)
GPUS = load_gpus()
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


# Parent and exit code of each.
TREE = {
    "AdvisorError": ("Exception", 1),
    "InputError": ("AdvisorError", 2),
    "ConfigError": ("InputError", 2),
    "PolicyError": ("InputError", 2),
    "TraceError": ("InputError", 2),
    "RecordingError": ("InputError", 2),
    "BillError": ("InputError", 2),
    "UnknownGpuError": ("InputError", 2),
    "AmbiguousGpuError": ("UnknownGpuError", 2),
    "ProfileError": ("AdvisorError", 1),
    "GpuUnusableError": ("ProfileError", 1),
    "CalibrationError": ("ProfileError", 1),
    "CatalogError": ("AdvisorError", 1),
    "StaleCatalogError": ("CatalogError", 1),
    "StoreError": ("AdvisorError", 1),
    "LockedError": ("StoreError", 1),
    "ReceiptLostError": ("AdvisorError", 1),
    "CloudError": ("AdvisorError", 1),
    "DeliveryError": ("AdvisorError", 1),
    "NoOfferError": ("AdvisorError", 1),
    "PolicyViolationError": ("AdvisorError", 3),
    "NothingFeasibleError": ("AdvisorError", 4),
    "ThresholdExceededError": ("AdvisorError", 5),
}
CLASSES: dict[str, type[AdvisorError]] = {
    name: cls for name, cls in vars(errors).items() if inspect.isclass(cls) and name.endswith("Error")
}


def test_the_tree_is_complete():
    assert set(CLASSES) == set(TREE)


@pytest.mark.parametrize("name", TREE)
def test_each_error_has_its_parent_and_exit_code(name):
    parent, exit_code = TREE[name]
    cls = CLASSES[name]
    assert cls.__bases__[0].__name__ == parent
    assert cls.exit_code == exit_code
    assert issubclass(cls, AdvisorError)


@pytest.mark.parametrize("exit_code", [0, 130])
def test_no_error_ends_as_success_or_as_an_interrupt(exit_code):
    assert exit_code not in {cls.exit_code for cls in CLASSES.values()}


def test_letter_case_does_not_matter_and_the_answer_keeps_its_own():
    assert did_you_mean("a100-sxm-40gb", ["A100-SXM-40GB"]) == " Did you mean 'A100-SXM-40GB'?"
    assert did_you_mean("BUDGET", ["budget"]) == " Did you mean 'budget'?"


def test_the_nearest_comes_first():
    hint = did_you_mean("regionss", ["region", "regions"])
    assert hint.index("'regions'") < hint.index("'region'")


def test_three_at_most_unless_told_otherwise():
    choices = [f"budget{i}" for i in range(6)]
    assert did_you_mean("budget", choices).count("'budget") == 3
    assert did_you_mean("budget", choices, most=1).count("'budget") == 1


@pytest.mark.parametrize(("name", "choices"), [("budget", []), ("", ["budget"]), ("zzz", ["budget"])])
def test_nothing_near_is_no_hint(name, choices):
    assert did_you_mean(name, choices) == ""


def test_choices_may_be_read_once():
    assert "'budget'" in did_you_mean("budgt", iter(["budget", "deadline"]))


JOB_LIMITS = [
    ("epochs", limits.MAX_EPOCHS, {}),
    ("iterations", limits.MAX_ITERATIONS, {"epochs": None}),
    ("iterations_per_epoch", limits.MAX_ITERATIONS, {}),
    ("budget_usd", limits.MAX_USD, {}),
    ("deadline_s", limits.MAX_PLANNED_S, {}),
    ("value_of_time_usd_per_h", limits.MAX_USD_PER_H, {}),
    ("change_usd", limits.MAX_USD, {}),
]
SETTING_LIMITS = [
    ("local", "usd_per_gpu_h", limits.MAX_USD_PER_H),
    ("local", "usd_per_kwh", limits.MAX_USD_PER_KWH),
    ("local", "power_limit_w", limits.MAX_W),
    ("cloud", "dataset_gb", limits.MAX_GB),
    ("cloud", "result_gb", limits.MAX_GB),
    ("cloud", "boot_disk_gb", limits.MAX_GB),
    ("cloud", "download_gbit_per_s", limits.MAX_GBIT_PER_S),
    ("profile", "samples", limits.MAX_SAMPLES),
    ("choice", "change_usd", limits.MAX_USD),
]
TIME_LIMITS = [
    ("cloud", "startup", limits.MAX_PLANNED_S),
    ("spot", "checkpoint_interval", limits.MAX_PLANNED_S),
    ("spot", "checkpoint", limits.MAX_PLANNED_S),
    ("spot", "restart", limits.MAX_PLANNED_S),
    ("spot", "reacquire", limits.MAX_PLANNED_S),
    ("profile", "timeout", limits.MAX_TIMEOUT_S),
]


def above(most: float) -> float:
    """A little more, of the same kind."""
    return most + 1 if isinstance(most, int) else most * 1.001


@pytest.mark.parametrize(("name", "most", "changes"), JOB_LIMITS)
def test_a_job_of_the_largest_numbers_is_one_and_beyond_it_is_none(name, most, changes):
    job = Job(**({"epochs": 1.0} | changes | {name: most}))
    check_job(job)
    with pytest.raises(InputError, match=f"at most {most:,.15g}, got"):
        check_job(replace(job, **{name: above(most)}))


@given(st.sampled_from(JOB_LIMITS), st.floats(allow_nan=True, allow_infinity=True))
def test_any_number_in_a_job_is_within_the_limits_or_refused(limit, value):
    name, most, changes = limit
    number: Any = int(value) if isinstance(most, int) and abs(value) < 1e300 else value
    try:
        check_job(Job(**({"epochs": 1.0} | changes | {name: number})))
    except InputError:
        return
    may_be_zero = name in ("change_usd", "value_of_time_usd_per_h")
    assert 0 < number <= most or (may_be_zero and number == 0)


def test_epochs_and_their_length_are_bounded_together():
    trace = make_trace(iterations_per_epoch=10_000)
    assert num_iterations(trace, Job(epochs=1e6), 1) == limits.MAX_ITERATIONS
    with pytest.raises(InputError, match=r"1e\+06 epochs of 10,001 iterations are more than 10,000,000,000"):
        num_iterations(trace, Job(epochs=1e6, iterations_per_epoch=10_001), 1)


@pytest.mark.parametrize(("section", "name", "most"), SETTING_LIMITS)
def test_a_setting_takes_the_largest_number_and_no_larger_one(section, name, most):
    assert getattr(getattr(Settings(**{section: {name: most}}), section), name) == most
    with pytest.raises(ValidationError, match="less than or equal to"):
        Settings(**{section: {name: above(most)}})


@pytest.mark.parametrize(("section", "name", "most_s"), TIME_LIMITS)
def test_a_setting_takes_the_longest_time_and_no_longer_one(section, name, most_s):
    text = exact_duration(most_s)
    assert getattr(getattr(Settings(**{section: {name: text}}), section), name) == most_s
    with pytest.raises(ValidationError, match=f"at most {text}"):
        Settings(**{section: {name: f"{text}1s"}})


def test_prices_may_be_remembered_for_longer_than_anything_is_planned():
    assert Settings(store={"retention": "9999999d"}).store.retention > limits.MAX_PLANNED_S
    with pytest.raises(ValueError, match="300 digits"):
        parse_duration_s("9" * 400 + "d")


def test_the_limits_are_those_of_the_documentation():
    page = (Path(__file__).resolve().parents[3] / "docs/recommend.md").read_text()
    counts = (
        limits.MAX_EPOCHS, limits.MAX_ITERATIONS, limits.MAX_USD, limits.MAX_USD_PER_H, limits.MAX_GB,
        limits.MAX_SAMPLES, limits.MAX_WORLD, limits.MAX_ROWS,
    )  # fmt: skip
    for number in (
        *(f"{most:,.15g}" for most in counts),
        *map(exact_duration, (limits.MAX_PLANNED_S, limits.MAX_TIMEOUT_S)),
    ):
        assert f"| {number}" in page, number


BEYOND: dict[str, Callable[[], Any]] = {
    "a world": lambda: profile("train.py", world_size=10**9),
    "samples": lambda: profile("train.py", num_samples=10**12),
}


@pytest.mark.parametrize("misuse", BEYOND.values(), ids=BEYOND)
def test_python_has_the_limits_of_the_command_line(misuse):
    with pytest.raises(InputError, match=r"and at most [\d,]+"):
        misuse()


@pytest.mark.parametrize("rule", ["usd_per_job: 1.0e+300", "usd_per_month: .inf", "gpus_per_job: 1000000000"])
def test_a_policy_has_limits_as_well(tmp_path, rule):
    path = tmp_path / "policy.yaml"
    path.write_text(f"version: 1\nname: us\nlayer: organisation\nlimits:\n  {rule}\n")
    with pytest.raises(AdvisorError, match=r"less than or equal to|finite number"):
        read_policies([path])


@pytest.mark.parametrize("name", ["Spot", "SPOT", " spot "])
def test_a_market_may_be_written_in_any_case(name):
    assert Market(name) is Market.SPOT
    assert Settings(cloud={"markets": [name]}).cloud.markets == (Market.SPOT,)
    assert OfferQuery(markets=(name,)).markets == (Market.SPOT,)  # type: ignore[arg-type]


def test_a_backend_may_be_written_in_any_case():
    assert Settings(profile={"backend": "FAKE"}).profile.backend == "fake"
