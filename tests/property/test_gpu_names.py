"""Laws of names and queries: each way to write a GPU means the same, and filters keep what limits allow."""

import contextlib
import csv
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from advisor.core.errors import UnknownGpuError
from advisor.core.gpus import (
    catalog_path,
    load_gpus,
    normal_form,
    parse_gpu_request,
    resolve_gpu,
    resolve_gpus,
)
from advisor.core.values import Market
from advisor.pricing.answers import load_offers
from advisor.pricing.sources.protocol import OfferQuery
from advisor.pricing.sources.snapshot import PRICE_FILES, SnapshotSource

GPUS = tuple(load_gpus().values())
NAMES = st.sampled_from([(gpu, name) for gpu in GPUS for name in (gpu.name, *gpu.aliases)])
FAMILIES = st.sampled_from([(gpu, family) for gpu in GPUS for family in gpu.families])
SEPARATORS = st.sampled_from([" ", "-", "_", "  "])
BRANDS = st.sampled_from(["", "NVIDIA ", "nvidia ", "Tesla ", "NVIDIA GeForce "])


@given(st.text())
def test_the_normal_form_of_a_normal_form_is_itself(text):
    assert normal_form(normal_form(text)) == normal_form(text)


@given(NAMES, SEPARATORS, st.booleans())
def test_separators_and_letter_case_do_not_count(named, separator, upper):
    gpu, name = named
    written = separator.join(name.replace("-", " ").split())
    assert resolve_gpu(written.upper() if upper else written.lower()) is gpu


@given(st.sampled_from(GPUS), BRANDS)
def test_a_brand_before_the_catalog_name_does_not_count(gpu, brand):
    assert resolve_gpu(brand + gpu.name) is gpu


@given(NAMES, st.sets(st.integers(1, 64), min_size=1))
def test_a_gpu_string_round_trips(named, counts):
    gpu, name = named
    request = parse_gpu_request(f"{name}:{','.join(map(str, counts))}")
    assert request.gpus == (gpu,)
    assert request.counts == tuple(sorted(counts))


@given(st.sampled_from(GPUS), st.integers(1, 64), st.integers(0, 64))
def test_a_range_holds_both_ends(gpu, low, more):
    request = parse_gpu_request(f"{gpu.name}:{low}..{low + more}")
    assert request.counts == tuple(range(low, low + more + 1))


@given(FAMILIES)
def test_a_family_holds_exactly_the_gpus_that_say_so(named):
    _, family = named
    members = tuple(gpu for gpu in GPUS if family in gpu.families)
    assert resolve_gpus(family) == members


@given(NAMES, st.sampled_from("xqz789"))
def test_a_longer_name_never_matches_by_its_beginning(named, tail):
    gpu, name = named
    try:
        gpus = resolve_gpus(name + tail)
    except UnknownGpuError:
        return
    assert normal_form(name + tail) != normal_form(name)
    assert all(normal_form(name + tail) in _forms(other) for other in gpus), gpu.name


def _forms(gpu) -> set[str]:
    return {normal_form(name) for name in (gpu.name, *gpu.aliases, *gpu.families)}


@given(st.text(max_size=20))
def test_any_text_is_a_gpu_or_an_unknown_gpu(text):
    with contextlib.suppress(UnknownGpuError):
        assert resolve_gpus(text)


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
