"""Documents with every kind of chart, made up for tests of pages."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from advisor.core.values import Interval, Market, PricePoint, Recommendation
from advisor.pricing.price_history import series_of
from advisor.report.document import (
    DAY,
    SHORT_DURATION,
    TEXT,
    USD,
    Axis,
    Chart,
    Column,
    Detail,
    Document,
    Fact,
    Row,
    Section,
    Series,
    Sum,
    Table,
)
from advisor.report.estimates import estimates_document
from advisor.report.prices import history_document
from advisor.report.recommendation import recommendation_document
from tests.builders import HOUR_S, make_estimate, make_trace
from tests.findings import texts
from tests.recommendations import many_options
from tests.recommending import make_script

# Markup, the end of a script, a quote for each language, an escape sequence and an override of direction.
EVIL = "<script>window.pwned=1</script></script><img src=x onerror=window.pwned=1>'\"`]}{{7*7}}\x1b[2J\u202e"
UNTIL = datetime(2026, 11, 21, tzinfo=UTC)
DAY_S = 86400.0


def answer(**changes: object) -> Recommendation:
    """60 options, seven of them on the frontier."""
    facts: dict[str, object] = {
        "warnings": texts("prices are old"),
        "summary": texts("Rent 8 x L40S", "It costs about $13.00", "What could go wrong: nothing"),
    }
    return replace(many_options(60), **(facts | changes))


def answer_page(script: str = "train.py") -> Document:
    """What ``recommend --html`` writes."""
    named = replace(answer(), script=make_script(script=script))
    return recommendation_document(named, top=15)


def history_page() -> Document:
    """Two machines, spot in three zones and on demand, over 60 days."""
    points = [_price(machine, None, 0, 2.0) for machine in ("g6.xlarge", "p5.4xlarge")]
    for machine, usd_per_h in (("g6.xlarge", 0.5), ("p5.4xlarge", 1.5)):
        for i, zone in enumerate("abc"):
            for day in range(0, 60, 5):
                price = usd_per_h * (1 + 0.1 * i + 0.2 * math.sin(day + i))
                points.append(_price(machine, f"us-east-1{zone}", day + i / 10, price))
    return history_document(series_of(points), UNTIL)


def _price(machine: str, zone: str | None, day: float, usd_per_h: float) -> PricePoint:
    return PricePoint(
        provider="aws", instance_type=machine, region="us-east-1", zone=zone, source="aws",
        market=Market.SPOT if zone else Market.ON_DEMAND, usd_per_h=usd_per_h,
        observed_at=UNTIL - timedelta(days=60 - day),
    )  # fmt: skip


def estimates_page() -> Document:
    """Three GPUs, one of which is too small."""
    times = {"L4": 0.9, "T4": 1.8, "H100-SXM-80GB": 0.14}
    estimates = [
        make_estimate(gpu, iteration_s=Interval(p10=0.8 * s, p50=s, p90=1.5 * s)) for gpu, s in times.items()
    ]
    small = make_estimate("V100", iteration_s=Interval(p10=1.0, p50=1.1, p90=2.0), memory_limit_bytes=1)
    return estimates_document(make_trace(), [*estimates, small])


def burn_down(name: str = "spent") -> Chart:
    """Spend day by day, a budget, and a forecast with its band."""
    start, today, end = (UNTIL + timedelta(days=days) for days in (-20, 0, 10))
    spent = tuple(((start + timedelta(days=day)).timestamp(), 40.0 * day + 5) for day in range(20))
    last = spent[-1][1]
    edge = Detail(y_range=(last, last)), Detail(y_range=(last * 1.3, last * 1.9))
    return Chart(
        title="Spent against the budget",
        x=Axis(DAY),
        y=Axis(USD, title="Spent"),
        series=(Series(name, spent),),
        until=today.timestamp(),
        guides=(
            Series("budget", ((start.timestamp(), 1000.0), (end.timestamp(), 1000.0))),
            Series("forecast", ((today.timestamp(), last), (end.timestamp(), last * 1.5)), edge),
        ),
    )


def predicted_against_actual(num_runs: int = 40, name: str = "L4") -> Chart:
    """Runs of two GPUs, the predicted interval as an error bar, and the diagonal."""
    series = []
    for gpu in (name, "H100"):
        points = tuple(
            (HOUR_S * (1 + i), HOUR_S * (1 + i) * (1 + 0.2 * math.sin(i))) for i in range(num_runs // 2)
        )
        details = tuple(
            Detail(label=f"run {i} on {gpu}", x_range=(x * 0.8, x * 1.3)) for i, (x, _) in enumerate(points)
        )
        series.append(Series(gpu, points, details))
    ends = HOUR_S, HOUR_S * num_runs / 2
    return Chart(
        title="Predicted against actual time",
        x=Axis(SHORT_DURATION, title="Predicted"),
        y=Axis(SHORT_DURATION, title="Actual"),
        is_log=True,
        series=tuple(series),
        guides=(Series("as predicted", ((ends[0], ends[0]), (ends[1], ends[1]))),),
    )


def spend_by_week(name: str = "vision") -> Chart:
    """Two projects and a credit."""
    return Chart(
        title="Spend by week",
        x=Axis(TEXT, title="Week of"),
        y=Axis(USD, title="Billed"),
        bars=("2026-11-02", "2026-11-09", "2026-11-16"),
        series=(
            Series(name, ((0, 120.0), (1, 80.0), (2, 10.0))),
            Series("speech", ((0, 30.0), (2, 400.0))),
            Series("credits", ((1, -20.0),)),
        ),
    )


def team_page(name: str = "vision", *, num_runs: int = 40) -> Document:
    """The parts of a team's report, everything in it called ``name``."""
    table = Table(
        caption=f"Runs of {name}",
        columns=(Column("Run"), Column("Cost", USD), Column("Note")),
        rows=(
            Row((f"{name} 10", 9.5, name)),
            Row((f"{name} 9", 1000.0, name)),
            Row((f"{name} 100", None, name)),
            Row((f"{name} 1", 20.25, name)),
        ),
    )
    return Document(
        facts={},
        title=f"Cost of {name}",
        blocks=(
            Section(f"{name}: $620.00 were billed.", ()),
            burn_down(name),
            replace(spend_by_week(name), bars=(name, "second", "third")),
            predicted_against_actual(num_runs, name),
            table,
            Section(name, (name, Fact(name, name, name), Sum((Fact("a", "$1.00"), Fact("total", "$1.00"))))),
        ),
    )
