"""What a policy asks: what is recommended by, whose project it is, and what its month holds so far."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from advisor.config.layers import Config
from advisor.config.settings import Settings
from advisor.core.errors import InputError
from advisor.core.limits import CHANGE_USD, VALUE_OF_TIME_USD_PER_H
from advisor.core.values import PickName
from advisor.service.prices import live
from advisor.service.recommend.policy_in_force import Site, check_project_of, spent_of, with_objective
from advisor.site_files.policy_files import read_policies
from advisor.store.database import open_store
from advisor.store.ledger import Run, record_run
from recommender.conditions import Spent
from recommender.outcome.spot import ASSUMED_TERMS
from recommender.policy.merge import Policy
from tests.builders import make_job
from tests.listening import Heard
from tests.team import at, make_run
from tests.unit.spend.bills import write_focus

DEFAULTS = Config(settings=Settings(), origins={}, warnings=())
SETTINGS = Config(settings=Settings(choice={"value_of_time_usd_per_h": 7.0}), origins={}, warnings=())


def policy(folder: Path, objective: str) -> Policy:
    path = folder / "team.yaml"
    path.write_text(f"version: 1\nname: vision\nlayer: team\nobjective: {objective}\n")
    return read_policies([path])


def test_the_settings_say_what_an_hour_is_worth_unless_a_policy_does(tmp_path):
    plain = with_objective(make_job(), None, DEFAULTS.settings.choice)
    assert plain.value_of_time_usd_per_h == VALUE_OF_TIME_USD_PER_H
    for objective, pick, usd in (
        (None, None, 7.0),
        ("{pick: safest}", PickName.SAFEST, 7.0),
        ("{value_of_time_usd_per_h: 5}", None, 5.0),
        ("{pick: safest, value_of_time_usd_per_h: 5}", PickName.SAFEST, 5.0),
    ):
        rules = objective and policy(tmp_path, objective)
        job = with_objective(make_job(), rules, SETTINGS.settings.choice)
        assert (job.pick, job.value_of_time_usd_per_h) == (pick, usd)


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


def limited(folder: Path, text: str = "limits: {usd_per_month: 500}", layer: str = "team") -> Policy:
    path = folder / f"{layer}.yaml"
    path.write_text(f"version: 1\nname: resnet\nlayer: {layer}\n{text}\n")
    return read_policies([path])


def settings_of(folder: Path, *recorded: Run, **report: Any) -> Settings:
    url = f"sqlite:///{folder / 'advisor.db'}"
    with open_store(url) as store:
        for run in recorded:
            record_run(store, run)
    return Settings(store={"url": url}, report=report)


def site(settings: Settings, policy: Policy | None) -> Site:
    return Site(
        policy=policy,
        spot=ASSUMED_TERMS,
        machines=(),
        rates=(),
        data=None,
        report=settings.report,
        database=settings.store,
    )


def test_a_month_counts_bills_and_runs_each_dollar_once(tmp_path, monkeypatch):
    monkeypatch.setattr(live, "now", lambda: at(20))
    runs = (
        make_run(-5, usd=400.0),  # last month
        make_run(0, usd=30.0),  # the bill has its machine, at 50
        make_run(3, usd=7.0, project="bert"),  # not billed yet
        make_run(4, usd=None),
    )
    day = {"ChargePeriodStart": "2026-11-02T00:00:00Z", "ChargePeriodEnd": "2026-11-02T01:00:00Z"}
    bill = write_focus(
        tmp_path / "bill.csv",
        {"BilledCost": "50", "EffectiveCost": "50", **day},
        {"BilledCost": "9", "EffectiveCost": "9", "x_UsageType": "", "Tags": "", **day},
        {"BilledCost": "800", "EffectiveCost": "800", "ChargePeriodStart": "2026-10-31T00:00:00Z"},
    )
    settings = settings_of(tmp_path, *runs, bills=[bill], cost_explorer=True)
    heard = Heard()
    spent = spent_of(site(settings, limited(tmp_path)), "bert", heard)
    assert spent == Spent(all_usd=66.0, project_usd=7.0, all_num_unknown=1, project_num_unknown=0)
    assert [words.partition(":")[0] for words in heard.warnings] == [
        "1 of this month's runs have no known cost",
        "monthly limits count runs and report.bills, not what AWS Cost Explorer would tell",
    ]
    assert spent_of(site(settings, limited(tmp_path, "")), "", heard) is None


@pytest.mark.parametrize(("typed", "meant"), [("resnte", "resnet"), ("swim", "swin"), ("bretx", "bert-x")])
def test_a_mistyped_project_is_refused(tmp_path, typed, meant):
    """A name of the ledger, of a policy's file or of a team."""
    settings = settings_of(tmp_path, make_run(project="bert-x"), teams={"vision": ["swin"]})
    rules = limited(tmp_path, layer="project")
    with pytest.raises(InputError, match=rf"project: nothing is recorded of a project '{typed}'.*'{meant}'"):
        check_project_of(typed, site(settings, rules), Heard())


def test_a_new_project_is_told_where_others_are_known_and_its_digits_set_it_apart(tmp_path):
    settings = settings_of(tmp_path, make_run(project="resnet18"))
    told = []
    for name in ("", "resnet18", "resnet50", "diffusion"):
        heard = Heard()
        check_project_of(name, site(settings, None), heard)
        told.append(len(heard.warnings))
    assert told == [0, 0, 1, 1]
    nothing = settings_of(tmp_path / "empty")
    check_project_of("diffusion", site(nothing, None), heard := Heard())
    assert not heard.warnings
