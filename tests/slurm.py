"""A Slurm of this machine alone while tests run: two nodes of two made-up GPUs each, with accounting."""

import getpass
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import machine

PACKAGES = ("slurm-client", "slurm-wlm", "slurmdbd", "mariadb-server")
# Nothing is asked who it is: all of it listens on this machine alone, and ends with the session.
CLUSTER = """
ClusterName=advisor
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={control}
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/control.pid
SlurmdPidFile={folder}/%n.pid
SlurmdSpoolDir={folder}/%n
SelectType=select/cons_tres
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,bf_interval=1
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightJobSize=1000
GresTypes=gpu
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={accounts}
AccountingStorageTRES=gres/gpu
AccountingStorageEnforce=limits,qos
JobAcctGatherType=jobacct_gather/none
NodeName=one NodeHostname={host} NodeAddr=127.0.0.1 Port={one} CPUs=2 Gres=gpu:a100:2
NodeName=two NodeHostname={host} NodeAddr=127.0.0.1 Port={two} CPUs=2 Gres=gpu:a100:2
PartitionName=gpu Nodes=ALL Default=YES MaxTime=7-0 State=UP
"""
ACCOUNTS = """
AuthType=auth/none
DbdHost=localhost
DbdPort={accounts}
SlurmUser={user}
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser={user}
StoragePass=none
StorageLoc=slurm
PidFile={folder}/accounts.pid
"""


_TABLES = "/usr/share/mysql/mysql_system_tables.sql"
HOURLY = """
CREATE TEMPORARY TABLE earlier SELECT job.*, seq
  FROM advisor_job_table job JOIN seq_1_to_{times} WHERE id_job = {job};
UPDATE earlier SET job_db_inx = 0, id_job = id_job + 1000 * seq, time_submit = time_submit - 3600 * seq,
  time_eligible = time_submit, time_start = time_submit + 60, time_end = time_start + 600;
ALTER TABLE earlier DROP COLUMN seq;
INSERT INTO advisor_job_table SELECT * FROM earlier;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slurm:
    """A cluster that runs.

    Attributes:
        environment: that its commands need.
        database: the socket of its accounts.
    """

    environment: dict[str, str]
    database: Path

    def ask(self, *command: str, cwd: Path | None = None) -> str:
        """What a command of Slurm prints."""
        environment = {**os.environ, **self.environment}
        # The cluster ends after a test that may see no Slurm.
        program = machine.path_of(command[0]) or command[0]
        done = subprocess.run(
            [program, *command[1:]], env=environment, cwd=cwd, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def repeat_hourly(self, job: str, times: int) -> None:
        """Enter a job, once it has ended, in each of the hours before, as if it had waited a minute then."""
        # Slurm may tell of its end before it tells what it asked for.
        asked = ("sacct", "-aXn", f"--jobs={job}", "--state=COMPLETED", "--format=ReqTRES%99")
        until(lambda: "gres/gpu" in self.ask(*asked))
        script = HOURLY.format(times=times, job=job)
        self.ask("mariadb", "--no-defaults", f"--socket={self.database}", "slurm", "-e", script)


@pytest.fixture(scope="session")
def slurm():
    """Started once, in some five seconds."""
    # Sockets have short paths, and pytest's folders long ones.
    with tempfile.TemporaryDirectory(
        prefix="slurm-", dir=machine.folder(), ignore_cleanup_errors=True
    ) as name:
        folder = Path(name)
        facts = {"host": socket.gethostname(), "user": getpass.getuser(), "folder": folder, **_free_ports()}
        cards = [folder / f"card{index}" for index in range(2)]
        for card in cards:
            card.touch()
        (folder / "state").mkdir()
        (folder / "slurm.conf").write_text(CLUSTER.format(**facts))
        (folder / "gres.conf").write_text(f"Name=gpu Type=a100 File={folder}/card[0-1]\n")
        (folder / "slurmdbd.conf").write_text(ACCOUNTS.format(**facts))
        (folder / "slurmdbd.conf").chmod(0o600)
        cluster = Slurm(environment={"SLURM_CONF": f"{folder}/slurm.conf"}, database=folder / "sql")
        with ExitStack() as running:
            running.enter_context(_database(folder))
            for words in (
                ("slurmdbd",),
                ("slurmctld", "-i"),
                ("slurmd", "-N", "one"),
                ("slurmd", "-N", "two"),
            ):
                if words[0] == "slurmctld":
                    until(lambda: cluster.ask("sacctmgr", "-i", "add", "cluster", "advisor"))
                running.enter_context(_running(folder, *words, "-D", MYSQL_UNIX_PORT=f"{folder}/sql"))
            if facts["user"] != "root":
                cluster.ask("sacctmgr", "-i", "add", "user", str(facts["user"]), "account=root")
            until(lambda: cluster.ask("sinfo", "-h", "-t", "idle", "-o", "%D").strip() == "2")
            try:
                yield cluster
            finally:
                # What a test that failed has left; it would outlive us.
                cluster.ask("scancel", "--full", "--signal=KILL", f"--user={facts['user']}")
                until(lambda: not cluster.ask("squeue", "-h"))


def _free_ports() -> dict[str, int]:
    names = ("control", "accounts", "one", "two")
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in names]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return {name: one.getsockname()[1] for name, one in zip(names, sockets, strict=True)}


@contextmanager
def _database(folder: Path) -> Iterator[None]:
    """Without users and tables of its own, which take longer to make than all the rest, save one.

    Slurm keeps there how limits of accounts pass on to their users.
    """
    data = folder / "data"
    data.mkdir()
    with _running(
        folder, "mariadbd", "--no-defaults", f"--user={getpass.getuser()}", f"--datadir={data}",
        f"--socket={folder}/sql", f"--pid-file={folder}/sql.pid", "--skip-networking", "--skip-grant-tables",
        "--innodb-log-file-size=4M", "--innodb-flush-log-at-trx-commit=0",
    ):  # fmt: skip
        until((folder / "sql").exists)
        tables = Path(_TABLES).read_text().splitlines()
        procedures = next(line for line in tables if line.startswith("CREATE TABLE IF NOT EXISTS proc "))
        client = [machine.path_of("mariadb"), "--no-defaults", f"--socket={folder}/sql", "-e"]
        subprocess.run([*client, f"CREATE DATABASE mysql; USE mysql; {procedures}"], check=True)
        yield


@contextmanager
def _running(folder: Path, program: str, *arguments: str, **environ: str) -> Iterator[None]:
    environment = {**os.environ, "SLURM_CONF": f"{folder}/slurm.conf", **environ}
    with (folder / "log").open("ab") as log, subprocess.Popen(
        [machine.path_of(program), *arguments], env=environment, stdout=log, stderr=log,
        start_new_session=True,
    ) as process:  # fmt: skip
        try:
            yield
        finally:
            process.kill()


def until(is_so: Callable[[], object]) -> None:
    """However long it takes: pytest ends a test that hangs."""
    while True:
        with suppress(AssertionError):
            if is_so() is not False:
                return
        time.sleep(0.05)
