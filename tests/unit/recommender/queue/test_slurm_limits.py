"""Limits and places that a Slurm tells by its commands, here by scripts in their place."""

import getpass
import os
from pathlib import Path

import pytest

from advisor.core.errors import InputError
from advisor.core.findings.about_options import Unknown
from advisor.report.words import sentence
from advisor.service.listening import Listener
from advisor.service.queue_waits import WaitRequest, expected_wait, fit_waits
from advisor.site_files.slurm_limits import ask_slurm
from tests.jobs import make_job, sacct_of
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
