"""FOCUS files as charges: every column where it belongs, and what cannot be true left out with its line."""

import gzip
import json
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from advisor.core.errors import BillError
from advisor.spend.bill_files import read_bill
from advisor.spend.charges import Bill, Charge, ChargeCategory, RowFault
from tests.unit.spend.bills import FOCUS_ROW, focus_text, without, write_focus


def read(path: Path) -> Bill:
    return read_bill(path, "project")


def only(path: Path) -> Charge:
    bill = read(path)
    assert bill.faults == ()
    (charge,) = bill.charges
    return charge


def test_every_column_finds_its_place(tmp_path):
    assert only(write_focus(tmp_path / "bill.csv")) == Charge(
        start=datetime(2026, 11, 2, tzinfo=UTC),
        end=datetime(2026, 11, 2, 1, tzinfo=UTC),
        provider="aws",
        service="Amazon Elastic Compute Cloud",
        sku="ABC123",
        instance_type="g5.xlarge",
        region="us-east-1",
        project="resnet",
        category=ChargeCategory.USAGE,
        billed_cost=Decimal("1.25"),
        effective_cost=Decimal("1.20"),
        contracted_cost=Decimal("1.30"),
        list_cost=Decimal("1.50"),
        currency="USD",
        tags={"project": "resnet"},
    )


def test_what_a_row_does_not_tell_is_unknown_and_not_zero(tmp_path):
    empty = ("EffectiveCost", "ListCost", "ContractedCost", "Tags", "SkuId", "RegionId", "x_UsageType")
    charge = only(write_focus(tmp_path / "bill.csv", dict.fromkeys(empty, "")))
    assert charge.effective_cost is charge.list_cost is charge.contracted_cost is None
    assert charge.project is charge.sku is charge.region is charge.instance_type is None


@pytest.mark.parametrize(
    ("change", "instance_type"),
    [
        ({"x_UsageType": "EU-SpotUsage:p5.48xlarge"}, "p5.48xlarge"),
        ({"x_UsageType": "BoxUsage:g6.xlarge"}, "g6.xlarge"),
        ({"x_UsageType": "EBS:VolumeUsage.gp3"}, None),
        ({"SkuPriceDetails": '{"InstanceType": "a2-highgpu-1g"}'}, "a2-highgpu-1g"),
        ({"x_InstanceType": "g6.xlarge", "x_UsageType": ""}, "g6.xlarge"),
        ({"x_UsageType": "USE1-UnusedBox:p4d.24xlarge"}, "p4d.24xlarge"),
        ({"x_UsageType": "USE1-Train:ml.p4d.24xlarge"}, "ml.p4d.24xlarge"),
        ({"x_UsageType": "USW2-ml.g5.xlarge-Hosting"}, "ml.g5.xlarge"),
        ({"x_SkuDetails": '{"ServiceType": "Standard_ND96asr_v4"}'}, "Standard_ND96asr_v4"),
        ({"x_SkuDetails": '{"ServiceType": "Premium SSD"}', "x_UsageType": ""}, None),
    ],
)
def test_machines_are_named_in_several_ways(tmp_path, change, instance_type):
    assert only(write_focus(tmp_path / "bill.csv", change)).instance_type == instance_type


@pytest.mark.parametrize("tag", ["project", "user:project"])
def test_a_project_is_what_its_tag_says(tmp_path, tag):
    tags = {"Tags": json.dumps({tag: "detr", "other": "x"})}
    assert only(write_focus(tmp_path / "bill.csv", tags)).project == "detr"


@pytest.mark.parametrize(
    ("name", "provider"),
    [("AWS", "aws"), ("Google Cloud", "gcp"), ("Microsoft", "azure"), ("Nimbus", "nimbus")],
)
def test_clouds_have_the_names_that_advisor_uses(tmp_path, name, provider):
    assert only(write_focus(tmp_path / "bill.csv", {"ProviderName": name})).provider == provider


def test_version_1_3_names_the_provider_otherwise(tmp_path):
    row = without(FOCUS_ROW, ["ProviderName"]) | {"ServiceProviderName": "AWS"}
    (tmp_path / "bill.csv").write_text(focus_text(row))
    assert only(tmp_path / "bill.csv").provider == "aws"


BAD: list[tuple[dict[str, str], str]] = [
    ({"BilledCost": "twelve"}, "BilledCost is 'twelve', which is no number"),
    ({"BilledCost": ""}, "BilledCost is empty"),
    ({"BilledCost": "NaN"}, "BilledCost is 'NaN': no charge is that large"),
    ({"BilledCost": "1e40"}, "BilledCost is '1e40': no charge is that large"),
    ({"BillingCurrency": ""}, "BillingCurrency is empty"),
    ({"BillingCurrency": "dollars"}, "BillingCurrency is 'DOLLARS', which is no currency: such as USD"),
    (
        {"ChargeCategory": "Fun"},
        "ChargeCategory is 'Fun': FOCUS has Usage, Purchase, Tax, Credit, Adjustment",
    ),
    ({"ChargePeriodStart": "yesterday"}, "ChargePeriodStart is 'yesterday', which is no time"),
    ({"ChargePeriodEnd": "2026-11-01T00:00:00Z"}, "ChargePeriodEnd lies before ChargePeriodStart"),
]


@pytest.mark.parametrize(("change", "reason"), BAD, ids=[reason for _, reason in BAD])
def test_a_row_that_cannot_be_true_is_left_out_with_its_line(tmp_path, change, reason):
    bill = read(write_focus(tmp_path / "bill.csv", {}, change, {}))
    assert len(bill.charges) == 2
    (fault,) = bill.faults
    assert (fault.line, fault.reason) == (3, reason)
    # What is left out is told in dollars where the row says how many.
    says_usd = not {"BilledCost", "BillingCurrency"} & change.keys()
    assert fault.usd == (Decimal("1.25") if says_usd else None)
    starts = datetime(2026, 11, 2, tzinfo=UTC)
    assert fault.start == (None if "ChargePeriodStart" in change else starts)


@pytest.mark.parametrize(
    ("change", "odd"),
    [
        ({"Tags": "{project"}, "Tags is '{project', which is no JSON"),
        ({"Tags": "NULL", "SkuPriceDetails": "null"}, ""),
        ({"SkuPriceDetails": "A10G"}, "SkuPriceDetails is 'A10G', which is no JSON"),
        ({"ListCost": "$3"}, "ListCost is '$3', which is no number"),
        ({"EffectiveCost": "NULL", "ContractedCost": "n/a"}, "ContractedCost is 'n/a', which is no number"),
        ({"ServiceName": " ", "RegionId": "NULL"}, ""),
        ({"ProviderName": ""}, ""),
    ],
)
def test_an_odd_cell_that_a_charge_can_do_without_costs_no_money(tmp_path, change, odd):
    charge = only(write_focus(tmp_path / "bill.csv", FOCUS_ROW | {"SkuPriceDetails": ""} | change))
    assert (charge.billed_cost, charge.odd) == (Decimal("1.25"), f"line 2: {odd}" if odd else "")


def test_a_csv_that_is_cut_off_or_whose_quote_never_ends_loses_its_last_row_alone(tmp_path):
    path = write_focus(tmp_path / "bill.csv", {}, {})
    whole = path.read_text()
    for text, line, num in ((whole[:-60], 3, 1), (whole + '"begun', 4, 2)):
        path.write_text(text)
        bill = read(path)
        (fault,) = bill.faults
        assert (fault.line, len(bill.charges)) == (line, num)
        assert "cut off" in fault.reason or "from here on it is no CSV" in fault.reason


def test_lines_count_as_an_editor_counts_them(tmp_path):
    path = write_focus(tmp_path / "bill.csv", {"ServiceName": "two\nlines"}, {"BilledCost": "x"})
    assert read(path).faults[0].line == 4


@pytest.mark.parametrize("column", ["BilledCost", "BillingCurrency", "ChargePeriodStart", "ProviderName"])
def test_a_file_without_a_column_that_is_needed_is_refused(tmp_path, column):
    (tmp_path / "bill.csv").write_text(focus_text(without(FOCUS_ROW, [column])))
    with pytest.raises(BillError, match=f"looks like a FOCUS file without {column}: export it"):
        read(tmp_path / "bill.csv")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "holds no charge: give a FOCUS 1.x file"),
        (b"BilledCost,BillingCurrency\n", "holds no charge"),
        (b"name,price\nL4,3\n", "none of the columns of a bill"),
        (b"BilledCost\n\xff\xfe\n", "no text in UTF-8"),
        (None, r"cannot read .*No such file"),
    ],
)
def test_a_file_that_is_no_bill_is_refused(tmp_path, content, words):
    if content is not None:
        (tmp_path / "bill.csv").write_bytes(content)
    with pytest.raises(BillError, match=words):
        read(tmp_path / "bill.csv")


def test_a_packed_file_is_read_and_a_torn_one_refused(tmp_path):
    packed = gzip.compress(write_focus(tmp_path / "plain.csv").read_bytes())
    (tmp_path / "bill.csv.gz").write_bytes(packed)
    assert only(tmp_path / "bill.csv.gz") == only(tmp_path / "plain.csv")
    (tmp_path / "bill.csv.gz").write_bytes(packed[:-12])
    with pytest.raises(BillError, match="cut off or damaged: copy or export it again"):
        read(tmp_path / "bill.csv.gz")


# --- Parquet ------------------------------------------------------------------------------------------


def write_parquet(path: Path, *rows: dict[str, Any]) -> Path:
    pq.write_table(pa.Table.from_pylist(list(rows)), path)
    return path


def test_parquet_holds_the_same_as_csv_and_is_refused_where_it_is_cut_off(tmp_path):
    plain = only(write_focus(tmp_path / "bill.csv"))
    row = dict(FOCUS_ROW) | {
        "BilledCost": Decimal("1.25"),
        "EffectiveCost": 1.2,
        "ChargePeriodStart": datetime(2026, 11, 2, tzinfo=UTC),
        "ChargePeriodEnd": datetime(2026, 11, 2, 1),  # noqa: DTZ001 - FOCUS means UTC
        "Tags": {"project": "resnet"},
    }
    path = write_parquet(tmp_path / "bill.parquet", row)
    assert only(path) == plain
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(BillError, match="no whole Parquet file: copy or export it again"):
        read(path)


def test_faults_of_parquet_are_named_by_their_row(tmp_path):
    path = write_parquet(tmp_path / "b.parquet", dict(FOCUS_ROW), dict(FOCUS_ROW) | {"BilledCost": None})
    starts = datetime(2026, 11, 2, tzinfo=UTC)
    assert read(path).faults == (RowFault(line=2, reason="BilledCost is empty", start=starts),)


def test_without_pyarrow_the_way_to_it_is_named(tmp_path, monkeypatch):
    path = write_parquet(tmp_path / "bill.parquet", dict(FOCUS_ROW))
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(BillError, match=r"pip install 'gpu-advisor\[parquet\]'"):
        read(path)


@pytest.mark.parametrize(
    "amount", ["1e999999999", "-1e13", "1e-999999999", "0." + "1" * 5_000, "Infinity", "true"]
)
def test_an_amount_that_no_charge_has_is_a_fault(tmp_path, amount):
    bill = read(write_focus(tmp_path / "bill.csv", FOCUS_ROW | {"BilledCost": amount}))
    assert bill.charges == ()
    (fault,) = bill.faults
    assert fault.reason.startswith("BilledCost is ")
    assert len(fault.reason) < 120


@pytest.mark.parametrize("amount", ["-0", "0e-999999999", "0.00"])
def test_nothing_is_0_however_it_is_written(tmp_path, amount):
    charge = only(write_focus(tmp_path / "bill.csv", FOCUS_ROW | {"BilledCost": amount}))
    assert str(charge.billed_cost) == "0"
