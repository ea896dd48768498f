"""Reading the table of GCP machine types."""

from decimal import Decimal
from pathlib import Path

import pytest

from advisor.core.errors import CatalogError
from advisor.core.gpus import catalog_path
from advisor.core.values import Market
from advisor.pricing.instance_types import load_instances
from advisor.pricing.sources.gcp.skus import (
    MACHINE_COLUMNS,
    MACHINE_FILE,
    MachineType,
    load_machines,
    read_machines,
)
from tools.build_price_catalog import write_machines

INSTANCES = load_instances()
A2 = "a2-ultragpu-2g,A2 core|A2 RAM|A100-80GB GPU|local SSD,750,,us-central1|us-east4,test,2026-08-17"


def read(folder: Path, *lines: str, header: str = ",".join(MACHINE_COLUMNS)) -> tuple[MachineType, ...]:
    path = folder / "machines.csv"
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return read_machines(path, INSTANCES)


def test_a_row_is_joined_to_its_instance_type(tmp_path):
    (machine,) = read(tmp_path, A2)
    assert machine.needs == {
        "A2 core": Decimal(24),
        "A2 RAM": Decimal(340),
        "A100-80GB GPU": Decimal(2),
        "local SSD": Decimal(750),
    }
    assert machine.regions == ("us-central1", "us-east4")
    assert machine.markets == tuple(Market)
    assert machine.instance.gpu == "A100-SXM-80GB"


def test_the_shipped_table_is_as_we_would_write_it(tmp_path):
    write_machines(tmp_path / "machines.csv", load_machines())
    assert (tmp_path / "machines.csv").read_bytes() == catalog_path(MACHINE_FILE).read_bytes()


def test_markets_may_be_limited(tmp_path):
    (machine,) = read(tmp_path, A2.replace("750,,", "750,spot|flex-start,"))
    assert machine.markets == (Market.SPOT, Market.FLEX_START)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (A2.replace("a2-ultragpu-2g", "a9-megagpu"), "line 2: gcp 'a9-megagpu' is not in instances.csv"),
        (A2.replace("A2 core", "A9 core"), "line 2: 'A9 core' is no component"),
        (A2.replace(",750,", ",0,"), "line 2: a2-ultragpu-2g is billed by a component of which it has none"),
        (A2.replace("750,,", "750,someday,"), "line 2: 'someday' is not a valid Market"),
        (A2.replace("us-central1|us-east4", ""), "line 2: regions or source is empty"),
        (A2.replace("2026-08-17", "lately"), "line 2: Invalid isoformat"),
        (f"{A2}\n{A2}", "line 3: 'a2-ultragpu-2g' is listed twice"),
        (A2 + ",more", "line 2: 8 fields instead of 7"),
    ],
)
def test_a_broken_row_is_named(tmp_path, line, message):
    with pytest.raises(CatalogError, match=message.replace("(", r"\(")):
        read(tmp_path, line)


def test_other_columns_and_a_missing_file_are_errors(tmp_path):
    with pytest.raises(CatalogError, match="the columns are machine,price"):
        read(tmp_path, A2, header="machine,price")
    with pytest.raises(CatalogError, match=r"cannot read the catalog file .*nowhere\.csv"):
        read_machines(tmp_path / "nowhere.csv", INSTANCES)


def test_every_gcp_instance_type_is_in_the_shipped_table():
    names = {machine.instance.instance_type for machine in load_machines()}
    assert names == {name for provider, name in INSTANCES if provider == "gcp"}
