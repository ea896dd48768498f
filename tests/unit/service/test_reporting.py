"""A report as a use case: what it asks of the database, policies, bills and offers."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from advisor.config.layers import Config, load_config
from advisor.core.errors import InputError, PolicyError, ThresholdExceededError
from advisor.core.values import Market, Quantiles
from advisor.report.words import sentence
from advisor.review.budgets import Owner
from advisor.review.team_review import TeamReview
from advisor.service.listening import Listener
from advisor.service.reporting import ReportRequest, check_budgets, report_of, todays_prices_for
from advisor.store.database import open_store
from advisor.store.ledger import LedgerEntry, Run, record_recommendation, record_run
from advisor.store.pulls import save_part
from tests.builders import make_offer, make_plan
from tests.listening import Heard
from tests.team import WEEK, at, make_alternative, make_entry, make_point, make_run
from tests.unit.spend.bills import write_focus

TEAMS = {"vision": ["resnet", "detr"]}


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return config_with(tmp_path)


def config_with(folder: Path, **more: Any) -> Config:
    """Settings with a database and teams of a test."""
    flags = {"store.url": f"sqlite:///{folder / 'advisor.db'}", "prices.offline": True, "report.teams": TEAMS}
    return load_config(flags | more, environ={}, cwd=folder)


def fill(config: Config, *things: Run | LedgerEntry) -> None:
    with open_store(config.settings.store.url) as store:
        for thing in things:
            record_run(store, thing) if isinstance(thing, Run) else record_recommendation(store, thing)


def report(config: Config, **changes: Any) -> TeamReview:
    found = report_of(
        ReportRequest(**({"since": WEEK.since, "until": WEEK.until} | changes)), config, Listener()
    )
    assert found is not None
    return found


def policy(folder: Path, text: str) -> Path:
    path = folder / "team.yaml"
    path.write_text(f"version: 1\nname: ours\n{text}")
    return path


def test_where_there_is_no_database_none_is_made_and_an_empty_one_is_no_ledger(config, tmp_path):
    assert report_of(ReportRequest(), config, Listener()) is None
    assert not (tmp_path / "advisor.db").exists()
    fill(config)
    assert report_of(ReportRequest(), config, Listener()) is None


@pytest.mark.parametrize(
    ("days", "since", "counted"),
    [
        # Runs of another time make an empty report, and not a first one.
        ([-1000], WEEK.since, []),
        # The period has its first moment and not its last.
        ([-0.001, 0, 7], WEEK.since, [0]),
        # It counts back from its end; a very long time is all there is.
        ([5, 3], 3 * 86_400.0, [5]),
        ([-1000], 1e12, [-1000]),
    ],
)
def test_runs_of_the_period_are_counted(config, days, since, counted):
    fill(config, *(make_run(day, id=f"day{day}") for day in days))
    assert [run.id for run in report(config, since=since).runs] == [f"day{day}" for day in counted]


def test_a_recommendation_of_long_ago_is_looked_up_for_its_run(config):
    fill(config, make_entry(at=at(-500)), make_run(recommendation_id="entry"))
    found = report(config)
    assert found.accuracy.time is not None
    assert found.recommendations == ()


def test_a_team_counts_its_projects_alone(config):
    fill(config, make_run(id="a"), make_run(id="b", project="bert"), make_entry(at=at(1), project="bert"))
    found = report(config, team="vision")
    assert [run.id for run in found.runs] == ["a"]
    assert found.recommendations == ()
    assert [run.id for run in report(config, project="bert").runs] == ["b"]
    assert [run.id for run in report(config, team="vision", project="resnet").runs] == ["a"]


def test_arguments_have_the_names_of_their_caller(config, tmp_path):
    with pytest.raises(InputError, match=r"^team: no team is called 'visoin'"):
        report(config, team="visoin")
    with pytest.raises(InputError, match=r"^until .* lies in the future"):
        report(config, until=datetime.now(WEEK.until.tzinfo) + timedelta(days=1))
    with pytest.raises(PolicyError, match="cannot read"):
        report(config, policies=(tmp_path / "none.yaml",))


@pytest.mark.parametrize("layer", ["organisation", "team", "project"])
def test_monthly_limits_are_budgets_of_their_layer(config, tmp_path, layer):
    fill(config, make_run(), make_run(project="bert"))
    path = policy(tmp_path, f"layer: {layer}\nlimits: {{usd_per_month: 50}}\n")
    (state,) = report(config, policies=(path,), project="resnet").budgets
    owner = {"organisation": Owner.EVERYBODY}.get(layer, Owner(layer) if layer != "organisation" else None)
    assert (state.budget.owner, state.budget.most_usd) == (owner, 50)
    assert state.budget.rule == f"{path}:4"
    assert state.month.spent_usd == (10 if layer == "project" else 20)


def test_no_limit_hides_another_and_a_threshold_names_those_above(config, tmp_path):
    fill(config, make_run(), make_run(project="bert"))
    files = []
    for name, layer, most in (
        ("Acme", "organisation", 400),
        ("vision", "team", 12),
        ("resnet", "project", 0),
    ):
        files.append(tmp_path / f"{name}.yaml")
        text = f"version: 1\nname: {name}\nlayer: {layer}\nlimits: {{usd_per_month: {most}}}\n"
        files[-1].write_text(text)
    found = report(config, policies=tuple(files))
    rows = [(state.budget.name, float(state.month.spent_usd)) for state in found.budgets]
    assert rows == [("Acme", 20.0), ("vision", 10.0), ("resnet", 10.0)]
    assert found.organisation == "Acme"
    check_budgets(found.budgets[:2], 1.2)
    with pytest.raises(ThresholdExceededError) as caught:
        check_budgets(found.budgets, 0.8)
    words = "vision spent $10.00 of $12.00 (83%); resnet spent $10.00 of $0.00"
    assert str(caught.value) == f"above 80% of the monthly limit: {words}."


def test_a_cost_explorer_that_is_down_costs_one_note(config, tmp_path, monkeypatch):
    fill(config, make_run())
    monkeypatch.setenv("AWS_ENDPOINT_URL_COST_EXPLORER", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    options = {"report.cost_explorer": True, "prices.options": {"aws": {"max_attempts": 1}}}
    found = report(config_with(tmp_path, **options))
    assert found.billing is None
    assert found.showback.usd == 10
    (note,) = [one for one in found.unknown if one.facts.get("what") == "bill"]
    assert sentence(note).startswith("AWS Cost Explorer, the endpoint of ce:GetCostAndUsage cannot be")


def test_rules_that_runs_did_not_keep_are_named_once_each(config, tmp_path):
    fill(
        config,
        make_run(id="dear", usd=99.0),
        make_run(id="spot", market=Market.SPOT),
        make_run(id="there", region="us-gov-east-1"),
        make_run(id="own", provider="local", market=None, instance_type=None, region=None),
        make_run(id="good"),
    )
    path = policy(
        tmp_path,
        "layer: team\nlimits: {usd_per_job: 50, usd_per_month: 1}\nspot: {allowed: false}\n"
        "deny: {regions: [us-gov-*]}\n",
    )
    found = report(config, policies=(path,)).violations
    assert {(one.run.id, one.rule.split(":")[0]) for one in found} == {
        ("dear", "limits.usd_per_job"),
        ("spot", "spot.allowed"),
        ("there", "deny.regions"),
    }


def test_bills_of_settings_and_caller_are_read_once_each(config, tmp_path):
    ours, theirs = (write_focus(tmp_path / name) for name in ("ours.csv", "theirs.csv"))
    both = config_with(tmp_path, **{"report.bills": [str(ours)]})
    heard = Heard()
    request = ReportRequest(since=WEEK.since, until=WEEK.until, bills=(ours, theirs))
    found = report_of(request, both, heard)
    assert found is not None
    assert heard.steps == ["reading ours.csv", "reading theirs.csv"]
    assert found.billing is not None
    assert found.billing.usd == 2.5
    assert [one.facts["why"] for one in found.unknown if "why" in one.facts] == ["overlap"]


def test_another_tag_names_the_projects(config, tmp_path):
    bill = write_focus(tmp_path / "b.csv", {"Tags": '{"cost-center": "detr", "project": "resnet"}'})
    tagged = config_with(tmp_path, **{"report.project_tag": "cost-center"})
    found = report(tagged, bills=(bill,))
    assert found.billing is not None
    assert [share.name for share in found.billing.by_project] == ["detr"]


def test_prices_are_those_of_what_runs_rented(config):
    fill(config, make_run(market=Market.SPOT))
    with open_store(config.settings.store.url) as store:
        offer = make_offer("A10G", 0.5, instance_type="g5.xlarge", market=Market.SPOT, retrieved_at=at(20))
        history = [make_point(-3, 0.4), make_point(2, 0.6), make_point(9, 0.9)]
        save_part(store, "aws", "us-east-1 spot", [offer], history, (), at(20))
    (move,) = report(config).moves.moves
    assert [point.usd_per_h for point in move.series.points] == [0.4, 0.6]
    assert move.series.points[0].observed_at == WEEK.since


def test_a_job_that_comes_again_is_priced_at_todays_offers(config, tmp_path):
    """The shipped prices have L4 for far less than 50 dollars an hour."""
    entry = make_entry(at=at(0), alternatives=(make_alternative("L4", 2.0),))
    fill(config, entry, *(make_run(day, usd=100.0, recommendation_id="entry") for day in range(4)))
    (saving,) = report(config).savings
    assert (saving.plan.gpu, saving.plan.num_gpus) == ("L4", 1)
    assert saving.plan.offer is not None
    assert saving.plan.offer.market is Market.ON_DEMAND
    region = saving.plan.offer.region
    path = policy(tmp_path, f"layer: team\ndeny: {{regions: ['{region}']}}\n")
    (other,) = report(config, policies=(path,)).savings
    assert other.plan.offer is not None
    assert other.plan.offer.region != region


def test_a_job_on_gpus_that_nobody_rents_out_is_named(config):
    entry = make_entry(at=at(0), alternatives=(make_alternative("L4", 2.0, num_gpus=7),))
    fill(config, entry, *(make_run(day, recommendation_id="entry") for day in range(4)))
    found = report(config)
    assert found.savings == ()
    assert "unpriced-jobs" in {one.facts.get("what") for one in found.unknown}


def test_spot_machines_go_away_and_take_longer(config):
    market = todays_prices_for((), None, config, Listener())
    train_s = Quantiles(p50=36_000.0, p90=40_000.0)
    assert market.lasting(make_plan(), train_s) == (train_s, train_s)
    done, billed = market.lasting(make_plan("L4", market=Market.SPOT), train_s)
    assert train_s.p50 < billed.p50 < done.p50 < done.p90
    assert train_s.p90 < billed.p90 < done.p90


def test_a_job_that_lives_with_spot_machines_may_move_among_them(config):
    entry = make_entry(at=at(0), market=Market.SPOT, alternatives=(make_alternative("L4", 2.0),))
    runs = (make_run(day, usd=100.0, market=Market.SPOT, recommendation_id="entry") for day in range(4))
    fill(config, entry, *runs)
    (saving,) = report(config).savings
    assert saving.plan.offer is not None
    assert saving.plan.offer.market is Market.SPOT
    # Two hours of training, and what interruptions add.
    assert saving.time_s.p50 > 2 * 3600
