"""The files of drift and ratios: what ships is sound, and what is broken is refused with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.core.errors import CatalogError
from advisor.core.gpus import load_gpus
from advisor.core.values import Interval, Market, QuoteKind
from advisor.pricing.expected_prices import (
    ANY,
    DRIFT_COLUMNS,
    RATIO_COLUMNS,
    Drift,
    PriceModel,
    load_price_model,
    read_price_model,
)

RATIOS = "aws,X,0.2,0.4,0.6,10,a test,2026-01-01"
DRIFT = "*,spot,dated,30,0.9,0.9,1.1,10,a test,2026-01-01"
OLDER = "*,spot,dated,90,0.8,0.8,1.3,10,a test,2026-01-01"


def read(tmp_path: Path, *, ratios: str = RATIOS, drift: str = DRIFT) -> PriceModel:
    (tmp_path / "drift.csv").write_text(",".join(DRIFT_COLUMNS) + "\n" + drift + "\n")
    (tmp_path / "ratios.csv").write_text(",".join(RATIO_COLUMNS) + "\n" + ratios + "\n")
    return read_price_model(tmp_path / "drift.csv", tmp_path / "ratios.csv")


def test_what_ships_names_gpus_of_the_catalog_and_knows_every_kind() -> None:
    model = load_price_model()
    assert {gpu for _, gpu in model.ratios} - {ANY} <= set(load_gpus())
    assert (ANY, ANY) in model.ratios
    assert set(model.most_weight) == {QuoteKind.DERIVED, QuoteKind.FLOOR}
    assert model.most_weight[QuoteKind.FLOOR] <= model.most_weight[QuoteKind.DERIVED] < 1
    assert model.drift_of("gcp", Market.SPOT).weight[-1] < 1


def test_of_what_nobody_knows_the_dearest_ratios_count() -> None:
    model = load_price_model()
    unknown = model.ratio_of("somebody", "X")
    assert unknown is not None
    providers = [ratio for (_, gpu), ratio in model.ratios.items() if gpu == ANY]
    assert unknown.p50 == max(ratio.p50 for ratio in providers)
    assert unknown.p90 == max(ratio.p90 for ratio in providers)


def test_the_nearest_family_is_taken() -> None:
    one, two, three = (Interval(p10=p, p50=p, p90=p) for p in (0.1, 0.2, 0.3))
    model = PriceModel(ratios={("aws", "X"): one, ("aws", ANY): two, (ANY, ANY): three})
    asked = [model.ratio_of("aws", "X"), model.ratio_of("aws", "Y"), model.ratio_of("gcp", "X")]
    assert asked == [one, two, three]
    assert PriceModel().ratio_of("aws", "X") is None
    assert PriceModel().drift_of("aws", Market.SPOT) == Drift()


def test_a_file_says_how_far_quotes_are_off(tmp_path: Path) -> None:
    derived = "*,spot,derived,0,0.3,1,1,10,a test,2026-01-01"
    model = read(tmp_path, drift="\n".join((DRIFT, OLDER, derived)))
    drift = model.drift_of("aws", Market.SPOT)
    assert (drift.age_days, drift.weight) == ((0.0, 30.0, 90.0), (1.0, 0.9, 0.8))
    assert drift.up == pytest.approx((0.0, 0.0953, 0.2624), abs=1e-4)
    assert model.most_weight == {QuoteKind.DERIVED: 0.3}
    assert model.ratio_of("aws", "X") == Interval(p10=0.2, p50=0.4, p90=0.6)


@pytest.mark.parametrize(
    ("ratios", "words"),
    [
        ("aws,X,0.5,0.4,0.6,10,a test,2026-01-01", "must ascend"),
        ("aws,X,0.2,0.4,1.6,10,a test,2026-01-01", "must ascend"),
        ("aws,X,0,0.4,0.6,10,a test,2026-01-01", "p10 is 0"),
        ("aws,X,0.2,0.4,0.6,0,a test,2026-01-01", "n is below 1"),
        ("aws,X,0.2,0.4,0.6,10,,2026-01-01", "source is empty"),
        (f"{RATIOS}\n{RATIOS}", "listed twice"),
    ],
)
def test_broken_ratios_are_refused(tmp_path: Path, ratios: str, words: str) -> None:
    with pytest.raises(CatalogError, match=words):
        read(tmp_path, ratios=ratios)


@pytest.mark.parametrize(
    ("drift", "words"),
    [
        (f"{OLDER}\n{DRIFT}", "ages must ascend"),
        (DRIFT + "\n" + OLDER.replace("0.8,0.8", "0.95,0.8"), "must not say more"),
        (DRIFT + "\n" + OLDER.replace("1.3", "1.05"), "must not say more"),
        (DRIFT + "\n" + OLDER.replace("0.8,0.8", "0.8,0.95"), "must not say more"),
        (DRIFT.replace("0.9,0.9", "1.2,0.9"), "weight is 1.2"),
        (DRIFT.replace("dated", "rumour"), "rumour"),
    ],
)
def test_drift_that_makes_an_older_quote_better_is_refused(tmp_path: Path, drift: str, words: str) -> None:
    with pytest.raises(CatalogError, match=words):
        read(tmp_path, drift=drift)
