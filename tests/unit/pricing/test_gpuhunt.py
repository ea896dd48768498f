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
from gpuhunt._internal.storage import dump

from advisor.errors import ConfigError
from advisor.pricing import OfferQuery, Part
from advisor.pricing.gpuhunt import CATALOG_DIR, NOT_INSTALLED, PROVIDERS, GpuhuntSource, gpuhunt_source
from advisor.pricing.gpuhunt_items import matching_gpus
from advisor.pricing.source import Credentials
from advisor.types import Market
from tests.web import served

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
WRITTEN = datetime(2026, 11, 20, 6, tzinfo=UTC)
ANY = OfferQuery()

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


def item(instance_name: str = "gpu_1x_a10", price: float = 0.75, **changes: Any) -> gpuhunt.CatalogItem:
    facts = {
        "provider": "lambdalabs", "location": "us-west-1", "cpu": 30, "memory": 200.0, "gpu_count": 1,
        "gpu_name": "A10", "gpu_memory": 24.0, "spot": False, "disk_size": 1400.0,
        "gpu_vendor": gpuhunt.AcceleratorVendor.NVIDIA,
    }  # fmt: skip
    return gpuhunt.CatalogItem(instance_name=instance_name, price=price, **(facts | changes))


def write(folder: Path, provider: str, *items: gpuhunt.CatalogItem, more: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{provider}.csv"
    dump(items, str(path))
    path.write_text(path.read_text() + more)
    os.utime(path, (WRITTEN.timestamp(), WRITTEN.timestamp()))
    return path


def parts_of(folder: Path, *providers: str, query: OfferQuery = ANY) -> list[Part]:
    return list(GpuhuntSource(providers, folder).offers(query))


def part_of(folder: Path, *items: gpuhunt.CatalogItem, more: str = "") -> Part:
    write(folder, "lambdalabs", *items, more=more)
    (part,) = parts_of(folder, "lambdalabs")
    return part


# --- Rows -------------------------------------------------------------------------------------------


def test_a_row_becomes_an_offer(tmp_path: Path) -> None:
    part = part_of(tmp_path, item("gpu_2x_a10", 1.5, gpu_count=2))
    (offer,) = part.offers
    assert (part.scope, part.failure, part.gaps, part.history) == ("lambdalabs", None, (), ())
    assert (offer.provider, offer.instance_type, offer.region, offer.zone) == (
        "lambdalabs", "gpu_2x_a10", "us-west-1", None,
    )  # fmt: skip
    assert (offer.gpu, offer.num_gpus, offer.market) == ("A10", 2, Market.ON_DEMAND)
    assert (offer.list_usd_per_h, offer.num_vcpus) == (1.5, 30)
    assert offer.includes == ("30 vCPU", "200 GB RAM", "1400 GB disk")
    assert offer.retrieved_at == WRITTEN
    assert offer.source == f"gpuhunt {gpuhunt_version()}"


def gpuhunt_version() -> str:
    from importlib.metadata import version

    return version("gpuhunt")


def test_spot_and_a_place_without_a_name(tmp_path: Path) -> None:
    (offer,) = part_of(tmp_path, item(spot=True, location="x", disk_size=None)).offers
    assert (offer.market, offer.includes) == (Market.SPOT, ("30 vCPU", "200 GB RAM"))


def test_machines_without_a_gpu_are_no_offers(tmp_path: Path) -> None:
    cpu_only = item("cpu", gpu_count=0, gpu_name=None, gpu_memory=None, gpu_vendor=None)
    part = part_of(tmp_path, item(), cpu_only)
    assert [offer.instance_type for offer in part.offers] == ["gpu_1x_a10"]
    assert part.gaps == ()


@pytest.mark.parametrize(
    ("name", "memory_gb", "instance_name", "gpu"),
    [
        ("A100", 40.0, "gpu_8x_a100_40gb_sxm4", "A100-SXM-40GB"),
        ("A100", 80.0, "gpu_8x_a100_80gb_sxm4", "A100-SXM-80GB"),
        ("A100", 80.0, "NVIDIA A100 80GB PCIe", "A100-PCIE-80GB"),
        ("H100", 80.0, "gpu_1x_h100_pcie", "H100-PCIE-80GB"),
        ("H100", 94.0, "Standard_NC40ads_H100_v5", "H100-NVL-94GB"),
        ("H100NVL", 94.0, "x", "H100-NVL-94GB"),
        ("H200", 141.0, "gpu-h200-sxm 8gpu", "H200-SXM-141GB"),
        ("B200", 180.0, "x", "B200-SXM-180GB"),
        ("B300", 270.0, "x", "B300-SXM-288GB"),
        ("V100", 16.0, "1V100-SXM2.6V", "V100-SXM-16GB"),
        ("RTX4090", 24.0, "x", "RTX-4090"),
        ("RTX3090Ti", 24.0, "x", "RTX-3090-Ti"),
        ("RTX4060Ti", 16.0, "x", "RTX-4060-Ti-16GB"),
        ("A6000", 48.0, "x", "RTX-A6000"),
        ("RTX6000Ada", 48.0, "x", "RTX-6000-Ada"),
        ("L40S", 48.0, "x", "L40S"),
        ("T4", 16.0, "Standard_NC4as_T4_v3", "T4"),
        ("MI300X", 192.0, "x", "MI300X"),
        ("A10", None, "x", "A10"),
    ],
)
def test_gpus_are_known_by_name_memory_and_form(
    tmp_path: Path, name: str, memory_gb: float | None, instance_name: str, gpu: str
) -> None:
    part = part_of(tmp_path, item(instance_name, gpu_name=name, gpu_memory=memory_gb))
    assert ([offer.gpu for offer in part.offers], part.gaps) == ([gpu], ())


@pytest.mark.parametrize(
    ("name", "memory_gb", "kept_as", "reason"),
    [
        ("B400", 500.0, "B400 500 GB", "is not in the catalog"),
        ("A10", 6.0, "A10 6 GB", "is not in the catalog"),  # a slice of one
        ("RTX3060", 8.0, "RTX3060 8 GB", "is not in the catalog"),
        ("Strange", None, "Strange", "is not in the catalog"),
        ("A100", 80.0, "A100 80 GB", "may be A100-PCIE-80GB or A100-SXM-80GB"),
    ],
)
def test_other_gpus_are_kept_under_their_own_name_and_told(
    tmp_path: Path, name: str, memory_gb: float | None, kept_as: str, reason: str
) -> None:
    rows = [item(place, gpu_name=name, gpu_memory=memory_gb, location=place) for place in ("a", "b")]
    part = part_of(tmp_path, *rows)
    assert {offer.gpu for offer in part.offers} == {kept_as}
    assert part.gaps == (f"{kept_as} {reason}, so no time can be predicted (2 of 2 rows)",)


@pytest.mark.parametrize("price", [0.0, -1.0, float("nan"), float("inf")])
def test_a_row_without_a_price_is_a_gap(tmp_path: Path, price: float) -> None:
    part = part_of(tmp_path, item(), item("free", price))
    assert [offer.instance_type for offer in part.offers] == ["gpu_1x_a10"]
    assert part.gaps == ("no price (1 of 2 rows)",)


def test_what_is_rented_in_clusters_only_is_a_gap(tmp_path: Path) -> None:
    part = part_of(tmp_path, item(), item("pods", provider_data={"pod_counts": [2, 3]}))
    assert len(part.offers) == 1
    assert part.gaps == ("rented only as a cluster of several machines (1 of 2 rows)",)


def test_a_name_that_stands_for_several_sizes_gets_the_size(tmp_path: Path) -> None:
    """RunPod calls every machine as its GPU."""
    sizes = [item("NVIDIA L4", 0.4 * count, gpu_name="L4", gpu_count=count) for count in (1, 4)]
    part = part_of(tmp_path, *sizes, item())
    assert [offer.instance_type for offer in part.offers] == ["1x NVIDIA L4", "gpu_1x_a10", "4x NVIDIA L4"]


def test_the_cheapest_of_equal_rows_is_kept(tmp_path: Path) -> None:
    rows = [item(price=0.8), item(price=0.7, disk_size=10.0), item(price=0.9), item(price=0.5, spot=True)]
    assert [(o.market, o.usd_per_h) for o in part_of(tmp_path, *rows).offers] == [
        (Market.SPOT, 0.5), (Market.ON_DEMAND, 0.7),
    ]  # fmt: skip


def test_rows_that_gpuhunt_skips_are_gaps(tmp_path: Path) -> None:
    part = part_of(tmp_path, item(), more="broken,us-west-1,cheap,1,1,1,A10,24,False,1,nvidia,,x86,{}\n")
    assert len(part.offers) == 1
    (gap,) = part.gaps
    assert gap.startswith(
        "Skipping malformed row in lambdalabs catalog at line 3: Cannot parse field 'price'"
    )


def test_many_messages_are_counted(tmp_path: Path) -> None:
    bad = "broken,us-west-1,cheap,1,1,1,A10,24,False,1,nvidia,,x86,{}\n"
    part = part_of(tmp_path, item(), more=8 * bad)
    assert len(part.gaps) == 6
    assert part.gaps[-1] == "... and 3 more messages of gpuhunt"


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
        "from advisor.pricing.gpuhunt import gpuhunt_source; from advisor.pricing import OfferQuery;"
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


def test_keys_in_urls_are_not_repeated(published: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError("401 for url: https://api.example/v1/offers?api_key=hunter2&x=1 (denied)")

    monkeypatch.setattr(gpuhunt.Catalog, "query", refuse)
    publish(published, "azure", "20261119-7", item(provider="azure"))
    (part,) = GpuhuntSource(["azure"], None).offers(ANY)
    assert part.failure == "OSError: 401 for url: https://api.example/v1/offers?... (denied)"


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
        "import sys; from advisor.pricing.gpuhunt import gpuhunt_source as s; x = s({});"
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


def test_it_is_live_and_holds_nothing() -> None:
    source = gpuhunt_source({})
    assert source.capabilities.is_live
    assert source.capabilities.markets == (Market.ON_DEMAND, Market.SPOT)
    assert (source.freshness(), source.credentials()) == ((), Credentials.NOT_NEEDED)


def test_loggers_are_left_as_they_were(tmp_path: Path) -> None:
    before = list(logging.getLogger("gpuhunt").handlers)
    part_of(tmp_path, item())
    assert logging.getLogger("gpuhunt").handlers == before


def test_every_gpu_that_gpuhunt_knows_means_one_of_ours_or_none() -> None:
    """Never one of another memory; of several forms, only those."""
    known = {}
    for accelerator in gpuhunt.KNOWN_ACCELERATORS:
        members = matching_gpus(accelerator.name, float(accelerator.memory) or None, "x")
        known[accelerator.name, accelerator.memory] = [gpu.name for gpu in members]
        memories = {gpu.memory_bytes for gpu in members}
        assert not memories or max(memories) / min(memories) < 1.01, accelerator
    assert known["A100", 40] == ["A100-PCIE-40GB", "A100-SXM-40GB"]
    assert known["RTX6000", 24] == known["RTX3060", 8] == []
    assert sum(len(names) == 1 for names in known.values()) > 30
