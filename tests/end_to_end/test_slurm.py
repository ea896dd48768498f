"""A real Slurm: the file that is emitted, its guard and canary, its receipt, and what sacct tells."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from advisor.core.values import Layout, Tier
from advisor.formats.trace_files import write_trace
from advisor.service.job_files import Handoff, job_file
from tests.builders import make_plan, make_trace
from tests.end_to_end.cli import Shell
from tests.programs import write_program
from tests.recommendations import make_option
from tests.slurm import Slurm, until
from tests.training import COUNTS, SAVES

GPU = "A100-SXM-40GB"
LAB = (
    f"clusters:\n- {{name: lab, gpu: {GPU}, num_gpus: 2, num_nodes: 2, usd_per_gpu_h: 3, wait_p50: 1m,"
    " wait_p90: 2m, network: infiniband 8x400 Gbit}\n"
)
# In the place of torchrun, which is not what is tested: on each node it trains until it is told to end.
TORCHRUN = """#!/bin/sh
trap 'echo "$SLURMD_NODENAME is told to end"; exit 0' TERM
test "$SLURM_PROCID" -gt 0 || python counts.py
mkfifo "$SLURMD_NODENAME"
while :; do read line < "$SLURMD_NODENAME"; done
"""
STOPPED = "stopped by its canary: steps were slower than predicted"


@pytest.fixture
def shell(tmp_path):
    """A folder with a training that only a signal ends, and the settings of the cluster."""
    shell = Shell(folder=tmp_path)
    shell.write(".config/advisor/config.yaml", LAB)
    write_trace(make_trace(), tmp_path / "t.json.gz")
    shell.write("train.py", SAVES + COUNTS + "while True: signal.pause()\n")
    shell.write("counts.py", COUNTS)
    write_program(shell.folder / "bin/torchrun", TORCHRUN)
    return shell


def file_of(shell: Shell, *, gpus: int, nodes: int = 1) -> str:
    """For the recommendation of these GPUs, with a canary that stops the job."""
    asked = ("recommend", "t.json.gz", "--epochs", "1", "--offline", "--record")
    answer = shell.run(*asked, "--gpu", f"{GPU}:{gpus}x{nodes}")
    assert answer.code == 0, answer.err
    plan = replace(
        make_plan(GPU, 3.0 * gpus * nodes, tier=Tier.CLUSTER),
        id=f"cluster/lab/{f'{nodes}x' if nodes > 1 else ''}{gpus}x{GPU}",
        layout=Layout(gpus_per_node=gpus, num_nodes=nodes),
    )
    handoff = Handoff(
        command=("train.py", "--lr", "0.1"),
        option=replace(make_option(GPU, 1.0, 2.0), plan=plan),
        packages=(),
        requirements=None,
        checkpoint_interval_s=None,
        budget_usd=50.0,
        recommendation="last",
    )
    return job_file(handoff, "sbatch").replace("--canary go-on", "--canary stop")


def run_to_its_end(shell: Shell, slurm: Slurm, text: str) -> str:
    """What the job printed; its last line tells us that it has ended."""
    done = shell.folder / "done"
    os.mkfifo(done)
    shell.write("job.sh", f"{text}echo $? > done\n")
    path = f"{shell.folder}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}"
    cluster = replace(slurm, environment=shell.environ(PATH=path, **slurm.environment))
    cluster.ask("sbatch", "--test-only", "job.sh", cwd=shell.folder)
    cluster.ask("sbatch", "job.sh", cwd=shell.folder)
    done.read_text()
    (log,) = shell.folder.glob("train-*.log")
    return log.read_text()


def test_a_job_is_watched_stopped_by_its_canary_and_keeps_a_receipt(shell, slurm):
    said = run_to_its_end(shell, slurm, file_of(shell, gpus=1))
    assert "saved\n" in said
    (run,) = shell.run("run", "list", "--json").document["runs"]
    assert (run["provider"], run["gpu"], run["num_gpus"], run["num_nodes"]) == ("lab", GPU, 1, 1)
    assert (run["status"], run["num_steps"]) == ("interrupted", 100)
    assert run["note"] == STOPPED


def test_two_nodes_have_one_guard_and_one_receipt_that_counts_each_once(shell, slurm):
    said = run_to_its_end(shell, slurm, file_of(shell, gpus=2, nodes=2))
    assert sorted(line for line in said.splitlines() if "is told" in line and "command" not in line) == [
        "one is told to end",
        "two is told to end",
    ]
    (run,) = shell.run("run", "list", "--json").document["runs"]
    assert run["note"] == STOPPED
    assert (run["num_gpus"], run["num_nodes"], run["usd_per_h"]) == (4, 2, 12.0)
    assert run["cost_usd"] == pytest.approx(run["duration_s"] * 12.0 / 3600)


@pytest.fixture
def blocked(slurm):
    """One node works for six hours, and a job of both nodes waits for it: the other is free until then."""
    works = slurm.ask("sbatch", *HOLDS, "--gres=gpu:2", "--nodes=1", "--time=6:00:00").strip()
    until(lambda: slurm.ask("squeue", "-h", f"--jobs={works}", "-o", "%t").strip() == "R")
    waits = slurm.ask("sbatch", *HOLDS, "--gres=gpu:2", "--nodes=2", "--time=1-0").strip()
    until(lambda: slurm.ask("squeue", "-h", f"--jobs={waits}", "-o", "%r").strip() == "Resources")
    try:
        yield slurm
    finally:
        slurm.ask("scancel", "--full", works, waits)


def test_the_walltime_that_is_advised_starts_a_job_sooner(shell, blocked):
    """By backfill: the same file without it, submitted before, waits still when the job has ended."""
    advised = file_of(shell, gpus=1)
    (walltime,) = (line for line in advised.splitlines() if line.startswith("#SBATCH --time="))
    assert int(walltime.partition("=")[2].split(":")[0]) < 6
    shell.write("longer.sh", advised.replace(f"{walltime}\n", ""))
    path = f"{shell.folder}/bin:{os.environ['PATH']}"
    cluster = replace(blocked, environment=shell.environ(PATH=path, **blocked.environment))
    longer = cluster.ask("sbatch", "--parsable", "longer.sh", cwd=shell.folder).strip()
    said = run_to_its_end(shell, blocked, advised)
    assert "saved\n" in said
    assert blocked.ask("squeue", "-h", f"--jobs={longer}", "-o", "%t %l").strip() == "PD 7-00:00:00"
    blocked.ask("scancel", longer)


# What each sets, the ways to ask for more than that, and what Slurm then says of the job.
LIMITS = ("MaxWall=2-0", "MaxTRESPerUser=gres/gpu=2")
NO_LIMITS = ("MaxWall=-1", "MaxTRESPerUser=gres/gpu=-1")


@pytest.fixture
def limited(slurm):
    """The cluster with limits, and a job that has all GPUs that one user may have."""
    slurm.ask("sacctmgr", "-i", "modify", "qos", "normal", "set", *LIMITS)
    running = slurm.ask("sbatch", *HOLDS, "--gres=gpu:2", "--nodes=1", "--time=30").strip()
    until(lambda: slurm.ask("squeue", "-h", f"--jobs={running}", "-o", "%t").strip() == "R")
    try:
        yield slurm
    finally:
        slurm.ask("scancel", "--full", running)
        slurm.ask("sacctmgr", "-i", "modify", "qos", "normal", "set", *NO_LIMITS)


HOLDS = ("--parsable", "--output=/dev/null", "--wrap=while :; do sleep 1000; done")


@pytest.mark.parametrize(
    ("gpus", "walltime", "reason", "limit"),
    [
        (1, "30:00", "QOSMaxGRESPerUser", ("delay_findings", "MaxTRESPU", 2.0)),
        (1, "3-00:00:00", "QOSMaxWallDurationPerJobLimit", ("removal_findings", "MaxWall", 172_800.0)),
    ],
)
def test_limits_are_those_that_slurm_names_itself(gpus, walltime, reason, limit, tmp_path, limited):
    """And the same is said of a job before it is submitted as of the one that waits."""
    job = limited.ask("sbatch", *HOLDS, f"--gres=gpu:{gpus}", f"--time={walltime}").strip()
    until(lambda: limited.ask("squeue", "-h", f"--jobs={job}", "-o", "%r").strip() == reason)
    shell = Shell(folder=tmp_path)
    before = ("--gpus", str(gpus), "--walltime", walltime, "--queue", "gpu")
    for asked in (("--job", job), before):
        answer = shell.run("queue", "show", "slurm", *asked, "--json", **limited.environment)
        assert answer.code == 0, answer.err
        where, name, most = limit
        facts = [one["facts"] for one in answer.document[where]]
        assert (name, most) in {(one["name"], one["most"]) for one in facts}
    said = shell.run("queue", "show", "slurm", "--job", job, **limited.environment)
    assert f"job {job} is number 1 of 1 that wait in gpu: priority" in said.out
    assert f"Slurm says {reason}" in said.out
    limited.ask("scancel", job)


@pytest.fixture
def lifted(slurm):
    """A QOS that lets jobs be above the time limit of their partition."""
    slurm.ask("sacctmgr", "-i", "modify", "qos", "normal", "set", "flags=PartitionTimeLimit")
    try:
        yield slurm
    finally:
        slurm.ask("sacctmgr", "-i", "modify", "qos", "normal", "set", "flags=-1")


def test_a_qos_that_lifts_a_partition_s_time_limit_is_heard(tmp_path, lifted):
    """Slurm starts such a job, which it lets wait for ever otherwise."""
    job = lifted.ask("sbatch", *HOLDS, "--gres=gpu:1", "--time=30-0").strip()
    until(lambda: lifted.ask("squeue", "-h", f"--jobs={job}", "-o", "%t").strip() == "R")
    asked = ("queue", "show", "slurm", "--gpus", "1", "--walltime", "30d", "--queue", "gpu", "--json")
    answer = Shell(folder=tmp_path).run(*asked, **lifted.environment)
    lifted.ask("scancel", "--full", job)
    assert (answer.code, answer.document["removals"]) == (0, [])


def test_a_place_in_the_queue_is_by_priority(tmp_path, limited):
    first, second = (
        limited.ask("sbatch", *HOLDS, "--gres=gpu:1", "--time=30", f"--nice={nice}").strip()
        for nice in (300, 0)
    )
    until(lambda: limited.ask("sprio", "-h", "-o", "%i").split() == [first, second])
    document = Shell(folder=tmp_path).run(
        "queue", "show", "slurm", "--job", first, "--json", **limited.environment
    ).document  # fmt: skip
    priority = limited.ask("sprio", "-h", f"--jobs={first}", "-o", "%Y").strip()
    job = document["job"]
    assert (job["place"], job["num_waiting"], job["priority"]) == (2, 2, int(priority))
    assert job["factors"]["job size"] > 0
    limited.ask("scancel", first, second)


def test_what_sacct_tells_is_a_history_of_waits(tmp_path, slurm):
    """A real job, and the same one in each of the hours before."""
    shell = Shell(folder=tmp_path)
    words = ("--gres=gpu:2", "--nodes=2", "--time=30", "--output=/dev/null", "--wrap=true")
    slurm.repeat_hourly(slurm.ask("sbatch", "--parsable", *words).strip(), 50)
    asked = shell.run("queue", "fit", "slurm", "--out", "waits.json", **slurm.environment)
    assert asked.code == 0, asked.err
    alike = ("--gpus", "4", "--walltime", "30m", "--queue", "gpu", "--json")
    document = shell.run("queue", "show", "waits.json", *alike).document
    assert (document["jobs"], document["size_unit"], document["warnings"]) == (51, "gpus", [])
    assert document["wait_s"]["p50"] == pytest.approx(60, abs=1)


def test_a_recommendation_keeps_to_the_limits_that_a_fit_has_read(shell, limited):
    words = ("--parsable", "--gres=gpu:1", "--output=/dev/null", "--wrap=true")
    limited.ask("sacctmgr", "-i", "modify", "qos", "normal", "set", "MaxTRESPerUser=gres/gpu=3")
    limited.repeat_hourly(limited.ask("sbatch", *words).strip(), 50)
    fit = shell.run("queue", "fit", "slurm", "--out", "waits.json", **limited.environment)
    assert fit.code == 0, fit.err
    waits = f"wait_log: {shell.folder}/waits.json"
    shell.write(".config/advisor/config.yaml", LAB.replace("wait_p50: 1m, wait_p90: 2m", waits))
    answer = shell.run("recommend", "t.json.gz", "--epochs", "1", "--offline", "--json", "--max-nodes", "2")
    removed = {one["num_gpus"]: one["removed_by"] for one in answer.document["options"]}
    assert (removed[2], removed[4]) == (None, "queue")
