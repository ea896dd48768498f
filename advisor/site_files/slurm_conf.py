"""What a slurm.conf tells of a queue: partitions, the nodes that they share, and weights of priority.

Not read, since slurm.conf does not hold it: shares of accounts (all users count alike), QOS, limits of users,
reservations, features and memory of nodes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from advisor.core.errors import InputError
from advisor.core.limits import MAX_MACHINES
from advisor.core.units import DAY_S, HOUR_S, MINUTE_S
from advisor.formats.foreign_files import read_plain, why_unreadable

_MOST_BYTES = 2**24
_MOST_UNITS = 10**9
_PAIR = re.compile(r'(\w+)=("[^"]*"|\S*)')
_HOST = re.compile(r"(?:[^,\[]|\[[^\]]*\])+")
_GPUS = re.compile(r"(?:^|,)gpu(?::[A-Za-z_][^:,(]*)?(?::(\d{1,6}))?")
_NO_LIMIT = ("UNLIMITED", "INFINITE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """Where jobs wait; partitions of one ``pool`` share nodes."""

    name: str
    units: int
    pool: int
    tier: int = 1
    job_factor: int = 1
    max_s: float = math.inf
    """The longest run time that jobs may ask for, infinite without a limit."""
    default_s: float = math.inf
    """What a job asks for that names none."""
    is_default: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmConf:
    """Partitions, units of each pool, and the options by name in lower case."""

    partitions: tuple[Partition, ...]
    units: tuple[int, ...]
    options: Mapping[str, str]

    def number(self, name: str) -> float:
        """An option that is a number; 0 where it is not set. Raises InputError: it is none."""
        return float(_count(name, self.options.get(name.lower(), "0")))

    def seconds(self, name: str, default_s: float) -> float:
        """An option that is a time. Raises InputError: it is none."""
        text = self.options.get(name.lower())
        return default_s if text is None else _time_s(name, text)


def read_slurm_conf(path: Path, unit: str) -> SlurmConf:
    """Read the partitions, counted in ``gpus``, ``nodes`` or ``cores``. Raises InputError: none of these."""
    try:
        text = read_plain(path, most_bytes=_MOST_BYTES).decode()
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {str(path)!r}: {why_unreadable(error)}.") from error
    options: dict[str, str] = {}
    nodes: dict[str, int] = {}
    rows: list[dict[str, str]] = []
    defaults: dict[str, dict[str, str]] = {"nodename": {}, "partitionname": {}}
    for number, pairs in _lines(text, path):
        kind = next(iter(pairs))
        if kind not in defaults:
            options |= pairs
        elif pairs[kind] == "DEFAULT":
            defaults[kind] |= pairs
        elif kind == "partitionname":
            rows.append({**defaults[kind], **pairs})
        else:
            hosts = _hosts(pairs[kind], f"{str(path)!r} line {number}")
            nodes |= dict.fromkeys(hosts, _units({**defaults[kind], **pairs}, unit))
    return _with_pools(path, rows, nodes, options, unit)


def _lines(text: str, path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    for number, line in enumerate(text.replace("\\\n", " ").splitlines(), start=1):
        content = line.partition("#")[0].strip()
        if content.lower().startswith("include"):
            raise InputError(
                f"{str(path)!r} line {number}: included files are not read: put them in its place."
            )
        if content and (not _PAIR.match(content) or _PAIR.sub("", content).strip()):
            raise InputError(
                f"{str(path)!r} line {number}: {content[:60]!r} is not Name=value, as slurm.conf has."
            )
        if content:
            yield number, {name.lower(): value.strip('"') for name, value in _PAIR.findall(content)}


def _units(node: Mapping[str, str], unit: str) -> int:
    if unit == "nodes":
        return 1
    if unit == "gpus":
        return sum(int(count or 1) for count in _GPUS.findall(node.get("gres", "")))
    parts = ("boards", "sockets", "corespersocket", "threadspercore")
    given = ("cpus",) if "cpus" in node else parts
    return math.prod(_count(name, node.get(name, "1")) for name in given)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 9


def _count(name: str, text: str) -> int:
    if not _is_number(text):
        raise InputError(f"slurm.conf: {name}={text[:40]} is no whole number.")
    return int(text)


def _hosts(text: str, where: str) -> list[str]:
    """Names of ``"a[01-12,20],b"``."""
    names: list[str] = []
    for part in _HOST.findall(text):
        head, bracket, rest = part.partition("[")
        inside, _, tail = rest.partition("]")
        for piece in inside.split(",") if bracket else [""]:
            first, _, last = piece.partition("-")
            if bracket and not (_is_number(first) and _is_number(last or first)):
                raise InputError(f"{where}: {text[:60]!r} is no list of nodes such as node[01-12].")
            if bracket and int(last or first) - int(first) + len(names) > MAX_MACHINES:
                raise InputError(f"{where}: more than {MAX_MACHINES:,} nodes.")
            numbers = range(int(first), int(last or first) + 1) if bracket else ("",)
            heads = (f"{head}{one:0{len(first)}d}" if isinstance(one, int) else head for one in numbers)
            names += [
                name for one in heads for name in (_hosts(one + tail, where) if "[" in tail else [one + tail])
            ]
    return names


def _with_pools(
    path: Path, rows: list[dict[str, str]], nodes: Mapping[str, int], options: Mapping[str, str], unit: str
) -> SlurmConf:
    named: list[set[str]] = []
    for row in rows:
        text, partition = row.get("nodes", ""), row["partitionname"]
        hosts = {*nodes} if text == "ALL" else {*_hosts(text, f"{str(path)!r} partition {partition}")}
        if unknown := sorted(hosts - set(nodes)):
            raise InputError(
                f"{str(path)!r}: partition {partition} has node {unknown[0]!r}, which no line defines."
            )
        named.append(hosts)
    pools: list[set[str]] = []
    for hosts in named:
        shared = [pool for pool in pools if pool & hosts]
        pools = [pool for pool in pools if not pool & hosts] + [hosts.union(*shared)]
    partitions = tuple(
        _partition(
            row, sum(nodes[host] for host in hosts), next(i for i, pool in enumerate(pools) if hosts <= pool)
        )
        for row, hosts in zip(rows, named, strict=True)
    )
    if not any(partition.units for partition in partitions):
        raise InputError(f"{str(path)!r} has no partition with {unit}: the log counts {unit}.")
    units = tuple(sum(nodes[host] for host in pool) for pool in pools)
    if max(units) > _MOST_UNITS:
        raise InputError(f"{str(path)!r} has more than {_MOST_UNITS:,} {unit}.")
    return SlurmConf(partitions=partitions, units=units, options=options)


def _partition(row: Mapping[str, str], units: int, pool: int) -> Partition:
    max_s = _time_s("MaxTime", row.get("maxtime", "UNLIMITED"))
    return Partition(
        name=row["partitionname"],
        units=units,
        pool=pool,
        tier=_count("PriorityTier", row.get("prioritytier", "1")),
        job_factor=_count("PriorityJobFactor", row.get("priorityjobfactor", "1")),
        max_s=max_s,
        default_s=min(max_s, _time_s("DefaultTime", row.get("defaulttime", "UNLIMITED"))),
        is_default=row.get("default", "NO").upper() == "YES",
    )


def _time_s(name: str, text: str) -> float:
    """Seconds of ``"60"`` (minutes), ``"30:00"``, ``"12:00:00"``, ``"7-0"`` (days, hours), ``"1-12:30"``."""
    if text.upper() in _NO_LIMIT:
        return math.inf
    days, dash, rest = text.rpartition("-")
    parts = rest.split(":")
    if not all(_is_number(part) for part in (*parts, days or "0")) or len(parts) > 3:
        raise InputError(f"slurm.conf: {name}={text[:40]} is no time such as 60, 12:00:00 or 7-0.")
    first = HOUR_S if dash or len(parts) == 3 else MINUTE_S
    units_s = [first, first / 60, first / 3600]
    return int(days or 0) * DAY_S + sum(
        int(part) * unit_s for part, unit_s in zip(parts, units_s, strict=False)
    )
