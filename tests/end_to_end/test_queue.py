"""``advisor queue`` as a person types it, and a cluster's log in the answer of ``recommend``."""

import os
import time
from typing import Any

import pytest

from advisor.formats.trace_files import write_trace
from tests.builders import make_op, make_trace
from tests.end_to_end.cli import Shell, assert_plain_error
from tests.jobs import csv_of, make_job, sacct_of
from tests.programs import write_program

HOUR_S = 3600.0


@pytest.fixture
def shell(tmp_path):
    """A folder with two logs of 600 jobs: one GPU waits a minute, four wait three hours."""
    jobs = [
        make_job(20 * i, size=size, wait_s=wait_s)
        for i in range(300)
        for size, wait_s in ((1, 60.0), (4, 3 * HOUR_S))
    ]
    shell = Shell(folder=tmp_path)
    shell.write("jobs.csv", csv_of(jobs))
    shell.write("sacct.txt", sacct_of(jobs))
    return shell


def test_check_has_the_fields_of_the_contract(shell):
    document = shell.run("queue", "check", "jobs.csv", "--json").document
    assert set(document) == {
        "schema_version", "jobs", "jobs_checked", "fits_frozen", "coverage", "pinball", "online", "frozen",
        "uncorrected_coverage", "uncorrected_pinball", "baseline_coverage", "baseline_pinball",
    }  # fmt: skip
    assert (document["jobs"], document["jobs_checked"]) == (600, 180)
    for name in ("coverage", "pinball", "baseline_coverage", "baseline_pinball"):
        assert set(document[name]) == {"p50", "p90"}
    assert document["pinball"]["p90"] < document["baseline_pinball"]["p90"] / 2
    assert shell.run("queue", "check", "jobs.csv", "--format", "json").document == document


def test_check_as_a_table(shell):
    out = shell.run("queue", "check", "jobs.csv").out
    assert "of all jobs" in out
    assert "180 of 600 jobs checked" in out


def test_fit_then_show(shell):
    fitted = shell.run("queue", "fit", "jobs.csv", "--out", "waits.json")
    assert fitted.code == 0
    assert "wrote 'waits.json'" in fitted.err
    assert "4..7" in fitted.out
    asked = ("--gpus", "4", "--walltime", "1h", "--queue", "gpu")
    shown = shell.run("queue", "show", "waits.json", *asked, "--json")
    assert shown.err == ""
    document = shown.document
    assert document["wait_s"]["p50"] == pytest.approx(3 * HOUR_S, rel=0.2)
    assert document["based_on"] == {"size": "4..7", "walltime": "<=1h", "queue": "gpu"}
    assert (document["jobs"], document["size_unit"], document["warnings"]) == (300, "gpus", [])
    assert "300 jobs of 4..7 gpus" in shell.run("queue", "show", "waits.json", *asked).out


def test_show_takes_the_state_of_the_queue(shell):
    asked = ("queue", "show", "jobs.csv", "--gpus", "4", "--queue", "gpu")
    left = shell.run(*asked, "--waited", "2h", "--json").document
    assert 0.5 * HOUR_S < left["wait_s"]["p50"] <= left["wait_s"]["p90"] < 3 * HOUR_S
    assert (left["waited_s"], left["num_waiting"]) == (2 * HOUR_S, None)
    assert "longer after 2 h" in shell.run(*asked, "--waited", "2h").out
    behind = shell.run(*asked, "--waiting", "40")
    assert "with 40 jobs waiting before them" in behind.out


def test_a_log_of_the_last_hour_says_how_many_wait(shell):
    """Its last ten jobs wait still, and so does whoever comes now."""
    now_s = time.time()
    jobs = [
        f"{now_s - 60 * (600 - i):.0f},{'' if i > 589 else f'{now_s - 60 * (590 - i):.0f}'},1,3600,gpu"
        for i in range(600)
    ]
    shell.write("live.csv", "\n".join(["submit,start,gpus,walltime,queue", *jobs, ""]))
    shown = shell.run("queue", "show", "live.csv", "--gpus", "1", "--json").document
    assert shown["num_waiting"] == 10
    write_trace(make_trace(), shell.folder / "t.json.gz")
    cluster = "{name: lab, gpu: L4, num_gpus: 1, usd_per_gpu_h: 0.1, queue: gpu, wait_log: live.csv}"
    shell.write(".advisor.yaml", f"clusters: [{cluster}]\nprices: {{offline: true}}\n")
    assert shell.run("trust").code == 0
    answer = shell.run("recommend", "t.json.gz", "--iterations", "5000", "--json")
    (own,) = [one for one in answer.document["options"] if one["tier"] == "cluster"]
    assert any("; 10 jobs waited there within the last hour" in reason for reason in own["reasons"])


def _write_log_of_two(shell, name, end_s):
    """In turn a job of u0, which waits for two hours, and one of u1, which waits for a minute."""
    starts_s = [end_s - 600 * (600 - i) + (60 if i % 2 else 7200) for i in range(600)]
    jobs = [
        f"{end_s - 600 * (600 - i):.0f},{f'{start_s:.0f}' if start_s < end_s else ''},1,u{i % 2}"
        for i, start_s in enumerate(starts_s)
    ]
    shell.write(name, "\n".join(["submit,start,gpus,user", *jobs, ""]))


@pytest.fixture
def p50_s(shell, monkeypatch):
    """The median wait that a user is told of one GPU."""

    def asked(source, user, *words):
        monkeypatch.setenv("LOGNAME", user)
        return shell.run("queue", "show", source, "--gpus", "1", *words, "--json").document["wait_s"]["p50"]

    return asked


def test_who_asks_waits_as_their_own_jobs_did(shell, p50_s):
    """Their log is of the last hour; a file that was fitted to it tells of nobody."""
    _write_log_of_two(shell, "live.csv", time.time())
    assert shell.run("queue", "fit", "live.csv", "--out", "waits.json").code == 0
    assert p50_s("live.csv", "u1") < 600 < 6000 < p50_s("live.csv", "u0")
    stranger_s = p50_s("live.csv", "nobody")
    assert stranger_s == p50_s("waits.json", "u0") == p50_s("waits.json", "u1")
    assert p50_s("live.csv", "u1") < stranger_s < p50_s("live.csv", "u0")


def test_own_jobs_at_the_end_of_an_old_log_tell_nothing_of_now(shell, p50_s):
    _write_log_of_two(shell, "old.csv", time.time() - 86400)
    assert p50_s("old.csv", "u0", "--waiting", "6") == p50_s("old.csv", "u1", "--waiting", "6")


def test_a_job_that_has_waited_was_submitted_beside_other_own_jobs(shell, p50_s):
    _write_log_of_two(shell, "live.csv", time.time())
    words = ("--waiting", "6", "--waited", "30s")
    assert p50_s("live.csv", "u0", *words) == p50_s("live.csv", "u1", *words)


def test_show_without_a_job_shows_all_kinds(shell):
    assert shell.run("queue", "show", "jobs.csv").out == shell.run("queue", "fit", "jobs.csv").out


def test_a_log_is_read_in_its_own_zone(shell):
    """From 01:00 to 03:30 in a night of spring, in which Berlin's clock skips an hour."""
    night = "2026-03-29T01:00:00,2026-03-29T03:30:00"
    rows = ["submit,start,gpus,user", *(f"{night},1,u{i}" for i in range(20))]
    shell.write("night.csv", "\n".join(rows))
    for zone, hours in (("Europe/Berlin", 1.5), ("UTC", 2.5)):
        answer = shell.run("queue", "show", "night.csv", "--gpus", "1", "--timezone", zone, "--json")
        assert answer.document["wait_s"]["p50"] == pytest.approx(hours * HOUR_S)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("check", "none.csv"), "cannot read 'none.csv'"),
        (("fit", "bad.csv"), "line 2: start 'soon' is no time"),
        (("fit", "jobs.csv", "--timezone", "Mars"), "no time zone 'Mars'"),
        (("check", "jobs.csv", "--timezone", "Mars"), "no time zone 'Mars'"),
        (("show", "jobs.csv", "--timezone", "Mars"), "no time zone 'Mars'"),
        (("show", "jobs.csv", "--gpus", "1", "--queue", "gpus"), "Did you mean 'gpu'?"),
        (("show", "jobs.csv", "--gpus", "1", "--walltime", "long"), "--walltime: 'long' is not a duration"),
        (("show", "jobs.csv", "--walltime", "1h"), "give its --gpus N"),
        (("fit", "jobs.csv", "--out", "none/waits.json"), "cannot write 'none/waits.json'"),
    ],
)
def test_wrong_questions_are_refused_in_words(shell, arguments, words):
    shell.write("bad.csv", "submit,start,gpus\n0,soon,1\n")
    assert_plain_error(shell.run("queue", *arguments), 2, words)


def test_recommend_takes_the_wait_from_the_log(shell):
    write_trace(make_trace(), shell.folder / "t.json.gz")
    shell.write(
        ".advisor.yaml",
        "clusters:\n- {name: lab, gpu: V100-PCIE-32GB, num_gpus: 4, usd_per_gpu_h: 0.5, wait_log: jobs.csv}\n"
        "local: {gpu: T4, usd_per_kwh: 0.3}\nprices: {offline: true}\n",
    )
    assert shell.run("trust").code == 0
    answer = shell.run("recommend", "t.json.gz", "--iterations", "5000", "--json")
    by_id = {option["id"]: option for option in answer.document["options"]}
    one, four = (by_id[f"cluster/lab/{count}xV100-PCIE-32GB"] for count in (1, 4))
    assert one["wait_s"]["p50"] < 300 < HOUR_S < four["wait_s"]["p50"]
    assert "wait from 300 jobs of 4..7 gpus" in four["reasons"]
    assert "no wait is configured for lab" not in answer.err
    local = by_id["local/1xT4"]
    assert local["usd_per_h"] == pytest.approx(0.021)
    assert "70 W a GPU (its TDP) at 0.3 USD/kWh" in local["rates"]["training"]
    explained = shell.run("recommend", "t.json.gz", "--iterations", "5000", "--explain", "local/1xT4").out
    assert "electricity alone" in explained


def test_a_busy_gpu_is_left_out_unless_it_is_asked_for(shell):
    write_trace(make_trace(), shell.folder / "t.json.gz")
    smi = 'printf "NVIDIA L4, 23034, 1, %s, 72.00\\n" 0 92'
    program = write_program(shell.folder / "bin/nvidia-smi", smi)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    command = ("recommend", "t.json.gz", "--iterations", "5000", "--offline", "--json")

    def local_options(*gpu: str) -> tuple[dict[int, Any], str]:
        answer = shell.run(*command, *gpu, PATH=path)
        options = (option for option in answer.document["options"] if option["tier"] == "local")
        return {option["num_gpus"]: option for option in options}, answer.err

    free, warnings = local_options()
    assert list(free) == [1]
    assert "GPU 1 is in use: 92 % busy" in free[1]["reasons"]
    assert free[1]["wait_s"] == {"p50": 0, "p90": 0}
    assert "are in use" not in warnings
    both, warnings = local_options("--gpu", "L4:1..2")
    assert sorted(both) == [1, 2]
    assert both[2]["wait_s"] is None
    assert "warning: GPUs of this machine are in use: the wait until they are free counts as 0" in warnings
    assert "no wait is configured" not in warnings


def test_a_board_that_may_draw_less_is_slower_and_cheaper_to_run(shell):
    dense = make_op(flops=10**14, num_bytes=10**9)
    write_trace(make_trace(ops=(dense,)), shell.folder / "t.json.gz")
    lab = "gpu: A100-SXM-80GB, num_gpus: 1, usd_per_gpu_h: 1, wait_p50: 1m, wait_p90: 2m"
    shell.write(
        ".advisor.yaml",
        f"clusters:\n- {{name: capped, {lab}, power_limit_w: 200}}\n- {{name: free, {lab}}}\n"
        "local: {usd_per_kwh: 0.5}\nprices: {offline: true}\n",
    )
    assert shell.run("trust").code == 0
    program = write_program(shell.folder / "bin/nvidia-smi", 'echo "NVIDIA L4, 23034, 1, 0, 60.00"')
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    command = ("recommend", "t.json.gz", "--iterations", "5000")
    by_id = {one["id"]: one for one in shell.run(*command, "--json", PATH=path).document["options"]}
    capped, free = (by_id[f"cluster/{name}/1xA100-SXM-80GB"]["iteration_s"] for name in ("capped", "free"))
    assert capped["p50"] == pytest.approx(1.49 * free["p50"], rel=0.01)
    assert capped["p90"] / capped["p10"] > free["p90"] / free["p10"]
    assert by_id["local/1xL4"]["usd_per_h"] == pytest.approx(0.03)
    assert "60 W a GPU (its power limit) at 0.5 USD/kWh" in by_id["local/1xL4"]["rates"]["training"]
    explained = shell.run(*command, "--explain", "cluster/capped/1xA100-SXM-80GB", PATH=path).out
    assert "each GPU may draw 200 of 400 W" in explained
    shell.write(".advisor.yaml", f"clusters:\n- {{name: capped, {lab}, power_limit_w: none}}\n")
    assert_plain_error(shell.run("trust"), 2, "power_limit_w' (set by")


CONF = """
NodeName=n[1-2] Gres=gpu:4
PartitionName=gpu Nodes=ALL Default=YES MaxTime=2-0
PartitionName=small Nodes=n1 MaxTime=60
"""


@pytest.fixture
def busy(tmp_path):
    """Jobs that ask for 10 hours and run for 8, on eight GPUs: six, then seven."""
    rows = ["submit,start,end,gpus,walltime,queue,user"]
    for i in range(60):
        at_s = 60_000 * i
        rows.append(f"{at_s},{at_s},{at_s + 28_800},6,36000,gpu,ann")
        rows.append(f"{at_s + 60},{at_s + 60},{at_s + 28_860},7,36000,gpu,bob")
    shell = Shell(folder=tmp_path)
    shell.write("runs.csv", "\n".join([*rows, ""]))
    shell.write("slurm.conf", CONF)
    return shell


def test_simulate_shows_what_more_gpus_change(busy):
    asked = ("queue", "simulate", "runs.csv", "--slurm-conf", "slurm.conf", "--add", "gpu=8")
    document = busy.run(*asked, "--json").document
    assert (document["units"], document["backfill"], document["size_unit"]) == (
        [8, 16],
        ["easy", "easy"],
        "gpus",
    )
    everything, small = document["classes"]
    assert (everything["size"], small["size"], everything["num_jobs"]) == ("any", "2..8", 120)
    assert everything["what_if_s"]["p90"] == 0 < everything["today_s"]["p50"]
    assert everything["logged_s"] == {"p50": 0, "p90": 0}
    out = busy.run(*asked).out
    assert "today 8 gpus, backfill easy; what if 16 gpus, backfill easy. Do not trust" in out


def test_simulate_advises_on_the_walltime(busy):
    """A job of two GPUs that ends before the next large one is due starts at once, a longer one does not."""
    asked = ("queue", "simulate", "runs.csv", "--capacity", "8", "--size", "2", "--backfill", "none")
    document = busy.run(*asked, "--walltime", "1h", "--json").document
    waits = {one["walltime_s"]: one for one in document["walltimes"]}
    assert waits[HOUR_S]["today_s"]["p90"] < waits[7 * 24 * HOUR_S]["today_s"]["p90"]
    assert waits[HOUR_S]["what_if_s"] == waits[7 * 24 * HOUR_S]["what_if_s"]
    assert "Asking for 1 h starts it no sooner than for 7 d" in busy.run(*asked, "--walltime", "1h").out


def test_simulate_at_a_time_of_day(busy):
    asked = ("queue", "simulate", "runs.csv", "--capacity", "8", "--size", "2", "--timezone", "UTC")
    document = busy.run(*asked, "--submit-at", "22:00", "--json").document
    assert (document["submit_at"], document["num_moments"]) == ("22:00", 37)


@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        ("PartitionName=most Nodes=n[1-3]", ("--add", "gpu=-8")),
        ("", ("--size", "1", "--queue", "gpu", "--walltime", "0.3")),
        ("PartitionName=none Nodes=n1 MaxTime=0", ("--size", "1", "--queue", "none")),
        ("PriorityCalcPeriod=INFINITE", ()),
        ("PriorityDecayHalfLife=99999999-0", ()),
    ],
)
def test_simulate_takes_what_slurm_allows(busy, line, arguments):
    """Most nodes of a pool that shrinks below them, hardly any time, and times without an end."""
    lines = "NodeName=n[1-4] Gres=gpu:4\nPartitionName=gpu Nodes=ALL Default=YES"
    busy.write("slurm.conf", f"{lines}\n{line}\n")
    answer = busy.run("queue", "simulate", "runs.csv", "--slurm-conf", "slurm.conf", *arguments, "--json")
    assert answer.code == 0, answer.err
    assert answer.document["classes"][0]["num_jobs"] == 120


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("runs.csv",), "does not tell how many gpus the cluster has"),
        (("jobs.csv", "--capacity", "8"), "the log has no run times"),
        (("empty.csv", "--capacity", "8"), "'empty.csv' is empty"),
        (("runs.csv", "--capacity", "2"), "no job of the log fits its partition"),
        (("runs.csv", "--slurm-conf", "runs.csv"), "is not Name=value"),
        (("runs.csv", "--slurm-conf", "slurm.conf", "--add", "gpus=4"), "Did you mean 'gpu'?"),
        (("runs.csv", "--capacity", "8", "--add", "many"), "write how many, such as gpu=8"),
        (("runs.csv", "--capacity", "8", "--add", "\u00b2"), "write how many, such as gpu=8"),
        (("runs.csv", "--capacity", "8", "--add", "9" * 5000), "write how many, such as gpu=8"),
        (("runs.csv", "--capacity", "8", "--add", "-9"), "has 8 only"),
        (("runs.csv", "--capacity", "8", "--backfill", "best"), "none, easy or conservative"),
        (("runs.csv", "--capacity", "8", "--size", "9"), "has 8 only"),
        (("runs.csv", "--capacity", "8", "--walltime", "1h"), "give its --size N"),
        (
            ("runs.csv", "--capacity", "8", "--size", "1", "--submit-at", "noon"),
            "no time of day such as 22:00",
        ),
        (
            ("runs.csv", "--slurm-conf", "slurm.conf", "--size", "1", "--queue", "small", "--walltime", "2h"),
            "the partition allows 1 h at most",
        ),
    ],
)
def test_wrong_simulations_are_refused_in_words(busy, arguments, words):
    busy.write("jobs.csv", "submit,start,gpus\n0,1,1\n")
    busy.write("empty.csv", "")
    assert_plain_error(busy.run("queue", "simulate", *arguments), 2, words)


def test_jobs_of_an_unknown_partition_are_refused(busy):
    text = (busy.folder / "runs.csv").read_text()
    (busy.folder / "runs.csv").write_text(text.replace(",gpu,bob", ",old,bob"))
    answer = busy.run("queue", "simulate", "runs.csv", "--slurm-conf", "slurm.conf")
    assert_plain_error(answer, 2, "slurm.conf has no partition 'old'")
