"""Verdicts as rows, as a page with its chart, and as JSON."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from itertools import product
from pathlib import Path

from advisor.core.files import write_atomically
from advisor.core.values import Market, Offer
from advisor.pricing.expected_prices import PriceModel
from research.chosen.derived import cross_validated, derived_prices
from research.chosen.fit import model_of
from research.chosen.judge import AGES_DAYS, Choice, Verdict, backtest, replay, verdict
from research.chosen.panels import Panel, aws_winter, aws_zones, day_text, gcp_weekly

PAGE, RESULTS, CHART = "prices.md", "prices.json", "prices.svg"
BEGIN, END = "<!-- written by research.chosen -->\n", "<!-- end -->\n"
_WINTER_AGES_DAYS = (30, 60)
_RUN_AGES_DAYS, _RUN_DAYS = (0, 30, 180), (7, 30, 90)
# From that day on GCP's spot prices rose everywhere. What was paid since stands beside what was paid before.
_RISE = date(2026, 1, 1).toordinal()
# A derived price below that share of on-demand is one that the rule of the minimum falls for.
_LOW_RATIO = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One row of the table."""

    record: str
    """What was replayed."""
    chosen: str
    """What was chosen among what."""
    age_days: int
    run_days: int = 0
    """Over which the price was paid; 0 for the price of one moment."""
    verdict: Verdict


def judge_all(shared: Path, *, every: int = 1) -> Iterator[Judged]:
    """Every row, in the order of the page.

    Args:
        shared: the folder of the records.
        every: judge every so many dates of the weekly record.
    """
    gcp, models = gcp_weekly(shared), dict[int, PriceModel]()
    for age in AGES_DAYS:
        choices = list(backtest(gcp, Market.SPOT, age, models, every=every))
        yield _judged("GCP spot", "all", age, choices)
        for by, name in (("machine", "place of a machine"), ("job", "machine for a job")):
            yield _judged("GCP spot", name, age, [choice for choice in choices if choice.by == by])
    yield from _without_extremes(gcp, models, every)
    for age, run_days in product(_RUN_AGES_DAYS, _RUN_DAYS):
        run = list(backtest(gcp, Market.SPOT, age, models, every=every, run_days=run_days))
        yield _judged("GCP spot", f"all, the mean over a run of {run_days} days", age, run, run_days=run_days)
    yield from _before_the_rise(gcp, models, every)
    yield from _gpus_left_out(gcp, every)
    for age in AGES_DAYS[1:]:
        late = list(backtest(gcp, Market.SPOT, age, models, every=every, lag=True))
        yield _judged("GCP spot, fit as old as the quotes", "all", age, late)
    for age in AGES_DAYS[1:]:
        choices = list(backtest(gcp, Market.ON_DEMAND, age, models, every=every))
        yield _judged("GCP on-demand", "all", age, choices)
    model, winter = model_of(gcp), aws_winter(shared)
    for age in _WINTER_AGES_DAYS:
        choices = [choice for choice in replay(winter, model, age) if choice.by == "machine"]
        yield _judged("AWS spot 2019-20, fit on GCP", "place of a machine", age, choices)
    yield from _derived(shared, model)


def _without_extremes(gcp: Panel, models: dict[int, PriceModel], every: int) -> Iterator[Judged]:
    """The same choices among fewer places, by the models of all of them."""
    for name, is_dearest in (("dearest", True), ("cheapest", False)):
        fewer = gcp.without_extreme(dearest=is_dearest)
        for age in AGES_DAYS[1:-1]:
            choices = list(backtest(fewer, Market.SPOT, age, models, every=every))
            yield _judged(f"GCP spot, without the {name} region", "all", age, choices)


def _before_the_rise(gcp: Panel, models: dict[int, PriceModel], every: int) -> Iterator[Judged]:
    """All places, and all but each machine's cheapest: paid before that day, and since."""
    fewer = gcp.without_extreme(dearest=False)
    panels = (("GCP spot", gcp), ("GCP spot, without the cheapest region", fewer))
    for (name, panel), age in product(panels, (90, 180)):
        choices = list(backtest(panel, Market.SPOT, age, models, every=every))
        for when, is_late in (("before", False), ("from", True)):
            part = [choice for choice in choices if (choice.day >= _RISE) == is_late]
            yield _judged(f"{name}, {when} {day_text(_RISE)}", "all", age, part)


def _gpus_left_out(gcp: Panel, every: int) -> Iterator[Judged]:
    """Places of each GPU's machines, by models of the other GPUs' machines alone."""
    models: dict[str, dict[int, PriceModel]] = {gpu: {} for gpu in sorted(set(gcp.gpus))}
    for place, is_dearest in (("", None), ("dearest", True), ("cheapest", False)):
        panel = gcp if is_dearest is None else gcp.without_extreme(dearest=is_dearest)
        for age in AGES_DAYS[1:-1]:
            choices = [
                choice
                for gpu, known in models.items()
                for choice in backtest(
                    panel.rows([name == gpu for name in gcp.gpus]), Market.SPOT, age, known, every=every,
                    learned_from=gcp.rows([name != gpu for name in gcp.gpus]),
                )
                if choice.by == "machine"
            ]  # fmt: skip
            name = f"GCP spot, each GPU left out{f', without the {place} region' if place else ''}"
            yield _judged(name, "place of a machine", age, choices)


def _derived(shared: Path, model: PriceModel) -> Iterator[Judged]:
    zones = aws_zones(shared)
    derived = derived_prices(shared, zones)
    for by in ("region", "gpu"):
        judged = list(cross_validated(derived, zones, model, by=by))
        record = f"AWS derived spot, each {'GPU' if by == 'gpu' else by} left out"
        age = round(judged[0][1].day - derived[0].offer.retrieved_at.toordinal())
        yield _judged(record, "any region", age, [choice for _, choice in judged])
        offers = _cheapest_offers([(one.offer, choice) for one, choice in judged])
        yield _judged(
            record, "cheapest region of a machine", age, [c for o, c in judged if o.offer in offers]
        )
        low = [
            pair for pair in judged if pair[0].offer.list_usd_per_h < _LOW_RATIO * pair[0].on_demand_usd_per_h
        ]
        yield _judged(record, f"derived below {_LOW_RATIO:g} of on-demand", age, [c for _, c in low])
        sold = [choice for one, choice in low if not one.is_at_floor]
        yield _judged(record, f"derived below {_LOW_RATIO:g}, above the floor", age, sold)


def _cheapest_offers(priced: Sequence[tuple[Offer, Choice]]) -> list[Offer]:
    """Of each machine the region of least expected price."""
    best: dict[str, tuple[float, str, Offer]] = {}
    for offer, choice in priced:
        one = choice.expected_usd_per_h, offer.region, offer
        if offer.instance_type not in best or one[:2] < best[offer.instance_type][:2]:
            best[offer.instance_type] = one
    return [offer for *_, offer in best.values()]


def _judged(
    record: str, chosen: str, age_days: int, choices: Sequence[Choice], *, run_days: int = 0
) -> Judged:
    judged = verdict(choices, age_days + run_days)
    return Judged(record=record, chosen=chosen, age_days=age_days, run_days=run_days, verdict=judged)


def table(rows: Sequence[Judged]) -> str:
    """Markdown: paid over p50, share within p90, and the rule of the minimum beside them."""
    lines = [
        "| record | chosen | days old | choices | paid / p50 | within p90 | minimum: paid / quoted (p90) |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        verdict = row.verdict
        lines.append(
            f"| {row.record} | {row.chosen} | {row.age_days} | {verdict.num_choices:,} |"
            f" {verdict.median:.3f} | {_coverage(verdict)} |"
            f" {verdict.quoted_median:.3f} ({verdict.quoted_p90:.2f}) |"
        )
    return "\n".join(lines) + "\n"


def _coverage(verdict: Verdict) -> str:
    se = verdict.coverage_se
    return f"{verdict.coverage:.1%}" if se is None else f"{100 * verdict.coverage:.1f} ± {100 * se:.1f}%"


def write_report(rows: Sequence[Judged], folder: Path) -> None:
    """The table in the page, the chart and the JSON.

    Raises:
        OSError: the folder is not writable.
        ValueError: the page lacks the marks between which the table stands.
    """
    page = (folder / PAGE).read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError(f"{PAGE} lacks {BEGIN!r} or {END!r}")
    text = f"{before}{BEGIN}\n{table(rows)}\n{END}{after}"
    write_atomically(folder / PAGE, text.encode())
    facts = [asdict(row) for row in rows]
    write_atomically(folder / RESULTS, (json.dumps(facts, indent=1) + "\n").encode())
    write_atomically(folder / CHART, chart([row for row in rows if row.record == "GCP spot"]))


def chart(rows: Sequence[Judged]) -> bytes:
    """Paid over expected, and over quoted, by age: what the rule of the minimum hides. Needs matplotlib."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    shown = [row for row in rows if row.chosen == "all"]
    ages = [row.age_days for row in shown]
    with mpl.rc_context({"svg.hashsalt": "advisor", "svg.fonttype": "none"}):
        figure = Figure(figsize=(7.0, 4.5), layout="constrained")
        axes = figure.subplots()
        axes.axhspan(0.97, 1.03, color="lightgrey", label="aim: 0.97 to 1.03")
        axes.plot(ages, [row.verdict.median for row in shown], "o-", label="paid over p50, median")
        axes.plot(
            ages, [row.verdict.quoted_median for row in shown], "x--", label="minimum of quotes, median"
        )
        axes.plot(ages, [row.verdict.quoted_p90 for row in shown], "x:", label="minimum of quotes, p90")
        axes.set(xlabel="age of the quotes, days", ylabel="USD paid over USD expected")
        axes.legend()
        out = io.BytesIO()
        figure.savefig(out, format="svg", metadata={"Date": None})
    lines = [line.rstrip() for line in out.getvalue().decode().splitlines()]
    return ("\n".join(lines) + "\n").encode()
