"""Google's billing export as charges: as JSON, as CSV of a query, as Parquet."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from advisor.core.errors import BillError
from advisor.spend.bill_files import read_bill
from advisor.spend.charges import Charge, ChargeCategory
from tests.unit.spend.bills import GCP_ROW, focus_text, without, write_gcp

CHARGE = Charge(
    start=datetime(2026, 11, 2, tzinfo=UTC),
    end=datetime(2026, 11, 2, 1, tzinfo=UTC),
    provider="gcp",
    service="Compute Engine",
    sku="1234-ABCD",
    instance_type="a2-highgpu-1g",
    region="us-central1",
    project="bert",
    billed_cost=Decimal("2.75"),
    effective_cost=Decimal("2.75"),
    contracted_cost=Decimal("3.5"),
    list_cost=Decimal("4.0"),
    currency="USD",
    tags={"project": "bert"},
)


def only(path: Path) -> Charge:
    bill = read_bill(path, "project")
    assert bill.faults == ()
    (charge,) = bill.charges
    return charge


def test_what_is_billed_is_the_cost_less_its_credits_in_each_kind_of_file(tmp_path):
    assert only(write_gcp(tmp_path / "export.jsonl")) == CHARGE
    (tmp_path / "export.json").write_text(json.dumps([dict(GCP_ROW)], indent=1))
    assert only(tmp_path / "export.json") == CHARGE
    pq.write_table(pa.Table.from_pylist([dict(GCP_ROW)]), tmp_path / "export.parquet")
    assert only(tmp_path / "export.parquet") == CHARGE


@pytest.mark.parametrize("mark", [".", "_"])
def test_a_query_names_inner_fields_with_a_dot_or_an_underscore(tmp_path, mark):
    row = without(GCP_ROW, ["service", "sku", "project", "location"])
    row = {name: value if isinstance(value, str) else json.dumps(value) for name, value in row.items()}
    row |= {f"service{mark}description": "Compute Engine", f"sku{mark}id": "1234-ABCD",
            f"location{mark}region": "us-central1"}  # fmt: skip
    (tmp_path / "export.csv").write_text(focus_text(row))
    assert only(tmp_path / "export.csv") == CHARGE


def test_costs_of_json_are_the_numbers_that_it_holds(tmp_path):
    path = write_gcp(tmp_path / "export.jsonl")
    path.write_text(path.read_text().replace("3.5", "0.1000000000000000055"))
    assert only(path).contracted_cost == Decimal("0.1000000000000000055")


@pytest.mark.parametrize(
    ("cost_type", "category"), [("tax", "TAX"), ("rounding_error", "ADJUSTMENT"), (None, "USAGE")]
)
def test_kinds_of_costs(tmp_path, cost_type, category):
    assert (
        only(write_gcp(tmp_path / "e.jsonl", {"cost_type": cost_type})).category is ChargeCategory[category]
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"cost": None}, "cost is empty"),
        ({"cost_type": "gift"}, "cost_type is 'gift': Google has regular, tax, adjustment, rounding_error"),
        ({"credits": [{"name": "x"}]}, "amount is empty"),
        ({"credits": 3}, "credits is no list of credits"),
        ({"credits": "[{"}, "credits is no JSON"),
        ({"usage_start_time": "noon"}, "usage_start_time is 'noon', which is no time"),
    ],
)
def test_rows_that_cannot_be_true_are_left_out(tmp_path, change, reason):
    bill = read_bill(write_gcp(tmp_path / "e.jsonl", {}, change), "project")
    assert bill.charges == (CHARGE,)
    (fault,) = bill.faults
    assert (fault.line, fault.reason) == (2, reason)
    assert fault.usd == (Decimal("2.75") if {"cost_type", "usage_start_time"} & change.keys() else None)


def test_a_service_that_is_not_told_and_torn_labels_cost_no_money(tmp_path):
    charge = only(write_gcp(tmp_path / "e.jsonl", {"service": {"id": "6F81"}, "labels": "[{"}))
    assert (charge.billed_cost, charge.service, charge.project) == (Decimal("2.75"), "", None)
    assert charge.odd == "line 1: labels is '[{', which is no JSON"


def test_a_line_that_is_cut_off_is_left_out(tmp_path):
    path = write_gcp(tmp_path / "e.jsonl", {}, {})
    path.write_text(path.read_text()[:-30])
    bill = read_bill(path, "project")
    assert bill.charges == (CHARGE,)
    (fault,) = bill.faults
    assert fault.line == 2
    assert fault.reason.startswith("no JSON object (it is no JSON: ")
    assert fault.reason.endswith("the line is cut off or damaged")


def test_a_list_that_is_cut_off_and_a_missing_column_are_refused(tmp_path):
    (tmp_path / "e.json").write_text(json.dumps([dict(GCP_ROW)])[:-5])
    with pytest.raises(BillError, match="its list of rows is cut off or damaged"):
        read_bill(tmp_path / "e.json", "project")
    (tmp_path / "e.jsonl").write_text(json.dumps(without(GCP_ROW, ["currency"])) + "\n")
    with pytest.raises(BillError, match="looks like a billing export of Google Cloud without currency"):
        read_bill(tmp_path / "e.jsonl", "project")
