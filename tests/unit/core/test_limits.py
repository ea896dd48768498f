"""The largest numbers pass and the next ones are refused, the same in Python, settings and policies."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from advisor.config.settings import Settings
from advisor.core import limits
from advisor.core.errors import AdvisorError, InputError
from advisor.core.units import exact_duration, parse_duration_s
from advisor.core.values import Job, Market
from advisor.pricing.sources.protocol import OfferQuery
from advisor.profile import profile
from advisor.site_files.policy_files import read_policies
from recommender.engine import check_job
from tests.builders import make_trace
from tests.recommending import num_iterations

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
