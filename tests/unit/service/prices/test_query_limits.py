"""Names that nothing has, and the smallest set of limits that has to give way."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.cli.listening import TERMINAL
from advisor.config.layers import ARGUMENT, Config, PricingSettings
from advisor.config.settings import Settings
from advisor.core.errors import InputError
from advisor.core.values import Market, Offer
from advisor.service.listening import Listener
from advisor.service.prices.query_limits import (
    Limit,
    OfferFilter,
    check_counts,
    check_providers,
    check_regions,
    known_vendors,
    nothing_left,
    way_out,
)
from advisor.store.database import open_store
from advisor.store.pulls import save_failure
from tests.builders import make_offer

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
OFFERS = st.lists(
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


@given(OFFERS)
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
