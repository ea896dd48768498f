"""``advisor sweep``: all jobs of a grid, each answered once, and what moved between two nights."""

import os
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from advisor.cli.common import sweep_settings
from advisor.core.errors import StoreError
from advisor.formats.trace_files import write_trace
from advisor.service import fleet, sweeping
from advisor.service.listening import Listener
from advisor.service.sweeping import Advice, Choice, Sweep, SweepBasis, SweepJob, Swept, read_grid
from tests.builders import make_trace
from tests.end_to_end.cli import Shell, assert_plain_error

GRID = """
subjects: [t*.json.gz]
options:
  epochs: [1]
  gpu: [["L4:1", "T4:1"], "A100:8"]
  provider: [gcp]
"""


HUGE = "subjects: [t1.json.gz]\noptions:\n" + "".join(
    f"  {name}: {list(range(1, 101))}\n" for name in ("epochs", "budget", "region", "gpu", "deadline")
)


@pytest.fixture
def shell(tmp_path):
    """A folder with two traces and a grid of four jobs."""
    shell = Shell(folder=tmp_path)
    for name in ("t1", "t2"):
        write_trace(make_trace(script=name), tmp_path / f"{name}.json.gz")
    shell.write("grid.yaml", GRID)
    return shell


ONE_CHILD = ("sweep", "grid.yaml", "--offline", "--workers", "1")


def test_a_second_night_computes_what_changed_and_one_that_fails_takes_nobody_with_it(shell):
    first = shell.run(*ONE_CHILD, "--json").document
    assert [one["is_new"] for one in first["jobs"]] == [True] * 4
    assert all(one["advice"]["take"] for one in first["jobs"])
    assert first["total_usd"] == pytest.approx(
        sum(one["advice"]["take"]["cost_p50_usd"] for one in first["jobs"])
    )
    # The answer is that of the command itself.
    one = first["jobs"][0]
    asked = ("recommend", one["subject"], *one["options"], "--offline", "--json")
    assert shell.run(*asked).document["recommended"] == one["advice"]["take"]["plan"]
    second = shell.run(*ONE_CHILD, "--json").document
    assert [one["is_new"] for one in second["jobs"]] == [False] * 4
    assert [one["advice"] for one in second["jobs"]] == [one["advice"] for one in first["jobs"]]
    (shell.folder / "t2.json.gz").write_bytes(b"broken")
    third = shell.run(*ONE_CHILD)
    assert third.code == 0
    assert "2 computed now, 2 kept from before" in third.out
    assert "2 without an answer" in third.out
    # What they cost is unknown, and not in the sum.
    assert "2 of 4 jobs: $" in third.out
    jobs = {one["subject"]: one for one in shell.run(*ONE_CHILD, "--json").document["jobs"]}
    assert jobs["t1.json.gz"]["advice"]["take"]
    assert "t2.json.gz" in jobs["t2.json.gz"]["advice"]["error"]
    # Where all fail, so does the sweep.
    shell.write("all.yaml", "subjects: [t2.json.gz]\noptions: {epochs: [1]}\n")
    failed = shell.run("sweep", "all.yaml", *ONE_CHILD[2:])
    assert_plain_error(failed, 1, "no combination has an answer")
    assert "truncated or damaged" in failed.out


def test_what_was_computed_before_a_kill_is_kept(shell):
    """kill -9 as soon as one answer is there: the next sweep goes on from it, and nothing is half written."""
    with shell.start(*ONE_CHILD, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while not [*(shell.folder / "grid.yaml.sweep").glob("*.json")]:
            assert process.poll() is None
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
    kept = len([*(shell.folder / "grid.yaml.sweep").glob("*.json")])
    jobs = shell.run(*ONE_CHILD, "--json").document["jobs"]
    assert sum(not one["is_new"] for one in jobs) >= kept >= 1
    assert len({one["job"] for one in jobs}) == 4


@pytest.fixture
def asked():
    """Jobs that were asked for, of an engine whose answers cost nothing."""
    return []


TAKE = Choice(
    plan="a", gpu="L4", num_gpus=1, instance_type="g6", num_nodes=1, market="on-demand", usd_per_h=1.0,
    step_s=0.1, time_p50_s=60.0, time_p90_s=90.0, cost_p50_usd=1.0, cost_p90_usd=2.0, held_s=60.0,
    counted_usd=1.0, work_usd=0.0,
)  # fmt: skip
WORLD = SweepBasis(versions="v", settings="s", prices="p")


def sweep_of(folder: Path, asked: list[SweepJob], **changes: Any) -> Sweep:
    def engine(requests):
        for one in requests:
            asked.append(one.job)
            yield one.key, Advice(take=replace(TAKE, plan=one.job.name), frontier=(TAKE,))

    facts: dict[str, Any] = {"folder": folder / "kept", "engine": engine, "offline": True, "world": WORLD}
    return Sweep(**facts | changes)


def test_any_change_of_what_an_answer_rests_on_asks_again(shell, asked):
    script = shell.write("s/train.py", "import helper")
    shell.write("s/helper.py", "")
    jobs = [SweepJob(subject=str(script), arguments="", options=("--epochs", "1"))]

    def num_asked(**changes: Any) -> int:
        before = len(asked)
        sweep_of(shell.folder, asked, **changes).sweep(jobs, Listener())
        return len(asked) - before

    assert (num_asked(), num_asked()) == (1, 0)
    shell.write("s/helper.py", "x = 1")
    assert (num_asked(), num_asked()) == (1, 0)
    assert num_asked(world=replace(WORLD, prices="other")) == 1
    # A setting, so part of the world.
    assert num_asked(offline=False) == 0
    assert sweep_settings(offline=True).settings.prices.offline


def test_scripts_of_one_folder_have_answers_of_their_own(shell, asked):
    for name in ("a", "b"):
        shell.write(f"s/{name}.py", f"print('{name}')")
    shell.write("grid.yaml", "subjects: [s/*.py]\n")
    _, jobs = read_grid(shell.folder / "grid.yaml")
    found = sweep_of(shell.folder, asked).sweep(jobs, Listener())
    assert [one.advice.take.plan for one in found] == [job.name for job in jobs]
    assert len(asked) == 2


def test_a_damaged_answer_is_computed_again(shell, asked):
    _, jobs = read_grid(shell.folder / "grid.yaml")
    sweep_of(shell.folder, asked).sweep(jobs, Listener())
    for path in (shell.folder / "kept").glob("*.json"):
        path.write_text('{"plan": ')
    again = sweep_of(shell.folder, asked).sweep(jobs, Listener())
    assert all(one.is_new and one.before is None for one in again)
    assert len(asked) == 8


def test_one_question_is_asked_once(shell, asked):
    _, jobs = read_grid(shell.folder / "grid.yaml")
    swept = sweep_of(shell.folder, asked).sweep((*jobs, *jobs), Listener())
    assert len(swept) == 8
    assert len(asked) == 4


B = replace(TAKE, plan="b")
GONE = Advice(error="x")


@pytest.mark.parametrize(
    ("now", "then", "causes", "moved"),
    [
        (Advice(take=TAKE), None, (), None),
        (Advice(take=TAKE), Advice(take=TAKE), ("prices",), None),
        (Advice(take=B), Advice(take=TAKE), ("prices",), "price"),
        (Advice(take=B), Advice(take=TAKE), ("files", "versions"), "prediction"),
        (Advice(take=B), Advice(take=TAKE), ("settings", "prices"), "price and policy"),
        (GONE, Advice(take=TAKE), ("policies",), "is no longer possible: policy"),
        (Advice(take=TAKE), GONE, ("prices",), "is possible now: price"),
        (replace(GONE, is_final=False), Advice(take=TAKE), ("prices",), None),
    ],
)
def test_why_advice_moved(now, then, causes, moved):
    job = SweepJob(subject="t", arguments="", options=())
    assert Swept(job=job, advice=now, before=then, is_new=True, causes=causes).moved == moved


def test_what_changed_between_two_nights_is_found(shell, asked):
    """A new policy file and new prices; the trace and the version stay."""
    shell.write("p.yaml", "version: 1\n")
    job = SweepJob(
        subject=str(shell.folder / "t1.json.gz"),
        arguments="",
        options=("--policy", str(shell.folder / "p.yaml")),
    )
    sweep_of(shell.folder, asked).sweep([job], Listener())
    shell.write("p.yaml", "version: 1\nname: us\n")
    (swept,) = sweep_of(shell.folder, asked, world=replace(WORLD, prices="q")).sweep([job], Listener())
    assert set(swept.causes) == {"policies", "prices"}


def test_a_night_without_an_answer_is_no_night_before(shell, asked):
    """The third compares with the first."""
    job = SweepJob(subject=str(shell.folder / "t1.json.gz"), arguments="", options=())

    def night(prices: str, advice: Advice) -> Swept:
        sweep = sweep_of(
            shell.folder,
            asked,
            world=replace(WORLD, prices=prices),
            engine=lambda requests: [(one.key, advice) for one in requests],
        )
        return sweep.sweep([job], Listener())[0]

    night("monday", Advice(take=TAKE))
    assert night("tuesday", Advice(error="no memory", is_final=False)).moved is None
    assert night("wednesday", Advice(take=B)).moved == "price"


def test_a_folder_that_is_away_for_a_while_loses_nothing(shell, asked, monkeypatch):
    kept, away = shell.folder / "kept", shell.folder / "away"
    waits = []

    def come_back(wait_s):
        waits.append(wait_s)
        if len(waits) == 2:
            away.rename(kept)

    def engine(requests):
        for place, one in enumerate(requests):
            if place == 1:
                kept.rename(away)
            yield one.key, Advice(take=TAKE)

    monkeypatch.setattr("time.sleep", come_back)
    _, jobs = read_grid(shell.folder / "grid.yaml")
    sweep_of(shell.folder, asked, engine=engine).sweep(jobs, Listener())
    assert waits == [*sweeping.WAITS_S[:2]]
    assert not any(one.is_new for one in sweep_of(shell.folder, asked).sweep(jobs, Listener()))


def test_arguments_of_scripts_are_crossed_and_kept_nowhere(shell, asked):
    shell.write("grid.yaml", "subjects: [t1.json.gz]\narguments: ['--token hunter22', '--lr 0.1']\n")
    _, jobs = read_grid(shell.folder / "grid.yaml")
    assert [job.name.partition(" -- ")[2] for job in jobs] == ["--token hunter22", "--lr 0.1"]
    assert len(sweep_of(shell.folder, asked).sweep(jobs, Listener())) == len(asked) == 2
    kept = b"".join(path.read_bytes() for path in (shell.folder / "kept").glob("last.json"))
    assert b"hunter22" not in kept


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("subjects: [t1.json.gz]\nepoch: 3\n", ("epoch",)),
        ("subjects: [t1.json.gz]\noptions: {epoch: [3]}\n", ("no option 'epoch'", "epochs")),
        ("subjects: [nothing.py]\n", ("no file is called 'nothing.py'",)),
        ("subjects: []\n", ("subjects",)),
        ("[1]\n", ("is no grid",)),
        ("subjects: [t1.json.gz]\noptions: {epochs: 3}\n", ("epochs",)),
        (HUGE, ("10,000,000,000 combinations", "at most 100,000")),
        ("subjects: {", ("grid",)),
        ("subjects: [t1.json.gz]\nruns_per_month: {t*: 0}\n", ("runs_per_month",)),
        ("subjects: [t1.json.gz]\nruns_per_month: {t*: 1e9}\n", ("runs_per_month", "100000")),
        ("subjects: [t1.json.gz]\nmonthly_budget_usd: -1\n", ("monthly_budget_usd",)),
        ("subjects: [t1.json.gz]\ncommitments: {12: 30}\n", ("commitments",)),
    ],
)  # fmt: skip
def test_a_grid_that_cannot_be_meant_is_one_clear_line(text, words, shell):
    shell.write("grid.yaml", text)
    assert_plain_error(shell.run("sweep", "grid.yaml"), 2, *words)
    assert not (shell.folder / "grid.yaml.sweep").exists()


def test_a_folder_that_cannot_be_written(shell):
    shell.write("file", "")
    answer = shell.run("sweep", "grid.yaml", "--offline", "--folder", "file/x")
    assert_plain_error(answer, 2, "cannot keep answers in")


FLEET = """runs_per_month: {t*: 30}
monthly_budget_usd: 300
commitments: {12: 0.3, 36: 0.5}
"""


@pytest.mark.parametrize(
    ("view", "words"),
    [
        ("best", ("2 jobs, each on its cheapest machine of known cost: $", "A month")),
        ("moved", ("Nothing moved since the last sweep.",)),
        ("budget", ("Within $300.00: the first", "no other choice is shorter by more than")),
        ("capacity", ("Idle: the odds", "planned runs")),
    ],
)
def test_what_a_sweep_says_of_a_fleet(view, words, swept_fleet):
    answer = swept_fleet.run("sweep", "grid.yaml", "--offline", "--show", view)
    for word in words:
        assert word in answer.out, answer.out
    assert len(answer.out.splitlines()) < 40


@pytest.fixture(scope="module")
def swept_fleet(tmp_path_factory):
    """On demand on two kinds of machines, with a budget."""
    shell = Shell(folder=tmp_path_factory.mktemp("fleet"))
    for name in ("t1", "t2"):
        write_trace(make_trace(script=name), shell.folder / f"{name}.json.gz")
    shell.write("grid.yaml", f"{GRID}  market: [on-demand]\n{FLEET}")
    shell.run("sweep", "grid.yaml", "--offline", "--parquet")
    return shell


def test_a_ledger_that_cannot_be_read_ends_no_sweep(swept_fleet, monkeypatch):
    """Only what to commit to rests on it, and goes on with planned runs."""

    def broken(*_given):
        raise StoreError("no ledger")

    monkeypatch.setattr(fleet, "existing_store", broken)
    command = ("sweep", "grid.yaml", "--offline")
    assert "no ledger" not in swept_fleet.run(*command, "--show", "best").err
    capacity = swept_fleet.run(*command, "--show", "capacity")
    assert "planned runs" in capacity.out
    warning = "capacity counts planned runs alone: no ledger"
    assert f"warning: {warning}" in capacity.err
    assert swept_fleet.run(*command, "--json").document["warnings"] == [warning]


def test_json_has_the_whole_fleet_and_parquet_every_job(swept_fleet):
    fleet = swept_fleet.run("sweep", "grid.yaml", "--offline", "--json").document
    assert all(0 < one["held_s"] <= one["time_p50_s"] for one in fleet["best"][0]["frontier"])
    assert [one["num_tried"] for one in fleet["best"]] == [2, 2]
    assert fleet["budget"]["usd"] <= fleet["budget"]["budget_usd"] == 300
    assert sum(one["usd_per_month"] for one in fleet["best"]) == pytest.approx(
        fleet["budget"]["cheapest_usd"]
    )
    assert fleet["budget"]["moves"]
    assert fleet["capacity"][0]["source"] == "planned runs"
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = parquet.read_table(swept_fleet.folder / "grid.yaml.sweep/answers.parquet").to_pylist()
    assert [row["plan"] for row in rows] == [one["advice"]["take"]["plan"] for one in fleet["jobs"]]
