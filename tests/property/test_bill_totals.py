"""Each total of a bill, beside the same by a slow loop over the rows of its file."""

import csv
import json
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.review.budgets import Scope
from advisor.review.spending import UNUSED, Billing, billing_of
from advisor.spend.bill_files import read_bill
from tests.team import MONDAY, WEEK
from tests.unit.spend.bills import FOCUS_ROW, focus_text

Row = dict[str, str]
AMOUNTS = st.decimals(0, 5000, places=4).map(str)
PLAN = {"CommitmentDiscountId": "sp-1", "CommitmentDiscountName": "plan", "CommitmentDiscountStatus": ""}
BLANK = dict.fromkeys(
    (*PLAN, "ChargeClass", "PricingCategory", "SkuPriceDetails", "x_SkuDetails", "ChargeFrequency"), ""
)
ODD_CELLS = (
    {}, {}, {}, {"Tags": "{no json"}, {"Tags": "NULL"}, {"ServiceName": ""}, {"ListCost": "NULL"},
    {"ContractedCost": "n/a"}, {"SkuPriceDetails": "torn"}, {"ProviderName": "NULL"}, {"RegionId": "NULL"},
)  # fmt: skip
LOST = ({}, {}, {}, {}, {"ChargeCategory": "Fun"}, {"ChargePeriodEnd": "1999-01-01"}, {"BilledCost": "much"})


def kinds(usd: str) -> list[Row]:
    """What bills hold: use, credits, refunds, tax, purchases, and a plan that is used or not."""
    return [
        {"BilledCost": usd, "EffectiveCost": usd},
        {"BilledCost": f"-{usd}", "EffectiveCost": f"-{usd}", "ChargeCategory": "Credit"},
        {"BilledCost": f"-{usd}", "EffectiveCost": f"-{usd}", "ChargeClass": "Correction"},
        {"BilledCost": usd, "EffectiveCost": usd, "ChargeCategory": "Tax", "x_UsageType": ""},
        {"BilledCost": usd, "EffectiveCost": "0", "ChargeCategory": "Purchase"} | PLAN,
        {"BilledCost": "0", "EffectiveCost": usd} | PLAN | {"CommitmentDiscountStatus": "Used"},
        {"BilledCost": "0", "EffectiveCost": usd} | PLAN | {"CommitmentDiscountStatus": "Unused"},
        {"BilledCost": usd, "EffectiveCost": "", "x_UsageType": "UnusedBox:p4d.24xlarge"},
        {"BilledCost": usd, "EffectiveCost": usd, "BillingCurrency": "EUR"},
        {"BilledCost": usd, "EffectiveCost": usd, "x_UsageType": "", "Tags": '{"project": "platform"}'},
    ]


@st.composite
def rows(draw: st.DrawFn) -> Row:
    start = MONDAY + timedelta(hours=draw(st.integers(-30, 200)))
    when = {"ChargePeriodStart": f"{start:%Y-%m-%dT%H:%M:%SZ}"}
    when["ChargePeriodEnd"] = f"{start + timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}"
    tags = {"Tags": draw(st.sampled_from(["", '{"project": "resnet"}', '{"user:project": "bert"}']))}
    kind = draw(st.sampled_from(kinds(draw(AMOUNTS))))
    odd, lost = draw(st.sampled_from(ODD_CELLS)), draw(st.sampled_from(LOST))
    return {**FOCUS_ROW, **BLANK, **when, **tags, **kind, **odd, **lost}


def slow_usd(row: Row, column: str) -> Decimal | None:
    try:
        return Decimal(row[column])
    except InvalidOperation:
        return None


def slow_tags(row: Row) -> dict[str, str]:
    try:
        return dict(json.loads(row["Tags"]))
    except ValueError:
        return {}


def is_lost(row: Row) -> bool:
    known = "Usage", "Purchase", "Tax", "Credit", "Adjustment"
    return (
        row["ChargeCategory"] not in known
        or row["ChargePeriodEnd"] < row["ChargePeriodStart"]
        or slow_usd(row, "BilledCost") is None
    )


def slow_rows(path: Path) -> Iterator[Row]:
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            start = datetime.fromisoformat(row["ChargePeriodStart"]).astimezone(UTC)
            if MONDAY <= start < MONDAY + timedelta(days=7):
                yield row


def slow_totals(path: Path) -> dict[str, Any]:
    sums: dict[str, Any] = defaultdict(Decimal)
    for row in slow_rows(path):
        billed, effective = slow_usd(row, "BilledCost"), slow_usd(row, "EffectiveCost")
        if is_lost(row):
            sums["left out"] += billed if billed is not None and row["BillingCurrency"] == "USD" else 0
            continue
        assert billed is not None
        amortised = billed if effective is None else effective
        if row["ChargeCategory"] == "Tax":
            sums["left out"] += billed if row["BillingCurrency"] == "USD" else 0
        elif row["BillingCurrency"] != "USD":
            sums["EUR"] += billed
        else:
            sums["billed"] += billed
            sums["amortised"] += amortised
            tags = slow_tags(row)
            sums["project", tags.get("project") or tags.get("user:project") or ""] += amortised
            if row["CommitmentDiscountStatus"]:
                sums["plan", row["CommitmentDiscountStatus"]] += amortised
    return sums


def all_totals(billing: Billing) -> dict[Any, Decimal]:
    return {
        "billed": billing.usd,
        "amortised": billing.amortised_usd,
        "left out": billing.left_out_usd,
        "EUR": billing.other_currencies.get("EUR", (Decimal(0), 0))[0],
        ("plan", "Used"): sum((one.used_usd for one in billing.commitments), Decimal(0)),
        ("plan", "Unused"): billing.unused_usd,
        **{("project", share.name): share.amortised_usd for share in billing.by_project},
    }


@settings(max_examples=60)
@given(st.lists(rows(), min_size=1, max_size=25))
def test_every_total_is_that_of_a_slow_loop_over_the_file(written):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bill.csv"
        path.write_text(focus_text(*written))
        billing = billing_of([read_bill(path, "project")], (), WEEK, Scope())
        slow = slow_totals(path)
    totals = all_totals(billing)
    assert {name: usd for name, usd in totals.items() if usd} == {n: usd for n, usd in slow.items() if usd}
    # Nothing vanishes between the total and its parts.
    machines = sum(one.amortised_usd for one in billing.machines)
    assert machines + sum(one.amortised_usd for one in billing.by_service) == billing.amortised_usd
    unused = sum(one.amortised_usd for one in billing.by_service if one.name == UNUSED)
    assert unused == billing.unused_usd
