"""Laws of queries: a filter keeps exactly what its limits, checked one by one, allow."""

import csv
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from advisor.core.gpus import catalog_path
from advisor.core.values import Market
from advisor.pricing.answers import load_offers
from advisor.pricing.sources.protocol import OfferQuery
from advisor.pricing.sources.snapshot import PRICE_FILES, SnapshotSource

OFFERS = [offer for part in SnapshotSource().offers(OfferQuery()) for offer in part.offers]
NOW = datetime(2026, 11, 21, tzinfo=UTC)


def some(values: list) -> st.SearchStrategy:
    return st.lists(st.sampled_from(values), unique=True, max_size=3).map(tuple)


QUERIES = st.builds(
    OfferQuery,
    providers=some(["aws", "gcp", "azure"]),
    regions=some(["us-east-1", "us-central1", "eu-west-2", "mars-north1"]),
    gpus=some(["L4", "T4", "A100-SXM-40GB", "H100-SXM-80GB", "RTX-3090"]),
    num_gpus=some([1, 2, 4, 8, 3]),
    markets=some([Market.ON_DEMAND, Market.SPOT, Market.COMMIT_1Y]),
    max_usd_per_h=st.none() | st.floats(0.05, 120),
)


@given(QUERIES)
def test_a_query_equals_brute_force(query):
    kept = set(range(len(OFFERS)))
    for limit, values in (
        (query.providers, [o.provider for o in OFFERS]),
        (query.regions, [o.region for o in OFFERS]),
        (query.gpus, [o.gpu for o in OFFERS]),
        (query.num_gpus, [o.num_gpus for o in OFFERS]),
        (query.markets, [o.market for o in OFFERS]),
    ):
        if limit:
            kept &= {i for i, value in enumerate(values) if value in limit}
    if query.max_usd_per_h is not None:
        kept &= {i for i, o in enumerate(OFFERS) if o.usd_per_h <= query.max_usd_per_h}
    assert load_offers(query, now=NOW).offers == tuple(OFFERS[i] for i in sorted(kept))


@given(QUERIES, st.sampled_from(OFFERS))
def test_a_glob_keeps_at_least_what_the_regions_it_covers_keep(query, offer):
    narrow = OfferQuery(regions=(offer.region,), providers=query.providers)
    wide = OfferQuery(regions=(offer.region[:3] + "*",), providers=query.providers)
    assert wide.matches(offer) == narrow.matches(offer)


def test_every_price_row_is_offered_to_the_cent():
    rows = []
    for name in PRICE_FILES:
        with catalog_path(name).open(encoding="utf-8", newline="") as file:
            rows += list(csv.DictReader(file))
    assert len(rows) == len(OFFERS)
    for row, offer in zip(rows, OFFERS, strict=True):
        assert (offer.provider, offer.instance_type, offer.region, offer.zone or "") == (
            row["provider"], row["instance_type"], row["region"], row["zone"],
        )  # fmt: skip
        assert float(row["usd_per_h"]) == offer.usd_per_h
        assert offer.retrieved_at.isoformat() == row["retrieved_at"] + "T00:00:00+00:00"
