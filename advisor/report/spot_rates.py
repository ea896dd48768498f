"""Rates of spot machines as documents, and as JSON (docs/json.md)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from advisor.core.units import HOUR_S
from advisor.core.values import Interval
from advisor.report.cells import COUNT, FOUR_DIGITS, INTERVAL, SHARE, SHORT_DURATION, Cell, Kind
from advisor.report.document import Column, Document, Lines, Row, Table
from advisor.service.spot_history import FittedMachine

ANY = "any"
_RATES = Kind("interval of rates", "{:.2g}".format, is_right=False)
COLUMNS = (
    Column("Machine"),
    Column("Watched", SHORT_DURATION),
    Column("Up", SHARE),
    Column("Preemptions", COUNT),
    Column("Per hour, logged", FOUR_DIGITS),
    Column("Per hour, next (p10 .. p90)", _RATES),
    Column("Away, next (p10 .. p90)", INTERVAL),
    Column("First wait (p90)", SHORT_DURATION),
)
_NOTE = (
    "Next: what recommend draws from, the log corrected by machines of its class in open traces. The setting"
    " spot.history takes the log, or the file that --out writes."
)
_Z90 = 1.2815515655446004


def fit_document(machines: Sequence[FittedMachine]) -> Document:
    """A row for each machine of the log."""
    table = Table(columns=COLUMNS, rows=tuple(Row(_cells(one)) for one in machines))
    return Document(facts={"machines": list(map(_facts, machines))}, blocks=(table, Lines((_NOTE,))))


def _cells(one: FittedMachine) -> tuple[Cell, ...]:
    seen = one.seen
    return (
        one.machine or ANY,
        (seen.up_h + seen.down_h) * HOUR_S,
        1 - seen.share_down,
        seen.num_losses,
        seen.num_losses / seen.up_h if seen.up_h else None,
        _around(one.odds.preemptions_per_h, one.odds.sigma_rate),
        _around(one.odds.outage_h * HOUR_S, one.odds.sigma_outage),
        one.wait_s,
    )


def _around(median: float, sigma: float) -> Interval:
    spread = math.exp(_Z90 * sigma)
    return Interval(p10=median / spread, p50=median, p90=median * spread)


def _facts(one: FittedMachine) -> Mapping[str, object]:
    return {
        "machine": one.machine or None,
        "gpu": one.gpu,
        "num_gpus": one.num_gpus,
        **asdict(one.seen),
        "preemptions_per_h": asdict(_around(one.odds.preemptions_per_h, one.odds.sigma_rate)),
        "reacquire_s": asdict(_around(one.odds.outage_h * HOUR_S, one.odds.sigma_outage)),
        "wait_s": asdict(one.wait_s),
        "assumed_preemptions_per_h": one.assumed.preemptions_per_h,
    }
