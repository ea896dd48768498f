"""How a price tells how far it can be trusted."""

import pytest

from advisor.core.values import QuoteKind, Tier
from advisor.report.prices import price_json, quote_text, rent_text
from tests.builders import make_plan, make_price


@pytest.mark.parametrize(
    ("price", "words", "cell"),
    [
        (make_price(3.0, 4.0, QuoteKind.DATED, 111.4), "dated, 111 d", "3.00, 111 d"),
        (make_price(3.0, 3.0, QuoteKind.LIVE, 0.2), "live", "3.00, live"),
        (make_price(3.0, 3.0, QuoteKind.AGREED, 900.0), "agreed", "3.00, agreed"),
        (make_price(3.0, 4.0, QuoteKind.DERIVED, 512.4), "derived, 512 d", "~3.00, 512 d"),
        (make_price(3.0, 4.0, QuoteKind.FLOOR, 90.0), "floor, 90 d", "~3.00, 90 d"),
    ],
)
def test_words_of_a_price(price, words, cell):
    assert quote_text(price) == words
    assert rent_text(make_plan("X", 3.0, price=price)) == cell


def test_own_machines_have_a_rate_and_no_quote():
    assert rent_text(make_plan("X", 0.5, tier=Tier.CLUSTER)) == "0.50"
    assert rent_text(make_plan("X", None, tier=Tier.CLUSTER)) == ""
    assert price_json(None) is None


def test_json_of_a_price():
    assert price_json(make_price(3.0, 4.0, QuoteKind.DERIVED, 10.0)) == {
        "p10": 3.0, "p50": 3.0, "p90": 4.0, "kind": "derived", "age_days": 10.0,
    }  # fmt: skip
