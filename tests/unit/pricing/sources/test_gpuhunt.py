"""Many clouds by gpuhunt: its own files read by its own code, from a folder and from a real server."""

import gc
import importlib
import io
import logging
import os
import subprocess
import sys
import threading
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import gpuhunt
import pytest
from gpuhunt._internal.catalog import OFFLINE_PROVIDERS, ONLINE_PROVIDERS

from advisor.core.errors import ConfigError
from advisor.core.units import MB
from advisor.core.values import Market
from advisor.pricing.providers import PriceAccess, load_providers
from advisor.pricing.sources import http_downloads as downloads
from advisor.pricing.sources.gpuhunt import (
    CATALOG_DIR,
    CATALOG_URL,
    PROVIDERS,
    URL_VARIABLE,
    GpuhuntSource,
    day_of,
    gpuhunt_source,
    offers_of,
)
from advisor.pricing.sources.http_downloads import Allowance
from advisor.pricing.sources.protocol import Credentials, OfferQuery, Part
from tests.clouds import hostile_server as hostile
from tests.clouds.hostile_server import attacking
from tests.gpuhunt_catalogs import ANY, NOW, gpuhunt_version, item, part_of, parts_of, publish, write
from tests.web import served

# gpuhunt leaves files to the garbage collector, which then complains.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(autouse=True)
def nothing_left_behind(monkeypatch):
    """So that what a test leaves behind is collected in that test."""
    monkeypatch.setattr(logging.getLogger("gpuhunt"), "propagate", False)
    monkeypatch.delenv(CATALOG_DIR, raising=False)
    yield
    gc.collect(1)  # it is young, and all that was ever imported is much to look through


# --- A folder ---------------------------------------------------------------------------------------


def test_the_query_counts(tmp_path):
    write(tmp_path, "lambdalabs", item(), item("b", location="eu-1"), item("dear", 9.0))
    write(tmp_path, "oci", item(provider="oci"))
    query = OfferQuery(providers=("lambda",), gpus=("A10",), max_usd_per_h=0.75)
    (part,) = parts_of(tmp_path, "oci", "lambda", query=query)
    assert (part.scope, [offer.region for offer in part.offers]) == ("lambda", ["us-west-1", "eu-1"])
    assert parts_of(tmp_path, "oci", query=OfferQuery(providers=("aws",))) == []


def test_a_catalog_is_kept_whole_whatever_regions_were_asked_for(tmp_path):
    """A refresh of one region lost what was known of all others."""
    write(tmp_path, "lambdalabs", item(), item("b", location="eu-1"))
    (part,) = parts_of(tmp_path, "lambda", query=OfferQuery(regions=("eu-*",)))
    assert {offer.region for offer in part.offers} == {"us-west-1", "eu-1"}


def test_a_provider_fails_alone(tmp_path):
    write(tmp_path, "oci", item(provider="oci"))
    write(tmp_path, "nebius")
    azure, oci, nebius = parts_of(tmp_path, "azure", "oci", "nebius")
    assert (len(oci.offers), oci.failure) == (1, None)
    assert azure.failure == f"there is no azure.csv in {str(tmp_path)!r}"
    assert nebius.failure == "no price of nebius could be read: it names no machine with a GPU"
    assert (azure.offers, nebius.offers) == ((), ())


def test_the_environment_is_left_as_it_was(tmp_path, monkeypatch):
    part_of(tmp_path, item())
    assert CATALOG_DIR not in os.environ
    monkeypatch.setenv(CATALOG_DIR, "elsewhere")
    assert part_of(tmp_path, item()).offers
    parts_of(tmp_path, "azure")
    assert os.environ[CATALOG_DIR] == "elsewhere"


def test_nothing_of_gpuhunts_messages_reaches_the_terminal(tmp_path):
    write(tmp_path, "oci", item(provider="oci"), more="x,y,z\n")
    code = (
        "from advisor.pricing.sources.gpuhunt import gpuhunt_source; from advisor.pricing import OfferQuery;"
        f"s = gpuhunt_source({{'providers': ['oci', 'azure'], 'catalog_dir': {str(tmp_path)!r}}});"
        "print(len(list(s.offers(OfferQuery()))))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (answer.stdout, answer.stderr) == ("2\n", "")


def test_a_catalog_of_another_form_is_a_failure_not_an_empty_cloud(tmp_path):
    """Every row lacked its price, and all messages about that were the reason."""
    rows = "\n".join(f"gpu_{n}x_a10,us-west-1" for n in range(1000))
    (tmp_path / "lambdalabs.csv").write_text(f"instance_type,place\n{rows}\n")
    (part,) = parts_of(tmp_path, "lambda")
    assert "could be read" in (part.failure or "")
    assert "Required field" in (part.failure or "")
    assert "... and 997 more messages of gpuhunt" in (part.failure or "")


# --- The published catalogs, from a server ----------------------------------------------------------


@pytest.fixture
def bucket(tmp_path):
    """A folder, and where a server shows it as gpuhunt's own bucket."""
    with served(tmp_path) as url:
        yield tmp_path, url


def pulled(url: str, *providers: str) -> list[Part]:
    """In the order in which the providers were named."""
    parts = {part.scope: part for part in GpuhuntSource(providers, url=url).offers(ANY)}
    return [parts[name] for name in providers]


def test_published_catalogs_are_dated_by_their_version(bucket):
    root, url = bucket
    publish(root, "azure", "20261119-7", item("Standard_NV36ads_A10_v5", provider="azure"))
    (part,) = pulled(url, "azure")
    (offer,) = part.offers
    assert offer.retrieved_at == datetime(2026, 11, 19, tzinfo=UTC)
    assert offer.source == f"gpuhunt {gpuhunt_version()}, catalog 20261119-7"
    assert (offer.provider, offer.gpu, part.gaps) == ("azure", "A10", ())


def test_an_old_catalog_that_is_pulled_today_stays_old(bucket):
    root, url = bucket
    publish(root, "azure", "20250101", item(provider="azure"))
    (part,) = pulled(url, "azure")
    assert {offer.retrieved_at for offer in part.offers} == {datetime(2025, 1, 1, tzinfo=UTC)}


def test_only_catalogs_of_whom_is_asked_are_fetched(bucket):
    root, url = bucket
    publish(root, "aws", "20261119-7", item("p5.48xlarge", 55.0, provider="aws", gpu_count=8))
    publish(root, "gcp", "20261119-7", item("g2-standard-4", provider="gcp", location="us-central1-a"))
    (root / "azure").mkdir()  # its version would be a failure
    parts = list(GpuhuntSource(PROVIDERS, url=url).offers(ANY))
    assert {part.scope: part.failure for part in parts} == {"aws": None, "gcp": None}


def test_a_catalog_that_is_not_published_fails_alone_with_the_reason(bucket):
    root, url = bucket
    publish(root, "azure", "20261119-7", item(provider="azure"))
    azure, oci = pulled(url, "azure", "oci")
    assert (len(azure.offers), azure.failure) == (1, None)
    assert oci.failure == (
        "gpuhunt's catalog of oci: 127.0.0.1 has no such file (404): it may have moved: update advisor and"
        " its packages, or look at the proxy"
    )


@pytest.mark.parametrize(
    "version", ["latest", "2026-11-19", "20261345", "20261119-7/../../x", "", "9" * 1000]
)
def test_a_version_without_a_day_is_a_failure_not_a_fresh_price(bucket, version):
    root, url = bucket
    publish(root, "azure", "20261119-7", item(provider="azure"))
    (root / "azure" / "version").write_text(version)
    (part,) = pulled(url, "azure")
    assert (part.offers, "which names no day" in (part.failure or "")) == ((), True)
    assert len(part.failure or "") < 200


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-30])


def other_member(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../../azure.csv", "x")


def bomb(path: Path) -> None:
    """A tenth of a megabyte that unpacks to a hundred and fifty."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("azure.csv", bytes(150 * MB))
    path.write_bytes(packed.getvalue())


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[60] ^= 255
    path.write_bytes(bytes(content))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (cut, "cannot be unpacked: it was cut off, or is none"),
        (flipped, "cannot be unpacked"),
        (lambda path: path.write_bytes(b"<html>Please log in</html>"), "cannot be unpacked"),
        (lambda path: path.write_bytes(b""), "cannot be unpacked"),
        (other_member, "its archive holds no azure.csv: update gpuhunt and advisor"),
        (bomb, "unpacks to more than 128 MB"),
    ],
)
def test_an_archive_that_is_none(bucket, damage, words):
    root, url = bucket
    path = publish(root, "azure", "20261119-7", *(item(f"a{n}", provider="azure") for n in range(20)))
    publish(root, "oci", "20261119-7", item(provider="oci"))
    damage(path)
    azure, oci = pulled(url, "azure", "oci")
    assert words in (azure.failure or "")
    assert "\n" not in (azure.failure or "")
    assert (azure.offers, len(oci.offers)) == ((), 1)
    assert not (root.parent / "azure.csv").exists()


@pytest.mark.parametrize(
    ("attack", "words"),
    [
        (hostile.dripping_body, "did not send the file within 1 s"),
        (hostile.dripping_head, "did not send the file within 1 s"),
        (hostile.silent, "did not send the file within 1 s"),
        (hostile.closing, "cannot reach 127.0.0.1"),
        (hostile.endless_body, "more than 32 MB"),
        (hostile.zip_bomb, "more than 32 MB"),
        (hostile.redirecting, "sends to another address (302), which is not followed"),
        (hostile.web_page, "which names no day"),
        (hostile.image, "which names no day"),
        (hostile.throttling, "answered with the error 429: try again later"),
    ],
)
def test_a_server_that_misbehaves_is_one_line_in_time(attack, words, monkeypatch):
    """gpuhunt's own download waited for ever, and kept all that came."""
    if attack in hostile.SLOW:
        monkeypatch.setattr(downloads.download, "__kwdefaults__", {"within_s": 1.0})
    with attacking(attack) as url:
        (part,) = pulled(url, "azure")
    assert words in (part.failure or "")
    assert "\n" not in (part.failure or "")


def test_without_a_network_every_provider_says_so():
    for url, words in (
        ("http://127.0.0.1:9", "cannot reach 127.0.0.1: check the network"),
        ("http://nothing.invalid", "the name nothing.invalid cannot be looked up: no network"),
        ("file:///etc/passwd", "no address that can be asked"),
    ):
        for part in pulled(url, "azure", "oci"):
            assert part.failure is not None
            assert part.failure.startswith(f"gpuhunt's catalog of {part.scope}: ")
            assert words in part.failure


def test_what_one_pull_may_send_is_bounded_over_all_providers(bucket, monkeypatch):
    root, url = bucket
    for provider in ("azure", "oci", "nebius"):
        publish(root, provider, "20261119-7", item(provider=provider))
    size = len((root / "azure/20261119-7/catalog.zip").read_bytes())
    monkeypatch.setattr("advisor.pricing.sources.http_downloads.PULL_BYTES", 2 * size)
    monkeypatch.setattr("advisor.pricing.sources.gpuhunt.Allowance", lambda: Allowance(2 * size))
    failures = [part.failure for part in pulled(url, "azure", "oci", "nebius")]
    assert any(failure is not None and "no true file holds" in failure for failure in failures)


def test_nothing_is_left_in_the_temporary_folder(bucket, monkeypatch, tmp_path_factory):
    root, url = bucket
    publish(root, "azure", "20261119-7", item(provider="azure"))
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    pulled(url, "azure", "oci")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(("version", "day"), [("20260720", 20), ("20260720-1", 20), ("20260731-2b", 31)])
def test_the_day_of_a_version(version, day):
    assert day_of(version) == datetime(2026, 7, day, tzinfo=UTC)


def test_a_version_without_a_day_has_none():
    with pytest.raises(ValueError, match="names no day"):
        day_of("latest")


# --- Asked directly ---------------------------------------------------------------------------------


def with_offers(monkeypatch: pytest.MonkeyPatch, *items: gpuhunt.CatalogItem) -> None:
    """Vast answers these to gpuhunt."""
    module = importlib.import_module("gpuhunt.providers.vastai")
    monkeypatch.setattr(module.VastAIProvider, "get", lambda *_, **__: list(items))


def test_prices_that_are_asked_for_directly_are_of_now(monkeypatch):
    hosts = [
        item(str(number), price, provider="vastai", location="us-texas", gpu_name="RTX4090", gpu_memory=24.0)
        for number, price in ((4711, 0.5), (4712, 0.4))
    ]
    with_offers(monkeypatch, *hosts)
    (part,) = GpuhuntSource(["vast"], url="http://127.0.0.1:9", clock=lambda: NOW).offers(ANY)
    (offer,) = part.offers
    assert (offer.provider, offer.instance_type, offer.gpu, offer.usd_per_h) == (
        "vast", "1x RTX4090", "RTX-4090", 0.4,
    )  # fmt: skip
    assert (offer.retrieved_at, offer.region) == (NOW, "us-texas")
    assert offer.source == f"gpuhunt {gpuhunt_version()}, asked directly, community host"


def test_a_provider_that_does_not_answer_gpuhunt_keeps_nobody_waiting_for_long(bucket, monkeypatch):
    """gpuhunt's own limit is for one packet; the catalogs come first."""
    root, url = bucket
    publish(root, "azure", "20261119-7", item(provider="azure"))
    answered = threading.Event()
    module = importlib.import_module("gpuhunt.providers.vastai")
    monkeypatch.setattr(module.VastAIProvider, "get", lambda *_, **__: [answered.wait(60)])
    monkeypatch.setattr("advisor.pricing.sources.gpuhunt.ASKED_WITHIN_S", 0.2)
    parts = list(GpuhuntSource(["vast", "azure"], url=url).offers(ANY))
    answered.set()
    assert [(part.scope, part.failure) for part in parts] == [
        ("azure", None), ("vast", "no answer within 200 ms: try again later"),
    ]  # fmt: skip


def test_a_provider_that_needs_an_account_says_so(monkeypatch):
    monkeypatch.delenv("CRUSOE_ACCESS_KEY", raising=False)
    (part,) = pulled("http://127.0.0.1:9", "crusoe")
    assert part.failure == "MissingCredsError: Set the CRUSOE_ACCESS_KEY environment variable"


def test_keys_in_urls_are_not_repeated(monkeypatch, tmp_path):
    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError("401 for url: https://api.example/v1/offers?api_key=hunter2&x=1 (denied)")

    monkeypatch.setattr(gpuhunt.Catalog, "query", refuse)
    (part,) = parts_of(tmp_path, "azure")
    assert part.failure == "OSError: 401 for url: https://api.example/v1/offers?*** (denied)"


# --- The source -------------------------------------------------------------------------------------


def test_the_package_is_imported_only_when_asked():
    code = (
        "import sys; from advisor.pricing.sources.gpuhunt import gpuhunt_source as s; x = s({});"
        "x.freshness(), x.credentials(), x.capabilities;"
        "print({'gpuhunt', 'requests'} & set(sys.modules))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout == "set()\n"


def test_the_table_of_providers_is_gpuhunts():
    """What it publishes or asks for anew must be written down here, and is then one setting away."""
    by_access = {
        access: {provider.gpuhunt_name for provider in load_providers().values() if provider.access is access}
        for access in PriceAccess
    }
    assert by_access == {
        PriceAccess.PUBLISHED: set(OFFLINE_PROVIDERS),
        PriceAccess.ASKED: set(ONLINE_PROVIDERS),
    }


def test_the_bucket_is_gpuhunts_own():
    assert CATALOG_URL == gpuhunt._internal.catalog.CATALOG_URL


def test_options(tmp_path, monkeypatch):
    assert gpuhunt_source({}).capabilities.providers == PROVIDERS == ("aws", "gcp")
    names = ["OCI", "azure", "oci", "lambdalabs", "vastai"]
    assert gpuhunt_source({"providers": names}).capabilities.providers == ("oci", "azure", "lambda", "vast")
    write(tmp_path, "oci", item(provider="oci"))
    monkeypatch.setenv("HOME", str(tmp_path.parent))
    for options in ({"catalog_dir": str(tmp_path)}, {"catalog_dir": f"~/{tmp_path.name}"}):
        assert next(iter(gpuhunt_source({"providers": ["oci"]} | options).offers(ANY))).offers
    monkeypatch.setenv(CATALOG_DIR, str(tmp_path))
    assert next(iter(gpuhunt_source({"providers": ["oci"]}).offers(ANY))).offers


def test_where_the_catalogs_are_can_be_set(bucket, monkeypatch):
    root, url = bucket
    publish(root, "oci", "20261119-7", item(provider="oci"))
    (part,) = gpuhunt_source({"providers": ["oci"], "url": f"{url}/"}).offers(ANY)
    assert part.offers
    monkeypatch.setenv(URL_VARIABLE, url)
    (part,) = gpuhunt_source({"providers": ["oci"]}).offers(ANY)
    assert part.offers


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"providers": "azure"}, r"providers must be a list such as \[azure\]; got 'azure'"),
        ({"providers": [1]}, "providers must be a list"),
        ({"providers": ["lamda"]}, "no prices of 'lamda'.*Did you mean 'lambda'"),
        ({"catalog_dir": 5}, "catalog_dir must be a folder; got 5"),
        ({"url": 5}, "url must be an address; got 5"),
        ({"catalogdir": "x"}, "Did you mean 'catalog_dir'"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        gpuhunt_source(options)


def test_a_provider_whose_rows_cannot_be_turned_fails_alone(tmp_path, monkeypatch):
    def turned(items: Any, provider: Any, retrieval: Any) -> Any:
        if provider.name == "oci":
            raise TypeError("rows of https://me:pw@oci.test?key=1")
        return offers_of(items, provider, retrieval)

    monkeypatch.setattr("advisor.pricing.sources.gpuhunt.offers_of", turned)
    write(tmp_path, "oci", item(provider="oci"))
    write(tmp_path, "lambdalabs", item())
    failed, kept = parts_of(tmp_path, "oci", "lambda")
    assert failed.failure == "TypeError: rows of https://***@oci.test?***"
    assert len(kept.offers) == 1


def test_it_is_live_holds_nothing_and_does_not_know_all():
    source = gpuhunt_source({})
    assert (source.capabilities.is_live, source.capabilities.knows_all) == (True, False)
    assert source.capabilities.markets == (Market.ON_DEMAND, Market.SPOT)
    assert (source.freshness(), source.credentials()) == ((), Credentials.NOT_NEEDED)


def test_loggers_are_left_as_they_were(tmp_path):
    before = list(logging.getLogger("gpuhunt").handlers)
    part_of(tmp_path, item())
    assert logging.getLogger("gpuhunt").handlers == before
