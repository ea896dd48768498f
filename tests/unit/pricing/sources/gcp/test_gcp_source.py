"""The source against a local server: pages, retries, faults, credentials; it needs no reference data."""

import json
from datetime import UTC, datetime

import pytest

from advisor.core.errors import ConfigError
from advisor.core.plugins import load
from advisor.core.values import Market
from advisor.pricing.sources.gcp import gcp_source
from advisor.pricing.sources.gcp.client import ENDPOINT_VARIABLE, ApiPatience, failure_in_words
from advisor.pricing.sources.gcp.gcp_source import MARKETS, GcpSource
from advisor.pricing.sources.protocol import Credentials, OfferQuery, Part, PriceSource
from tests.clouds.gcp_server import SECRETS, Behaviour, serving
from tests.clouds.gcp_skus import sku
from tests.clouds.gcp_waits import waiting_by

NOW = datetime(2026, 11, 21, 12, 30, tzinfo=UTC)
PATIENT = ApiPatience()
# Against who never answers.
HURRIED = ApiPatience(call_s=1.0, first_wait_s=0.001, longest_wait_s=0.05, total_s=1.5)
WHERE = ("us-central1", "us-east1", "us-west1")
A2 = (
    sku("CORE", "A2 Instance Core running in Americas", WHERE, 0.031611),
    sku("RAM", "A2 Instance Ram running in Americas", WHERE, 0.004237, unit="GiBy.h"),
    sku("GPU", "Nvidia Tesla A100 GPU running in Americas", WHERE, 2.933908),
)
OTHERS = tuple(sku(f"E2-{n}", f"E2 Instance Core number {n}", WHERE, 0.02) for n in range(7))
QUERY = OfferQuery(regions=("us-central1",), markets=(Market.ON_DEMAND,))
PASSING = ("429", "500", "503", "garbled", "wrong shape", "not text", "cut off")


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """Of the waits between retries."""
    return waiting_by(monkeypatch)


@pytest.fixture
def behaviour(monkeypatch):
    """Four pages: the parts of an A2 lie on three of them."""
    skus = [A2[0], *OTHERS[:3], A2[1], *OTHERS[3:], A2[2]]
    behaviour = Behaviour(skus=skus, largest_page=3)
    with serving(behaviour) as server:
        monkeypatch.setenv(ENDPOINT_VARIABLE, server.url)
        yield behaviour


def pull(query: OfferQuery = QUERY, *, patience: ApiPatience = PATIENT) -> list[Part]:
    return list(GcpSource(patience, clock=lambda: NOW).offers(query))


def failure(*, patience: ApiPatience = PATIENT) -> str:
    """The one part that tells what went wrong, with nothing else in it."""
    (part,) = pull(OfferQuery(), patience=patience)
    assert part == Part(scope="compute engine", failure=part.failure)
    assert part.failure is not None
    assert not [secret for secret in SECRETS if secret in part.failure]
    return part.failure


# --- A good day -----------------------------------------------------------------------------------


def test_pages_are_read_to_the_end(behaviour):
    (part,) = pull()
    assert part.scope == "us-central1 on-demand"
    prices = {offer.instance_type: offer.list_usd_per_h for offer in part.offers}
    assert prices["a2-highgpu-1g"] == 3.673385
    assert prices["a2-highgpu-8g"] == 29.38708
    assert {offer.retrieved_at for offer in part.offers} == {NOW}
    assert [call.get("pageToken") for call in behaviour.calls] == [None, "3", "6", "9"]
    assert {(call["pageSize"], call["currencyCode"]) for call in behaviour.calls} == {("5000", "USD")}


def test_a_stand_in_needs_no_credentials_and_gets_none(behaviour):
    assert GcpSource().credentials() is Credentials.NOT_NEEDED
    assert not behaviour.calls
    pull()
    assert all("authorization" not in map(str.lower, headers) for headers in behaviour.headers)


def test_a_part_for_each_region_and_market_whatever_it_holds(behaviour):
    parts = pull(OfferQuery())
    scopes = [part.scope for part in parts]
    assert len(set(scopes)) == len(scopes)
    regions = {scope.split(" ")[0] for scope in scopes}
    assert set(scopes) == {f"{region} {market}" for region in regions for market in MARKETS}
    assert {"us-central1", "europe-west4", "southamerica-east1"} < regions
    assert {o.region for part in parts for o in part.offers} == set(WHERE)
    behaviour.skus = A2[:2]
    assert [part.scope for part in pull(OfferQuery())] == scopes


def test_gaps_name_machine_region_market_and_component(behaviour):
    behaviour.skus = A2[:2]
    (part,) = pull()
    assert not part.offers
    assert "a2-highgpu-1g us-central1 on-demand: no price of A100-40GB GPU (no SKU)" in part.gaps


@pytest.mark.parametrize(
    ("query", "scopes", "machines"),
    [
        (
            OfferQuery(regions=("US-EAST*",), markets=(Market.SPOT,)),
            {"us-east1 spot", "us-east4 spot"},
            set(),
        ),
        (OfferQuery(providers=("aws",)), set(), set()),
        (OfferQuery(regions=("mars-*",)), set(), set()),
        (OfferQuery(gpus=("MI300X",)), set(), set()),
        (OfferQuery(markets=(Market.CAPACITY_BLOCK,)), set(), set()),
        (
            OfferQuery(regions=("us-west1",), markets=(Market.ON_DEMAND,), gpus=("A100-SXM-40GB",)),
            {"us-west1 on-demand"},
            {"a2-highgpu-1g", "a2-highgpu-2g", "a2-highgpu-4g", "a2-highgpu-8g"},
        ),
        (
            OfferQuery(regions=("us-west1",), markets=(Market.ON_DEMAND,), max_usd_per_h=8),
            {"us-west1 on-demand"},
            {"a2-highgpu-1g", "a2-highgpu-2g"},
        ),
        (
            OfferQuery(regions=("us-west1",), markets=(Market.ON_DEMAND,), num_gpus=(4,)),
            {"us-west1 on-demand"},
            {"a2-highgpu-4g"},
        ),
    ],
)
def test_only_what_was_asked_for(behaviour, query, scopes, machines):
    parts = pull(query)
    assert scopes <= {part.scope for part in parts}
    assert bool(scopes) == bool(parts)
    assert {offer.instance_type for part in parts for offer in part.offers} == machines
    assert all(query.matches(offer) for part in parts for offer in part.offers)
    assert bool(behaviour.calls) == bool(scopes)


def test_gaps_are_of_the_machines_asked_for(behaviour):
    (part,) = pull(OfferQuery(regions=("us-central1",), markets=(Market.SPOT,), gpus=("L4",), num_gpus=(8,)))
    assert [gap.split(" ")[0] for gap in part.gaps] == ["g2-standard-96"]


# --- A bad day ------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", PASSING)
@pytest.mark.parametrize("call", [0, 2])
def test_a_fault_that_passes_is_tried_again(behaviour, fault, call):
    behaviour.faults = {call: fault}
    (part,) = pull()
    assert "a2-highgpu-1g" in {offer.instance_type for offer in part.offers}
    tokens = [call.get("pageToken") for call in behaviour.calls]
    assert len(tokens) == 5
    assert tokens[call] == tokens[call + 1]


@pytest.mark.parametrize("fault", [*PASSING, "401", "403", "slow"])
def test_if_a_page_in_the_middle_fails_nothing_counts(behaviour, fault):
    """Half a list would look like machines that cannot be priced."""
    behaviour.faults = dict.fromkeys(range(2, 1000), fault)
    failure(patience=HURRIED if fault == "slow" else PATIENT)
    assert len(behaviour.calls) > 2


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("401", ["refused the credentials", "expired", "gcloud auth application-default login"]),
        ("403", ["permission denied", "cloudbilling.googleapis.com", "serviceUsageConsumer"]),
        ("403 disabled", ["not enabled", "gcloud services enable cloudbilling.googleapis.com"]),
        ("429", ["too many requests", "Try again in a minute"]),
        ("500", ["error 500", "Try again later"]),
        ("503", ["error 503", "Try again later"]),
        ("slow", ["did not answer in time", "Try again later"]),
        ("cut off", ["cut off or cannot be read", "check the proxy"]),
        ("garbled", ["cut off or cannot be read", "check the proxy"]),
        ("wrong shape", ["cut off or cannot be read"]),
        ("not text", ["cut off or cannot be read"]),
        ("empty", ["cut off or cannot be read"]),
        ("loop", ["cut off or cannot be read"]),
    ],
)
def test_each_fault_says_what_to_do(behaviour, fault, words):
    behaviour.always = fault
    message = failure(patience=HURRIED if fault == "slow" else PATIENT)
    assert not [word for word in words if word not in message], message


@pytest.mark.parametrize("fault", ["401", "403", "403 disabled"])
def test_what_does_not_pass_is_not_tried_again(behaviour, fault):
    behaviour.always = fault
    failure()
    assert len(behaviour.calls) == 1


def test_what_may_pass_is_tried_again_for_as_long_as_patience_lasts(behaviour, clock):
    behaviour.always = "503"
    failure(patience=ApiPatience(first_wait_s=1.0, longest_wait_s=8.0, total_s=30.0))
    assert 22.0 <= clock.now_s <= 30.0, "the wait that would have gone beyond is left out"
    assert len(behaviour.calls) > 3


def test_nobody_listens(monkeypatch):
    with serving(Behaviour(skus=())) as server:
        url = server.url
    monkeypatch.setenv(ENDPOINT_VARIABLE, url)
    assert "cannot reach cloudbilling.googleapis.com" in failure()


def test_what_google_auth_says_is_not_repeated():
    from google.auth.exceptions import RefreshError, TransportError

    message = failure_in_words(RefreshError(f"invalid_grant: {SECRETS[0]}", {"error": SECRETS[1]}))
    assert message.startswith("Google refused the credentials: they are expired or revoked.")
    assert "cannot reach" in failure_in_words(TransportError(SECRETS[0]))


# --- Credentials ----------------------------------------------------------------------------------


@pytest.fixture
def stranger(monkeypatch, tmp_path):
    """A machine on which nobody ever logged in."""
    for name in (ENDPOINT_VARIABLE, "GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_CONFIG", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setattr("advisor.pricing.sources.gcp.client.PRODUCT_NAME", tmp_path / "product_name")
    return tmp_path


def test_without_credentials_the_source_says_how_to_get_some(stranger):
    assert GcpSource().credentials() is Credentials.MISSING
    assert "gcloud auth application-default login" in failure()


@pytest.mark.parametrize(
    "text", ["{}", "not json", json.dumps({"type": "service_account", "private_key": SECRETS[1]})]
)
def test_a_broken_key_file_is_no_traceback(stranger, monkeypatch, text):
    key = stranger / "key.json"
    key.write_text(text, encoding="utf-8")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(key))
    assert GcpSource().credentials() is Credentials.FOUND
    assert "credentials" in failure()


@pytest.mark.parametrize("place", ["gcloud's folder", "another folder of gcloud", "named file"])
def test_where_credentials_are_looked_for(stranger, monkeypatch, place):
    folder = stranger / (".config/gcloud" if place == "gcloud's folder" else "elsewhere")
    folder.mkdir(parents=True)
    file = folder / "application_default_credentials.json"
    if place == "another folder of gcloud":
        monkeypatch.setenv("CLOUDSDK_CONFIG", str(folder))
    if place == "named file":
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    assert GcpSource().credentials() is Credentials.MISSING
    file.write_text("{}", encoding="utf-8")
    assert GcpSource().credentials() is Credentials.FOUND


@pytest.mark.parametrize(
    ("product", "mode"), [("Google Compute Engine\n", Credentials.FOUND), ("HVM domU\n", Credentials.MISSING)]
)
def test_a_machine_of_google_has_credentials(stranger, product, mode):
    (stranger / "product_name").write_text(product, encoding="utf-8")
    assert GcpSource().credentials() is mode


def test_an_api_key_serves_where_nobody_has_logged_in(stranger, monkeypatch):
    from google.cloud.billing_v1 import CloudCatalogClient

    monkeypatch.setenv("GOOGLE_API_KEY", SECRETS[1])
    assert GcpSource().credentials() is Credentials.FOUND
    with serving(Behaviour(skus=[*A2, *OTHERS])) as server:
        monkeypatch.setattr(CloudCatalogClient, "_DEFAULT_ENDPOINT_TEMPLATE", server.url)
        assert any(part.offers for part in pull())
        assert {headers.get("x-goog-api-key") for headers in server.behaviour.headers} == {SECRETS[1]}
        assert not any(SECRETS[1] in str(call) for call in server.behaviour.calls), "not in an address"
        server.behaviour.always = "403"
        assert "GOOGLE_API_KEY must be allowed" in failure()


# --- The plug-in ----------------------------------------------------------------------------------


def test_it_is_a_price_source_without_options_found_by_its_entry_point():
    source: PriceSource = load("advisor.price_sources", "gcp")({})
    assert (source.name, source.capabilities.providers) == ("gcp", ("gcp",))
    assert source.capabilities.is_live
    assert Market.CAPACITY_BLOCK not in source.capabilities.markets
    assert not source.freshness()
    with pytest.raises(ConfigError, match="'gcp' has no option 'regoin'"):
        gcp_source({"regoin": "us-central1"})
