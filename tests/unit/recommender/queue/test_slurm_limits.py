"""Limits and places that a Slurm tells by its commands, here by scripts in their place."""

import getpass
import json
import os
import re
from pathlib import Path

import pytest

from advisor.core.errors import InputError
from advisor.core.findings.about_options import Unknown
from advisor.report.words import sentence
from advisor.service.listening import Listener
from advisor.service.queue_waits import WaitRequest, check_waits, expected_wait, fit_waits, fitted_waits
from advisor.site_files import job_logs, log_rows
from advisor.site_files.job_logs import read_job_log
from advisor.site_files.slurm_limits import ask_slurm
from recommender.queue.fitted import fit
from recommender.queue.waits import QueuedJob
from tests.jobs import job_log, make_job, sacct_of
from tests.programs import write_program

SLURM = Path("slurm")
ME = getpass.getuser()
NOW_S = 1_764_000_000.0
CONFIG = "ClusterName = lab\nAccountingStorageEnforce = associations,limits,qos"
PARTITION = (
    "PartitionName=gpu Default=YES QoS={qos} MaxTime=7-00:00:00 MaxNodes=UNLIMITED State=UP"
    " TRES=cpu=4,gres/gpu=64"
)
QOS_COLUMNS = [
    "Name", "Flags", "MaxWall", "MaxTRES", "MaxTRESMins", "MaxTRESPU",
    "MaxTRESPA", "MaxJobsPU", "MaxJobsPA", "GrpTRES", "GrpTRESRunMins", "GrpJobs",
]  # fmt: skip
ACCOUNT_COLUMNS = [
    "Account", "User", "Partition", "ParentName", "DefaultQOS", "QOS",
    "MaxWall", "MaxTRES", "MaxTRESMins", "MaxJobs", "GrpTRES", "GrpTRESRunMins", "GrpJobs",
]  # fmt: skip
NORMAL = {"Name": "normal", "MaxWall": "2-00:00:00", "MaxTRES": "cpu=9", "GrpTRES": "gres/gpu=32"}
OTHERS = (
    {
        "Name": "part", "MaxWall": "1-00:00:00", "MaxTRESPA": "gres/gpu:a100=1,node=8", "MaxJobsPU": "5",
        "GrpTRESRunMins": "gres/gpu=600",
    },
    {"Name": "over", "Flags": "OverPartQOS", "MaxWall": "3-00:00:00", "MaxTRESPU": "gres/gpu=4"},
)  # fmt: skip
OWN = {
    "Account": "lab", "User": ME, "QOS": "normal,over", "MaxWall": "12:00:00", "MaxTRES": "gres/gpu=8",
    "MaxJobs": "2",
}  # fmt: skip
VISION = {"Account": "vision", "ParentName": "root"}
ACCOUNTS = (
    {"Account": "root"},
    {"Account": "team", "ParentName": "vision", "GrpTRES": "gres/gpu=16"},
    {"Account": "lab", "ParentName": "vision"},
    {"Account": "team", "User": "bob", "QOS": "normal"},
)


def table(columns: list[str], *rows: dict[str, str]) -> str:
    """As sacctmgr prints it."""
    assert all(set(row) <= set(columns) for row in rows)
    return "\n".join("|".join(row.get(name, "") for name in columns) for row in rows)


# JobID, user, account, QOS, partition, state, TRES, priority, reason, limit, submitted, eligible
QUEUE = f"""\
1|{ME}|lab|over|gpu|R|cpu=1,gres/gpu=3|1|None|1:00:00|2026-11-01T00:00:00+00:00|2026-11-01T00:00:00+00:00
2|bob|team|normal|gpu|R|cpu=1,gres/gpu=5|1|None|1:00:00|2026-11-01T00:00:00+00:00|2026-11-01T00:00:00+00:00
11|bob|team|normal|gpu|PD|cpu=1,gres/gpu=1|90|Priority|1:00:00|2026-11-01T00:00:00+00:00|N/A
12|{ME}|lab|over|gpu|PD|cpu=1,gres/gpu=4|80|QOSMaxGRESPerUser|3-00:00:00|2025-11-24T14:00:00+00:00|2025-11-24T15:00:00+00:00
13|bob|team|normal|cpu,gpu|PD|cpu=1,gres/gpu=1|80|Priority|1:00:00|2026-11-01T00:00:00+00:00|N/A
14|bob|team|normal|cpu|PD|cpu=1|70|Priority|1:00:00|2026-11-01T00:00:00+00:00|N/A
broken|row
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A login node."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    answers(tmp_path)
    return tmp_path


def answers(
    folder: Path,
    *,
    partition_qos: str = "N/A",
    default_qos: str = "",
    config: str = CONFIG,
    normal: dict[str, str] = NORMAL,
    vision: dict[str, str] = VISION,
) -> None:
    told = {
        "scontrol-config": config,
        "scontrol-partition": PARTITION.format(qos=partition_qos),
        "sacctmgr-qos": table(QOS_COLUMNS, normal, *OTHERS),
        "sacctmgr-associations": table(
            ACCOUNT_COLUMNS, *ACCOUNTS, vision, {**OWN, "DefaultQOS": default_qos}
        ),
        "sacctmgr-user": f"{ME}|lab\nbob|team",
        "squeue---all": QUEUE,
        "sprio---noheader": "21|0|100|0|0",
    }
    for name, text in told.items():
        (folder / f"told-{name}").write_text(text)
    for name, word in (("scontrol", "$2"), ("sacctmgr", "$2"), ("squeue", "$1"), ("sprio", "$1")):
        write_program(folder / name, f'cat "{folder}/told-{name}-{word}"')


def told(limits) -> list[tuple[str, str, str, float, float | None]]:
    return [(one.of, one.name, one.what.value, one.most, one.in_use) for one in limits[""]]


OF_PARTITION = [
    ("partition gpu", "MaxTime", "time", 604_800.0, None),
    ("partition gpu", "TRES", "gpus", 64, None),
]
OF_QOS = [("QOS normal", "MaxWall", "time", 172_800.0, None), ("QOS normal", "GrpTRES", "gpus", 32, 5.0)]
OF_ACCOUNT = [("account lab", "MaxTRES", "gpus", 8, None), ("account lab", "MaxJobs", "jobs", 2, 1.0)]


def test_the_qos_goes_before_the_account_and_groups_above_hold_all_below(folder):
    assert told(ask_slurm(NOW_S).limits) == [*OF_PARTITION, *OF_QOS, *OF_ACCOUNT]
    of_group = {**VISION, "GrpTRES": "gres/gpu=20"}
    answers(folder, vision=of_group)
    # The limit of the QOS on a group goes before that of the account.
    assert told(ask_slurm(NOW_S).limits) == [*OF_PARTITION, *OF_QOS, *OF_ACCOUNT]
    answers(folder, vision=of_group, normal={**NORMAL, "GrpTRES": ""})
    assert told(ask_slurm(NOW_S).limits)[-1] == ("account vision", "GrpTRES", "gpus", 20, 8.0)


def test_the_qos_of_a_partition_goes_first_unless_that_of_the_job_is_over_it(folder):
    answers(folder, partition_qos="part")
    by_name = {(of, name): rest for of, name, *rest in told(ask_slurm(NOW_S).limits)}
    assert by_name["QOS part", "MaxWall"][1] == 86_400.0
    assert ("QOS normal", "MaxWall") not in by_name
    assert by_name["QOS part", "MaxTRESPA"] == ["nodes", 8, 0.0]  # of typed GPUs nothing is said
    assert by_name["QOS part", "GrpTRESRunMins"] == ["gpu-time", 36_000.0, None]
    answers(folder, partition_qos="part", default_qos="over")
    limits = told(ask_slurm(NOW_S).limits)
    assert ("QOS over", "MaxWall", "time", 259_200.0, None) in limits
    assert ("QOS part", "MaxWall") not in {one[:2] for one in limits}


def test_a_qos_may_lift_the_time_limit_of_partitions(folder):
    answers(folder, normal={**NORMAL, "Flags": "DenyOnLimit,PartitionTimeLimit"})
    assert told(ask_slurm(NOW_S).limits) == [*OF_PARTITION[1:], *OF_QOS, *OF_ACCOUNT]


def test_a_job_that_waits_has_a_place_and_its_own_limits(folder):
    wait = expected_wait(WaitRequest(source=SLURM, job="12"), Listener())
    job = ask_slurm(NOW_S, "12").job
    assert job is not None
    assert (job.place, job.num_waiting, job.waited_s, job.walltime_s) == (
        2,
        3,
        NOW_S - 1_763_996_400.0,
        259_200.0,
    )
    assert dict(job.factors) == {"age": 21.0, "job size": 100.0}
    assert [(one.name, one.in_use) for one in wait.delays] == [("MaxTRESPU", 3.0)]
    assert wait.alike is None
    assert [one.what for one in wait.warnings if isinstance(one, Unknown)] == ["queue-history"]


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ("99", "no job '99' that waits"),
        ("1", "has started"),
        ("14", "asks for no GPU"),
        ("12", "does not answer|refuses: down"),
    ],
)
def test_a_job_that_does_not_wait_is_one_line(job, words, folder):
    if job == "12":
        write_program(folder / "squeue", "echo down >&2; exit 1")
    with pytest.raises(InputError, match=words):
        expected_wait(WaitRequest(source=SLURM, job=job), Listener())


@pytest.mark.parametrize("is_off", [True, False])
def test_without_accounts_the_limits_of_partitions_are_left_and_a_line(is_off, folder):
    if is_off:
        answers(folder, config="AccountingStorageEnforce = none")
    else:
        no_accounts = "echo 'You are not running a supported accounting_storage plugin' >&2; exit 1"
        write_program(folder / "sacctmgr", no_accounts)
    now = ask_slurm(NOW_S)
    assert told(now.limits) == OF_PARTITION
    assert [one.what for one in now.doubts if isinstance(one, Unknown)] == ["queue-limits"]


def test_who_has_no_account_is_told_that_their_limits_are_unknown(folder, monkeypatch):
    monkeypatch.setenv("LOGNAME", "eve")
    now = ask_slurm(NOW_S)
    assert told(now.limits) == OF_PARTITION
    assert [one.facts["names"] for one in now.doubts] == [["Slurm knows no account of 'eve'"]]


@pytest.mark.parametrize(
    ("asked", "codes"),
    [({"num_gpus": 65}, ["queue", "queue", "queue"]), ({"num_gpus": 8, "walltime_s": 3e5}, ["queue"])],
)
def test_what_is_above_a_limit_never_starts(asked, codes, folder):
    write_program(folder / "sacct", "exit 1")
    wait = expected_wait(WaitRequest(source=SLURM, **asked), Listener())
    assert [one.code for one in wait.removals] == codes


def test_a_limit_of_no_gpus_is_one_on_gpus(folder):
    """As sites keep GPUs from a QOS; it takes jobs without any."""
    answers(folder, normal={**NORMAL, "MaxTRES": "gres/gpu=0", "MaxWall": "00:00:00"})
    wait = expected_wait(WaitRequest(source=SLURM, num_gpus=1, walltime_s=60.0), Listener())
    assert [sentence(one) for one in wait.removals] == [
        "above a limit of the queue: QOS normal allows 0 ms (MaxWall), and it asks for 1 min",
        "above a limit of the queue: QOS normal allows 0 GPUs (MaxTRES), and it asks for 1 GPU",
    ]


def test_a_partition_that_is_down_takes_no_jobs(folder):
    (folder / "told-scontrol-partition").write_text(
        PARTITION.format(qos="N/A").replace("State=UP", "State=DOWN")
    )
    wait = expected_wait(WaitRequest(source=SLURM, num_gpus=1), Listener())
    assert [one.name for one in wait.removals] == ["State=DOWN"]
    with pytest.raises(InputError, match=r"no partition 'gpus'.*'gpu'"):
        expected_wait(WaitRequest(source=SLURM, num_gpus=1, queue="gpus"), Listener())


def test_a_fit_keeps_the_limits_without_what_is_in_use(folder):
    (folder / "log").write_text(sacct_of([make_job(7 * i) for i in range(100)]))
    write_program(folder / "sacct", f"cat {folder}/log")
    fitted = fit_waits(SLURM, folder / "waits.json", Listener())
    assert told(fitted.limits) == [(*one[:4], None) for one in [*OF_PARTITION, *OF_QOS, *OF_ACCOUNT]]
    wait = expected_wait(WaitRequest(source=folder / "waits.json", num_gpus=33), Listener())
    assert [one.name for one in wait.removals] == ["GrpTRES", "MaxTRES"]


JOBS = [make_job(7 * i, wait_s=60.0 * (i % 50), size=1 + i % 4) for i in range(400)]


@pytest.fixture
def slurm_folder(tmp_path, monkeypatch):
    """First on the path, and of a cluster in a zone of half hours; what is asked will stand in `asked`."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("TZ", "America/St_Johns")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def says(slurm_folder: Path, text: str) -> None:
    write_program(slurm_folder / "sacct", f'echo "$@" $TZ $SLURM_TIME_FORMAT > asked\n{text}')


def test_jobs_of_all_users_are_asked_for_in_utc(slurm_folder):
    log = re.sub(r"\d{4}-\d\d-\d\dT[\d:]{8}", lambda time: f"{time[0]}+00:00", sacct_of(JOBS))
    (slurm_folder / "log").write_text(log)
    says(slurm_folder, "cat log")
    fitted = fit_waits(SLURM, None, Listener())
    assert (fitted.num_jobs, fitted.bins) == (400, fit(job_log(JOBS)).bins)
    assert fitted_waits(SLURM, Listener()) == fitted  # as `queue show` does
    # Not what the clock of Newfoundland says.
    assert fitted.first_submit_s == JOBS[0].submit_s
    asked = (slurm_folder / "asked").read_text()
    assert "--allusers --allocations --parsable2 --starttime=now-180days --format=JobID" in asked
    assert asked.endswith("UTC %Y-%m-%dT%H:%M:%S+00:00\n")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("echo 'accounting storage is disabled' >&2; exit 1", "refuses: accounting storage is disabled"),
        ("exit 3", "refuses: 3"),
        ("true", "what slurm tells is empty"),
        ("echo 'Submit|Start|ReqTRES|State'", "what slurm tells holds no job that started, of 0 in all."),
    ],
)
def test_a_slurm_that_tells_nothing_is_one_line(text, words, slurm_folder):
    says(slurm_folder, text)
    with pytest.raises(InputError, match=words):
        check_waits(SLURM, Listener())


def test_without_sacct_the_login_node_is_named(slurm_folder, monkeypatch):
    monkeypatch.setenv("PATH", str(slurm_folder))
    with pytest.raises(InputError, match="login node"):
        fit_waits(SLURM, None, Listener())


def test_a_file_of_that_name_is_a_log(slurm_folder):
    says(slurm_folder, "exit 3")
    (slurm_folder / "slurm").write_text(sacct_of(JOBS))
    assert fit_waits(SLURM, None, Listener()).num_jobs == 400


DAY = "2026-01-01T"
DAY_S = 1_767_225_600.0


def pod(gpus=1, **spec):
    """Of two containers, one of which needs no GPU."""
    trains = {"name": "a", "resources": {"limits": {"nvidia.com/gpu": str(gpus), "cpu": "8500m"}}}
    return {"spec": {"containers": [trains, {"name": "b"}], **spec}}


def kueue(submit, *, count=1, gpus=1, active=True, **times):
    """A Workload with these conditions; a false one is nothing."""
    conditions = [
        {"type": name, "status": "True", "lastTransitionTime": DAY + at} for name, at in times.items()
    ]
    conditions.append({"type": "PodsReady", "status": "False", "lastTransitionTime": f"{DAY}09:00:00Z"})
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": {"name": "w", "namespace": "vision", "creationTimestamp": DAY + submit},
        "spec": {
            "queueName": "gpu",
            "active": active,
            "maximumExecutionTimeSeconds": 7200,
            "podSets": [{"name": "main", "count": count, "template": pod(gpus)}],
        },
        "status": {"conditions": conditions},
    }


def volcano(submit, *changes, **spec):
    """A Job that came into these states."""
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"namespace": "speech", "creationTimestamp": DAY + submit},
        "spec": {"queue": "night", "tasks": [{"replicas": 2, "template": pod(4, **spec)}]},
        "status": {"conditions": [{"status": s, "lastTransitionTime": DAY + at} for s, at in changes]},
    }


def read(tmp_path, *items):
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps({"apiVersion": "v1", "items": items, "kind": "List"}, indent=4))
    return read_job_log(path)


def job(submit_h, start_h, run_h, size, **facts):
    start_s = DAY_S + 3600 * start_h if start_h is not None else float("inf")
    run_s = 3600.0 * run_h if run_h else -1.0
    return QueuedJob(submit_s=DAY_S + 3600 * submit_h, start_s=start_s, size=size, run_s=run_s, **facts)


VISION_POD = {"walltime_s": 7200.0, "queue": "gpu", "user": "vision"}
SPEECH = {"walltime_s": -1.0, "queue": "night", "user": "speech"}


def test_workloads_of_kueue_wait_until_they_are_admitted(tmp_path):
    """One that was evicted, from when it was put back; of those without a start, one is held and one gone."""
    log = read(
        tmp_path,
        kueue("01:00:00Z", count=3, gpus=8, Admitted="03:00:00Z", Finished="04:00:00Z"),
        kueue("01:00:00Z", Requeued="05:00:00Z", Admitted="06:00:00Z"),
        kueue("05:00:00Z"),
        kueue("02:00:00Z", Evicted="05:30:00Z"),
        kueue("05:00:00Z", active=False),
        kueue("05:00:00Z", Finished="06:00:00Z"),
    )
    assert log.jobs == (job(1, 3, 1, 24, **VISION_POD), job(5, 6, None, 1, **VISION_POD))
    assert log.waiting == (job(5, None, None, 1, **VISION_POD), job(5.5, None, None, 1, **VISION_POD))
    assert (log.size_unit, log.left_out) == ("gpus", {"never started": 2})


def test_jobs_of_volcano_wait_until_they_first_run(tmp_path):
    ran = (("Pending", "01:00:01Z"), ("Running", "02:00:00Z"), ("Restarting", "02:30:00Z"))
    again = (("Running", "04:00:00Z"), ("Completed", "05:00:00Z"))
    log = read(
        tmp_path,
        volcano("01:00:00Z", *ran, *again),
        volcano("02:00:00Z", ("Pending", "02:00:01Z"), activeDeadlineSeconds=7200),
        volcano("02:00:00Z", ("Pending", "02:00:01Z"), ("Aborted", "02:30:00Z")),
    )
    assert log.jobs == (job(1, 2, 3, 8, **SPEECH),)
    assert log.waiting == (job(2, None, None, 8, **SPEECH | {"walltime_s": 7200.0}),)
    assert log.left_out == {"never started": 1}


@pytest.mark.parametrize("num_jobs", [1, 3000])
def test_a_line_of_any_length_and_a_single_object_are_read(num_jobs, tmp_path):
    """As `jq -c` writes a list, and `kubectl get workload NAME -o json` one of them."""
    item = kueue("01:00:00Z", Admitted="03:00:00Z")
    text = "\n" + json.dumps({"items": [item] * num_jobs} if num_jobs > 1 else item)
    assert (len(text) > 2**20) is (num_jobs > 1)
    path = tmp_path / "jobs.json"
    path.write_text(text)
    assert len(read_job_log(path).jobs) == num_jobs


PLAIN = volcano("01:00:00Z") | {"apiVersion": "batch/v1"}
NO_COUNT = kueue("01:00:00Z", gpus="1Gi")


@pytest.mark.parametrize("item", [PLAIN, NO_COUNT, {}, None, 3, kueue("01:00:00Z") | {"spec": []}])
def test_an_item_of_another_kind_is_named(item, tmp_path):
    with pytest.raises(InputError, match=r"\n  item 2: it is neither a Workload of Kueue nor a Job of"):
        read(tmp_path, kueue("01:00:00Z", Admitted="03:00:00Z"), item)


def test_items_with_a_fault_are_told_by_their_number(tmp_path):
    late = kueue("at night", Admitted="03:00:00Z")
    with pytest.raises(
        InputError, match=r"item 1: submit .*\n  item 2: it is.*\n(.*\n){3}  and 2 more items"
    ):
        read(tmp_path, late, *[{}] * 6)


def test_what_is_null_is_as_if_left_out(tmp_path):
    new = kueue("01:00:00Z") | {"status": {"conditions": None}}
    new["spec"] = new["spec"] | {"queueName": None, "active": None}
    bare = kueue("01:00:00Z")
    bare["spec"] = bare["spec"] | {"podSets": None}
    ran = kueue("01:00:00Z", Admitted="03:00:00Z")
    ran["spec"]["podSets"][0]["template"]["spec"]["containers"][1]["resources"] = {"requests": None}
    log = read(tmp_path, new, bare, ran)
    assert log.jobs == (job(1, 3, None, 1, **VISION_POD),)
    assert log.waiting == (job(1, None, None, 1, **VISION_POD | {"queue": ""}),)
    assert log.left_out == {"asked for no GPU": 1}


def test_items_count_as_jobs_however_many_lines_they_have(tmp_path, monkeypatch):
    items = [kueue("01:00:00Z", Admitted=f"0{2 + i}:00:00Z") for i in range(3)]
    monkeypatch.setattr(job_logs, "MOST_JOBS", 3)
    monkeypatch.setattr(log_rows, "MOST_LINES", 3)
    assert len(read(tmp_path, *items).jobs) == 3
    with pytest.raises(InputError, match="more than 3 jobs: keep the newest"):
        read(tmp_path, *items, items[0])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{}", "item 1: it is neither"),
        ('{"items": []}', "holds no job that started, of 0"),
        ('{"items": 3}', "holds no job that started, of 0"),
        ('{"items": [', "cannot read"),
        ('{"items": ' + "[" * 100_000, "cannot read"),
    ],
)
def test_what_is_no_list_of_jobs_is_refused(text, words, tmp_path):
    (tmp_path / "jobs.json").write_text(text)
    with pytest.raises(InputError, match=words):
        read_job_log(tmp_path / "jobs.json")


@pytest.mark.parametrize(("word", "kind"), [("kueue", "workloads.kueue"), ("volcano", "jobs.batch.volcano")])
def test_a_live_cluster_is_asked_by_kubectl(word, kind, tmp_path, monkeypatch):
    """Without access it is one line."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    items = [kueue("01:00:00Z", count=1 + i, Admitted="03:00:00Z") for i in range(40)]
    (tmp_path / "log").write_text(json.dumps({"apiVersion": "v1", "items": items}))
    program = write_program(tmp_path / "kubectl", 'echo "$@" > asked\ncat log')
    assert fit_waits(Path(word), None, Listener()) == fitted_waits(tmp_path / "log", Listener())
    # As `queue show` does, of the file too.
    assert fitted_waits(Path(word), Listener()).num_jobs == 40
    assert (tmp_path / "asked").read_text().startswith(f"get {kind}.")
    program.write_text('#!/bin/sh\necho "Error from server (Forbidden)" >&2\nexit 1\n')
    with pytest.raises(InputError, match=r"\(kubectl\) refuses: Error from server \(Forbidden\)"):
        fit_waits(Path(word), None, Listener())
