"""What the ledger's runs say of the next prediction."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from advisor.cli.listening import TERMINAL
from advisor.config.layers import Config, load_config
from advisor.core.findings.about_estimates import CorrectedByReceipts, Drift
from advisor.core.values import Interval, RunStatus
from advisor.formats.trace_files import write_trace
from advisor.service.bookkeeping import recorded_runs
from advisor.service.predicting import PredictRequest, predict
from advisor.service.recommend import past_runs as module
from advisor.service.recommend.past_runs import PastRuns, compared_runs, past_runs
from advisor.service.traces import TraceRequest
from advisor.store.database import open_store
from advisor.store.ledger import record_recommendation, record_run
from tests.builders import make_trace
from tests.listening import Heard
from tests.unit.store.test_ledger import make_entry, make_run

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
PREDICTED = Interval(p10=0.8, p50=1.0, p90=1.25)


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "now", lambda: NOW)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return load_config({"store.url": f"sqlite:///{tmp_path}/ledger.db"})


def remember(config: Config, *ratios: float, entry: dict[str, Any] | None = None, **changes: Any) -> None:
    """Runs on an L4 that took so many times what was predicted."""
    facts = {"gpu": "L4", "num_gpus": 1, "at": NOW - timedelta(days=40), "iteration_s": PREDICTED}
    advice = make_entry(**(facts | {"uncorrected_p50_s": 1.0} | (entry or {})))
    with open_store(config.settings.store.url) as store:
        record_recommendation(store, advice)
        for day, ratio in enumerate(ratios):
            step_s = Interval(p10=0.9 * ratio, p50=ratio, p90=1.1 * ratio)
            run = {
                "recommendation_id": advice.id, "gpu": "L4", "num_gpus": 1, "step_s": step_s,
                "started_at": NOW - timedelta(days=30 - day),
            }  # fmt: skip
            record_run(store, make_run(**(run | changes)))


def num_compared(config: Config) -> int:
    with open_store(config.settings.store.url) as store:
        return len(compared_runs(store))


def test_runs_correct_predictions_of_their_gpu_alone(config, tmp_path):
    path = tmp_path / "t.json.gz"
    write_trace(make_trace(), path)
    request = PredictRequest(trace=TraceRequest(source=path), gpus=("L4", "T4"))

    def predicted(config: Config) -> dict[str, tuple[float, bool]]:
        answer = predict(request, config, Heard())
        return {
            estimate.gpu: (
                estimate.iteration_s.p50,
                CorrectedByReceipts in {type(note) for note in estimate.assumptions},
            )
            for estimate in answer.estimates
        }

    plain = predicted(config)
    remember(config, 1.2, 1.2, 1.2)
    after = predicted(config)
    assert plain["L4"][0] < after["L4"][0] < 1.2 * plain["L4"][0]
    assert (plain["L4"][1], after["L4"][1]) == (False, True)
    assert after["T4"] == plain["T4"]
    off = load_config({"store.url": config.settings.store.url, "predict.receipts": False})
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
def test_runs_without_a_prediction_of_their_own_say_nothing(change, config):
    remember(config, 1.2, **change)
    assert num_compared(config) == 0


def test_a_run_that_failed_counts_for_the_steps_that_it_made(config):
    remember(config, 1.2, status=RunStatus.INTERRUPTED, exit_code=-15)
    assert num_compared(config) == 1


def test_a_drift_is_told_where_runs_are_listed_and_where_its_gpu_is_asked_for(config):
    remember(config, 1.4, 1.5, 1.6, 1.4)
    past = past_runs(config.settings.predict, config.settings.store, TERMINAL)
    (drift,) = past.drifts_on({"L4", "T4"})
    assert (type(drift), drift.facts["gpu"]) == (Drift, "L4")
    assert past.drifts_on({"T4"}) == ()
    heard = Heard()
    assert len(recorded_runs(None, None, config.settings.store, heard).runs) == 4
    assert heard.warnings == [drift]  # type: ignore[comparison-overlap]


def test_no_database_and_a_broken_one_leave_predictions_as_they_ship(config, tmp_path):
    heard = Heard()
    assert past_runs(config.settings.predict, config.settings.store, heard) == PastRuns()
    assert not (tmp_path / "ledger.db").exists()
    (tmp_path / "ledger.db").write_text("no database at all, but long enough to be read as one" * 9)
    assert past_runs(config.settings.predict, config.settings.store, heard) == PastRuns()
    (warning,) = heard.warnings
    assert warning.startswith("predictions count no receipts: ")
