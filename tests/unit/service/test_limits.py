"""What is told where limits leave nothing: who set them, and which one has to give way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from advisor.cli.listening import TERMINAL
from advisor.config.layers import ARGUMENT, Config
from advisor.config.settings import Settings
from advisor.core.errors import InputError
from advisor.core.values import Market, Offer
from advisor.service.limits import check_providers, check_regions, known_vendors, nothing_left
from advisor.service.listening import Silence
from advisor.service.offer_filters import OfferFilter, check_counts
from advisor.store.database import open_store
from advisor.store.pulls import save_failure
from tests.builders import make_offer

FILE = "/home/somebody/.advisor.yaml"
L4 = make_offer("L4", 1.0, num_gpus=1, region="us-east-1")
SPOT = replace(L4, market=Market.SPOT, list_usd_per_h=0.5)
LARGE = make_offer("L4", 8.0, num_gpus=8, region="us-west-2")
T4 = make_offer("T4", 0.4, num_gpus=16, region="eu-west-1")
ALL = (L4, SPOT, LARGE, T4)


def config(origin: str = "flag", **cloud: Any) -> Config:
    origins = {f"cloud.{name}": origin for name in cloud}
    return Config(settings=Settings(cloud=cloud), origins=origins, warnings=())


def refusal(config: Config, offers: Iterable[Offer] = ALL, listener: Any = TERMINAL, **asked: Any) -> str:
    gpus = tuple(asked.pop("gpus", ()))
    return str(
        nothing_left(config, OfferFilter(gpus=gpus, **{"wanted": {}, **asked}), tuple(offers), listener)
    )


def test_a_flag_is_named_with_the_number_and_the_cheapest_place() -> None:
    message = refusal(config(regions=("eu-*",)), gpus=["L4"], wanted={"L4": set()})
    assert message == (
        "no offer with --region eu-*, --gpu L4. Without --region there are 3, the cheapest:"
        f" aws {L4.instance_type} in us-east-1, spot, 0.50 USD/h."
    )


def test_python_names_its_arguments() -> None:
    given = config(ARGUMENT, regions=("eu-*",))
    message = refusal(given, listener=Silence(), gpus=["L4"], wanted={"L4": set()}, max_usd_per_h=1.0)
    assert "no offer with cloud.regions eu-*, gpus L4, max_usd_per_h 1." in message
    assert "--" not in message


def test_a_setting_is_named_with_the_file_that_set_it() -> None:
    message = refusal(config(FILE, regions=("eu-*",)), gpus=["L4"], wanted={"L4": set()})
    assert f"no offer with cloud.regions: eu-* (set by {FILE}), --gpu L4. Without cloud.regions" in message


def test_a_default_is_told_only_where_it_is_in_the_way() -> None:
    small = refusal(config(), gpus=["T4"], wanted={"T4": set()}, max_gpus=8)
    assert "--gpu T4, cloud.max_gpus: 8 (the default). Without cloud.max_gpus there is 1: aws" in small
    dear = refusal(config(), max_usd_per_h=0.1, max_gpus=16)
    assert "cloud.max_gpus" not in dear
    assert "no offer with --max-price 0.1. Without --max-price there are 4" in dear


def test_the_number_of_gpus_is_a_limit_of_its_own() -> None:
    message = refusal(config(regions=("us-east-1",)), gpus=["L4:8"], wanted={"L4": {8}})
    assert "no offer with --region us-east-1, --gpu L4:8. Without --region there is 1" in message
    fewer = refusal(config(markets=("spot",)), [SPOT], gpus=["L4:8"], wanted={"L4": {8}})
    assert "Without the number in --gpu there is 1" in fewer


def test_where_one_is_not_enough_all_that_have_to_go_are_named() -> None:
    limits = config(regions=("eu-*",), markets=("spot",))
    message = refusal(limits, [LARGE], gpus=["L4:8"], wanted={"L4": {8}})
    assert "Without --region and --market there is 1" in message


def test_what_nobody_rents_is_no_matter_of_limits() -> None:
    assert "no known price is of RTX-4090" in refusal(config(), gpus=["RTX-4090"], wanted={"RTX-4090": set()})
    assert "no source knows a price" in refusal(config(), offers=())


@pytest.mark.parametrize("origin", ["flag", FILE])
def test_who_set_an_unknown_name_is_told_unless_it_was_typed(origin: str) -> None:
    with pytest.raises(InputError) as provider:
        check_providers(config(origin, providers=("google",)), ["aws", "gcp"], TERMINAL)
    with pytest.raises(InputError) as region:
        check_regions(config(origin, regions=("us-esat-1",)), lambda: [o.region for o in ALL], TERMINAL)
    assert "Did you mean 'gcp'? Known are aws, gcp; by name also azure, " in str(provider.value)
    assert "Did you mean 'us-east-1'" in str(region.value)
    for error in (provider, region):
        assert (f"(set by {FILE})" in str(error.value)) is (origin == FILE)


def test_a_provider_that_could_not_be_pulled_is_told_why(tmp_path: Path) -> None:
    def told(providers: tuple[str, ...]) -> str:
        settings = Settings(cloud={"providers": providers}, store={"url": url})
        typed = Config(settings=settings, origins={"cloud.providers": "flag"}, warnings=())
        with pytest.raises(InputError) as caught:
            check_providers(typed, ["aws", "gcp"], TERMINAL)
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


def test_all_regions_are_read_only_for_what_is_not_at_hand() -> None:
    def never() -> Iterable[str]:
        raise AssertionError

    check_regions(config(regions=("US-*", "*")), never, TERMINAL, {"us-east-1"})
    check_regions(config(regions=("eu-*",)), lambda: ["eu-west-1"], TERMINAL, {"us-east-1"})


def test_of_several_numbers_one_that_exists_will_do_and_own_machines_count() -> None:
    check_counts(OfferFilter(gpus=["L4:1..8"], wanted={}), lambda: ALL)
    check_counts(OfferFilter(gpus=["L4:3"], wanted={}, own={("L4", 3)}), lambda: ALL)
    check_counts(OfferFilter(gpus=["RTX-4090:3"], wanted={}), lambda: ALL)
    with pytest.raises(InputError, match=r"'L4:3' asks for: there are machines with 1 or 8 of them"):
        check_counts(OfferFilter(gpus=["L4:3"], wanted={}), lambda: ALL)
    with pytest.raises(InputError, match=r"there are machines with 16 of them"):
        check_counts(OfferFilter(gpus=["T4:2"], wanted={}), lambda: ALL)


def test_vendors_have_the_catalogs_spelling() -> None:
    assert known_vendors(["amd", "NVIDIA"]) == {"AMD", "NVIDIA"}
    with pytest.raises(InputError, match=r"'nvidea' in the catalog\. Did you mean 'nvidia'"):
        known_vendors(["nvidea"])
