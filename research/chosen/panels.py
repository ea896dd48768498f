"""Recorded prices -> panels: what each machine cost in each place on each date of a record."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from advisor.pricing.instance_types import load_instances

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
# Versions of a weekly record are a week apart, or two where one is missing.
TOLERANCE_DAYS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Prices by machine and place (rows) and date (columns)."""

    provider: str
    days: Indices
    """Of the dates, as ordinals in ascending order [dates]."""
    machines: tuple[tuple[str, str], ...]
    """Instance type and place of each row; rows of one type compete with each other."""
    regions: tuple[str, ...]
    """Of each row."""
    gpus: tuple[str, ...]
    """Of each row."""
    spot: Array
    """USD per hour [rows, dates], NaN where none is recorded."""
    on_demand: Array
    """The same."""

    def before(self, day: int) -> Panel:
        """The panel as it was known on the eve of a day."""
        end = int(np.searchsorted(self.days, day))
        return replace(self, days=self.days[:end], spot=self.spot[:, :end], on_demand=self.on_demand[:, :end])

    def rows(self, kept: Sequence[bool]) -> Panel:
        """Some of its machines."""
        chosen = np.flatnonzero(kept)
        return replace(
            self,
            machines=tuple(self.machines[row] for row in chosen),
            regions=tuple(self.regions[row] for row in chosen),
            gpus=tuple(self.gpus[row] for row in chosen),
            spot=self.spot[chosen],
            on_demand=self.on_demand[chosen],
        )

    def without_extreme(self, *, dearest: bool) -> Panel:
        """Without the region of each machine that is dearest, or cheapest, at each date on its own."""
        spot = self.spot.copy()
        for column in range(spot.shape[1]):
            signed = -spot[:, column] if dearest else spot[:, column]
            spot[cheapest(signed, self.machines), column] = np.nan
        return replace(self, spot=spot)

    def pairs(self, age_days: int) -> Iterator[tuple[int, int]]:
        """Columns of a quote and of what was true so many days later."""
        for now, day in enumerate(self.days.tolist()):
            then = int(np.abs(self.days - (day - age_days)).argmin())
            if abs(day - age_days - int(self.days[then])) <= TOLERANCE_DAYS and (then < now or not age_days):
                yield then, now


def cheapest(prices: Array, machines: Iterable[tuple[str, str]]) -> Indices:
    """The row of the cheapest place of each machine that has a price at all; NaN is no price."""
    best: dict[str, tuple[float, int]] = {}
    for row, ((instance_type, _), usd) in enumerate(zip(machines, prices.tolist(), strict=True)):
        if usd < best.get(instance_type, (math.inf,))[0]:  # which NaN never is
            best[instance_type] = usd, row
    return np.array([row for _, row in best.values()], dtype=np.int64)


def gcp_weekly(shared: Path) -> Panel:
    """The weekly record of GCP's price list, 2022 to 2026."""
    rows = read_rows(shared / "prices" / "gcp_price_history.csv")
    known = [row for row in rows if ("gcp", row["machine_type"]) in load_instances()]
    days = _days({row[end] for row in rows for end in ("first_seen", "last_seen")})
    machines = sorted({(row["machine_type"], row["region"]) for row in known})
    place = {machine: i for i, machine in enumerate(machines)}
    spot, on_demand = np.full((2, len(machines), len(days)), np.nan)
    for row in known:
        first, last = (_ordinal(row[end]) for end in ("first_seen", "last_seen"))
        columns = slice(int(np.searchsorted(days, first)), int(np.searchsorted(days, last)) + 1)
        i = place[row["machine_type"], row["region"]]
        spot[i, columns] = float(row["spot_usd_per_hour"] or "nan")
        on_demand[i, columns] = float(row["ondemand_usd_per_hour"])
    return _panel("gcp", days, machines, spot, on_demand)


def aws_winter(shared: Path) -> Panel:
    """Spot prices of AWS by zone in the winter of 2019, twice a week, beside the on-demand prices of today.

    On-demand prices of these machines have not changed since.
    """
    listed = {
        (row["instance_type"], row["region"]): float(row["usd_per_hour"])
        for row in read_rows(shared / "prices" / "aws_ondemand.csv")
    }
    changes: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for row in read_rows(shared / "prices" / "aws_spot.csv"):
        key = row["instance_type"], row["availability_zone"]
        if row["timestamp"] < "2021" and (key[0], key[1][:-1]) in listed:
            changes.setdefault(key, []).append((_ordinal(row["timestamp"][:10]), float(row["usd_per_hour"])))
    first, last = (f(day for points in changes.values() for day, _ in points) for f in (min, max))
    days = np.arange(first + 7, last + 1, 4)
    machines = sorted(changes)
    spot = np.array([_in_force(sorted(changes[machine]), days) for machine in machines])
    on_demand = np.array([[listed[name, zone[:-1]]] * len(days) for name, zone in machines])
    return _panel("aws", days, machines, spot, on_demand, [zone[:-1] for _, zone in machines])


def aws_zones(shared: Path) -> Panel:
    """One snapshot of AWS's spot prices, zone by zone."""
    rows = [
        row for row in read_rows(shared / "prices" / "aws_spot_snapshot_azid.csv") if row["spot_usd_per_hour"]
    ]
    day = _ordinal(rows[0]["as_of_window"].partition("/")[0])
    # Beside the zone, since a region's quotes are as many.
    machines = [(row["instance_type"], row["availability_zone_id"]) for row in rows]
    spot, on_demand = (
        np.array([[float(row[column] or "nan")] for row in rows])
        for column in ("spot_usd_per_hour", "ondemand_usd_per_hour")
    )
    return _panel("aws", np.array([day]), machines, spot, on_demand, [row["region"] for row in rows])


def _panel(
    provider: str,
    days: Indices,
    machines: Sequence[tuple[str, str]],
    spot: Array,
    on_demand: Array,
    regions: Sequence[str] = (),
) -> Panel:
    known = load_instances()
    names = {name: known[provider, name].gpu for name, _ in machines if (provider, name) in known}
    return Panel(
        provider=provider,
        days=days,
        machines=tuple(machines),
        regions=tuple(regions or (place for _, place in machines)),
        # What the catalog lacks is a family of its own, by the first part of its name.
        gpus=tuple(names.get(name, name.partition(".")[0]) for name, _ in machines),
        spot=spot,
        on_demand=on_demand,
    )


def _in_force(changes: list[tuple[int, float]], days: Indices) -> Array:
    last = np.searchsorted([day for day, _ in changes], days, side="right") - 1
    usd = np.array([usd for _, usd in changes])
    return np.where(last >= 0, usd[last], np.nan)


def read_rows(path: Path) -> list[Mapping[str, str]]:
    """All rows of a CSV file with a header."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _days(texts: Iterable[str]) -> Indices:
    return np.array(sorted(map(_ordinal, texts)), dtype=np.int64)


def _ordinal(text: str) -> int:
    return date.fromisoformat(text).toordinal()


def day_text(ordinal: int) -> str:
    """``"2026-07-16"``."""
    return str(date(1, 1, 1) + timedelta(days=ordinal - 1))
