"""Our FOCUS data set beside the specification: columns, types, values, and no cost twice."""

import csv
import io
import json
import re
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal

import pytest

from advisor.core.values import CostKind, Market
from advisor.report.focus_export import COLUMNS, OWN_COLUMNS, focus_document, to_parquet
from advisor.report.printing import Format, text_of
from advisor.report.review import review_document
from advisor.spend.bill_files import read_bill
from advisor.spend.charges import Charge, ChargeCategory
from advisor.store.ledger import Run
from tests.team import make_bill, make_charge, make_run
from tests.unit.review.test_unknowns import reviewed

TEXT, DECIMAL, TIME, CURRENCY, JSON = "text", "decimal", "time", "currency", "json"
# Columns of FOCUS 1.0 that must be there, their type and whether they may be empty:
# https://focus.finops.org/focus-specification/v1-0/, compared with the rules of focus-validator 1.0.0.
NEVER_EMPTY: Mapping[str, str] = {
    "BilledCost": DECIMAL, "BillingAccountId": TEXT, "BillingCurrency": CURRENCY, "BillingPeriodEnd": TIME,
    "BillingPeriodStart": TIME, "ChargeCategory": TEXT, "ChargeFrequency": TEXT, "ChargePeriodEnd": TIME,
    "ChargePeriodStart": TIME, "ContractedCost": DECIMAL, "EffectiveCost": DECIMAL, "InvoiceIssuerName": TEXT,
    "ListCost": DECIMAL, "ProviderName": TEXT, "PublisherName": TEXT, "ServiceCategory": TEXT,
    "ServiceName": TEXT,
}  # fmt: skip
MAYBE_EMPTY: Mapping[str, str] = {
    "AvailabilityZone": TEXT, "BillingAccountName": TEXT, "ChargeClass": TEXT, "ChargeDescription": TEXT,
    "CommitmentDiscountCategory": TEXT, "CommitmentDiscountId": TEXT, "CommitmentDiscountName": TEXT,
    "CommitmentDiscountStatus": TEXT, "CommitmentDiscountType": TEXT, "ConsumedQuantity": DECIMAL,
    "ConsumedUnit": TEXT, "ContractedUnitPrice": DECIMAL, "ListUnitPrice": DECIMAL, "PricingCategory": TEXT,
    "PricingQuantity": DECIMAL, "PricingUnit": TEXT, "RegionId": TEXT, "RegionName": TEXT, "ResourceId": TEXT,
    "ResourceName": TEXT, "ResourceType": TEXT, "SkuId": TEXT, "SkuPriceId": TEXT, "SubAccountId": TEXT,
    "SubAccountName": TEXT, "Tags": JSON,
}  # fmt: skip
ALLOWED: Mapping[str, set[str]] = {
    "ChargeCategory": {"Usage", "Purchase", "Tax", "Credit", "Adjustment"},
    "ChargeClass": {"", "Correction"},
    "ChargeFrequency": {"One-Time", "Recurring", "Usage-Based"},
    "PricingCategory": {"", "Standard", "Dynamic", "Committed", "Other"},
    "ServiceCategory": {"Compute", "Other"},
}
PATTERNS = {
    TEXT: re.compile(r".*"),
    DECIMAL: re.compile(r"-?\d+(\.\d+)?"),
    TIME: re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"),
    CURRENCY: re.compile(r"[A-Z]{3}"),
    JSON: re.compile(r"\{.*\}"),
}


def rows_of(*runs: Run, charges: tuple[Charge, ...] = ()) -> list[dict[str, str]]:
    bills = (make_bill(*charges),) if charges else ()
    text = text_of(focus_document(reviewed(*runs, bills=bills)), Format.CSV)
    return list(csv.DictReader(io.StringIO(text)))


CHARGES = (
    make_charge(usd="1.10"),
    make_charge(usd="-0.30", instance_type=None, project=None, list_cost=Decimal("0.5")),
)
RUNS = (
    make_run(usd=0.1),
    make_run(provider="gcp", usd=2.5, market=Market.SPOT, cost_kind=CostKind.ESTIMATED),
    make_run(provider="lab", market=None, usd=0.0, instance_type=None, region=None, duration_s=None),
)


def test_every_column_of_the_specification_is_there_and_ours_are_marked():
    assert set(COLUMNS) == NEVER_EMPTY.keys() | MAYBE_EMPTY.keys()
    assert all(name.startswith("x_") for name in OWN_COLUMNS)
    assert list(rows_of(*RUNS)[0]) == [*COLUMNS, *OWN_COLUMNS]


@pytest.mark.parametrize("column", COLUMNS)
def test_values_are_of_the_columns_type(column):
    kind = (NEVER_EMPTY | MAYBE_EMPTY)[column]
    for row in rows_of(*RUNS, charges=CHARGES):
        value = row[column]
        assert value or column not in NEVER_EMPTY, row
        assert not value or PATTERNS[kind].fullmatch(value), value
        assert value in ALLOWED.get(column, {value})
        if kind is JSON:
            json.loads(value)


def test_periods_hold_what_they_should():
    for row in rows_of(*RUNS, charges=CHARGES):
        start, end, since, until = (
            datetime.fromisoformat(row[name])
            for name in ("ChargePeriodStart", "ChargePeriodEnd", "BillingPeriodStart", "BillingPeriodEnd")
        )
        assert since <= start <= end
        assert start < until
        assert since.day == until.day == 1


def test_four_costs_stand_apart_and_what_is_not_known_is_marked_as_an_estimate():
    told = make_charge(
        usd="1", effective_cost=Decimal(2), contracted_cost=Decimal(3), list_cost=Decimal("4.000")
    )
    row, guessed = rows_of(charges=(told, make_charge(usd="7")))
    names = ("BilledCost", "EffectiveCost", "ContractedCost", "ListCost")
    assert [row[name] for name in names] == ["1", "2", "3", "4.000"]
    assert (row["x_IsEstimate"], row["x_CostBasis"]) == ("false", " ".join(names))
    assert {guessed[name] for name in names} == {"7"}
    assert (guessed["x_IsEstimate"], guessed["x_CostBasis"]) == ("true", "BilledCost")


def test_no_cost_stands_there_twice():
    rows = rows_of(*RUNS, charges=CHARGES)
    assert sum(Decimal(row["BilledCost"]) for row in rows) == Decimal("0.80") + Decimal("2.5")
    (of_aws,) = [row for row in rows if row["x_Record"] == "run" and row["ProviderName"] == "aws"]
    assert (of_aws["BilledCost"], of_aws["x_RunCost"]) == ("0", "0.1")


def test_a_run_costs_nothing_on_the_days_of_the_bills_machines_alone():
    rows = rows_of(
        make_run(0, usd=2.0), make_run(1, usd=3.0), make_run(2, usd=4.0),
        charges=(make_charge(usd="2"), make_charge(1, usd="5", instance_type=None, service="Amazon S3")),
    )  # fmt: skip
    assert [row["BilledCost"] for row in rows] == ["2", "5", "0", "3.0", "4.0"]


def test_a_service_has_one_category():
    charges = (
        make_charge(),
        make_charge(instance_type=None),
        make_charge(instance_type=None, service="Amazon S3"),
        make_charge(instance_type=None, service="Amazon S3", details={"ServiceCategory": "Storage"}),
    )
    assert [row["ServiceCategory"] for row in rows_of(charges=charges)] == [
        "Compute", "Compute", "Storage", "Storage",
    ]  # fmt: skip


def test_an_estimated_run_says_so_and_one_of_unknown_cost_is_left_out():
    rows = rows_of(*RUNS, make_run(usd=None))
    assert [(row["x_CostBasis"], row["x_IsEstimate"]) for row in rows] == [
        ("billed", "false"), ("estimated", "true"), ("billed", "false"),
    ]  # fmt: skip
    assert [row["PricingCategory"] for row in rows] == ["Standard", "Dynamic", "Other"]
    assert [row["ConsumedQuantity"] for row in rows] == ["2.000000", "2.000000", ""]


def test_what_is_bought_used_corrected_and_taxed_stays_what_it_is(tmp_path):
    plan = {"CommitmentDiscountId": "sp-1", "CommitmentDiscountType": "Savings Plan"}
    zero = {"effective_cost": Decimal(0)}
    charges = (
        make_charge(usd="90", category=ChargeCategory.PURCHASE, details=plan, **zero),
        make_charge(usd="0", details=plan | {"CommitmentDiscountStatus": "Unused"}),
        make_charge(usd="-2", details={"ChargeClass": "Correction", "PricingCategory": "Standard"}),
        make_charge(usd="7", category=ChargeCategory.TAX, details={"PricingCategory": "Other"}),
        make_charge(usd="3", currency="EUR", tags={"cost-center": "7"}, service=""),
    )
    bought, unused, corrected, tax, euros = rows_of(charges=charges)
    assert (bought["ChargeCategory"], bought["ChargeFrequency"]) == ("Purchase", "One-Time")
    assert (bought["BilledCost"], bought["EffectiveCost"]) == ("90", "0")
    assert (unused["CommitmentDiscountId"], unused["CommitmentDiscountStatus"]) == ("sp-1", "Unused")
    assert (corrected["ChargeClass"], corrected["BilledCost"]) == ("Correction", "-2")
    assert (tax["ChargeCategory"], tax["PricingCategory"], tax["BilledCost"]) == ("Tax", "", "7")
    assert (euros["BillingCurrency"], json.loads(euros["Tags"])) == ("EUR", {"cost-center": "7"})
    document = focus_document(reviewed(bills=(make_bill(*charges),)))
    (tmp_path / "focus.parquet").write_bytes(to_parquet(document))
    again = read_bill(tmp_path / "focus.parquet", "project")
    assert again.faults == ()
    assert [charge.billed_cost for charge in again.charges] == [90, 0, -2, 7, 3]
    assert [charge.category for charge in again.charges] == [charge.category for charge in charges[:4]] + [
        ChargeCategory.USAGE
    ]
    assert again.charges[1].is_unused
    assert again.charges[4].tags == {"cost-center": "7"}


def test_a_spreadsheet_gets_no_dash_for_a_number_that_nobody_knows():
    text = text_of(review_document(reviewed(make_run(usd=None))), Format.CSV)
    (row,) = csv.DictReader(io.StringIO(text))
    assert (row["cost_usd"], row["predicted_p50_usd"]) == ("", "")
