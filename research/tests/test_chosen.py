"""The backtest of chosen prices: its arithmetic on a small record, and its verdict on the real one."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from datetime import date
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest

from advisor.core.gpus import catalog_path
from advisor.core.values import Market
from advisor.pricing.expected_prices import DRIFT_FILE, RATIO_FILE, PriceDrift, PriceModel, Ratio
from advisor.pricing.instance_types import read_as
from research.chosen import fit
from research.chosen.catalogs import write_catalogs
from research.chosen.derived import cross_validated, derived_prices, most_weights
from research.chosen.judge import Choice, backtest, replay, verdict
from research.chosen.panels import Panel, aws_zones, cheapest, day_text, gcp_weekly
from research.chosen.report import BEGIN, END, PAGE, RESULTS, Judged, table
from tests.shared import SHARED, needs_shared

METHODS = Path(__file__).resolve().parents[2] / "research" / "docs" / "methods"
FIRST = date(2024, 1, 1).toordinal()


def panel_of(spot: list[list[float]], step_days: int = 30) -> Panel:
    """Places of one machine that costs 10 dollars on demand."""
    prices = np.array(spot)
    return Panel(
        provider="aws",
        days=FIRST + step_days * np.arange(prices.shape[1]),
        machines=tuple(("x.xlarge", f"r{row}") for row in range(len(prices))),
        regions=tuple(f"r{row}" for row in range(len(prices))),
        gpus=("X",) * len(prices),
        spot=prices,
        on_demand=np.full_like(prices, 10.0),
    )


def noisy_panel(num_places: int = 20, num_dates: int = 40) -> Panel:
    """Places whose prices are drawn anew each month around 4 dollars: the cheapest is always luck."""
    rng = np.random.default_rng(0)
    return panel_of(4.0 * np.exp(0.3 * rng.standard_normal((num_places, num_dates))))


def test_the_past_ends_on_the_eve() -> None:
    panel = panel_of([[1.0, 2.0, 3.0]])
    assert panel.before(FIRST + 60).spot.tolist() == [[1.0, 2.0]]
    assert panel.before(FIRST + 61).spot.tolist() == [[1.0, 2.0, 3.0]]
    assert day_text(FIRST) == "2024-01-01"


def test_pairs_are_so_many_days_apart() -> None:
    panel = panel_of([[1.0, 2.0, 3.0, 4.0]])
    assert list(panel.pairs(60)) == [(0, 2), (1, 3)]
    assert list(panel.pairs(0)) == [(0, 0), (1, 1), (2, 2), (3, 3)]
    assert list(panel.pairs(500)) == []


def test_the_cheapest_place_of_each_machine() -> None:
    machines = [("a", "r0"), ("a", "r1"), ("b", "r0"), ("c", "r0")]
    assert cheapest(np.array([2.0, 1.0, 3.0, np.nan]), machines).tolist() == [1, 2]


def test_prices_that_stand_still_are_believed_at_any_age() -> None:
    fitted = fit.drifts_of(panel_of([[4.0] * 30, [4.0] * 30]))[Market.SPOT].drift
    assert np.allclose((fitted.up, fitted.down), 0.0)


def test_prices_that_are_luck_say_little_after_a_while() -> None:
    drift = fit.drifts_of(noisy_panel())[Market.SPOT].drift
    assert drift.age_days[0] == 0.0
    assert drift.weight[0] == 1.0
    assert drift.weight[-1] < 0.1
    assert list(drift.weight) == sorted(drift.weight, reverse=True)
    assert list(drift.up) == sorted(drift.up)


def test_a_family_that_is_known_for_long_is_shrunk_less() -> None:
    long, short = noisy_panel(num_dates=40), noisy_panel(num_dates=2)
    for panel in (long, short):
        ratios = fit.family_ratios(panel)
        assert ratios["X"][1] == ratios["*"][1] == panel.spot.size
        assert ratios["X"][0].p50 == pytest.approx(0.4, rel=0.15)


def test_a_record_without_pairs_teaches_nothing() -> None:
    assert fit.fit_drift({}, has_family=True).drift == PriceDrift()
    assert fit.spot_samples(panel_of([[4.0]]), (30,)) == {}


def test_a_place_is_foretold_by_its_machine_s_others_where_they_agree() -> None:
    """The median of the other two, by hand: of 5 and 6 it is the root of 30."""
    middle, counts = fit.other_places(panel_of([[4.0], [5.0], [6.0]]), 0)
    assert np.exp(middle).tolist() == pytest.approx([math.sqrt(0.3), math.sqrt(0.24), math.sqrt(0.2)])
    assert counts.tolist() == [2, 2, 2]
    assert fit.family_places(noisy_panel()) >= 0.25


def test_what_a_price_list_did_lately_counts_more() -> None:
    values, weights = np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 8.0])
    assert fit.weighted_quantiles(values, weights, [0.5])[0] > 2.0


def test_a_gpu_that_fell_far_moves_far() -> None:
    still, falls = 4.0 * 2.0 ** (np.arange(25) % 2 / 12), 8.0 * 2.0 ** (-np.arange(25) / 3)
    panel = replace(panel_of([still.tolist(), falls.tolist()]), gpus=("A", "B"))
    moves = fit.moves_of(panel)
    assert moves["B"] > 1.5 > 1.0 > moves["A"] > 0.0
    assert moves["A"] + moves["B"] == pytest.approx(2.0)
    assert fit.moves_of(panel_of([[4.0]])) == {}


def test_a_gpu_without_a_record_moves_as_the_mix_of_those_that_have_one() -> None:
    """Of draws with each known spread, 9 of 10 or more lie under the p90 of a spread of 1."""
    known = [row.moves for row in read_as(catalog_path(RATIO_FILE), Ratio) if row.moves != 1.0]
    p90 = NormalDist().inv_cdf(0.9)
    assert len(known) >= 4
    assert np.mean([NormalDist().cdf(p90 / moves) for moves in known]) >= 0.9


def test_what_the_distance_explains_is_no_drift() -> None:
    sample = fit.Sample(
        quoted=np.log([0.2, 0.2]), family=np.log([0.4, 0.2]), paid=np.log([0.3, 0.3]), moves=np.ones(2),
        days=np.array([1, 1]), num_windows=9.0,
    )  # fmt: skip
    tau = 100 / math.log(2)  # half of a quote of a hundred days counts: of the first p50 is sqrt(0.2 x 0.4)
    first, second = fit._beside_distance(sample, 100.0, tau)
    assert first == 0.0
    assert second == pytest.approx(math.log(1.5))


def test_without_the_cheapest_region_the_next_one_is_chosen() -> None:
    panel = panel_of([[1.0, 5.0], [2.0, 3.0], [4.0, 4.0]])
    fewer = panel.without_extreme(dearest=False)
    assert np.isnan(fewer.spot).tolist() == [[True, False], [False, True], [False, False]]
    assert cheapest(fewer.spot[:, 0], fewer.machines).tolist() == [1]
    assert np.isnan(panel.without_extreme(dearest=True).spot).tolist() == [
        [False, True], [False, False], [True, False],
    ]  # fmt: skip


def test_the_verdict_of_a_few_choices_by_hand() -> None:
    choices = [
        Choice(
            day=day, by="machine", paid_usd_per_h=paid, expected_usd_per_h=2.0, most_usd_per_h=3.0,
            quoted_usd_per_h=1.0, quoted_paid_usd_per_h=paid,
        )
        for day, paid in enumerate((1.0, 2.0, 4.0))
    ]  # fmt: skip
    judgement = verdict(choices, 1)
    assert (judgement.num_choices, judgement.num_dates) == (3, 3)
    assert (judgement.median, judgement.coverage) == (1.0, pytest.approx(2 / 3))
    assert judgement.quoted_median == 2.0
    assert "| 3 | 1.000 | 66.7% | 2.000 (3.60) |" in table(
        [Judged(record="r", chosen="c", age_days=1, verdict=judgement)]
    )


def test_choices_of_one_window_are_one_piece_of_evidence() -> None:
    """Four windows of ten choices, one of them missed as a whole: 75 ± 25 %, as of four coins."""
    choices = [
        Choice(
            day=day, by="machine", paid_usd_per_h=3.0 if day >= 120 else 1.0, expected_usd_per_h=1.0,
            most_usd_per_h=2.0, quoted_usd_per_h=1.0, quoted_paid_usd_per_h=1.0,
        )
        for day in range(0, 160, 4)
    ]  # fmt: skip
    judgement = verdict(choices, 40)
    assert (judgement.coverage, judgement.coverage_se) == (0.75, pytest.approx(0.25))
    assert "75.0 ± 25.0%" in table([Judged(record="r", chosen="c", age_days=40, verdict=judgement)])
    assert verdict(choices, 1000).coverage_se is None


@pytest.fixture(scope="module")
def gcp_models() -> dict[int, PriceModel]:
    """Of GCP's record: whoever needs another one adds it."""
    return {}


@needs_shared
@pytest.mark.parametrize("run_days", [7, 90])
def test_the_mean_over_a_run_is_covered_though_the_price_at_its_start_is_known(
    run_days: int, gcp_models: dict[int, PriceModel]
) -> None:
    choices = list(backtest(gcp_weekly(SHARED), Market.SPOT, 0, gcp_models, every=9, run_days=run_days))
    judgement = verdict(choices, run_days)
    # Every ninth date: nine of ten on all of them.
    assert 0.84 <= judgement.coverage < 1.0
    assert judgement.median == pytest.approx(1.0, abs=0.02)


def test_without_a_model_the_minimum_is_too_good_and_with_one_it_is_not() -> None:
    panel = noisy_panel()
    bare = verdict(list(replay(panel, PriceModel(), 360)), 360)
    assert bare.median > 1.3
    models: dict[int, PriceModel] = {}
    fair = verdict([c for c in backtest(panel, Market.SPOT, 360, models) if c.by == "machine"], 360)
    assert fair.median == pytest.approx(1.0, abs=0.15)
    assert fair.quoted_median > 1.3
    assert all(panel.days[column] >= FIRST + 365 for column in models), "a year of prices comes first"


def test_nothing_newer_than_the_snapshot_is_known_with_a_lag() -> None:
    panel, late, soon = noisy_panel(), dict[int, PriceModel](), dict[int, PriceModel]()
    list(backtest(panel, Market.SPOT, 360, late, lag=True))
    list(backtest(panel, Market.SPOT, 360, soon))
    assert max(late) <= len(panel.days) - 12
    assert max(soon) > max(late)


@needs_shared
@pytest.mark.parametrize(("age_days", "off"), [(30, 0.04), (180, 0.05), (450, 0.07)])
def test_the_chosen_cost_what_was_expected(
    age_days: int, off: float, gcp_models: dict[int, PriceModel]
) -> None:
    # Every ninth date: the tolerances are those of the whole record, and a little for the thinning.
    choices = list(backtest(gcp_weekly(SHARED), Market.SPOT, age_days, gcp_models, every=9))
    judgement = verdict(choices, age_days)
    assert judgement.median == pytest.approx(1.0, abs=off)
    # Three windows of 450 days are too few to be narrow.
    assert 0.84 <= judgement.coverage <= (0.96 if age_days < 450 else 1.0)


@needs_shared
def test_derived_prices_are_fair_where_they_were_not_learned() -> None:
    zones, model = aws_zones(SHARED), fit.model_of(gcp_weekly(SHARED))
    derived = derived_prices(SHARED, zones)
    judgement = verdict([choice for _, choice in cross_validated(derived, zones, model, by="gpu")], 100)
    assert judgement.median == pytest.approx(1.0, abs=0.05)
    assert 0.85 <= judgement.coverage <= 0.95
    assert judgement.quoted_p90 > 1.5, "taken as they stand they mislead"
    assert most_weights([one for one in derived if not one.is_at_floor], model).keys()


@needs_shared
def test_the_shipped_catalogs_are_what_the_fit_writes(tmp_path: Path) -> None:
    zones = aws_zones(SHARED)
    write_catalogs(gcp_weekly(SHARED), zones, derived_prices(SHARED, zones), tmp_path)
    for name in (DRIFT_FILE, RATIO_FILE):
        assert (tmp_path / name).read_text() == (METHODS.parents[2] / "catalogs" / name).read_text()


def test_the_committed_results_meet_the_aims_and_stand_in_the_page() -> None:
    rows = json.loads((METHODS / RESULTS).read_text())
    page = (METHODS / PAGE).read_text().partition(BEGIN)[2].partition(END)[0]
    assert page.count("\n| ") == len(rows) + 1
    for row in rows:
        judgement = row["verdict"]
        assert (
            f"| {judgement['num_choices']:,} | {judgement['median']:.3f} | {100 * judgement['coverage']:.1f}"
            in page
        )
        if row["record"] == "GCP spot" and row["run_days"]:
            assert judgement["coverage"] == pytest.approx(0.9, abs=0.055 + judgement["coverage_se"])
        if (row["record"], row["chosen"]) == ("GCP spot", "all") and row["age_days"]:
            # At 180 days the aim of 0.03 is missed: the rise of 2026 (docs/methods/prices.md).
            assert judgement["median"] == pytest.approx(1.0, abs=0.05 if row["age_days"] >= 180 else 0.03)
            # At 90 and 180 days the aim of 86 to 94 % is missed by a point, on the safe side (decision 19).
            most = 0.94 + judgement["coverage_se"] if row["age_days"] < 450 else 1.0
            assert 0.86 <= judgement["coverage"] <= most
        if row["record"] == "GCP spot, without the dearest region":
            assert 0.86 <= judgement["coverage"] <= 0.94 + judgement["coverage_se"]
        if row["record"] == "GCP spot, without the cheapest region":
            # Within two standard errors of nine of ten.
            assert judgement["coverage"] + 2 * judgement["coverage_se"] >= 0.9
            assert judgement["median"] < judgement["quoted_median"] or row["age_days"] == 30
