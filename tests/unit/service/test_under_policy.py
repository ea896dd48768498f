"""What is recommended by: what was typed goes before the policy, and that before the settings."""

from dataclasses import replace
from pathlib import Path

import pytest

from advisor.config.layers import Config
from advisor.config.settings import Settings
from advisor.core.limits import CHANGE_USD, VALUE_OF_TIME_USD_PER_H
from advisor.core.values import PickName
from advisor.service.recommend.rules import with_objective
from advisor.site_files.policy_files import read_policies
from recommender.policy import Policy
from tests.builders import make_job

DEFAULTS = Config(settings=Settings(), origins={}, warnings=())
SETTINGS = Config(settings=Settings(choice={"value_of_time_usd_per_h": 7.0}), origins={}, warnings=())


def policy(folder: Path, objective: str) -> Policy:
    path = folder / "team.yaml"
    path.write_text(f"version: 1\nname: vision\nlayer: team\nobjective: {objective}\n")
    return read_policies([path])


def test_the_settings_say_what_an_hour_is_worth():
    assert with_objective(make_job(), None, SETTINGS.settings.choice).value_of_time_usd_per_h == 7.0
    plain = with_objective(make_job(), None, DEFAULTS.settings.choice)
    assert plain.value_of_time_usd_per_h == VALUE_OF_TIME_USD_PER_H


def test_a_policys_pick_keeps_the_settings_value_for_the_best_value(tmp_path):
    job = with_objective(make_job(), policy(tmp_path, "{pick: safest}"), SETTINGS.settings.choice)
    assert (job.pick, job.value_of_time_usd_per_h) == (PickName.SAFEST, 7.0)


@pytest.mark.parametrize(
    "objective", ["{value_of_time_usd_per_h: 5}", "{pick: safest, value_of_time_usd_per_h: 5}"]
)
def test_a_policys_value_goes_before_its_pick(tmp_path, objective):
    job = with_objective(make_job(), policy(tmp_path, objective), SETTINGS.settings.choice)
    assert (job.pick, job.value_of_time_usd_per_h) == (None, 5.0)


def test_what_was_typed_goes_before_everything(tmp_path):
    typed = make_job(value_of_time_usd_per_h=3.0)
    for objective in ("{pick: safest}", "{value_of_time_usd_per_h: 5}"):
        job = with_objective(typed, policy(tmp_path, objective), SETTINGS.settings.choice)
        assert job == replace(typed, change_usd=CHANGE_USD)


@pytest.mark.parametrize("objective", ["{pick: safest}", "{value_of_time_usd_per_h: 5}"])
def test_the_settings_say_what_a_change_costs_whoever_says_the_rest(tmp_path, objective):
    cheap = Config(settings=Settings(choice={"change_usd": 0}), origins={}, warnings=())
    for job in (make_job(), make_job(value_of_time_usd_per_h=3.0)):
        assert with_objective(job, policy(tmp_path, objective), cheap.settings.choice).change_usd == 0.0
    given = make_job(change_usd=90.0)
    assert with_objective(given, None, cheap.settings.choice).change_usd == 90.0
