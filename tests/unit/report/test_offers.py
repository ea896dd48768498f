"""Offers as rows and as JSON: the price of the machine, of one GPU, its date and source."""

from advisor.core.values import Market, QuoteKind
from advisor.report.prices import offers_document
from tests.builders import make_offer, make_price
from tests.findings import texts
from tests.unit.report.printed import json_of, rows_of

OFFER = make_offer(
    "X",
    32.0,
    num_gpus=8,
    contracted_usd_per_h=20.0,
    market=Market.SPOT,
    zone="use1-az1",
    includes=("8 vCPU",),
)


def test_a_row_in_every_column():
    (row,) = rows_of(offers_document([OFFER], [make_price(20.0, 30.0)], []))
    # 20 dollars contracted (not 32) for 8 GPUs are 2.50 for one.
    assert list(row.values()) == [
        "aws x.xlarge",
        "use1-az1",
        "8 x X",
        "spot",
        "20.0000",
        "20.0000 (30.0000)",
        "2.5000",
        "dated, 30 d",
        "2026-11-01",
        "a test",
    ]


def test_without_a_zone_the_region_is_the_place():
    (row,) = rows_of(offers_document([make_offer()], [make_price()], []))
    assert (row["Zone"], row["Market"]) == ("us-east-1", "on-demand")


def test_json_tells_list_and_contracted_prices_apart():
    document = json_of(
        offers_document([OFFER, make_offer()], [make_price(20.0, 30.0), make_price()], texts("old prices"))
    )
    first, second = document["offers"]
    assert (first["usd_per_h"], first["list_usd_per_h"], first["contracted_usd_per_h"]) == (20, 32, 20)
    assert (second["usd_per_h"], second["list_usd_per_h"], second["contracted_usd_per_h"]) == (1, 1, None)
    assert (first["region"], first["zone"], second["zone"]) == ("us-east-1", "use1-az1", None)
    assert (first["market"], first["num_gpus"], first["includes"]) == ("spot", 8, ["8 vCPU"])
    assert (first["retrieved_at"], first["source"]) == ("2026-11-01T00:00:00+00:00", "a test")
    assert first["minimum_billed_s"] == 0
    assert first["price"] == {"p10": 20, "p50": 20, "p90": 30, "kind": "dated", "age_days": 30}
    assert document["warnings"] == ["old prices"]


def test_the_order_given_is_kept():
    assert [
        row["GPUs"]
        for row in rows_of(
            offers_document(
                [make_offer("B", 2.0), make_offer("A", 1.0), make_offer("C", 3.0)],
                [make_price(2.0), make_price(1.0), make_price(3.0)],
                [],
            )
        )
    ] == ["1 x B", "1 x A", "1 x C"]


def test_a_price_that_was_never_quoted_is_marked():
    guess = make_price(1.2, 2.0, QuoteKind.DERIVED, 512.4)
    (row,) = rows_of(offers_document([make_offer()], [guess], []))
    assert (row["USD/h"], row["Likely (p90)"]) == ("~1.0000", "1.2000 (2.0000)")
    assert row["Quote"] == "derived, 512 d"
