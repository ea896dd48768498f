"""What a live Slurm allows its user, and where one of their jobs stands in the queue.

A job has the user's default account and the QOS that goes with it, if it is not known. Where a partition's
QOS, the job's QOS and the association set the same limit, the first counts (with OverPartQOS the second).
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from advisor.core.errors import InputError
from advisor.core.findings import Finding
from advisor.core.findings.about_options import Unknown
from advisor.core.processes import user_name
from advisor.core.units import MINUTE_S, whole_number
from advisor.core.values import Limited, QueueLimit
from advisor.site_files import log_rows
from advisor.site_files.job_logs import answer_of, parse_walltime_s

# sprio, squeue and scontrol ask slurmctld; sacctmgr asks the accounts.
_WITHIN_S = 30.0
_MOST_LINES = 200_000
_PAIR = re.compile(r"(\w+)=(\S*)")
_GPUS = re.compile(r"(?:^|,)gres/gpu=(\d{1,9})(?=,|$)")
_NODES = re.compile(r"(?:^|,)node=(\d{1,9})(?=,|$)")
_ASSOCIATION = (
    "Account", "User", "Partition", "ParentName", "DefaultQOS", "QOS", "MaxWall", "MaxTRES", "MaxTRESMins",
    "MaxJobs", "GrpTRES", "GrpTRESRunMins", "GrpJobs",
)  # fmt: skip
_QOS = (
    "Name", "Flags", "MaxWall", "MaxTRES", "MaxTRESMins", "MaxTRESPU", "MaxTRESPA", "MaxJobsPU", "MaxJobsPA",
    "GrpTRES", "GrpTRESRunMins", "GrpJobs",
)  # fmt: skip
_QUEUED = (
    "JobID", "UserName", "Account", "QOS", "Partition", "StateCompact", "tres-alloc", "PriorityLong",
    "Reason", "TimeLimit", "SubmitTime", "EligibleTime",
)  # fmt: skip
# Flags of the job's QOS, and what of the partition they let it be above.
_LIFTS = {"PartitionTimeLimit": "MaxTime", "PartitionMaxNodes": "MaxNodes"}
_FACTORS = {"age": "%A", "fair share": "%F", "job size": "%J", "partition": "%P", "QOS": "%Q"}

Row = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedNow:
    """A job that waits in Slurm's queue."""

    job_id: str
    num_gpus: int
    walltime_s: float | None
    partition: str
    waited_s: float
    """Since it might have started."""
    reason: str
    """Why it waits, in Slurm's word."""
    priority: int
    place: int
    """Among the jobs that wait in its partition, the highest priority first."""
    num_waiting: int
    """Those jobs, itself among them."""
    factors: Mapping[str, float]
    """Parts of the priority that are above 0, from sprio; none where priority is by order of submission."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmNow:
    """What limits there are, by partition; ``""`` is the default one."""

    limits: Mapping[str, tuple[QueueLimit, ...]]
    job: QueuedNow | None = None
    doubts: tuple[Finding, ...] = ()
    """Which limits are unknown, and why."""


def ask_slurm(now_s: float, job_id: str | None = None) -> SlurmNow:
    """The limits of the user's jobs with what is in use of them, and the queued job of this id.

    Raises InputError: Slurm does not answer, or no such job waits.
    """
    partitions = [dict(_PAIR.findall(line)) for line in _lines("scontrol", "show", "partition", "--oneliner")]
    queue = list(_table("squeue", "--all", "--states=RUNNING,PENDING", names=_QUEUED))
    mine = None if job_id is None else _find(queue, job_id)
    accounts, doubts = _accounts()
    user = user_name() if mine is None else mine["UserName"]
    asked = _Asked(accounts=accounts, user=user, queue=queue, partitions=partitions, job=mine)
    if not doubts and not asked.own():
        doubts = (Unknown(what="queue-limits", names=[f"Slurm knows no account of {user!r}"]),)
    limits = {row.get("PartitionName", ""): tuple(asked.limits(row)) for row in partitions}
    default = next((row for row in partitions if row.get("Default") == "YES"), None)
    if default is not None:
        limits[""] = limits[default["PartitionName"]]
    return SlurmNow(limits=limits, job=None if mine is None else _queued(mine, queue, now_s), doubts=doubts)


def _lines(*command: str) -> list[str]:
    text = answer_of("slurm", command, within_s=_WITHIN_S).decode(errors="replace")
    return [line for line in text.splitlines()[:_MOST_LINES] if line.strip()]


def _table(*command: str, names: Sequence[str]) -> Iterator[Row]:
    """Rows of sacctmgr or squeue; one that a name with a bar has broken is left out."""
    if command[0] == "squeue":
        # It has no parsable form: each column ends with what stands behind its colon.
        lines = _lines(*command, "--noheader", f"--Format={':|,'.join(names)}:")
    else:
        lines = _lines(*command, "--noheader", "--parsable2", f"format={','.join(names)}")
    for line in lines:
        cells = line.split("|")
        if len(cells) == len(names):
            yield dict(zip(names, map(str.strip, cells), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Accounts:
    qos: Mapping[str, Row] = field(default_factory=dict)
    associations: Sequence[Row] = ()
    default_account: Mapping[str, str] = field(default_factory=dict)


def _accounts() -> tuple[_Accounts, tuple[Finding, ...]]:
    """What sacctmgr tells; nothing, and why, where Slurm keeps no accounts or does not hold jobs to them."""
    try:
        config = dict(line.split("=", 1) for line in _lines("scontrol", "show", "config") if "=" in line)
        config = {name.strip(): value.strip() for name, value in config.items()}
        if "limits" not in config.get("AccountingStorageEnforce", ""):
            return _Accounts(), (
                Unknown(what="queue-limits", names=["not enforced (AccountingStorageEnforce)"]),
            )
        of_cluster = f"cluster={config.get('ClusterName', '')}"
        qos = {row["Name"]: row for row in _table("sacctmgr", "show", "qos", names=_QOS)}
        ask = ("sacctmgr", "show", "associations", of_cluster)
        users = _table("sacctmgr", "show", "user", of_cluster, names=("User", "DefaultAccount"))
        return _Accounts(
            qos=qos,
            associations=list(_table(*ask, names=_ASSOCIATION)),
            default_account={row["User"]: row["DefaultAccount"] for row in users},
        ), ()
    except InputError as error:
        return _Accounts(), (Unknown(what="queue-limits", names=[str(error).rstrip(".")]),)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    accounts: _Accounts
    user: str
    queue: Sequence[Row]
    partitions: Sequence[Row]
    job: Row | None

    def limits(self, partition: Row) -> Iterator[QueueLimit]:
        """Of a partition's jobs."""
        own = self._association(partition.get("PartitionName", ""))
        account = "" if own is None else own["Account"]
        job_qos = "" if self.job is None else self.job["QOS"]
        if self.job is None and own is not None:
            allowed = own["QOS"].split(",")
            job_qos = own["DefaultQOS"] or ("normal" if "normal" in allowed else allowed[0])
        flags = self.accounts.qos.get(job_qos, {}).get("Flags", "").split(",")
        lifted = {_LIFTS[flag] for flag in flags if flag in _LIFTS}
        yield from (one for one in _of_partition(partition) if one.name not in lifted)
        sources = [
            list(self._of_qos(partition.get("QoS", ""), account, is_of_partition=True)),
            list(self._of_qos(job_qos, account, is_of_partition=False)),
            [] if own is None else list(self._of_associations(own)),
        ]
        if "OverPartQOS" in flags:
            sources[:2] = reversed(sources[:2])
        seen: set[tuple[str, Limited]] = set()
        for source in sources:
            yield from (one for one in source if (one.name, one.what) not in seen)
            seen |= {(one.name, one.what) for one in source}

    def own(self) -> list[Row]:
        """Associations of the user in the account of the job, or the default one."""
        account = self.accounts.default_account.get(self.user) if self.job is None else self.job["Account"]
        rows = self.accounts.associations
        return [row for row in rows if row["User"] == self.user and row["Account"] == account]

    def _association(self, partition: str) -> Row | None:
        """That of the partition first."""
        own = (row for row in self.own() if row["Partition"] in ("", partition))
        return max(own, key=lambda row: row["Partition"] != "", default=None)

    def _of_qos(self, name: str, account: str, *, is_of_partition: bool) -> Iterator[QueueLimit]:
        row = self.accounts.qos.get(name)
        if row is None:
            return
        within = {one["PartitionName"] for one in self.partitions if one.get("QoS") == name}
        running = self._running(
            (lambda job: job["Partition"] in within) if is_of_partition else (lambda job: job["QOS"] == name)
        )
        of_user = [job for job in running if job["UserName"] == self.user]
        of_account = [job for job in running if job["Account"] == account]
        of = f"QOS {name}"
        yield from _limits(row, of, ("MaxWall", "MaxTRES", "MaxTRESMins"), None)
        yield from _limits(row, of, ("MaxTRESPU", "MaxJobsPU"), of_user)
        yield from _limits(row, of, ("MaxTRESPA", "MaxJobsPA"), of_account)
        yield from _limits(row, of, ("GrpTRES", "GrpTRESRunMins", "GrpJobs"), running)

    def _of_associations(self, own: Row) -> Iterator[QueueLimit]:
        """Of the user's, in which those of its accounts are set, and what groups above it have together."""
        account = own["Account"]
        running = self._running(lambda job: job["UserName"] == self.user and job["Account"] == account)
        yield from _limits(own, f"account {account}", ("MaxWall", "MaxTRES", "MaxTRESMins"), None)
        yield from _limits(own, f"account {account}", ("MaxJobs",), running)
        shared = ("GrpTRES", "GrpTRESRunMins", "GrpJobs")
        yield from _limits(own, f"user {self.user}", shared, running)
        above = {row["Account"]: row for row in self.accounts.associations if not row["User"]}
        below: dict[str, set[str]] = {}
        for name in above:
            for parent in _up(name, above):
                below.setdefault(parent, set()).add(name)
        for name in _up(account, above):
            inside = below.get(name, {name})
            of_group = self._running(lambda job, inside=inside: job["Account"] in inside)  # type: ignore[misc]
            yield from _limits(above[name], f"account {name}", shared, of_group)

    def _running(self, is_counted: Callable[[Row], bool]) -> list[Row]:
        return [job for job in self.queue if job["StateCompact"] == "R" and is_counted(job)]


def _up(account: str, above: Mapping[str, Row]) -> Iterator[str]:
    """An account and those above it; accounts that hold each other end it."""
    passed: set[str] = set()
    while account in above and account not in passed:
        passed.add(account)
        yield account
        account = above[account]["ParentName"]


def _of_partition(row: Row) -> Iterator[QueueLimit]:
    of, state = f"partition {row.get('PartitionName', '')}", row.get("State", "UP")
    if state != "UP":
        yield QueueLimit(of=of, name=f"State={state}", what=Limited.JOBS, most=0, in_use=0)
    yield from _limits(row, of, ("MaxTime",), None)
    for name, what, most in (
        ("MaxNodes", Limited.NODES, whole_number(row.get("MaxNodes", ""))),
        ("TRES", Limited.GPUS, _count(_GPUS, row.get("TRES", ""))),
    ):
        if most is not None:
            yield QueueLimit(of=of, name=name, what=what, most=most)


def _limits(row: Row, of: str, names: Collection[str], sharing: Sequence[Row] | None) -> Iterator[QueueLimit]:
    """The limits that a row sets; of those on several jobs with what the jobs that share them have now."""
    for name in names:
        for what, most in _amounts(name, row.get(name, "")):
            used = None if sharing is None or what is Limited.GPU_TIME else _used(what, sharing)
            yield QueueLimit(of=of, name=name, what=what, most=most, in_use=used)


def _amounts(name: str, text: str) -> Iterator[tuple[Limited, float]]:
    if "TRES" in name:
        per, of_gpus = (MINUTE_S, Limited.GPU_TIME) if name.endswith("Mins") else (1.0, Limited.GPUS)
        if (gpus := _count(_GPUS, text)) is not None:
            yield of_gpus, gpus * per
        if of_gpus is Limited.GPUS and (nodes := _count(_NODES, text)) is not None:
            yield Limited.NODES, nodes
    elif "Jobs" in name:
        if (jobs := whole_number(text)) is not None:
            yield Limited.JOBS, jobs
    elif (most_s := parse_walltime_s(text)) is not None:
        yield Limited.TIME, most_s


def _count(which: re.Pattern[str], tres: str) -> int | None:
    found = which.search(tres)
    return None if found is None else int(found[1])


def _used(what: Limited, jobs: Iterable[Row]) -> float:
    if what is Limited.JOBS:
        return float(len(list(jobs)))
    which = _GPUS if what is Limited.GPUS else _NODES
    return float(sum(_count(which, job["tres-alloc"]) or 0 for job in jobs))


def _find(queue: Iterable[Row], job_id: str) -> Row:
    found = next((row for row in queue if row["JobID"] == job_id), None)
    if found is None:
        raise InputError(f"Slurm has no job {job_id[:40]!r} that waits: squeue --states=PENDING lists those.")
    if found["StateCompact"] != "PD":
        raise InputError(f"the job {job_id} has started: it waits no longer.")
    return found


def _queued(mine: Row, queue: Iterable[Row], now_s: float) -> QueuedNow:
    partition = mine["Partition"].split(",")[0]
    alike = [row for row in queue if row["StateCompact"] == "PD" and partition in row["Partition"].split(",")]
    ahead = [row for row in alike if _order(row) < _order(mine)]
    since = [
        one for name in ("EligibleTime", "SubmitTime") for one in log_rows.readings_s(mine[name], name, None)
    ]
    return QueuedNow(
        job_id=mine["JobID"],
        num_gpus=_count(_GPUS, mine["tres-alloc"]) or 0,
        walltime_s=parse_walltime_s(mine["TimeLimit"]),
        partition=partition,
        waited_s=max(0.0, now_s - since[0]) if since else 0.0,
        reason=mine["Reason"],
        priority=whole_number(mine["PriorityLong"]) or 0,
        place=len(ahead) + 1,
        num_waiting=len(alike),
        factors=_factors(mine["JobID"]),
    )


def _order(row: Row) -> tuple[int, int]:
    return -(whole_number(row["PriorityLong"]) or 0), whole_number(row["JobID"]) or 0


def _factors(job_id: str) -> dict[str, float]:
    """Nothing where sprio does not work, as with priority/basic."""
    try:
        lines = _lines("sprio", "--noheader", f"--jobs={job_id}", f"--format={'|'.join(_FACTORS.values())}")
    except InputError:
        return {}
    cells = lines[0].split("|") if lines else []
    parts = dict(zip(_FACTORS, map(log_rows.finite, cells), strict=False))
    return {name: value for name, value in parts.items() if value}
