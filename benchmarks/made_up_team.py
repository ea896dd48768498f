"""A made-up team and its year: recommendations, runs, a price history and bills, all from one seed.

python -m benchmarks.made_up_team FOLDER writes them there with settings and a policy, and prints the command
that reports on them; with --measure it runs that command and prints its CPU seconds.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import event

from advisor.core.values import CostKind, Interval, Market, Offer, PricePoint, Quantiles, RunStatus
from advisor.store.database import open_store
from advisor.store.handle import Store
from advisor.store.ledger import Alternative, LedgerEntry, Run, record_recommendation, record_run
from advisor.store.pulls import save_part
from benchmarks.made_up_bills import write_focus, write_gcp_export

SEED = 20261122
DAYS, NUM_RUNS = 365, 2000
HOUR_S = 3600.0
# Of a standard normal distribution: nine of ten are below.
Z90 = 1.2816
SIGMA = 0.12
"""Of the logarithm of actual to predicted time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What is rented, and its price when the year begins."""

    provider: str
    instance_type: str
    gpu: str
    region: str
    zones: tuple[str, ...]
    usd_per_h: float
    speed: float

    @property
    def spot_usd_per_h(self) -> float:
        """About what spot costs."""
        return 0.4 * self.usd_per_h


@dataclass(frozen=True, slots=True, kw_only=True)
class Habit:
    """A script that a project runs: how often, how long on the slowest machine, and where."""

    project: str
    script: str
    every_days: float
    hours: float
    machine: int
    market: Market
    deadline_h: float | None = None


MACHINES = (
    Machine(provider="aws", instance_type="g5.xlarge", gpu="A10G", region="us-east-1",
            zones=("use1-az1", "use1-az2"), usd_per_h=1.006, speed=1.0),
    Machine(provider="aws", instance_type="g6.xlarge", gpu="L4", region="us-west-2",
            zones=("usw2-az1", "usw2-az2"), usd_per_h=0.8048, speed=0.95),
    Machine(provider="aws", instance_type="p5.4xlarge", gpu="H100-SXM-80GB", region="us-east-1",
            zones=("use1-az4",), usd_per_h=6.88, speed=7.0),
    Machine(provider="gcp", instance_type="a2-highgpu-1g", gpu="A100-SXM-40GB", region="us-central1",
            zones=("us-central1-a", "us-central1-b"), usd_per_h=3.673, speed=3.2),
)  # fmt: skip
HABITS = (
    Habit(project="resnet", script="train.py", every_days=0.55, hours=5, machine=0, market=Market.ON_DEMAND),
    Habit(project="resnet", script="sweep.py", every_days=1, hours=2, machine=0, market=Market.SPOT),
    Habit(project="detr", script="weekly.py", every_days=7, hours=40, machine=2, market=Market.ON_DEMAND,
          deadline_h=96),
    Habit(project="detr", script="ablate.py", every_days=1.2, hours=12, machine=3, market=Market.SPOT),
    Habit(project="bert", script="finetune.py", every_days=0.6, hours=3, machine=1, market=Market.ON_DEMAND),
    Habit(project="bert", script="pretrain.py", every_days=5, hours=60, machine=3, market=Market.ON_DEMAND),
)  # fmt: skip
SETTINGS = """\
store:
  url: sqlite:///advisor.db
prices:
  offline: true
policy:
  files: [team.yaml]
report:
  teams: {vision: [resnet, detr], language: [bert]}
  bills: [aws.csv, gcp.jsonl]
"""
POLICY = """\
version: 1
name: The made-up team
layer: organisation
limits:
  usd_per_month: 5000
  usd_per_job: 80
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Year:
    """What the team did."""

    entries: tuple[LedgerEntry, ...]
    runs: tuple[Run, ...]
    history: tuple[PricePoint, ...]


def make_year(end: datetime, num_runs: int = NUM_RUNS, seed: int = SEED) -> Year:
    """A year that ends at a moment; the same seed gives the same."""
    source = random.Random(seed)  # noqa: S311
    begin = end - timedelta(days=DAYS)
    history = tuple(point for machine in MACHINES for point in _history(machine, begin, end, source))
    per_year = sum(DAYS / habit.every_days for habit in HABITS)
    entries: list[LedgerEntry] = []
    runs: list[Run] = []
    for habit in HABITS:
        num = round(num_runs * DAYS / habit.every_days / per_year)
        for number in range(num):
            jitter = source.uniform(0, 0.3) * habit.every_days
            at = begin + timedelta(days=(number + 0.5) * DAYS / num + jitter - 0.15 * habit.every_days)
            _add(habit, f"{habit.project}-{habit.script}-{number:05}", at, entries, runs, source)
    return Year(
        entries=tuple(entries), runs=tuple(sorted(runs, key=lambda run: run.started_at)), history=history
    )


def _history(machine: Machine, begin: datetime, end: datetime, source: random.Random) -> Iterator[PricePoint]:
    """On-demand falls once; spot wanders twice a day in each zone."""

    def point(at: datetime, usd_per_h: float, zone: str | None, market: Market) -> PricePoint:
        return PricePoint(
            provider=machine.provider, instance_type=machine.instance_type, region=machine.region, zone=zone,
            market=market, usd_per_h=round(usd_per_h, 4), observed_at=at,
        )  # fmt: skip

    yield point(begin - timedelta(days=3), machine.usd_per_h, None, Market.ON_DEMAND)
    yield point(begin + timedelta(days=200), 0.95 * machine.usd_per_h, None, Market.ON_DEMAND)
    for zone in machine.zones:
        usd_per_h, at = machine.spot_usd_per_h, begin
        while at < end:
            usd_per_h = min(max(usd_per_h * source.lognormvariate(0, 0.03), 0.25 * machine.usd_per_h),
                            0.7 * machine.usd_per_h)  # fmt: skip
            yield point(at, usd_per_h, zone, Market.SPOT)
            at += timedelta(hours=12)


def _add(
    habit: Habit, name: str, at: datetime, entries: list[LedgerEntry], runs: list[Run], source: random.Random
) -> None:
    """One run, and two times of three the recommendation that it follows."""
    machine = MACHINES[habit.machine]
    spot = habit.market is Market.SPOT
    usd_per_h = machine.spot_usd_per_h if spot else machine.usd_per_h
    train_s = habit.hours * HOUR_S / machine.speed * source.uniform(0.9, 1.1)
    is_advised = source.random() < 2 / 3
    if is_advised:
        entries.append(_entry(habit, f"entry-{name}", at - timedelta(hours=1), train_s, usd_per_h))
    kind = source.choices(
        [RunStatus.FINISHED, RunStatus.FAILED, RunStatus.INTERRUPTED, RunStatus.LOST], [90, 5, 4, 1]
    )[0]
    share = 1.0 if kind is RunStatus.FINISHED else source.uniform(0.05, 0.9)
    duration_s = round(train_s * source.lognormvariate(0, SIGMA) * share, 3)
    is_known = source.random() > 0.02
    runs.append(
        Run(
            id=f"run-{name}",
            recommendation_id=f"entry-{name}" if is_advised else None,
            project=habit.project,
            script=habit.script,
            provider=machine.provider,
            gpu=machine.gpu,
            num_gpus=1,
            market=habit.market,
            instance_type=machine.instance_type,
            region=machine.region,
            zone=machine.zones[0],
            started_at=at,
            duration_s=duration_s,
            cost_usd=round(duration_s / HOUR_S * usd_per_h, 6) if is_known else None,
            cost_kind=CostKind.ESTIMATED if is_known else None,
            status=kind,
            exit_code={RunStatus.FINISHED: 0, RunStatus.FAILED: 1, RunStatus.INTERRUPTED: -15}.get(kind),
        )
    )


def _entry(habit: Habit, entry_id: str, at: datetime, train_s: float, usd_per_h: float) -> LedgerEntry:
    machine = MACHINES[habit.machine]
    spread = 2.718281828 ** (Z90 * SIGMA)
    hours = train_s / HOUR_S
    return LedgerEntry(
        id=entry_id,
        at=at,
        project=habit.project,
        script=habit.script,
        plan_id=f"{machine.provider}/{machine.instance_type}/{machine.zones[0]}/{habit.market}",
        provider=machine.provider,
        gpu=machine.gpu,
        num_gpus=1,
        market=habit.market,
        time_s=Quantiles(p50=train_s, p90=train_s * spread),
        cost_usd=Quantiles(p50=hours * usd_per_h, p90=hours * usd_per_h * spread),
        instance_type=machine.instance_type,
        region=machine.region,
        command=f"advisor recommend {habit.script} --iterations 10000",
        deadline_s=None if habit.deadline_h is None else habit.deadline_h * HOUR_S,
        usd_per_h=usd_per_h,
        num_iterations=10_000,
        iteration_s=Interval(
            p10=train_s / 10_000 / spread, p50=train_s / 10_000, p90=train_s / 10_000 * spread
        ),
        alternatives=tuple(
            Alternative(
                gpu=other.gpu,
                num_gpus=1,
                iteration_p50_s=train_s / 10_000 * machine.speed / other.speed,
                train_p50_s=train_s * machine.speed / other.speed,
                train_p90_s=train_s * machine.speed / other.speed * spread,
            )
            for other in MACHINES
        ),
    )


def write_team(folder: Path, end: datetime, num_runs: int = NUM_RUNS, seed: int = SEED) -> Year:
    """Everything of a year as files of a folder: database, settings (of the user), policy and bills."""
    year = make_year(end, num_runs, seed)
    (folder / ".config/advisor").mkdir(parents=True, exist_ok=True)
    settings = SETTINGS
    for name in ("advisor.db", "team.yaml", "aws.csv", "gcp.jsonl"):
        settings = settings.replace(name, str(folder / name))
    (folder / ".config/advisor/config.yaml").write_text(settings)
    (folder / "team.yaml").write_text(POLICY)
    with open_store(f"sqlite:///{folder / 'advisor.db'}") as store:
        _write_ledger(store, year)
        _write_prices(store, year, end)
    source = random.Random(seed)  # noqa: S311
    write_focus(folder / "aws.csv", [run for run in year.runs if run.provider == "aws"], source)
    write_gcp_export(folder / "gcp.jsonl", [run for run in year.runs if run.provider == "gcp"], source)
    return year


def _write_ledger(store: Store, year: Year) -> None:
    # Thousands of small transactions: nobody needs a made-up year to survive a power cut.
    store.engine.dispose()
    event.listen(store.engine, "connect", lambda link, _: link.execute("PRAGMA synchronous = OFF"))
    for entry in year.entries:
        record_recommendation(store, entry)
    for run in year.runs:
        record_run(store, run)


def _write_prices(store: Store, year: Year, end: datetime) -> None:
    for machine in MACHINES:
        points = [
            p
            for p in year.history
            if (p.provider, p.instance_type) == (machine.provider, machine.instance_type)
        ]
        newest = {(p.zone, p.market): p for p in points if p.observed_at <= end}
        offers = [_offer(machine, point, end) for point in newest.values()]
        save_part(
            store, machine.provider, f"{machine.region} {machine.instance_type}", offers, points, (), end
        )


def _offer(machine: Machine, point: PricePoint, end: datetime) -> Offer:
    return Offer(
        provider=machine.provider,
        instance_type=machine.instance_type,
        region=machine.region,
        zone=point.zone,
        gpu=machine.gpu,
        num_gpus=1,
        market=point.market,
        list_usd_per_h=point.usd_per_h,
        retrieved_at=end,
        source=machine.provider,
    )


def _environ(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ADVISOR_")}
    home = {"HOME": f"{folder}", "XDG_CONFIG_HOME": f"{folder / '.config'}", "XDG_DATA_HOME": f"{folder}"}
    return kept | home


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def main() -> None:
    """Write a team, and tell how to report on it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=NUM_RUNS)
    parser.add_argument("--end", type=_moment, default=datetime.now(UTC).replace(microsecond=0))
    parser.add_argument("--measure", action="store_true", help="run the report and print its CPU seconds")
    given = parser.parse_args()
    folder = given.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    year = write_team(folder, given.end, given.runs)
    print(f"{len(year.runs):,} runs, {len(year.entries):,} recommendations, {len(year.history):,} prices")
    print(f"XDG_CONFIG_HOME={folder / '.config'} advisor report --since 365d")
    if given.measure:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "advisor", "report", "--since", "365d"]
        subprocess.run(command, env=_environ(folder), cwd=folder, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"{after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime:.2f} CPU seconds")


if __name__ == "__main__":
    main()
