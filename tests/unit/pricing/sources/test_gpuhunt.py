"""More clouds by gpuhunt: its own files read by its own code, from a folder and from a real server."""

from __future__ import annotations

import gc
import io
import logging
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import gpuhunt
import pytest
from gpuhunt._internal.catalog import OFFLINE_PROVIDERS, ONLINE_PROVIDERS

from advisor.core.errors import ConfigError
from advisor.core.values import Market
from advisor.pricing.sources.gpuhunt import (
    CATALOG_DIR,
    NOT_INSTALLED,
    PROVIDERS,
    GpuhuntSource,
    gpuhunt_source,
)
from advisor.pricing.sources.gpuhunt_items import offers_of
from advisor.pricing.sources.protocol import Credentials
from advisor.pricing.sources.query import OfferQuery
from tests.gpuhunt_catalogs import ANY, NOW, gpuhunt_version, item, part_of, parts_of, write
from tests.web import served

# gpuhunt leaves files and answers to the garbage collector, which then complains.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(autouse=True)
def nothing_left_behind(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """So that what a test leaves behind is collected in that test."""
    monkeypatch.setattr(logging.getLogger("gpuhunt"), "propagate", False)
    yield
    gpuhunt.default_catalog.cache_clear()
    gc.collect()


# --- A folder ---------------------------------------------------------------------------------------


def test_the_query_counts(tmp_path: Path) -> None:
    write(tmp_path, "lambdalabs", item(), item("b", location="eu-1"))
    write(tmp_path, "oci", item(provider="oci"))
    query = OfferQuery(providers=("lambdalabs",), regions=("eu-*",), gpus=("A10",))
    (part,) = parts_of(tmp_path, "oci", "lambdalabs", query=query)
    assert (part.scope, [offer.region for offer in part.offers]) == ("lambdalabs", ["eu-1"])
    assert parts_of(tmp_path, "oci", query=OfferQuery(providers=("aws",))) == []


def test_a_provider_fails_alone(tmp_path: Path) -> None:
    write(tmp_path, "oci", item(provider="oci"))
    write(tmp_path, "nebius")
    parts = {part.scope: part for part in parts_of(tmp_path, "azure", "oci", "nebius", "nonsense", "vastai")}
    assert list(parts) == ["azure", "oci", "nebius", "nonsense", "vastai"]
    assert len(parts["oci"].offers) == 1
    reasons = {scope: part.failure for scope, part in parts.items()}
    assert reasons["oci"] is None
    assert "FileNotFoundError" in (reasons["azure"] or "")
    assert reasons["nebius"] == "gpuhunt has no offers of this provider"
    assert reasons["nonsense"] == "ValueError: Unknown provider: nonsense"
    assert reasons["vastai"] == "ValueError: Provider is not loaded: vastai"
    assert not any(part.offers for part in parts.values() if part.failure)


def test_the_environment_is_left_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CATALOG_DIR, raising=False)
    part_of(tmp_path, item())
    assert CATALOG_DIR not in os.environ
    monkeypatch.setenv(CATALOG_DIR, "elsewhere")
    assert part_of(tmp_path, item()).offers
    parts_of(tmp_path, "nonsense")
    assert os.environ[CATALOG_DIR] == "elsewhere"


def test_nothing_of_gpuhunts_messages_reaches_the_terminal(tmp_path: Path) -> None:
    write(tmp_path, "oci", item(provider="oci"), more="x,y,z\n")
    code = (
        "from advisor.pricing.sources.gpuhunt import gpuhunt_source; from advisor.pricing import OfferQuery;"
        f"s = gpuhunt_source({{'providers': ['oci', 'azure'], 'catalog_dir': {str(tmp_path)!r}}});"
        "print(len(list(s.offers(OfferQuery()))))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (answer.stdout, answer.stderr) == ("2\n", "")


# --- The published catalogs, from a server ----------------------------------------------------------


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that a server shows as gpuhunt's own bucket."""
    monkeypatch.delenv(CATALOG_DIR, raising=False)
    gpuhunt.default_catalog.cache_clear()
    with served(tmp_path) as url:
        monkeypatch.setenv("GPUHUNT_CATALOG_URL", url)
        yield tmp_path


def publish(root: Path, provider: str, version: str, *items: gpuhunt.CatalogItem) -> None:
    rows = write(root / "rows", provider, *items).read_bytes()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(f"{provider}.csv", rows)
    (root / provider / version).mkdir(parents=True)
    (root / provider / "version").write_text(version + "\n")
    (root / provider / version / "catalog.zip").write_bytes(packed.getvalue())


def test_published_catalogs_are_dated_by_their_version(published: Path) -> None:
    publish(published, "azure", "20261119-7", item("Standard_NV36ads_A10_v5", provider="azure"))
    (part,) = GpuhuntSource(["azure"], None).offers(ANY)
    (offer,) = part.offers
    assert offer.retrieved_at == datetime(2026, 11, 19, tzinfo=UTC)
    assert offer.source == f"gpuhunt {gpuhunt_version()}, catalog 20261119-7"
    assert (offer.provider, offer.gpu, part.gaps) == ("azure", "A10", ())


def test_a_catalog_that_is_not_published_fails_alone_with_the_reason(published: Path) -> None:
    publish(published, "azure", "20261119-7", item(provider="azure"))
    azure, oci = GpuhuntSource(["azure", "oci"], None).offers(ANY)
    assert (len(azure.offers), azure.failure) == (1, None)
    assert oci.offers == ()
    assert "Failed to load oci catalog" in (oci.failure or "")
    assert "404" in (oci.failure or "")


def test_a_version_without_a_day_is_a_failure_not_a_fresh_price(published: Path) -> None:
    publish(published, "azure", "latest", item(provider="azure"))
    (part,) = GpuhuntSource(["azure"], None).offers(ANY)
    assert "'latest' does not match format '%Y%m%d'" in (part.failure or "")


def test_without_a_network_every_provider_fails(published: Path) -> None:
    parts = list(GpuhuntSource(["azure", "oci"], None).offers(ANY))
    assert [part.scope for part in parts] == ["azure", "oci"]
    for part in parts:
        assert "Failed to load catalogs of all providers" in (part.failure or "")
        assert f"Failed to load {part.scope} catalog" in (part.failure or "")


def test_prices_that_are_asked_for_directly_are_of_now(published: Path) -> None:
    publish(published, "azure", "20261119-7", item(provider="azure"))

    class Direct(gpuhunt._internal.default.OnlineProvider):
        NAME = "vultr"

        @classmethod
        def from_env(cls) -> Direct:
            return cls()

        def get(self, *_: Any, **__: Any) -> list[gpuhunt.CatalogItem]:
            return [item(provider="vultr")]

    catalog = gpuhunt.default_catalog()
    catalog.providers = [Direct()]
    (part,) = GpuhuntSource(["vultr"], None, clock=lambda: NOW).offers(ANY)
    assert [offer.retrieved_at for offer in part.offers] == [NOW]


def test_a_provider_that_needs_an_account_says_so(published: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CRUSOE_ACCESS_KEY", raising=False)
    publish(published, "azure", "20261119-7", item(provider="azure"))
    (part,) = GpuhuntSource(["crusoe"], None).offers(ANY)
    assert part.failure == (
        "ValueError: Provider is not loaded: crusoe;"
        " Skipping provider CrusoeProvider: Set the CRUSOE_ACCESS_KEY environment variable"
    )


def test_keys_in_urls_are_not_repeated(published: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError("401 for url: https://api.example/v1/offers?api_key=hunter2&x=1 (denied)")

    monkeypatch.setattr(gpuhunt.Catalog, "query", refuse)
    publish(published, "azure", "20261119-7", item(provider="azure"))
    (part,) = GpuhuntSource(["azure"], None).offers(ANY)
    assert part.failure == "OSError: 401 for url: https://api.example/v1/offers?*** (denied)"


# --- The source -------------------------------------------------------------------------------------


def test_without_the_package_every_provider_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gpuhunt", None)
    parts = list(gpuhunt_source({"providers": ["azure", "oci"]}).offers(ANY))
    assert [(part.scope, part.failure) for part in parts] == [
        ("azure", NOT_INSTALLED),
        ("oci", NOT_INSTALLED),
    ]
    assert "pip install 'gpu-advisor[gpuhunt]'" in NOT_INSTALLED


def test_the_package_is_imported_only_when_asked() -> None:
    code = (
        "import sys; from advisor.pricing.sources.gpuhunt import gpuhunt_source as s; x = s({});"
        "x.freshness(), x.credentials(), x.capabilities; print('gpuhunt' in sys.modules)"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout == "False\n"


def test_the_default_providers_are_gpuhunts_and_not_ours() -> None:
    assert set(PROVIDERS) <= {*OFFLINE_PROVIDERS, *ONLINE_PROVIDERS}
    assert set(OFFLINE_PROVIDERS) - set(PROVIDERS) == {"aws", "gcp"}


def test_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CATALOG_DIR, raising=False)
    assert gpuhunt_source({}).capabilities.providers == PROVIDERS
    assert gpuhunt_source({"providers": ["OCI", "azure", "oci"]}).capabilities.providers == ("oci", "azure")
    write(tmp_path, "oci", item(provider="oci"))
    monkeypatch.setenv("HOME", str(tmp_path.parent))
    for options in ({"catalog_dir": str(tmp_path)}, {"catalog_dir": f"~/{tmp_path.name}"}):
        assert next(iter(gpuhunt_source({"providers": ["oci"]} | options).offers(ANY))).offers
    monkeypatch.setenv(CATALOG_DIR, str(tmp_path))
    assert next(iter(gpuhunt_source({"providers": ["oci"]}).offers(ANY))).offers


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"providers": "azure"}, r"providers must be a list such as \[azure\]; got 'azure'"),
        ({"providers": [1]}, "providers must be a list"),
        ({"catalog_dir": 5}, "catalog_dir must be a folder; got 5"),
        ({"catalogdir": "x"}, "Did you mean 'catalog_dir'"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        gpuhunt_source(options)


def test_a_provider_whose_rows_cannot_be_turned_fails_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def turned(items: Any, retrieval: Any) -> Any:
        if items[0].provider == "oci":
            raise TypeError("rows of https://me:pw@oci.test?key=1")
        return offers_of(items, retrieval)

    monkeypatch.setattr("advisor.pricing.sources.gpuhunt.offers_of", turned)
    write(tmp_path, "oci", item(provider="oci"))
    write(tmp_path, "lambdalabs", item())
    failed, kept = parts_of(tmp_path, "oci", "lambdalabs")
    assert failed.failure == "TypeError: rows of https://***@oci.test?***"
    assert len(kept.offers) == 1


def test_it_is_live_and_holds_nothing() -> None:
    source = gpuhunt_source({})
    assert source.capabilities.is_live
    assert source.capabilities.markets == (Market.ON_DEMAND, Market.SPOT)
    assert (source.freshness(), source.credentials()) == ((), Credentials.NOT_NEEDED)


def test_loggers_are_left_as_they_were(tmp_path: Path) -> None:
    before = list(logging.getLogger("gpuhunt").handlers)
    part_of(tmp_path, item())
    assert logging.getLogger("gpuhunt").handlers == before
