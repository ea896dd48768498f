"""From a recommendation to what it really took, as a person types it."""

import json
import shlex

import pytest

from advisor.formats.trace_files import write_trace
from advisor.store.database import open_store
from advisor.store.ledger import find_recommendation
from tests.builders import make_trace
from tests.end_to_end.cli import Shell, assert_plain_error

JOB = ("recommend", "t.json.gz", "--epochs", "1", "--offline")
DATABASE = ".local/share/advisor/advisor.db"
RUN = ("run", "record", "--start", "2026-11-01T09:30", "--duration", "2h", "--cost", "5.5")
PLACE = ("--provider", "aws", "--gpu", "L4:8", "--market", "spot")


@pytest.fixture
def shell(tmp_path):
    """A folder with a saved trace and no database."""
    write_trace(make_trace(), tmp_path / "t.json.gz")
    return Shell(folder=tmp_path)


def test_a_recommendation_is_recorded_when_asked_and_its_run_beside_it(shell):
    plain = shell.run(*JOB)
    assert "Recorded" not in plain.out + plain.err
    assert not (shell.folder / DATABASE).exists()
    entry_id = shell.run(*JOB, "--record", "--project", "vision").out.splitlines()[-1].split()[-1].rstrip(".")
    assert len(entry_id) == 32
    answer = shell.run(*RUN, "--recommendation", entry_id)
    assert answer.code == 0, answer
    assert answer.out.startswith("Recorded as ")
    listed = shell.run("run", "list", "--json").document
    (run,) = listed["runs"]
    assert (run["recommendation_id"], run["project"], run["script"]) == (entry_id, "vision", "train.py")
    assert (listed["total_usd"], run["duration_s"]) == (5.5, 7200.0)
    assert (run["status"], run["cost_kind"]) == ("finished", "stated")
    with open_store(f"sqlite:///{shell.folder / DATABASE}") as store:
        entry = find_recommendation(store, entry_id)
    assert entry is not None
    assert entry.command == f"advisor {shlex.join(JOB)} --record --project vision"
    assert entry.alternatives[0].train_p50_s > 0
    assert "1 run, $5.50" in shell.run("run", "list", "--project", "vision").out
    assert_plain_error(shell.run("run", "list", "--project", "vison"), 2, "Did you mean 'vision'?")
    near = entry_id[:-1] + ("0" if entry_id[-1] != "0" else "1")
    assert_plain_error(shell.run(*RUN, "--recommendation", near), 2, f"Did you mean '{entry_id}'?")


def test_the_setting_records_and_the_flag_overrules_it(shell):
    shell.write(".config/advisor/config.yaml", "store: {record: true}\n")
    document = shell.run(*JOB, "--json").document
    assert shell.run(*JOB, "--json", "--no-record").document["recorded_as"] is None
    answer = shell.run(*RUN, "--recommendation", document["recorded_as"], "--json")
    run = json.loads(answer.out)["run"]
    chosen = next(o for o in document["options"] if o["id"] == document["recommended"])
    assert [run[name] for name in ("provider", "gpu", "num_gpus", "market")] == [
        chosen[name] for name in ("provider", "gpu", "num_gpus", "market")
    ]


def test_nothing_recommended_is_nothing_recorded(shell):
    answer = shell.run(*JOB, "--budget", "0.0001", "--record", "--json")
    assert answer.code == 4
    assert answer.document["recorded_as"] is None
    assert not (shell.folder / DATABASE).exists()


def test_a_database_that_is_down_takes_nothing_from_the_answer(shell):
    shell.write("file", "")
    url = {"ADVISOR_STORE__URL": f"sqlite:///{shell.folder}/file/advisor.db"}
    answer = shell.run(*JOB, "--record", **url)
    assert "recommended" in answer.out
    assert "Recorded" not in answer.out
    assert_plain_error(answer, 1, "cannot make the database")


def test_the_same_id_twice_is_one_run(shell):
    first, second = (shell.run(*RUN, *PLACE, "--id", "mine") for _ in range(2))
    assert first.out == "Recorded as mine.\n"
    assert second.out == "Nothing changed: it was recorded before as mine.\n"
    assert len(shell.run("run", "list", "--json").document["runs"]) == 1


def test_a_run_without_a_cost_is_unknown_not_free(shell):
    without = [word for word in RUN if word not in ("--cost", "5.5")]
    assert shell.run(*without, *PLACE, "--status", "Failed").code == 0
    assert "1 run, $0.00 and the unknown cost of 1" in shell.run("run", "list").out
    (run,) = shell.run("run", "list", "--json").document["runs"]
    assert (run["cost_usd"], run["cost_kind"], run["status"]) == (None, None, "failed")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--cost", "0"), ("--cost must be above 0",)),
        (("--duration", "0h"), ("--duration must be above 0",)),
        (("--start", "2999-01-01"), ("lies in the future",)),
        (("--gpu", "H1000"), ("H1000", "Did you mean")),
        (("--plan", "nonsense"), ("not the id of a plan",)),
    ],
)
def test_what_cannot_be_is_one_clear_line(arguments, words, shell):
    answer = shell.run(*RUN, *PLACE, *arguments)
    assert_plain_error(answer, 2, *words)
    assert not (shell.folder / DATABASE).exists()
