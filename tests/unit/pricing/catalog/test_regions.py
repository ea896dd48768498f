"""The catalog of regions: whose each is, and which an account must enable."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.core.errors import CatalogError
from advisor.core.gpus import catalog_path
from advisor.pricing.instance_types import load_instances
from advisor.pricing.providers import REGION_COLUMNS, load_regions, read_regions
from advisor.pricing.sources.snapshot import PRICE_FILES, read_offers


def write(path: Path, *rows: str) -> Path:
    path.write_text("\n".join([",".join(REGION_COLUMNS), *rows]) + "\n", encoding="utf-8")
    return path


def test_a_row_becomes_a_region(tmp_path: Path) -> None:
    regions = read_regions(write(tmp_path / "r.csv", "aws,x-1,yes,a test,2025-01-01"))
    assert (regions["x-1"].provider, regions["x-1"].is_opt_in) == ("aws", True)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("aws,x-1,yes,a test,2025-01-01", "x-1 is listed twice"),
        ("aws,x-2,maybe,a test,2025-01-01", "is_opt_in is 'maybe'"),
        ("aws,x-2,yes,,2025-01-01", "a field is empty"),
        ("aws,x-2,yes,a test,2025", "Invalid isoformat"),
    ],
)
def test_a_broken_row_names_file_and_line(tmp_path: Path, row: str, words: str) -> None:
    path = write(tmp_path / "r.csv", "aws,x-1,yes,a test,2025-01-01", row)
    with pytest.raises(CatalogError, match=rf"r\.csv, line 3: .*{words}"):
        read_regions(path)


def test_every_region_with_a_price_is_known_and_its_clouds() -> None:
    instances, regions = load_instances(), load_regions()
    offers = [offer for name in PRICE_FILES for offer in read_offers(catalog_path(name), instances)]
    assert {(o.provider, o.region) for o in offers} <= {(r.provider, r.name) for r in regions.values()}


def test_aws_asks_and_google_does_not() -> None:
    opt_in = {region.name for region in load_regions().values() if region.is_opt_in}
    assert {load_regions()[name].provider for name in opt_in} == {"aws"}
    assert {"af-south-1", "ap-east-1", "eu-south-2", "il-central-1", "mx-central-1"} <= opt_in
    assert not {"us-east-1", "eu-west-3", "ap-northeast-3", "ap-south-1"} & opt_in
