"""Reading price files: what a good row becomes, and what a broken one says."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from advisor.core.errors import CatalogError, ConfigError
from advisor.core.units import GB, GIB
from advisor.core.values import Market, Offer
from advisor.pricing.instance_types import INSTANCE_COLUMNS
from advisor.pricing.sources.protocol import Credentials, Freshness, OfferQuery
from advisor.pricing.sources.snapshot import (
    PRICE_COLUMNS,
    SnapshotSource,
    read_offers,
    snapshot_source,
)

INSTANCE = {
    "provider": "aws",
    "instance_type": "g6.xlarge",
    "gpu": "L4",
    "num_gpus": "1",
    "vcpus": "4",
    "memory_bytes": str(16 * GIB),
    "gpu_memory": "22.35 GiB",
    "network_bits_per_s": "2500000000",
    "local_ssd_bytes": str(250 * GB),
    "architecture": "x86_64",
    "minimum_billed_s": "60",
    "includes": '"4 vCPU, 16 GiB RAM, 250 GB local SSD"',
    "source": "test",
    "as_of": "2026-08-02",
}
PRICE = {
    "provider": "aws",
    "instance_type": "g6.xlarge",
    "region": "us-east-1",
    "zone": "use1-az1",
    "market": "spot",
    "usd_per_h": "0.3",
    "retrieved_at": "2026-07-20",
    "source": "test",
}


ANY = OfferQuery()


def write_csv(path: Path, columns: tuple[str, ...], *rows: dict[str, str]) -> Path:
    lines = [",".join(columns), *(",".join(row[c] for c in columns if c in row) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def snapshot(tmp_path: Path, *prices: dict[str, str]) -> SnapshotSource:
    write_csv(tmp_path / "instances.csv", INSTANCE_COLUMNS, INSTANCE)
    (tmp_path / "prices").mkdir()
    write_csv(tmp_path / "prices" / "aws.csv", PRICE_COLUMNS, *prices)
    return SnapshotSource(tmp_path)


def offered(source: SnapshotSource, query: OfferQuery = ANY) -> Sequence[Offer]:
    return [offer for part in source.offers(query) for offer in part.offers]


def test_a_price_row_becomes_an_offer(tmp_path: Path) -> None:
    assert offered(snapshot(tmp_path, PRICE)) == [
        Offer(
            provider="aws",
            instance_type="g6.xlarge",
            region="us-east-1",
            zone="use1-az1",
            gpu="L4",
            num_gpus=1,
            market=Market.SPOT,
            list_usd_per_h=0.3,
            includes=("4 vCPU", "16 GiB RAM", "250 GB local SSD"),
            minimum_billed_s=60.0,
            num_vcpus=4,
            architecture="x86_64",
            retrieved_at=datetime(2026, 7, 20, tzinfo=UTC),
            source="test",
        )
    ]


def test_the_zone_may_be_unknown(tmp_path: Path) -> None:
    (offer,) = offered(snapshot(tmp_path, PRICE | {"zone": ""}))
    assert offer.zone is None


def test_only_what_matches_is_offered(tmp_path: Path) -> None:
    source = snapshot(tmp_path, PRICE, PRICE | {"region": "eu-west-1"})
    assert [o.region for o in offered(source, OfferQuery(regions=("eu-*",)))] == ["eu-west-1"]


def test_freshness_is_the_oldest_and_newest_price_of_a_provider(tmp_path: Path) -> None:
    older = PRICE | {"region": "eu-west-1", "retrieved_at": "2025-06-28"}
    assert snapshot(tmp_path, PRICE, older).freshness() == (
        Freshness(
            provider="aws",
            num_offers=2,
            oldest=datetime(2025, 6, 28, tzinfo=UTC),
            newest=datetime(2026, 7, 20, tzinfo=UTC),
        ),
    )


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"usd_per_h": "0"}, r"usd_per_h is 0: .*0 means unknown, never free"),
        ({"usd_per_h": "-1"}, "usd_per_h is -1"),
        ({"usd_per_h": "nan"}, "usd_per_h is nan"),
        ({"usd_per_h": "inf"}, "usd_per_h is inf"),
        ({"usd_per_h": ""}, "could not convert"),
        ({"market": "free"}, "'free' is not a valid Market"),
        ({"instance_type": "g9.xlarge"}, r"aws 'g9\.xlarge' is not in instances\.csv"),
        ({"region": ""}, "region or source is empty"),
        ({"source": ""}, "region or source is empty"),
        ({"retrieved_at": "yesterday"}, "Invalid isoformat"),
        ({"retrieved_at": ""}, "Invalid isoformat"),
    ],
)
def test_a_broken_price_row_names_file_and_line(tmp_path: Path, change: dict[str, str], problem: str) -> None:
    source = snapshot(tmp_path, PRICE, PRICE | {"region": "eu-west-1"} | change)
    with pytest.raises(CatalogError, match=problem) as caught:
        offered(source)
    assert "aws.csv, line 3: " in str(caught.value)


def test_a_row_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match=r"line 3: aws g6\.xlarge us-east-1 use1-az1 spot is"):
        offered(snapshot(tmp_path, PRICE, PRICE | {"usd_per_h": "0.4"}))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "line 1: the columns are "),
        ("provider,instance_type\n", "line 1: the columns are provider,instance_type, not"),
        (",".join(PRICE_COLUMNS) + "\naws,g6.xlarge\n", "line 2: 2 fields instead of 8"),
        (",".join(PRICE_COLUMNS) + '\naws,"g6.xlarge\n', "unexpected end of data"),
        (",".join(PRICE_COLUMNS) + "\n\n", "line 2: 0 fields instead of 8"),
        (b"\xff\xfe\x00", "can't decode byte"),
    ],
)
def test_a_truncated_or_foreign_file_is_refused(tmp_path: Path, text: str | bytes, problem: str) -> None:
    path = tmp_path / "aws.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(CatalogError, match=problem) as caught:
        read_offers(path, {})
    assert str(path) in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match=r"cannot read the catalog file .*absent\.csv"):
        read_offers(tmp_path / "absent.csv", {})


def test_every_provider_is_a_part_that_holds_no_others(tmp_path: Path) -> None:
    source = snapshot(tmp_path, PRICE, PRICE | {"region": "eu-west-1"})
    (part,) = source.offers(OfferQuery())
    assert (part.scope, len(part.offers), part.failure) == ("aws", 2, None)
    shipped = {part.scope: {offer.provider for offer in part.offers} for part in SnapshotSource().offers(ANY)}
    assert shipped == {"aws": {"aws"}, "gcp": {"gcp"}}


def test_a_snapshot_knows_what_it_holds_and_needs_no_credentials(tmp_path: Path) -> None:
    source = snapshot(tmp_path, PRICE)
    assert (source.capabilities.providers, source.capabilities.is_live) == (("aws",), False)
    assert source.credentials() is Credentials.NOT_NEEDED
    assert SnapshotSource().capabilities.providers == ("aws", "gcp")


def test_another_folder_than_the_shipped_one_is_an_option(tmp_path: Path) -> None:
    snapshot(tmp_path, PRICE)
    assert len(offered(snapshot_source({"folder": str(tmp_path)}))) == 1
    assert len(offered(snapshot_source({"folder": None}))) == len(offered(SnapshotSource()))
    with pytest.raises(ConfigError, match=r"'snapshot' has no option 'foldr'.*Did you mean 'folder'"):
        snapshot_source({"foldr": "x"})


@pytest.mark.parametrize("source", [SnapshotSource(Path("absent")), snapshot_source({"folder": "~/absent"})])
def test_a_folder_without_prices_is_an_error_not_an_empty_answer(source: SnapshotSource) -> None:
    with pytest.raises(CatalogError, match=r"absent' has no price files: name another folder"):
        offered(source)
