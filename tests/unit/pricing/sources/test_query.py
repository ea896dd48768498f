"""Which offers a query keeps."""

from __future__ import annotations

import dataclasses
import math
from datetime import UTC, datetime

import pytest

from advisor.core.errors import InputError
from advisor.core.values import Market, Offer
from advisor.pricing.sources.protocol import OfferQuery

OFFER = Offer(
    provider="aws",
    instance_type="p4d.24xlarge",
    region="us-east-1",
    zone=None,
    gpu="A100-SXM-40GB",
    num_gpus=8,
    market=Market.ON_DEMAND,
    list_usd_per_h=21.957642,
    retrieved_at=datetime(2026, 7, 20, tzinfo=UTC),
    source="test",
)


def test_no_limits_keep_everything() -> None:
    assert OfferQuery().matches(OFFER)


@pytest.mark.parametrize(
    "query",
    [
        OfferQuery(providers=("gcp", "aws")),
        OfferQuery(regions=("eu-*", "us-*")),
        OfferQuery(regions=("US-East-1",)),
        OfferQuery(gpus=("A100-SXM-40GB",)),
        OfferQuery(num_gpus=(4, 8)),
        OfferQuery(markets=(Market.ON_DEMAND,)),
        OfferQuery(max_usd_per_h=21.957642),
    ],
)
def test_within_a_limit(query: OfferQuery) -> None:
    assert query.matches(OFFER)


@pytest.mark.parametrize(
    "query",
    [
        OfferQuery(providers=("gcp",)),
        OfferQuery(regions=("us-east",)),
        OfferQuery(regions=("us-east-?0",)),
        OfferQuery(gpus=("A100-SXM-80GB",)),
        OfferQuery(num_gpus=(1,)),
        OfferQuery(markets=(Market.SPOT,)),
        OfferQuery(max_usd_per_h=21.95),
        OfferQuery(providers=("aws",), regions=("eu-*",)),
    ],
)
def test_outside_a_limit(query: OfferQuery) -> None:
    assert not query.matches(OFFER)


def test_the_price_limit_is_on_what_is_paid() -> None:
    negotiated = dataclasses.replace(OFFER, contracted_usd_per_h=15.0)
    assert OfferQuery(max_usd_per_h=16.0).matches(negotiated)


@pytest.mark.parametrize("limit", [0.0, -1.0, math.nan])
def test_a_price_limit_must_be_above_0(limit: float) -> None:
    with pytest.raises(InputError, match="must be a finite number above 0"):
        OfferQuery(max_usd_per_h=limit)


def test_a_text_is_no_tuple_of_texts() -> None:
    with pytest.raises(InputError, match="regions must be a list"):
        OfferQuery(regions="us-*")  # type: ignore[arg-type]
