"""``advisor run`` with limits and a canary: the budget holds, and no fault ends a job."""

import os
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from advisor.formats.trace_files import write_trace
from advisor.receipt.receipt_files import read_receipt
from tests.builders import make_trace
from tests.end_to_end.cli import Shell, assert_plain_error
from tests.programs import write_program
from tests.training import COUNTS, SAVES

RUN = ("run", "--no-metadata")
NVIDIA_SMI = 'echo "NVIDIA L4, 23034, 0, 0, 72.00"'


@pytest.fixture
def shell(tmp_path):
    """A folder with a script that ends by a signal alone, and one that ends once its steps were seen."""
    shell = Shell(folder=tmp_path)
    shell.write("saves.py", SAVES + COUNTS + "while True: signal.pause()\n")
    shell.write("reads.py", COUNTS + "input()\n")
    return shell


def only_run(shell: Shell) -> dict[str, object]:
    (run,) = shell.run("run", "list", "--json").document["runs"]
    return dict(run)


@pytest.mark.parametrize(
    ("limit", "named"),
    [(("--max-time", "1ms"), "1 ms"), (("--max-cost", "1e-9", "--usd-per-hour", "3.6"), "<$0.0001")],
    ids=["time", "cost"],
)
def test_the_limit_ends_what_would_run_for_ever(limit, named, shell):
    """The job is not finished, and its receipt says what ended it."""
    answer = shell.run(*RUN, *limit, "--", "sh", "-c", "read line < /dev/zero")
    assert answer.code == 128 + signal.SIGKILL
    assert "used: the command did not end: it is killed (SIGKILL)" in answer.err
    run = only_run(shell)
    assert (run["status"], run["note"]) == ("interrupted", f"stopped by its limit of {named}")


def test_a_command_that_is_quick_meets_no_guard(shell):
    answer = shell.run(*RUN, "--max-time", "20h", "--", "sh", "-c", "exit 3")
    assert answer.code == 3
    assert "used:" not in answer.err
    assert only_run(shell)["status"] == "failed"


@pytest.mark.parametrize(
    ("who", "status", "note"), [("guard", "lost", ""), ("job", "interrupted", ""), ("both", "lost", "")]
)
def test_whoever_is_killed_the_run_is_counted_once(who, status, note, shell):
    """A guard that is gone ends no job: it outlives its limit then, which is better than half a job."""
    limits = ("--max-time", "1h", "--max-cost", "9", "--usd-per-hour", "1")
    command = (*RUN, *limits, "--", "sh", "-c", "echo $$; read line; echo $line")
    with shell.start(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        job = int(process.stdout.readline())
        while not [*(shell.folder / ".local/share/advisor/receipts").glob("*.json")]:
            time.sleep(0.02)
        if who != "job":
            process.kill()
            process.wait()
        if who != "guard":
            os.kill(job, signal.SIGKILL)
        if who == "job":
            assert process.wait() == 128 + signal.SIGKILL
        if who == "guard":
            process.stdin.write("alive\n")
            process.stdin.flush()
        assert process.stdout.readline() == ("alive\n" if who == "guard" else "")
    run = only_run(shell)
    assert (run["status"], run["note"]) == (status, note)
    # Nobody knows when a run that was lost ended, nor what it cost.
    cost_usd = None if status == "lost" else pytest.approx(run["duration_s"] / 3600)
    assert run["cost_usd"] == cost_usd
    assert only_run(shell) == run


@pytest.fixture
def advised(shell):
    """A recommendation for the one L4 of this machine; what commands need to see it."""
    write_trace(make_trace(), shell.folder / "t.json.gz")
    smi = write_program(shell.folder / "bin/nvidia-smi", NVIDIA_SMI)
    asked = ("recommend", "t.json.gz", "--epochs", "1", "--offline", "--record", "--provider", "gcp")
    assert shell.run(*asked, "--gpu", "L4:1", "--market", "spot").code == 0
    return {"PATH": f"{smi.parent}:{os.environ['PATH']}"}


def test_a_canary_that_is_too_slow_stops_the_job(shell, advised):
    """The script listens before its steps are seen, and has two minutes to save."""
    options = ("--recommendation", "last", "--canary", "stop", "--receipt", "receipt.json")
    answer = shell.run_process(*RUN, *options, "--", sys.executable, "saves.py", **advised)
    assert answer.out == "saved\n"
    (line,) = [line for line in answer.err.splitlines() if "the first 100 steps take" in line]
    assert "slower than predicted: the job takes" in line
    assert only_run(shell)["note"] == "stopped by its canary: steps were slower than predicted"
    assert only_run(shell)["num_steps"] == 100
    (better,) = [line for line in answer.err.splitlines() if "better now: " in line]
    assert "going on takes" in better
    receipt = read_receipt(shell.folder / "receipt.json")
    assert receipt.canary.step_s > receipt.canary.predicted_s.p90
    assert receipt.canary.left_usd > 0
    assert shell.run("run", "record", "--receipt", "receipt.json").code == 0


@pytest.mark.parametrize("what", ["go-on", "ask"])
def test_a_canary_that_may_go_on_says_it_and_goes_on(what, shell, advised):
    """Its standard input is the script's own: there is no terminal to ask at."""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE, "start_new_session": True}
    command = (*RUN, "--recommendation", "last", "--canary", what, "--", sys.executable, "reads.py")
    with shell.start(*command, environ=advised, **pipes) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        last = "slower than predicted" if what == "go-on" else "there is no terminal to ask at"
        while last not in process.stderr.readline():
            assert process.poll() is None
        process.stdin.write("\n")
        process.stdin.close()
        assert process.wait() == 0
    assert (only_run(shell)["status"], only_run(shell)["note"]) == ("finished", "")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--max-cost", "10"), ("--max-cost needs the price of this machine", "--usd-per-hour")),
        (("--max-cost", "0"), ("--max-cost must be above 0",)),
        (("--max-cost", "nan", "--usd-per-hour", "1"), ("--max-cost must be above 0",)),
        (("--max-time", "soon"), ("--max-time", "soon")),
        (("--max-time", "0s"), ("--max-time must be above 0",)),
        (("--max-time", "1h", "--nodes", "0"), ("--nodes",)),
        (("--canary", "stop"), ("--canary compares", "--recommendation ID")),
        (("--canary", "perhaps"), ("go-on", "ask", "stop")),
    ],
)
def test_limits_that_cannot_be_meant_run_nothing(options, words, shell):
    assert_plain_error(shell.run(*RUN, *options, "--", "touch", "ran"), 2, *words)
    assert not (shell.folder / "ran").exists()


def test_a_policy_that_demands_a_guard_runs_nothing_without_one(shell):
    """Nor does it launch a file from which the limit was taken; a run within a watched one is watched."""
    shell.write("policy.yaml", "version: 1\nname: lab\nlayer: team\nruns: {guard: required}\n")
    shell.write(".config/advisor/config.yaml", f"policy: {{files: [{shell.folder}/policy.yaml]}}\n")
    words = ("the policy demands a limit (runs.guard: required,", "policy.yaml:4)")
    assert_plain_error(
        shell.run(*RUN, "--", "touch", "ran"), 3, *words, "--max-cost or --max-time", "Nothing was run"
    )
    mark = '#!/bin/sh\n# advisor launch: {"kind": "command", "plan": "local/1xL4", "recommendation": null}\n'
    shell.write("job.sh", f"{mark}# --max-time 5m\ntouch ran\n")
    assert_plain_error(shell.run("launch", "job.sh", "--yes"), 3, *words, "write the file again")
    assert not (shell.folder / "ran").exists()
    inner = f"{sys.executable} -m advisor run --no-metadata -- touch ran"
    shell.write("job.sh", f"{mark}exec {sys.executable} -m advisor run --max-time 5m -- {inner}\n")
    assert shell.run_process("launch", "job.sh", "--yes").code == 0
    assert (shell.folder / "ran").exists()
