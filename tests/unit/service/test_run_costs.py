"""What a run cost: stated, price x time, or unknown; and where it ran."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from advisor.cli.listening import TERMINAL
from advisor.config.layers import Config, load_config
from advisor.core.devices import Device
from advisor.core.findings.about_estimates import CorrectedByReceipts, Drift
from advisor.core.values import CostKind, Interval, Market, RunStatus
from advisor.formats.trace_files import write_trace
from advisor.receipt import instance
from advisor.receipt.instance import Instance
from advisor.service.bookkeeping import recorded_runs
from advisor.service.plan_facts import MachineHere, Place
from advisor.service.predicting import PredictRequest, predict
from advisor.service.receipts import CommandRequest, RunCost, cost_of, machine_here, rent_of
from advisor.service.recommend import past_runs as module
from advisor.service.recommend.past_runs import PastRuns, compared_runs, past_runs
from advisor.service.traces import TraceRequest
from advisor.service.watching import WatchRequest
from advisor.store.database import open_store
from advisor.store.ledger import record_recommendation, record_run
from tests.builders import make_trace
from tests.listening import Heard
from tests.unit.store.test_ledger import make_entry, make_run

NOWHERE = Place(provider=None, gpu=None, num_gpus=None, market=None)
SPOT_L4 = Place(
    provider="aws", gpu="L4", num_gpus=1, market=Market.SPOT, instance_type="g6.xlarge", region="us-east-1"
)
ON_AWS = Instance(
    provider="aws", instance_type="g6.12xlarge", region="us-east-1", zone="use1-az4", market=Market.ON_DEMAND
)


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    lab = {"name": "lab", "gpu": "V100-PCIE-32GB", "num_gpus": 4, "usd_per_gpu_h": 0.5}
    return load_config(
        {"store.url": f"sqlite:///{tmp_path}/a.db", "prices.sources": ["snapshot"], "clusters": [lab],
         "local.gpu": "RTX-3090", "local.usd_per_gpu_h": 0.2}
    )  # fmt: skip


def cost(
    config: Config, place: Place, *, share: float = 1.0, zone: str | None = None, **said: float
) -> RunCost:
    where = MachineHere(place=place, zone=zone, share=share)
    return cost_of(where, 1800.0, config, usd=said.get("usd"), usd_per_h=said.get("usd_per_h"))


def test_what_somebody_says_goes_first(config):
    assert cost(config, SPOT_L4, usd=7.0) == RunCost(usd=7.0, kind=CostKind.STATED)
    said = cost(config, SPOT_L4, usd_per_h=4.0, share=0.25)
    assert said == RunCost(usd=0.5, kind=CostKind.ESTIMATED, usd_per_h=1.0)


def test_a_rented_machine_costs_its_price_by_time_and_share(config):
    whole = cost(config, SPOT_L4)
    assert whole.usd_per_h is not None
    assert whole.usd == pytest.approx(whole.usd_per_h / 2)
    assert whole.price_retrieved_at is not None
    assert cost(config, SPOT_L4, share=0.5).usd_per_h == pytest.approx(whole.usd_per_h / 2)
    # A zone without a price of its own has its region's.
    assert cost(config, SPOT_L4, zone="use1-az99") == whole


def test_a_run_on_several_nodes_costs_as_many_machines(config):
    one, four = (cost(config, replace(SPOT_L4, num_gpus=count)) for count in (1, 4))
    assert one == cost(config, SPOT_L4)
    assert four.usd_per_h == pytest.approx(4 * (one.usd_per_h or 0.0))


TWO = replace(SPOT_L4, num_gpus=2, num_nodes=2)


@pytest.mark.parametrize(
    ("place", "slurm", "stated", "times"),
    [
        (SPOT_L4, None, None, 1),
        (SPOT_L4, "2", None, 2),
        (SPOT_L4, "2", 3, 3),
        (SPOT_L4, "many", None, 1),
        (TWO, None, None, 2),
        (TWO, "2", None, 2),
        (TWO, None, 2, 2),
        (TWO, "4", None, 4),
    ],
)
@pytest.mark.parametrize("usd_per_h", [None, 3.0])
def test_rent_counts_each_machine_of_a_job_once(
    place, slurm, stated, times, usd_per_h,
    config, monkeypatch,
):  # fmt: skip
    """A plan of two machines has the price of both, whoever else says that they are two."""
    if slurm is not None:
        monkeypatch.setenv("SLURM_JOB_NUM_NODES", slurm)
    one = cost(config, SPOT_L4).usd_per_h if usd_per_h is None else usd_per_h
    request = CommandRequest(
        command=("true",), usd_per_h=usd_per_h, watch=WatchRequest(max_usd=1.0, num_nodes=stated)
    )
    rent = rent_of(MachineHere(place=place, zone=None, share=1.0), request, config)
    assert rent == pytest.approx(times * (one or 0.0))


@pytest.mark.parametrize(
    ("provider", "gpu", "num_gpus", "usd"),
    [("lab", "V100-PCIE-32GB", 2, 0.5), ("local", "RTX-3090", 1, 0.1), ("local", "T4", 1, None)],
)
def test_a_machine_of_ones_own_costs_what_the_settings_say(provider, gpu, num_gpus, usd, config):
    place = Place(provider=provider, gpu=gpu, num_gpus=num_gpus, market=None)
    assert cost(config, place).usd == usd


@pytest.mark.parametrize(
    "place",
    [NOWHERE, Place(provider="aws", gpu="L4", num_gpus=1, market=Market.SPOT),
     Place(provider="aws", gpu="L4", num_gpus=1, market=Market.SPOT, instance_type="x9", region="us-east-1"),
     Place(provider="runpod", gpu="L4", num_gpus=1, market=Market.SPOT, instance_type="L4", region="EU")],
)  # fmt: skip
def test_without_a_price_the_cost_is_unknown_and_not_nothing(place, config):
    assert cost(config, place) == RunCost()


def look(
    monkeypatch: pytest.MonkeyPatch, config: Config, *, seen: Instance | None, num_gpus: int = 4,
    given: Place = NOWHERE, sent_to: Place | None = None, visible: str | None = None,
    environment: dict[str, str] | None = None,
) -> MachineHere:  # fmt: skip
    card = Device(name="NVIDIA L4", memory_bytes=None, used_bytes=None, utilization=None)
    monkeypatch.setattr("advisor.core.devices.detect_devices", lambda: (card,) * num_gpus)
    monkeypatch.setattr(instance, "this_instance", lambda _: seen)
    shown = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    return machine_here(given, sent_to, shown | (environment or {}), config.settings.run)


def test_the_machine_says_where_it_is(monkeypatch, config):
    where = look(monkeypatch, config, seen=ON_AWS, visible="0", sent_to=SPOT_L4)
    assert where.place == Place(
        provider="aws", gpu="L4", num_gpus=1, market=Market.ON_DEMAND, instance_type="g6.12xlarge",
        region="us-east-1",
    )  # fmt: skip
    assert (where.zone, where.share) == ("use1-az4", 0.25)
    # What is given wins.
    given = Place(provider="local", gpu="RTX-3090", num_gpus=2, market=None)
    place = look(monkeypatch, config, seen=ON_AWS, given=given).place
    assert (place.provider, place.gpu, place.num_gpus) == ("local", "RTX-3090", 2)


@pytest.mark.parametrize(
    ("environment", "num_gpus", "num_nodes"),
    [
        ({"SLURM_JOB_NUM_NODES": "2"}, 8, 2),
        ({"SLURM_JOB_NUM_NODES": "2", "SLURM_STEP_ID": "0"}, 4, None),
        ({}, 4, None),
    ],
)
def test_a_batch_script_of_slurm_stands_for_all_machines_of_its_job(
    environment, num_gpus, num_nodes,
    monkeypatch, config,
):  # fmt: skip
    """What srun starts on each of them stands for its own."""
    place = look(monkeypatch, config, seen=ON_AWS, environment=environment).place
    assert (place.num_gpus, place.num_nodes) == (num_gpus, num_nodes)
    whole = cost(config, place).usd_per_h
    assert whole == pytest.approx(
        (num_nodes or 1) * (cost(config, replace(place, num_gpus=4, num_nodes=1)).usd_per_h or 0)
    )


def test_where_nobody_answers_the_recommendation_counts_on_its_own_gpu_alone(monkeypatch, config):
    same = look(monkeypatch, config, seen=None, num_gpus=1, sent_to=SPOT_L4)
    assert same.place == SPOT_L4
    other = Place(provider="gcp", gpu="T4", num_gpus=1, market=Market.SPOT)
    assert look(monkeypatch, config, seen=None, num_gpus=1, sent_to=other).place.provider is None
    # A laptop without a GPU is not the machine that was recommended.
    assert look(monkeypatch, config, seen=None, num_gpus=0, sent_to=SPOT_L4).place == NOWHERE


def test_the_metadata_service_is_asked_unless_switched_off(monkeypatch, config):
    asked: list[str] = []
    monkeypatch.setattr(instance, "this_instance", asked.append)
    monkeypatch.setattr("advisor.core.devices.detect_devices", lambda: ())
    machine_here(NOWHERE, None, {}, config.settings.run)
    assert asked == ["http://169.254.169.254"]
    machine_here(NOWHERE, None, {}, load_config({"run.metadata": False}).settings.run)
    assert len(asked) == 1


NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
PREDICTED = Interval(p10=0.8, p50=1.0, p90=1.25)


@pytest.fixture
def ledger_config(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "now", lambda: NOW)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return load_config({"store.url": f"sqlite:///{tmp_path}/ledger.db"})


def remember(
    ledger_config: Config, *ratios: float, entry: dict[str, Any] | None = None, **changes: Any
) -> None:
    """Runs on an L4 that took so many times what was predicted."""
    facts = {"gpu": "L4", "num_gpus": 1, "at": NOW - timedelta(days=40), "iteration_s": PREDICTED}
    advice = make_entry(**(facts | {"uncorrected_p50_s": 1.0} | (entry or {})))
    with open_store(ledger_config.settings.store.url) as store:
        record_recommendation(store, advice)
        for day, ratio in enumerate(ratios):
            step_s = Interval(p10=0.9 * ratio, p50=ratio, p90=1.1 * ratio)
            run = {
                "recommendation_id": advice.id, "gpu": "L4", "num_gpus": 1, "step_s": step_s,
                "started_at": NOW - timedelta(days=30 - day),
            }  # fmt: skip
            record_run(store, make_run(**(run | changes)))


def num_compared(ledger_config: Config) -> int:
    with open_store(ledger_config.settings.store.url) as store:
        return len(compared_runs(store))


def test_runs_correct_predictions_of_their_gpu_alone(ledger_config, tmp_path):
    path = tmp_path / "t.json.gz"
    write_trace(make_trace(), path)
    request = PredictRequest(trace=TraceRequest(source=path), gpus=("L4", "T4"))

    def predicted(ledger_config: Config) -> dict[str, tuple[float, bool]]:
        answer = predict(request, ledger_config, Heard())
        return {
            estimate.gpu: (
                estimate.iteration_s.p50,
                CorrectedByReceipts in {type(note) for note in estimate.assumptions},
            )
            for estimate in answer.estimates
        }

    plain = predicted(ledger_config)
    remember(ledger_config, 1.2, 1.2, 1.2)
    after = predicted(ledger_config)
    assert plain["L4"][0] < after["L4"][0] < 1.2 * plain["L4"][0]
    assert (plain["L4"][1], after["L4"][1]) == (False, True)
    assert after["T4"] == plain["T4"]
    off = load_config({"store.url": ledger_config.settings.store.url, "predict.receipts": False})
    assert predicted(off) == plain


@pytest.mark.parametrize(
    "change",
    [
        {"gpu": "T4"},
        {"num_gpus": 2},
        {"step_s": None},
        {"recommendation_id": None},
        {"recommendation_id": "of-nobody"},
        {"started_at": NOW - timedelta(days=400)},
        {"entry": {"iteration_s": None}},
        {"entry": {"uncorrected_p50_s": None}},
    ],
)
def test_runs_without_a_prediction_of_their_own_say_nothing(change, ledger_config):
    remember(ledger_config, 1.2, **change)
    assert num_compared(ledger_config) == 0


def test_a_run_that_failed_counts_for_the_steps_that_it_made(ledger_config):
    remember(ledger_config, 1.2, status=RunStatus.INTERRUPTED, exit_code=-15)
    assert num_compared(ledger_config) == 1


def test_a_drift_is_told_where_runs_are_listed_and_where_its_gpu_is_asked_for(ledger_config):
    remember(ledger_config, 1.4, 1.5, 1.6, 1.4)
    past = past_runs(ledger_config.settings.predict, ledger_config.settings.store, TERMINAL)
    (drift,) = past.drifts_on({"L4", "T4"})
    assert (type(drift), drift.facts["gpu"]) == (Drift, "L4")
    assert past.drifts_on({"T4"}) == ()
    heard = Heard()
    assert len(recorded_runs(None, None, ledger_config.settings.store, heard).runs) == 4
    assert heard.warnings == [drift]  # type: ignore[comparison-overlap]


def test_no_database_and_a_broken_one_leave_predictions_as_they_ship(ledger_config, tmp_path):
    heard = Heard()
    assert past_runs(ledger_config.settings.predict, ledger_config.settings.store, heard) == PastRuns()
    assert not (tmp_path / "ledger.db").exists()
    (tmp_path / "ledger.db").write_text("no database at all, but long enough to be read as one" * 9)
    assert past_runs(ledger_config.settings.predict, ledger_config.settings.store, heard) == PastRuns()
    (warning,) = heard.warnings
    assert warning.startswith("predictions count no receipts: ")
