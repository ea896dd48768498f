"""Settings to offers and machines: which count, how many, at what price, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pytest

from advisor.config.layers import Config
from advisor.config.settings import Settings
from advisor.core.errors import InputError
from advisor.core.values import Market
from advisor.pricing.answer import answering as pricing
from advisor.pricing.answer.answering import Offers
from advisor.pricing.answer.merge import Answer
from advisor.pricing.sources.query import OfferQuery
from advisor.service import live
from advisor.service.listening import Silence
from advisor.service.offer_filters import OfferFilter, is_wanted
from advisor.service.offers import query_offers, wanted_counts
from tests.builders import make_offer
from tests.findings import texts
from tests.listening import Heard

DAY_S = 86400.0


def config(**sections: Any) -> Config:
    return Config(settings=Settings(**sections), origins={}, warnings=())


@pytest.fixture
def asked(monkeypatch) -> list[tuple[OfferQuery, datetime, float | None]]:
    """Queries that reach the prices; two GPUs in three sizes answer, of two providers."""
    queries: list[tuple[OfferQuery, datetime, float | None]] = []
    offers = tuple(make_offer(gpu, num_gpus=count) for gpu in ("A100-SXM-80GB", "L4") for count in (1, 4, 8))

    def load(
        query: OfferQuery,
        *,
        now: datetime,
        max_age_s: float | None,
        fresh_s: float,
        answers: Sequence[Answer],
    ) -> Offers:
        assert fresh_s == DAY_S
        assert answers == known
        queries.append((query, now, max_age_s))
        return Offers(offers=offers, warnings=texts("a warning"))

    known = [Answer(source="a test", is_live=False, offers=(), providers=("aws", "gcp"))]
    monkeypatch.setattr(pricing, "load_offers", load)
    monkeypatch.setattr(live, "current_answers", lambda *_, **__: known)
    return queries


# --- Offers -----------------------------------------------------------------------------------------


def test_settings_become_the_query(asked):
    cloud = {"providers": ("gcp",), "regions": ("us-*", "*-east-1"), "markets": (Market.SPOT,)}
    settings = config(cloud=cloud, prices={"max_age": "30d"})
    query_offers(settings, OfferFilter(wanted={"L4": set()}, max_usd_per_h=2.5), Silence())
    ((query, _, max_age_s),) = asked
    assert (query.providers, query.regions, query.markets) == (("gcp",), ("us-*", "*-east-1"), (Market.SPOT,))
    assert (query.gpus, query.max_usd_per_h, max_age_s) == (("L4",), 2.5, 30 * DAY_S)


def test_without_a_limit_any_age_and_price_will_do(asked):
    query_offers(config(), OfferFilter(wanted={}), Silence())
    ((query, _, max_age_s),) = asked
    assert (query.gpus, query.max_usd_per_h, max_age_s) == ((), None, None)


@pytest.mark.parametrize(
    ("wanted", "max_gpus", "counts"),
    [
        ({}, None, {("A100-SXM-80GB", 1), ("A100-SXM-80GB", 4), ("A100-SXM-80GB", 8), ("L4", 1), ("L4", 4),
                    ("L4", 8)}),
        ({}, 4, {("A100-SXM-80GB", 1), ("A100-SXM-80GB", 4), ("L4", 1), ("L4", 4)}),
        ({"L4": set()}, 1, {("L4", 1)}),
        ({"L4": {4, 8}}, None, {("L4", 4), ("L4", 8)}),
        ({"L4": {4, 8}}, 4, {("L4", 4)}),
        ({"L4": {1}, "A100-SXM-80GB": set()}, 4, {("L4", 1), ("A100-SXM-80GB", 1), ("A100-SXM-80GB", 4)}),
    ],
)  # fmt: skip
def test_offers_of_the_gpus_and_counts_asked_for_are_kept(asked, wanted, max_gpus, counts):
    kept = query_offers(config(), OfferFilter(wanted=wanted, max_gpus=max_gpus), Silence())
    assert {(offer.gpu, offer.num_gpus) for offer in kept.offers} == counts
    assert kept.warnings == texts("a warning")


def test_a_provider_without_prices_is_refused(asked):
    with pytest.raises(InputError, match=r"'awss'.*Did you mean 'aws'.*aws, gcp"):
        query_offers(config(cloud={"providers": ("gcp", "awss")}), OfferFilter(wanted={}), Silence())
    assert asked == []


# --- What is asked for ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([], {}),
        (["L4"], {"L4": set()}),
        (["L4:4"], {"L4": {4}}),
        (["L4:1..3", "L4:8"], {"L4": {1, 2, 3, 8}}),
        (["L4:2", "T4"], {"L4": {2}, "T4": set()}),
    ],
)
def test_counts_of_one_gpu_add_up(texts, expected):
    heard = Heard()
    assert wanted_counts(texts, heard) == expected
    assert heard.notes == []


def test_a_family_is_noted():
    heard = Heard()
    wanted = wanted_counts(["A100:2"], heard)
    assert len(wanted) > 1
    assert set(map(tuple, wanted.values())) == {(2,)}
    (note,) = heard.notes
    assert all(name in note for name in ("A100:2", *wanted))


@pytest.mark.parametrize(
    ("wanted", "gpu", "count", "expected"),
    [
        ({}, "L4", 3, True),
        ({"L4": set()}, "L4", 3, True),
        ({"L4": {3}}, "L4", 3, True),
        ({"L4": {2}}, "L4", 3, False),
        ({"T4": set()}, "L4", 3, False),
        ({"T4": {3}}, "L4", 3, False),
    ],
)
def test_nothing_asked_for_means_any(wanted, gpu, count, expected):
    assert is_wanted(wanted, gpu, count) is expected
