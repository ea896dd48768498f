"""Offers of the settings: queries, regions to enable, and sorted lists."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.cli.listening import TERMINAL
from advisor.config.layers import ARGUMENT, Config, PricingSettings
from advisor.config.settings import CloudSettings, Settings
from advisor.core.errors import InputError, NoOfferError
from advisor.core.findings.about_answers import OptInRegions
from advisor.core.values import Market, Offer, PriceOrder, QuoteKind
from advisor.pricing import answers
from advisor.pricing.answers import Answer, Offers
from advisor.pricing.sources.protocol import OfferQuery
from advisor.service.listening import Listener
from advisor.service.prices import daily
from advisor.service.prices.book import PriceBook
from advisor.service.prices.offers import (
    PricesRequest,
    _sorted,
    is_open,
    list_prices,
    query_offers,
    wanted_counts,
)
from advisor.service.prices.query_limits import (
    Limit,
    OfferFilter,
    check_counts,
    check_providers,
    check_regions,
    is_wanted,
    known_vendors,
    nothing_left,
    way_out,
)
from advisor.store.database import open_store
from advisor.store.pulls import save_failure
from tests.builders import make_offer, make_price
from tests.findings import texts
from tests.listening import Heard

DAY_S = 86400.0


def pricing(**sections: Any) -> PricingSettings:
    return Config(settings=Settings(**sections), origins={}, warnings=()).pricing


def book(**sections: Any) -> PriceBook:
    return PriceBook(settings=pricing(**sections))


@pytest.fixture
def asked(monkeypatch):
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
    monkeypatch.setattr(answers, "load_offers", load)
    monkeypatch.setattr(daily, "current_answers", lambda *_, **__: known)
    return queries


# --- Offers -----------------------------------------------------------------------------------------


def test_settings_become_the_query_and_without_a_limit_any_age_and_price_will_do(asked):
    cloud = {"providers": ("gcp",), "regions": ("us-*", "*-east-1"), "markets": (Market.SPOT,)}
    within = book(cloud=cloud, prices={"max_age": "30d"})
    query_offers(within, OfferFilter(wanted={"L4": set()}, max_usd_per_h=2.5), Listener())
    query_offers(book(), OfferFilter(wanted={}), Listener())
    (query, _, max_age_s), (every, _, any_age) = asked
    assert (query.providers, query.regions, query.markets) == (("gcp",), ("us-*", "*-east-1"), (Market.SPOT,))
    assert (query.gpus, query.max_usd_per_h, max_age_s) == (("L4",), 2.5, 30 * DAY_S)
    assert (every.gpus, every.max_usd_per_h, any_age) == ((), None, None)


@pytest.mark.parametrize(
    ("floors", "counts"),
    [
        ({"min_memory_gib": 79}, {1, 4, 16}),
        ({"min_vcpus": 100}, set()),
        ({"min_vcpus": 4}, {1}),
        ({"min_host_memory_gib": 30}, {8}),
        ({"min_host_memory_gib": 30, "min_memory_gib": 80}, set()),
    ],
)
def test_a_machine_has_at_least_what_is_asked_for(monkeypatch, floors, counts):
    known = Answer(
        source="a test",
        is_live=False,
        offers=(
            make_offer("A100-SXM-80GB", num_gpus=1, num_vcpus=8),
            make_offer("A100-SXM-80GB", num_gpus=4, instance_type="a4"),
            make_offer("L4", num_gpus=8, instance_type="g6.4xlarge"),
            make_offer("A100-SXM-80GB", num_gpus=16, instance_type="a16"),
            make_offer("a GPU of no catalog", num_gpus=2),
        ),
        providers=("aws", "gcp"),
    )
    monkeypatch.setattr(daily, "current_answers", lambda *_, **__: [known])
    monkeypatch.setattr(daily, "pull_due", lambda *_: None)
    monkeypatch.setattr(PriceBook, "known", lambda *_: [known])
    if not counts:
        with pytest.raises(NoOfferError, match=f"Without ({'|'.join(floors)}) there "):
            list_prices(PricesRequest(**floors), pricing(), Listener())
        return
    found = list_prices(PricesRequest(**floors), pricing(), Listener())
    assert {one.num_gpus for one in found.offers} == counts


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
    kept = query_offers(book(), OfferFilter(wanted=wanted, max_gpus=max_gpus), Listener())
    assert {(offer.gpu, offer.num_gpus) for offer in kept.offers} == counts
    assert kept.warnings == texts("a warning")


def test_a_provider_without_prices_is_refused(asked):
    with pytest.raises(InputError, match=r"'awss'.*Did you mean 'aws'.*aws, gcp"):
        query_offers(book(cloud={"providers": ("gcp", "awss")}), OfferFilter(wanted={}), Listener())
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


CLOSED, OPEN = make_offer("L4", region="me-south-1"), make_offer("L4")


@pytest.mark.parametrize(
    ("cloud", "opens"),
    [
        ({}, False),
        ({"regions": ("me-*",)}, False),
        ({"regions": ("ME-south-1",)}, True),
        ({"opt_in_regions": ("me-south-1",)}, True),
        ({"opt_in_regions": ("me-*",)}, True),
        ({"opt_in_regions": ("ap-*",)}, False),
    ],
)
def test_a_closed_region_is_opened_by_name(cloud, opens):
    is_opened = is_open(CloudSettings(**cloud))
    assert (is_opened(CLOSED), is_opened(OPEN)) == (opens, True)


@pytest.mark.parametrize(
    ("source", "is_live", "opens"), [("aws", True, True), ("aws", False, False), ("gpuhunt", True, False)]
)
def test_what_the_account_was_asked_in_is_enabled(source, is_live, opens):
    asked_at = {("aws", "me-south-1", Market.SPOT): datetime(2026, 11, 1, tzinfo=UTC)}
    answer = Answer(source=source, is_live=is_live, offers=(), asked_at=asked_at)
    assert is_open(CloudSettings(), [answer])(CLOSED) is opens


def test_a_region_of_the_same_name_elsewhere_is_another():
    assert is_open(CloudSettings())(make_offer("L4", region="me-south-1", provider="lab"))


def query(*, to_rent: bool, offers: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch) -> Any:
    answer = Answer(source="a test", is_live=False, offers=offers, providers=("aws",))
    monkeypatch.setattr(daily, "current_answers", lambda *_, **__: [answer])
    monkeypatch.setattr(PriceBook, "known", lambda *_: [answer])
    return query_offers(book(), OfferFilter(wanted={}), Listener(), to_rent=to_rent)


def test_what_is_left_out_is_counted_and_where_nothing_else_is_left_the_way_out_is_named(monkeypatch):
    answered = query(to_rent=True, offers=(CLOSED, OPEN), monkeypatch=monkeypatch)
    assert answered.offers == (OPEN,)
    (note,) = (warning for warning in answered.warnings if isinstance(warning, OptInRegions))
    assert note.facts == {"num_offers": 1, "regions": ["me-south-1"]}
    every = query(to_rent=False, offers=(CLOSED, OPEN), monkeypatch=monkeypatch)
    assert set(every.offers) == {CLOSED, OPEN}
    assert OptInRegions not in {type(warning) for warning in every.warnings}
    words = r"Without cloud\.opt_in_regions there is 1: aws l4.xlarge in me-south-1"
    with pytest.raises(NoOfferError, match=words):
        query(to_rent=True, offers=(CLOSED,), monkeypatch=monkeypatch)


NOW = datetime(2026, 11, 20, tzinfo=UTC)
OFFERS = st.lists(
    st.builds(
        lambda usd, count, region, days: make_offer(
            "L4", usd, num_gpus=count, region=region, retrieved_at=NOW - timedelta(days=days)
        ),
        st.sampled_from([0.5, 1.0, 4.0]),
        st.sampled_from([1, 4, 8]),
        st.sampled_from(["us-east-1", "eu-west-1"]),
        st.integers(0, 3),
    ),
    max_size=12,
)


def place(offer: Offer) -> tuple[str, str]:
    return offer.provider, offer.region


@given(OFFERS, st.sampled_from(PriceOrder), st.randoms(use_true_random=False))
def test_the_order_is_a_matter_of_the_offers_alone(offers, order, luck):
    shuffled = luck.sample(offers, len(offers))
    first = {
        PriceOrder.PRICE: lambda o: o.usd_per_h,
        PriceOrder.GPU_PRICE: lambda o: o.usd_per_h / o.num_gpus,
        PriceOrder.AGE: lambda o: -o.retrieved_at.timestamp(),
        PriceOrder.PLACE: place,
    }[order]

    def keys_of(some: list[Offer]) -> list[tuple[object, ...]]:
        listed = _sorted([(offer, make_price(offer.usd_per_h)) for offer in some], order)
        return [(first(offer), offer.usd_per_h, place(offer)) for offer, _ in listed]

    assert keys_of(offers) == sorted(keys_of(offers))
    assert keys_of(offers) == keys_of(shuffled)


def test_a_guess_is_listed_by_its_p90():
    guess = make_offer("L4", 1.0), make_price(1.5, 3.0, QuoteKind.DERIVED)
    quoted = make_offer("L4", 2.0), make_price(2.0, 4.0)
    assert _sorted([guess, quoted], PriceOrder.PRICE) == [quoted, guess]


FILE = "/home/somebody/.advisor.yaml"
L4 = make_offer("L4", 1.0, num_gpus=1, region="us-east-1")
SPOT = replace(L4, market=Market.SPOT, list_usd_per_h=0.5)
LARGE = make_offer("L4", 8.0, num_gpus=8, region="us-west-2")
T4 = make_offer("T4", 0.4, num_gpus=16, region="eu-west-1")
ALL = (L4, SPOT, LARGE, T4)


def limited(origin: str = "flag", **cloud: Any) -> PricingSettings:
    origins = {f"cloud.{name}": origin for name in cloud}
    return Config(settings=Settings(cloud=cloud), origins=origins, warnings=()).pricing


def refusal(
    pricing: PricingSettings, offers: Iterable[Offer] = ALL, listener: Any = TERMINAL, **asked: Any
) -> str:
    gpus = tuple(asked.pop("gpus", ()))
    return str(
        nothing_left(pricing, OfferFilter(gpus=gpus, **{"wanted": {}, **asked}), tuple(offers), listener)
    )


def test_a_flag_is_named_with_the_number_and_the_cheapest_place():
    message = refusal(limited(regions=("eu-*",)), gpus=["L4"], wanted={"L4": set()})
    assert message == (
        "no offer with --region eu-*, --gpu L4. Without --region there are 3, the cheapest:"
        f" aws {L4.instance_type} in us-east-1, spot, 0.50 USD/h."
    )


def test_python_names_its_arguments():
    given = limited(ARGUMENT, regions=("eu-*",))
    message = refusal(given, listener=Listener(), gpus=["L4"], wanted={"L4": set()}, max_usd_per_h=1.0)
    assert "no offer with cloud.regions eu-*, gpus L4, max_usd_per_h 1." in message
    assert "--" not in message


def test_a_setting_is_named_with_the_file_that_set_it():
    message = refusal(limited(FILE, regions=("eu-*",)), gpus=["L4"], wanted={"L4": set()})
    assert f"no offer with cloud.regions: eu-* (set by {FILE}), --gpu L4. Without cloud.regions" in message


def test_a_default_is_told_only_where_it_is_in_the_way():
    small = refusal(limited(), gpus=["T4"], wanted={"T4": set()}, max_gpus=8)
    assert "--gpu T4, cloud.max_gpus: 8 (the default). Without cloud.max_gpus there is 1: aws" in small
    dear = refusal(limited(), max_usd_per_h=0.1, max_gpus=16)
    assert "cloud.max_gpus" not in dear
    assert "no offer with --max-price 0.1. Without --max-price there are 4" in dear


def test_the_number_of_gpus_is_a_limit_of_its_own():
    message = refusal(limited(regions=("us-east-1",)), gpus=["L4:8"], wanted={"L4": {8}})
    assert "no offer with --region us-east-1, --gpu L4:8. Without --region there is 1" in message
    fewer = refusal(limited(markets=("spot",)), [SPOT], gpus=["L4:8"], wanted={"L4": {8}})
    assert "Without the number in --gpu there is 1" in fewer


def test_where_one_is_not_enough_all_that_have_to_go_are_named():
    limits = limited(regions=("eu-*",), markets=("spot",))
    message = refusal(limits, [LARGE], gpus=["L4:8"], wanted={"L4": {8}})
    assert "Without --region and --market there is 1" in message


def test_what_nobody_rents_is_no_matter_of_limits():
    assert "no known price is of RTX-4090" in refusal(
        limited(), gpus=["RTX-4090"], wanted={"RTX-4090": set()}
    )
    assert "no source knows a price" in refusal(limited(), offers=())


@pytest.mark.parametrize("origin", ["flag", FILE])
def test_who_set_an_unknown_name_is_told_unless_it_was_typed(origin):
    with pytest.raises(InputError) as provider:
        check_providers(limited(origin, providers=("google",)), ["aws", "gcp"], TERMINAL)
    with pytest.raises(InputError) as region:
        check_regions(limited(origin, regions=("us-esat-1",)), lambda: [o.region for o in ALL], TERMINAL)
    assert "Did you mean 'gcp'? Known are aws, gcp; by name also azure, " in str(provider.value)
    assert "Did you mean 'us-east-1'" in str(region.value)
    for error in (provider, region):
        assert (f"(set by {FILE})" in str(error.value)) is (origin == FILE)


def test_a_provider_that_could_not_be_pulled_is_told_why(tmp_path):
    def told(providers: tuple[str, ...]) -> str:
        settings = Settings(cloud={"providers": providers}, store={"url": url})
        typed = Config(settings=settings, origins={"cloud.providers": "flag"}, warnings=())
        with pytest.raises(InputError) as caught:
            check_providers(typed.pricing, ["aws", "gcp"], TERMINAL)
        return str(caught.value)

    url = f"sqlite:///{tmp_path}/a.db"
    never = "there are no prices of provider 'Azure' yet: name it in the setting cloud.providers"
    assert told(("Azure",)).startswith(never)
    with open_store(url) as store:
        save_failure(store, "gpuhunt", "azure", "no network", datetime(2026, 11, 23, tzinfo=UTC))
    assert told(("Azure",)) == (
        "there are no prices of provider 'Azure' yet, and they could not be pulled: no network. Try again"
        " with `advisor prices refresh`."
    )
    assert "they could not be pulled" not in told(("lambda",))
    Path(tmp_path / "a.db").write_bytes(b"no database, and long enough to be looked at" * 100)
    assert told(("Azure",)).startswith(never)


def test_all_regions_are_read_only_for_what_is_not_at_hand():
    def never() -> Iterable[str]:
        raise AssertionError

    check_regions(limited(regions=("US-*", "*")), never, TERMINAL, {"us-east-1"})
    check_regions(limited(regions=("eu-*",)), lambda: ["eu-west-1"], TERMINAL, {"us-east-1"})


def test_of_several_numbers_one_that_exists_will_do_and_own_machines_count():
    check_counts(OfferFilter(gpus=["L4:1..8"], wanted={}), lambda: ALL)
    check_counts(OfferFilter(gpus=["L4:3"], wanted={}, own={("L4", 3)}), lambda: ALL)
    check_counts(OfferFilter(gpus=["RTX-4090:3"], wanted={}), lambda: ALL)
    with pytest.raises(InputError, match=r"'L4:3' asks for: there are machines with 1 or 8 of them"):
        check_counts(OfferFilter(gpus=["L4:3"], wanted={}), lambda: ALL)
    with pytest.raises(InputError, match=r"there are machines with 16 of them"):
        check_counts(OfferFilter(gpus=["T4:2"], wanted={}), lambda: ALL)


def test_vendors_have_the_catalogs_spelling():
    assert known_vendors(["amd", "NVIDIA"]) == {"AMD", "NVIDIA"}
    with pytest.raises(InputError, match=r"'nvidea' in the catalog\. Did you mean 'nvidia'"):
        known_vendors(["nvidea"])


LIMITS = (
    Limit(name="--region", text="--region a", keeps=lambda offer: offer.region == "a"),
    Limit(name="--market", text="--market spot", keeps=lambda offer: offer.market is Market.SPOT),
    Limit(name="--gpu", text="--gpu L4", keeps=lambda offer: offer.gpu == "L4", is_subject=True),
    Limit(name="--max-price", text="--max-price 2", keeps=lambda offer: offer.usd_per_h <= 2),
)
KNOWN_OFFERS = st.lists(
    st.builds(
        lambda gpu, usd, region, market: replace(make_offer(gpu, usd), region=region, market=market),
        st.sampled_from(["L4", "T4"]),
        st.sampled_from([1.0, 3.0]),
        st.sampled_from(["a", "b"]),
        st.sampled_from([Market.SPOT, Market.ON_DEMAND]),
    ),
    min_size=1,
    max_size=12,
)


def left_without(dropped: tuple[Limit, ...], offers: list[Offer]) -> tuple[Offer, ...]:
    rest = [limit for limit in LIMITS if limit not in dropped]
    return tuple(offer for offer in offers if all(limit.keeps(offer) for limit in rest))


def rank(dropped: tuple[Limit, ...], num_offers: int) -> tuple[int, bool, int]:
    return len(dropped), any(limit.is_subject for limit in dropped), num_offers


@given(KNOWN_OFFERS)
def test_no_smaller_set_helps_and_none_of_that_size_lets_in_fewer(offers):
    given_way, let_in = way_out(LIMITS, offers)
    assert let_in == left_without(given_way, offers)
    for size in range(len(given_way) + 1):
        for dropped in combinations(LIMITS, size):
            left = left_without(dropped, offers)
            assert not left or rank(dropped, len(left)) >= rank(given_way, len(let_in))


def test_the_gpu_gives_way_after_the_place_and_one_limit_before_two_that_would_let_in_fewer():
    elsewhere = [replace(make_offer("L4", 1.0), region="b", market=Market.SPOT)] * 3
    another = replace(make_offer("T4", 1.0), region="a", market=Market.SPOT)
    for other in (another, replace(another, market=Market.ON_DEMAND)):
        given_way, let_in = way_out(LIMITS, [*elsewhere, other])
        assert ([limit.name for limit in given_way], let_in) == (["--region"], tuple(elsewhere))
    assert [limit.name for limit in way_out(LIMITS, [another])[0]] == ["--gpu"]
    with pytest.raises(ValueError, match="no offer at all"):
        way_out(LIMITS, [])
