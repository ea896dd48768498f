"""What a person tells of a run, and what of it reaches the ledger."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from advisor.cli.common import duration_s, moment, moment_or_duration_s
from advisor.cli.listening import TERMINAL
from advisor.config.layers import Config, load_config
from advisor.core.errors import InputError, StoreError
from advisor.core.findings import Finding
from advisor.core.findings.about_options import RemovedByBudget, RemovedByMemory
from advisor.core.limits import EARLIEST
from advisor.core.values import Market, Option, Quantiles, Recommendation, RunStatus
from advisor.receipt.receipt_files import ReceiptFile
from advisor.service import bookkeeping as ledger
from advisor.service.bookkeeping import RunRequest, keep_receipt, keep_run, recorded_runs
from advisor.service.listening import Listener
from advisor.service.recommend import ledger_entries
from advisor.service.recommend.ledger_entries import MAX_ALTERNATIVES, alternatives_of, keep_recommendation
from advisor.service.recommend.recommending import RecommendAnswer
from advisor.store.database import open_store
from advisor.store.ledger import LedgerEntry, Run, find_recommendation, find_run, new_id, recommendation_ids
from tests.findings import sample
from tests.recommendations import many_options
from tests.unit.store.test_ledger import make_run

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
CLUSTER = {"name": "lab", "gpu": "V100-PCIE-32GB", "num_gpus": 4}


@pytest.fixture
def config(tmp_path, monkeypatch):
    """Settings with a database of their own and one cluster; the clock stands still."""
    monkeypatch.setattr(ledger, "now", lambda: NOW)
    monkeypatch.setattr(ledger_entries, "now", lambda: NOW)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return load_config({"store.url": f"sqlite:///{tmp_path}/ledger.db", "clusters": [CLUSTER]})


def a_run(start: str = "2026-11-01T09:30", duration: str = "7h30m", **changes: Any) -> RunRequest:
    """A run as it is typed on the command line."""
    facts: dict[str, Any] = {
        "started_at": moment("--start", start),
        "duration_s": duration_s("--duration", duration),
        "cost_usd": 12.5,
        "recommendation": None,
        "plan": None,
        "provider": "aws",
        "gpu": "L4:8",
        "market": Market.SPOT,
        "script": "train.py",
        "project": "vision",
        "note": "a note",
        "run_id": None,
    }
    return RunRequest(**(facts | changes))


def kept(config: Config, request: RunRequest) -> tuple[Run, bool]:
    return keep_run(request, config, TERMINAL)


def listed(config: Config, since: str | None = None, project: str | None = None) -> tuple[Run, ...]:
    start = None if since is None else moment_or_duration_s("--since", since)
    return recorded_runs(start, project, config.settings.store, TERMINAL).runs


OWN = {"provider": None, "gpu": None, "market": None}


def stored(config: Config, run_id: str) -> Any:
    with open_store(config.settings.store.url) as store:
        return find_run(store, run_id)


def test_a_run_is_kept_as_it_was_told(config):
    run, is_new = kept(config, a_run())
    assert is_new
    assert (run.provider, run.gpu, run.num_gpus, run.market) == ("aws", "L4", 8, Market.SPOT)
    assert (run.script, run.project, run.note) == ("train.py", "vision", "a note")
    assert run.started_at == datetime(2026, 11, 1, 9, 30, tzinfo=UTC)
    assert (run.duration_s, run.cost_usd) == (27_000.0, 12.5)
    assert run.recommendation_id is None
    assert stored(config, run.id) == run


@pytest.mark.parametrize(
    ("plan", "place"),
    [
        ("aws/g5.xlarge/us-east-1/on-demand", ("aws", "A10G", 1, Market.ON_DEMAND)),
        ("gcp/a2-highgpu-8g/us-central1/on-demand", ("gcp", "A100-SXM-40GB", 8, Market.ON_DEMAND)),
        ("local/2xRTX-3090", ("local", "RTX-3090", 2, None)),
        ("cluster/lab/4xV100-PCIE-32GB", ("lab", "V100-PCIE-32GB", 4, None)),
    ],
)
def test_the_id_of_a_plan_tells_where(plan, place, config):
    run, _ = kept(config, a_run(plan=plan, **OWN))
    assert (run.provider, run.gpu, run.num_gpus, run.market) == place


def test_what_is_told_beside_a_plan_wins(config):
    run, _ = kept(config, a_run(plan="aws/g5.xlarge/x/spot", **(OWN | {"gpu": "L4:2"})))
    assert (run.gpu, run.num_gpus, run.market) == ("L4", 2, Market.SPOT)
    on_demand = a_run(plan="aws/never.heard/x/spot", **(OWN | {"gpu": "L4", "market": Market.ON_DEMAND}))
    run, _ = kept(config, on_demand)
    assert (run.gpu, run.num_gpus, run.market) == ("L4", 1, Market.ON_DEMAND)


def answered(recommendation: Recommendation, entry_id: str) -> RecommendAnswer:
    return RecommendAnswer(recommendation=recommendation, best_what_if=None, entry_id=entry_id)


def recommended(config: Config) -> str:
    entry_id = new_id()
    typed = ["recommend", "train.py", "--epochs", "9", "--", "--api-key", "abc", "--note", "two words"]
    keep_recommendation(answered(many_options(20), entry_id), config.settings.store, "team", arguments=typed)
    return entry_id


def find_entry(config: Config, entry_id: str) -> LedgerEntry:
    with open_store(config.settings.store.url) as store:
        entry = find_recommendation(store, entry_id)
    assert entry is not None
    return entry


def test_a_recommendation_tells_where_script_and_project_and_another_place_has_no_market_of_it(config):
    entry_id = recommended(config)
    run, _ = kept(config, a_run(recommendation=entry_id, script=None, project=None, **OWN))
    assert (run.provider, run.gpu, run.num_gpus, run.market) == ("aws", "V100-PCIE-32GB", 8, Market.ON_DEMAND)
    assert (run.recommendation_id, run.script, run.project) == (entry_id, "train.py", "team")
    run, _ = kept(config, a_run(recommendation=entry_id, **(OWN | {"provider": "lab"}), project=""))
    assert (run.provider, run.market, run.project) == ("lab", None, "")


def test_a_run_has_the_machines_of_the_plan_that_it_followed(config):
    entry = find_entry(config, recommended(config))
    two = replace(entry, num_nodes=2, gpu="A100", num_gpus=16)
    assert ledger.num_nodes_of(two, "A100", 16) == 2
    assert ledger.num_nodes_of(two, "A100", 8) is None
    assert ledger.num_nodes_of(None, "A100", 16) is None
    # One GPU is in one machine, whoever sent it there.
    assert ledger.num_nodes_of(None, "A100", 1) == ledger.num_nodes_of(two, "", 0) == 1


def test_a_recommendation_is_kept_as_it_was_given(config):
    entry_id = recommended(config)
    recommendation = many_options(20)
    chosen = recommendation.chosen
    assert chosen is not None
    with open_store(config.settings.store.url) as store:
        assert recommendation_ids(store) == (entry_id,)
    entry = find_entry(config, entry_id)
    assert (entry.num_nodes, chosen.plan.num_nodes) == (1, 1)
    assert (entry.plan_id, entry.provider, entry.gpu) == (chosen.plan.id, "aws", chosen.plan.gpu)
    assert (entry.time_s, entry.cost_usd) == (chosen.time_s, chosen.cost_usd)
    assert (entry.at, entry.project, entry.script) == (NOW, "team", "train.py")
    assert (entry.num_iterations, entry.usd_per_h) == (chosen.iterations, chosen.plan.usd_per_h)
    assert chosen.plan.offer is not None
    offer = chosen.plan.offer
    assert (entry.instance_type, entry.region) == (offer.instance_type, offer.region)
    assert entry.iteration_s == chosen.estimate.iteration_s
    job = recommendation.job
    assert (entry.budget_usd, entry.deadline_s) == (job.budget_usd, job.deadline_s)
    assert entry.command == "advisor recommend train.py --epochs 9 -- --api-key '***' --note 'two words'"
    first = entry.options[: len(recommendation.frontier)]
    assert {one.plan_id for one in first if one.on_frontier} == {*recommendation.frontier}
    assert len(entry.options) > len(first)
    (same,) = (one for one in first if one.plan_id == entry.plan_id)
    assert (same.time_p90_s, same.cost_p50_usd) == (chosen.time_s.p90, chosen.cost_usd.p50)


def test_alternatives_are_the_times_of_each_gpu_and_count_the_cheapest_first():
    options = many_options(200).options
    alternatives = alternatives_of(options)
    keys = [(one.gpu, one.num_gpus) for one in alternatives]
    feasible = [option for option in options if option.feasible]
    assert len(keys) == len(set(keys)) <= MAX_ALTERNATIVES
    assert set(keys) == {(option.plan.gpu, option.plan.num_gpus) for option in feasible}
    for one in alternatives:
        like = [o for o in feasible if (o.plan.gpu, o.plan.num_gpus) == (one.gpu, one.num_gpus)]
        assert one.train_p50_s in {option.train_s.p50 for option in like}


def test_alternatives_leave_out_what_no_price_makes_fit_and_prefer_what_nobody_takes_away():
    plain = many_options(20).options[0]
    assert plain.plan.offer is not None

    def option(market: Market, train_s: float, counted_usd: float, *reasons: Finding) -> Option:
        offer = replace(plain.plan.offer, market=market)
        return replace(
            plain,
            plan=replace(plain.plan, offer=offer),
            train_s=Quantiles(p50=train_s, p90=2 * train_s),
            counted_usd=counted_usd,
            reasons=reasons,
        )

    spot, on_demand = option(Market.SPOT, 20.0, 1.0), option(Market.ON_DEMAND, 10.0, 3.0)
    assert [one.train_p50_s for one in alternatives_of([spot, on_demand])] == [10.0]
    assert [one.train_p50_s for one in alternatives_of([spot])] == [20.0]
    dear = option(Market.ON_DEMAND, 10.0, 3.0, RemovedByBudget(cost_usd=3.0, budget_usd=1.0, p=0.1))
    assert len(alternatives_of([dear])) == 1
    too_large = option(Market.ON_DEMAND, 10.0, 3.0, sample(RemovedByMemory))
    endless = option(Market.ON_DEMAND, float("inf"), 3.0)
    assert alternatives_of([too_large, endless]) == ()


def test_a_run_of_unknown_cost_is_kept_as_such(config):
    run, _ = kept(config, a_run(cost_usd=None, status=RunStatus.FAILED, run_id="mine"))
    assert (run.cost_usd, run.cost_kind, run.status) == (None, None, RunStatus.FAILED)
    with pytest.raises(InputError, match=r"'mine' is the id of another run.*cost an unknown amount"):
        kept(config, a_run(run_id="mine"))


def test_the_receipt_of_a_run_that_was_thought_lost_is_new(config, tmp_path):
    lost = make_run(id="one", cost_usd=None, cost_kind=None, duration_s=None, status=RunStatus.LOST)
    whole = make_run(id="one", exit_code=0)
    path = tmp_path / "receipt.json"
    seen = []
    for run in (lost, whole, whole):
        path.write_bytes(ReceiptFile(run=run).to_bytes())
        seen.append(keep_receipt(path, config.settings.store, TERMINAL)[1])
    assert seen == [True, True, False]
    assert stored(config, "one") == whole
    path.write_bytes(ReceiptFile(run=make_run(id="one", exit_code=7)).to_bytes())
    with pytest.raises(InputError, match="'one' is the id of another run"):
        keep_receipt(path, config.settings.store, TERMINAL)


def test_the_place_of_a_run_is_that_of_its_plan_unless_another_machine_is_named(config):
    run, _ = kept(config, a_run(plan="aws/g5.xlarge/us-east-1/on-demand", **OWN))
    assert (run.instance_type, run.region) == ("g5.xlarge", "us-east-1")
    entry_id = recommended(config)
    run, _ = kept(config, a_run(recommendation=entry_id, **OWN))
    assert run.instance_type is not None
    moved, _ = kept(config, a_run(recommendation=entry_id, **(OWN | {"gpu": "L4"})))
    assert (moved.instance_type, moved.region) == (None, run.region)


def test_what_may_never_end_is_not_kept(config):
    recommendation = many_options(8)
    endless = [
        replace(option, cost_usd=Quantiles(p50=1.0, p90=float("inf"))) for option in recommendation.options
    ]
    with pytest.raises(StoreError, match="inf"):
        keep_recommendation(
            answered(replace(recommendation, options=tuple(endless)), "x"), config.settings.store, ""
        )


def test_an_unknown_recommendation_is_refused_with_what_is_near(config):
    entry_id = recommended(config)
    with pytest.raises(InputError, match=f"Did you mean '{entry_id}'"):
        kept(config, a_run(recommendation=entry_id[:-2] + "zz"))
    with pytest.raises(InputError, match=r"none with the id 'foo' is recorded.*--record"):
        kept(config, a_run(recommendation="foo"))
    assert listed(config) == ()


def test_the_same_id_twice_is_not_doubled_nor_the_same_moment_in_another_zone(config):
    assert kept(config, a_run(run_id="mine"))[1]
    assert not kept(config, a_run(run_id="mine"))[1]
    assert not kept(config, a_run(run_id="mine", start="2026-11-01T10:30+01:00"))[1]
    assert len(listed(config)) == 1


@pytest.mark.parametrize("change", [{"cost_usd": 13.0}, {"duration": "7h"}, {"note": ""}, {"gpu": "L4:4"}])
def test_an_id_of_another_run_is_refused_and_nothing_changes(change, config):
    first, _ = kept(config, a_run(run_id="mine"))
    with pytest.raises(InputError, match=r"'mine' is the id of another run.*12\.5 USD"):
        kept(config, a_run(run_id="mine", **change))
    assert listed(config) == (first,)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"start": "yesterday"}, "'yesterday' is no time: write 2026-11-01"),
        ({"start": "2026-11-31"}, "is no time"),
        ({"start": "0001-01-01T00:00+14:00"}, "lies before 2006"),
        ({"start": "2026-11-20T12:00:01"}, "lies in the future"),
        ({"start": "9999-12-31T23:59-14:00"}, "lies in the future"),
        ({"start": "2026-11-20T11:00"}, "would end in the future"),
        ({"duration": "0s"}, "--duration must be above 0"),
        ({"duration": "-3h"}, "--duration: .* not a duration"),
        ({"duration": "12"}, "--duration: .* with a unit"),
        ({"duration": "9" * 400 + "h"}, "--duration: a duration of more than 300 digits"),
        ({"duration": "9" * 20 + "w"}, "end in the future"),
        ({"cost_usd": 0.0}, "--cost must be above 0"),
        ({"cost_usd": -1.0}, "--cost must be above 0 US dollars, got -1"),
        ({"cost_usd": float("nan")}, "--cost must be above 0"),
        ({"cost_usd": float("inf")}, "--cost must be above 0"),
        ({"gpu": "L4:1..8"}, "several numbers of GPUs"),
        ({"gpu": "L44"}, "L44.*Did you mean"),
        ({"gpu": "A100:8"}, "A100-SXM-40GB"),
        ({"gpu": None}, "--gpu missing"),
        ({"provider": None, "gpu": None}, "--provider and --gpu missing"),
        ({"market": None}, "how was 'aws' rented.*on-demand"),
        ({"provider": "lab"}, "'lab' is a machine of your own: leave --market out"),
        ({"plan": "g5.xlarge"}, "not the id of a plan"),
        ({"plan": "local/0xL4"}, "not the id of a plan"),
        ({"plan": "aws//x/spot"}, "not the id of a plan"),
        ({"plan": "aws/g5.xlarge/x/spott"}, "no market. Did you mean 'spot'"),
        ({"plan": "aws/g5.xlarg/x/spot", "gpu": None}, "--gpu missing"),
        ({"run_id": "  "}, "--id is empty"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_kept(change, words, config):
    with pytest.raises(InputError, match=words):
        kept(config, a_run(**change))
    assert listed(config) == ()


def test_a_machine_of_ones_own_may_cost_nothing(config):
    run, _ = kept(config, a_run(plan="local/1xL4", cost_usd=0.0, **OWN))
    assert run.cost_usd == 0.0
    with pytest.raises(InputError, match="--cost"):
        kept(config, a_run(plan="local/1xL4", cost_usd=-0.5, **OWN))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(
    st.integers(-30 * 365 * 1440, 10 * 365 * 1440).map(lambda minutes: NOW + timedelta(minutes=minutes)),
    st.integers(-5, 10**6),
    st.floats(-10, 1e5) | st.sampled_from([0.0, float("nan"), float("inf")]),
)
def test_what_is_kept_has_ended_and_cost_something(config, start, minutes, cost_usd):
    before = len(listed(config))
    fact = replace(a_run(), started_at=start, duration_s=minutes * 60.0, cost_usd=cost_usd)
    is_right = (
        EARLIEST <= start <= NOW - timedelta(minutes=max(minutes, 0))
        and minutes > 0
        and 0 < cost_usd < float("inf")
    )
    if not is_right:
        with pytest.raises(InputError):
            kept(config, fact)
    else:
        run, is_new = kept(config, fact)
        assert is_new
        assert stored(config, run.id) == run
    assert len(listed(config)) == before + is_right


def test_runs_since_a_time_of_a_project(config):
    for day, project in ((1, "vision"), (10, "speech"), (19, "vision")):
        kept(config, a_run(start=f"2026-11-{day:02}", project=project, run_id=f"{project}{day}"))

    def ids(since: str | None = None, project: str | None = None) -> list[str]:
        return [run.id for run in listed(config, since, project)]

    assert ids() == ["vision1", "speech10", "vision19"]
    assert ids("2026-11-10") == ids("12d") == ["speech10", "vision19"]
    assert ids("1000000w") == ids()
    assert ids("2026-11-02", "vision") == ["vision19"]
    with pytest.raises(InputError, match=r"of a project 'visoin'. Did you mean 'vision'\?"):
        ids(None, "visoin")
    with pytest.raises(InputError, match=r"of a project 'other'. There are speech, vision\."):
        ids(None, "other")
    with pytest.raises(InputError, match="--since: 'soon' is no time"):
        ids("soon")


def test_without_a_database_there_are_no_runs_and_none_is_made(config, tmp_path):
    assert listed(config) == ()
    assert not (tmp_path / "ledger.db").exists()


def test_a_moment_without_a_zone_is_refused(config):
    naive = replace(a_run(), started_at=datetime(2026, 11, 1))  # noqa: DTZ001 - on purpose
    with pytest.raises(InputError, match="started_at: 2026-11-01T00:00:00 has no time zone"):
        keep_run(naive, config, Listener())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cost_usd": -1.0}, "cost_usd must be above 0 US dollars, got -1"),
        ({"duration": "0s"}, "duration_s must be above 0"),
        ({"provider": None, "gpu": None}, "provider and gpu missing: give recommendation ID, plan ID"),
        ({"run_id": " "}, "run_id is empty"),
        ({"recommendation": "foo"}, "recommendation: none with the id 'foo'"),
    ],
)
def test_python_hears_the_names_of_its_own_arguments(change, words, config):
    with pytest.raises(InputError, match=words) as caught:
        keep_run(a_run(**change), config, Listener())
    assert " --" not in str(caught.value).replace("`advisor recommend --record`", "")
