"""What storage and egress cost."""

import math
from datetime import date
from pathlib import Path

import pytest

from advisor.core.errors import CatalogError
from advisor.core.units import HOURS_PER_MONTH
from advisor.pricing.storage import (
    COLUMNS,
    Charge,
    Rate,
    RateKind,
    charge,
    load_rates,
    rates_at,
    read_rates,
    usd_of,
)

DISK = {
    "provider": "aws",
    "region": "us-east-1",
    "kind": "block-storage",
    "to_region": "",
    "up_to_gib": "",
    "usd": "0.08",
    "unit": "GiB-month",
    "source": "a test",
    "as_of": "2025-01-01",
}
EGRESS = DISK | {"kind": "egress-internet", "unit": "GiB"}


def write(tmp_path: Path, *rows: dict[str, str]) -> Path:
    lines = [",".join(COLUMNS), *(",".join(row[column] for column in COLUMNS) for row in rows)]
    path = tmp_path / "storage.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_row_becomes_a_rate(tmp_path):
    assert read_rates(write(tmp_path, DISK)) == (
        Rate(
            provider="aws",
            region="us-east-1",
            kind=RateKind.BLOCK_STORAGE,
            up_to_gib=math.inf,
            usd=0.08,
            source="a test",
            as_of=date(2025, 1, 1),
        ),
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"usd": "0"}, "usd is 0: .*0 means unknown, never free"),
        ({"usd": "-1"}, "usd is -1"),
        ({"usd": "nan"}, "usd is nan"),
        ({"usd": "cheap"}, "could not convert"),
        ({"up_to_gib": "0"}, "up_to_gib is 0"),
        ({"up_to_gib": "inf"}, "up_to_gib is inf"),
        ({"kind": "tape"}, "'tape' is not a valid RateKind"),
        ({"to_region": "us-east-2"}, "block-storage goes to no region, and to_region is 'us-east-2'"),
        ({"unit": "GiB"}, "the unit of block-storage is GiB-month, not 'GiB'"),
        ({"provider": ""}, "provider, region or source is empty"),
        ({"region": ""}, "provider, region or source is empty"),
        ({"source": ""}, "provider, region or source is empty"),
        ({"as_of": "2025"}, "Invalid isoformat"),
    ],
)
def test_a_broken_row_names_file_and_line(tmp_path, change, words):
    path = write(tmp_path, DISK, DISK | {"region": "us-east-2"} | change)
    with pytest.raises(CatalogError, match=rf"storage\.csv, line 3: .*{words}"):
        read_rates(path)


@pytest.mark.parametrize("limits", [("", ""), ("10", "10"), ("10", "5"), ("", "5")])
def test_tiers_that_do_not_ascend_are_refused(tmp_path, limits):
    path = write(tmp_path, *(EGRESS | {"up_to_gib": limit} for limit in limits))
    with pytest.raises(CatalogError, match=r"line 3: aws us-east-1 egress-internet .*do not ascend"):
        read_rates(path)


def test_other_columns_are_refused(tmp_path):
    path = tmp_path / "storage.csv"
    path.write_text("provider,price\naws,1\n")
    with pytest.raises(CatalogError, match=r"storage\.csv, line 1: the columns are provider,price"):
        read_rates(path)
    with pytest.raises(CatalogError, match="cannot read the catalog file"):
        read_rates(tmp_path / "none.csv")


def test_an_amount_is_paid_tier_by_tier(tmp_path):
    rows = [EGRESS | {"up_to_gib": limit, "usd": usd} for limit, usd in (("10", "3"), ("30", "2"), ("", "1"))]
    tiers = read_rates(write(tmp_path, *rows))
    assert usd_of(tiers, 0) == 0
    assert usd_of(tiers, 4) == pytest.approx(12)
    assert usd_of(tiers, 10) == pytest.approx(30)
    assert usd_of(tiers, 30) == pytest.approx(30 + 40)
    assert usd_of(tiers, 100) == pytest.approx(30 + 40 + 70)


def test_beyond_the_last_known_tier_nothing_is_guessed(tmp_path):
    tiers = read_rates(write(tmp_path, EGRESS | {"up_to_gib": "10"}))
    assert usd_of(tiers, 10) == pytest.approx(0.8)
    assert usd_of(tiers, 10.5) is None
    assert usd_of((), 1) is None


def test_a_region_without_a_row_is_unknown(tmp_path):
    rates = read_rates(write(tmp_path, DISK))
    assert len(rates_at(rates, RateKind.BLOCK_STORAGE, "aws", "us-east-1")) == 1
    for provider, region, kind in (
        ("aws", "us-east-2", RateKind.BLOCK_STORAGE),
        ("aws", "us-east-11", RateKind.BLOCK_STORAGE),
        ("gcp", "us-east-1", RateKind.BLOCK_STORAGE),
        ("aws", "us-east-1", RateKind.EGRESS_INTERNET),
    ):
        assert rates_at(rates, kind, provider, region) == ()


def test_the_first_glob_that_matches_has_the_word(tmp_path):
    rows = [
        DISK | {"usd": "0.5"},
        DISK | {"region": "us-*", "usd": "0.1"},
        DISK | {"region": "*", "usd": "9"},
    ]
    rates = read_rates(write(tmp_path, *rows))

    def charged(region: str) -> list[float]:
        return [rate.usd for rate in rates_at(rates, RateKind.BLOCK_STORAGE, "aws", region)]

    assert (charged("us-east-1"), charged("us-west-2"), charged("eu-west-1")) == ([0.5], [0.1], [9])


ROUTE = EGRESS | {"kind": "egress-region"}


def test_a_route_has_a_rate_of_its_own(tmp_path):
    near = ROUTE | {"to_region": "us-east-2", "usd": "0.01"}
    rates = read_rates(write(tmp_path, near, ROUTE | {"usd": "0.02"}))

    def usd(to_region: str) -> float:
        return charge(rates, RateKind.EGRESS_REGION, "aws", "us-east-1", gib=100, to_region=to_region).usd

    assert (usd("us-east-2"), usd("ap-south-1"), usd("")) == (1.0, 2.0, 2.0)


def test_what_no_rate_reaches_costs_the_dearest_of_its_provider(tmp_path):
    rows = [
        DISK,
        DISK | {"region": "sa-east-1", "usd": "0.152"},
        DISK | {"provider": "gcp", "region": "us-east4", "usd": "0.5"},
        EGRESS | {"up_to_gib": "10", "usd": "3"},
    ]
    rates = read_rates(write(tmp_path, *rows))

    def charged(provider: str, region: str) -> Charge:
        return charge(rates, RateKind.BLOCK_STORAGE, provider, region, gib=100)

    assert (charged("aws", "us-east-1").usd, charged("AWS", "us-east-1").stand_in) == (8.0, None)
    assert (charged("aws", "eu-west-1").usd, charged("lambda", "eu-west-1").usd) == (15.2, 50.0)
    assert charged("aws", "").stand_in == rates[1]
    beyond = charge(rates, RateKind.EGRESS_INTERNET, "aws", "us-east-1", gib=12)
    assert (beyond.usd, beyond.rate, beyond.stand_in) == (36.0, rates[3], rates[3])
    with pytest.raises(CatalogError, match="no rate of object-storage is known"):
        charge(rates, RateKind.OBJECT_STORAGE, "aws", "us-east-1", gib=1)


def test_the_shipped_rates_are_read_once():
    assert load_rates() is load_rates()


def test_a_month_is_an_average_one():
    assert HOURS_PER_MONTH == 730
