"""Reading the snapshot, and building a new one."""

import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from advisor.core.errors import CatalogError, ConfigError
from advisor.core.units import GB, GIB
from advisor.core.values import Market, Offer
from advisor.pricing.instance_types import InstanceType, columns_of
from advisor.pricing.sources.protocol import Credentials, Freshness, OfferQuery
from advisor.pricing.sources.snapshot import (
    PRICE_COLUMNS,
    SnapshotSource,
    build_snapshot,
    read_offers,
    snapshot_source,
)
from advisor.report.prices import built_document
from advisor.report.printing import Format, print_document
from tests.builders import make_offer

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
    write_csv(tmp_path / "instances.csv", columns_of(InstanceType), INSTANCE)
    (tmp_path / "prices").mkdir()
    write_csv(tmp_path / "prices" / "aws.csv", PRICE_COLUMNS, *prices)
    return SnapshotSource(tmp_path)


def offered(source: SnapshotSource, query: OfferQuery = ANY) -> Sequence[Offer]:
    return [offer for part in source.offers(query) for offer in part.offers]


def test_a_price_row_becomes_an_offer(tmp_path):
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


def test_only_what_matches_is_offered_and_the_zone_may_be_unknown(tmp_path):
    source = snapshot(tmp_path, PRICE, PRICE | {"region": "eu-west-1", "zone": ""})
    assert [(o.region, o.zone) for o in offered(source, OfferQuery(regions=("eu-*",)))] == [
        ("eu-west-1", None)
    ]


def test_freshness_is_the_oldest_and_newest_price_of_a_provider(tmp_path):
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
def test_a_broken_price_row_names_file_and_line(tmp_path, change, problem):
    source = snapshot(tmp_path, PRICE, PRICE | {"region": "eu-west-1"} | change)
    with pytest.raises(CatalogError, match=problem) as caught:
        offered(source)
    assert "aws.csv, line 3: " in str(caught.value)


def test_a_row_that_is_there_twice_is_refused(tmp_path):
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
        (None, "cannot read the catalog file"),
    ],
)
def test_a_truncated_foreign_or_missing_file_is_refused(tmp_path, text, problem):
    path = tmp_path / "aws.csv"
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(CatalogError, match=problem) as caught:
        read_offers(path, {})
    assert str(path) in str(caught.value)


def test_every_provider_is_a_part_that_holds_no_others(tmp_path):
    source = snapshot(tmp_path, PRICE, PRICE | {"region": "eu-west-1"})
    (part,) = source.offers(OfferQuery())
    assert (part.scope, len(part.offers), part.failure) == ("aws", 2, None)
    shipped = {part.scope: {offer.provider for offer in part.offers} for part in SnapshotSource().offers(ANY)}
    assert shipped == {"aws": {"aws"}, "gcp": {"gcp"}}


def test_a_snapshot_knows_what_it_holds_and_needs_no_credentials(tmp_path):
    source = snapshot(tmp_path, PRICE)
    assert (source.capabilities.providers, source.capabilities.is_live) == (("aws",), False)
    assert source.credentials() is Credentials.NOT_NEEDED
    assert SnapshotSource().capabilities.providers == ("aws", "gcp")


def test_another_folder_than_the_shipped_one_is_an_option(tmp_path):
    snapshot(tmp_path, PRICE)
    assert len(offered(snapshot_source({"folder": str(tmp_path)}))) == 1
    assert len(offered(snapshot_source({"folder": None}))) == len(offered(SnapshotSource()))
    with pytest.raises(ConfigError, match=r"'snapshot' has no option 'foldr'.*Did you mean 'folder'"):
        snapshot_source({"foldr": "x"})


@pytest.mark.parametrize("source", [SnapshotSource(Path("absent")), snapshot_source({"folder": "~/absent"})])
def test_a_folder_without_prices_is_an_error_not_an_empty_answer(source):
    with pytest.raises(CatalogError, match=r"absent' has no price files: name another folder"):
        offered(source)


NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
ROOT = Path(__file__).parents[4]
REGIONS = tuple(f"eu-test-{i}" for i in range(10))


def offers(usd_per_h: float = 1.006, regions: tuple[str, ...] = REGIONS) -> list[Offer]:
    listed = make_offer("A10G", usd_per_h, instance_type="g5.xlarge", source="AWS Price List")
    offers_given = [replace(listed, region=region, retrieved_at=NOON) for region in regions]
    spot = replace(offers_given[0], market=Market.SPOT, zone="use1-az1", list_usd_per_h=0.4321)
    return [*offers_given, spot]


def read(folder: Path) -> list[Offer]:
    return [offer for part in SnapshotSource(folder).offers(OfferQuery()) for offer in part.offers]


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "made" / "snapshot"


def test_what_was_built_reads_back_with_its_day(folder):
    built = build_snapshot(offers(), folder)
    assert (built.num_offers, built.left_out) == (11, ())
    by_place = {(o.region, o.zone, o.market): o for o in read(folder)}
    for offer in offers():
        again = by_place.pop((offer.region, offer.zone, offer.market))
        assert again.usd_per_h == offer.usd_per_h
        assert again.retrieved_at == datetime(2026, 11, 21, tzinfo=UTC)
        assert again.source == "AWS Price List"
        assert again.gpu == "A10G"
    assert not by_place


def test_equal_prices_build_equal_files(tmp_path):
    for name, folders in (("a", offers()), ("b", list(reversed(offers())))):
        build_snapshot(folders, tmp_path / name)
    first, second = ((tmp_path / name / "prices" / "aws.csv").read_bytes() for name in "ab")
    assert first == second


def test_a_machine_nobody_described_is_left_out_and_named(folder):
    built = build_snapshot([*offers(), make_offer("B400", instance_type="p9.48xlarge")], folder)
    assert built.left_out == ("p9.48xlarge",)
    assert {offer.instance_type for offer in read(folder)} == {"g5.xlarge"}


def test_capacity_blocks_are_left_out_and_named(folder, capsys):
    """The files would lose that a block is billed by the day."""
    block = replace(
        offers()[0], market=Market.CAPACITY_BLOCK, minimum_billed_s=86400.0, billed_step_s=86400.0
    )
    built = build_snapshot([*offers(), block], folder)
    assert (built.num_offers, built.left_out) == (11, ("g5.xlarge capacity-block",))
    assert {offer.market for offer in read(folder)} == {Market.ON_DEMAND, Market.SPOT}
    print_document(built_document(built), Format.TABLE)
    assert "how it is billed: g5.xlarge capacity-block" in capsys.readouterr().out
    with pytest.raises(CatalogError, match="no live prices to build from"):
        build_snapshot([block], folder.with_name("other"))


def test_no_offer_is_compared_with_all_others(folder, monkeypatch):
    """A refresh pulls ten thousand and more."""
    monkeypatch.setattr(Offer, "__eq__", None)
    assert build_snapshot(offers(), folder).num_offers == 11


def test_nothing_to_build_from_is_an_error(folder):
    for offers_given in ([], [make_offer("B400", instance_type="p9.48xlarge")]):
        with pytest.raises(CatalogError, match="no live prices to build from"):
            build_snapshot(offers_given, folder)
    assert not folder.exists()


def test_a_better_one_replaces_the_last(folder):
    build_snapshot(offers(1.0), folder)
    build_snapshot(offers(1.2), folder)
    assert {o.usd_per_h for o in read(folder)} == {1.2, 0.4321}
    assert [path.name for path in folder.parent.iterdir()] == ["snapshot"]


@pytest.mark.parametrize(
    ("offers_given", "words"),
    [
        (offers(2.0), "10 list prices differ by more than 30% \\(g5.xlarge eu-test-0"),
        (offers(1.0, REGIONS[:7]), "it has 8 prices, that one 11"),
    ],
)
def test_one_that_looks_wrong_does_not_replace_the_last_unless_forced(folder, offers_given, words):
    build_snapshot(offers(1.0), folder)
    with pytest.raises(CatalogError, match=words):
        build_snapshot(offers_given, folder)
    assert len(read(folder)) == 11
    build_snapshot(offers_given, folder, is_forced=True)
    assert len(read(folder)) == len(offers_given)


def test_spot_prices_may_move(folder):
    build_snapshot(offers(), folder)
    moved = [replace(o, list_usd_per_h=0.1) if o.market is Market.SPOT else o for o in offers()]
    assert build_snapshot(moved, folder).num_offers == 11


def test_a_folder_of_something_else_is_not_touched_and_one_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(CatalogError, match="something else than a snapshot"):
        build_snapshot(offers(), tmp_path)
    with pytest.raises(CatalogError, match="cannot write the snapshot"):
        build_snapshot(offers(), tmp_path / "thesis.tex" / "snapshot")
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_a_price_of_zero_never_becomes_a_snapshot(folder):
    build_snapshot(offers(), folder)
    with pytest.raises(CatalogError, match="must be above 0"):
        build_snapshot([*offers(), replace(offers()[0], region="mars-1", list_usd_per_h=0.0)], folder)
    assert len(read(folder)) == 11


class Renames:
    """``Path.rename`` as it is, but calls of these numbers raise what they are given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, faults: dict[int, BaseException]) -> None:
        self.num_calls = 0
        real = Path.rename

        def rename(path: Path, target: Path) -> Path:
            self.num_calls += 1
            if self.num_calls in faults:
                raise faults[self.num_calls]
            return real(path, target)

        monkeypatch.setattr(Path, "rename", rename)


@pytest.mark.parametrize("call", [1, 2])
@pytest.mark.parametrize("fault", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_swap_that_fails_or_is_interrupted_puts_the_old_one_back(folder, monkeypatch, call, fault):
    build_snapshot(offers(1.0), folder)
    renames = Renames(monkeypatch, {call: fault})
    with pytest.raises(CatalogError if isinstance(fault, OSError) else KeyboardInterrupt):
        build_snapshot(offers(1.2), folder)
    assert renames.num_calls >= call
    assert {o.usd_per_h for o in read(folder)} == {1.0, 0.4321}
    assert [path.name for path in folder.parent.iterdir()] == ["snapshot"]


def test_an_interrupt_just_after_the_swap_leaves_the_new_one(folder, monkeypatch):
    build_snapshot(offers(1.0), folder)
    real = Path.rename

    def rename(path: Path, target: Path) -> Path:
        moved = real(path, target)
        if target == folder:
            raise KeyboardInterrupt
        return moved

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(KeyboardInterrupt):
        build_snapshot(offers(1.2), folder)
    assert {o.usd_per_h for o in read(folder)} == {1.2, 0.4321}
    assert [path.name for path in folder.parent.iterdir()] == ["snapshot"]


def test_an_old_one_that_cannot_be_put_back_is_kept_and_named(folder, monkeypatch):
    build_snapshot(offers(1.0), folder)
    Renames(monkeypatch, {2: OSError(5, "I/O error"), 3: OSError(5, "I/O error")})
    with pytest.raises(CatalogError, match=r"neither replaced nor put back .*snapshot\.old\."):
        build_snapshot(offers(1.2), folder)
    (aside,) = folder.parent.iterdir()
    assert aside.name.startswith("snapshot.old.")
    assert {o.usd_per_h for o in read(aside / "snapshot")} == {1.0, 0.4321}


def test_a_process_that_is_killed_between_the_renames_leaves_the_old_one_beside(folder):
    build_snapshot(offers(1.0), folder)
    script = f"""
import os, signal
from pathlib import Path
from advisor.pricing.sources import snapshot as build
from tests.unit.pricing.sources.test_snapshot import offers
real = Path.rename
def rename(path, target):
    if target == Path({str(folder)!r}):
        os.kill(os.getpid(), signal.SIGKILL)
    return real(path, target)
Path.rename = rename
build.build_snapshot(offers(1.2), Path({str(folder)!r}))
"""
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=False).returncode == -signal.SIGKILL
    (aside,) = folder.parent.glob("snapshot.old.*")
    assert {o.usd_per_h for o in read(aside / "snapshot")} == {1.0, 0.4321}
    build_snapshot(offers(1.2), folder)
    assert {o.usd_per_h for o in read(folder)} == {1.2, 0.4321}
    assert aside.exists()
