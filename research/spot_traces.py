"""The open availability traces of spot machines (2020, 2022 and 2023) as stretches.

Traces of machines without a GPU are left out, and requests that never started: nobody can tell whether they
lacked a machine, a quota or a machine type that is on sale.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from pathlib import Path

from advisor.core.units import HOUR_S
from recommender.outcome.spot_history import Stretch, Watched, joined, watched

Row = Mapping[str, str]
_EVENTS = {"created": True, "running": True, "not_running": False, "creation_failed": False}
_WITHOUT_GPU = ("intel", "c3-88", "intel_64")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One machine, or a gang of them, in one zone."""

    collection: str
    """Who watched it when; traces of one collection resemble each other."""
    place: str
    """Zone, GPU and year: where sizes can be compared."""
    num_gpus: int
    """Of all machines asked for at once."""
    sums: Watched
    stretches: tuple[Stretch, ...] = ()
    """In turn up and down; empty where only sums are known."""

    def half(self, which: int) -> Trace:
        """The first (0) or second (1) half of its time, from hour 0."""
        start_h, end_h = self.stretches[0].start_h, self.stretches[-1].end_h
        middle_h = (start_h + end_h) / 2
        low, high = (start_h, middle_h) if which == 0 else (middle_h, end_h)
        cut = tuple(
            Stretch(
                start_h=max(s.start_h, low) - low,
                hours=min(s.end_h, high) - max(s.start_h, low),
                is_up=s.is_up,
            )
            for s in self.stretches
            if s.end_h > low and s.start_h < high
        )
        return _trace(self.collection, self.place, self.num_gpus, cut)


def read_traces(shared: Path) -> list[Trace]:
    """All traces: those with stretches first, then those of which only sums were published."""
    skypilot = list(_rows(shared / "traces" / "spot_skypilot_2023.csv.gz"))
    stanford = list(_rows(shared / "traces" / "spot_availability_2020_stanford.csv.gz"))
    traces = [*_probes(skypilot), *_persistent(stanford)]
    with (shared / "prices" / "spot_availability_traces_summary.csv").open(encoding="utf-8") as file:
        # The summary also sums up the probes that are read above.
        probed = {f"aws-{_american(row['collection_start'])}" for row in skypilot}
        summed = [row for row in csv.DictReader(file) if row["collection"] not in probed]
    return [*traces, *(_of_sums(row) for row in summed if row["accelerator"] not in _WITHOUT_GPU)]


def _rows(path: Path) -> Iterator[Row]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from csv.DictReader(file)


def _american(day: str) -> str:
    year, month, of_month = day.split("-")
    return f"{month}-{of_month}-{year}"


def _trace(collection: str, place: str, num_gpus: int, stretches: Iterable[Stretch]) -> Trace:
    kept = tuple(stretches)
    return Trace(collection=collection, place=place, num_gpus=num_gpus, sums=watched(kept), stretches=kept)


def _grouped(
    rows: Iterable[Row], key: Callable[[Row], tuple[str, ...]]
) -> Iterator[tuple[tuple[str, ...], list[Row]]]:
    for place, group in groupby(sorted(rows, key=key), key):
        yield place, list(group)


def _probes(rows: Iterable[Row]) -> Iterator[Trace]:
    """SkyPilot: one row a run of equal probes."""

    def key(row: Row) -> tuple[str, ...]:
        return row["cloud"], row["collection_start"], row["zone"], row["device"], row["devices_per_node"]

    for (cloud, start, zone, device, num_gpus), group in _grouped(rows, key):
        if device in _WITHOUT_GPU:
            continue
        gap_h = int(group[0]["gap_seconds"]) / HOUR_S
        runs = sorted((int(r["tick"]), int(r["run_ticks"]), int(r["nodes_up"])) for r in group)
        states = [(tick * gap_h, up >= 1) for tick, _, up in runs]
        end_h = (runs[-1][0] + runs[-1][1]) * gap_h
        (stretches,) = joined([*states, (end_h, None)])
        yield _trace(f"{cloud}-{start}", f"{zone} {device} {start[:4]}", int(num_gpus), stretches)


def _persistent(rows: Iterable[Row]) -> Iterator[Trace]:
    """Stanford: requests that are made anew after each loss; AWS then gives the machine another name."""
    created = {(r["log"], r["instance"]): r for r in rows if r["event"] == "created"}

    def key(row: Row) -> tuple[str, ...]:
        made = created[row["log"], row["instance"]]
        request = row["instance"] if row["cloud"] == "gcp" else ""
        return row["cloud"], row["log"], made["zone"], made["gpu_type"], made["gpus"], request

    known = [r for r in rows if (r["log"], r["instance"]) in created and r["event"] in _EVENTS]
    for (cloud, log, zone, device, num_gpus, _), group in _grouped(known, key):
        states = [
            (_hour(r["time_utc"]), _EVENTS[r["event"]]) for r in sorted(group, key=lambda r: r["time_utc"])
        ]
        (stretches,) = joined([*states[:-1], (states[-1][0], None)])
        place = f"{zone} {device.removeprefix('nvidia-tesla-')} {group[0]['time_utc'][:4]}"
        yield _trace(f"{cloud}-{log}", place, int(num_gpus), stretches)


def _hour(time: str) -> float:
    return datetime.fromisoformat(time).timestamp() / HOUR_S


def _of_sums(row: Row) -> Trace:
    device, _, count = row["accelerator"].partition("_")
    hours, share_up, losses = float(row["trace_hours"]), float(row["fraction_up"]), int(row["losses"])
    sums = Watched(
        up_h=hours * share_up, down_h=hours * (1 - share_up), num_losses=losses, num_outages=losses
    )
    num_gpus = int(count) * int(row["nodes"])
    return Trace(
        collection=row["collection"],
        place=f"{row['zone']} {device} {row['collection'][-4:]}",
        num_gpus=num_gpus,
        sums=sums,
    )
