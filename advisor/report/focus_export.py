"""A team's report as a FOCUS 1.0 data set: charges as clouds billed them, and runs that no bill tells of.

Columns: https://focus.finops.org/focus-specification/v1-0/. Every column of the specification is there, those
of which we know nothing are empty, and what FOCUS has no column for is in columns that begin with ``x_``.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from advisor.core.errors import InputError
from advisor.core.values import CostKind, Market
from advisor.report.document import Document, Row, Table, columns
from advisor.report.words import warnings_json
from advisor.review.budgets import exact, month_of, outlay_of
from advisor.spend.charges import Charge, ChargeCategory
from advisor.spend.focus import UNKNOWN
from advisor.spend.outlays import billed_days

if TYPE_CHECKING:
    from advisor.review.team_review import TeamReview
    from advisor.store.ledger import Run

COLUMNS = (
    "AvailabilityZone", "BilledCost", "BillingAccountId", "BillingAccountName", "BillingCurrency",
    "BillingPeriodEnd", "BillingPeriodStart", "ChargeCategory", "ChargeClass", "ChargeDescription",
    "ChargeFrequency", "ChargePeriodEnd", "ChargePeriodStart", "CommitmentDiscountCategory",
    "CommitmentDiscountId", "CommitmentDiscountName", "CommitmentDiscountStatus", "CommitmentDiscountType",
    "ConsumedQuantity", "ConsumedUnit", "ContractedCost", "ContractedUnitPrice", "EffectiveCost",
    "InvoiceIssuerName", "ListCost", "ListUnitPrice", "PricingCategory", "PricingQuantity", "PricingUnit",
    "ProviderName", "PublisherName", "RegionId", "RegionName", "ResourceId", "ResourceName", "ResourceType",
    "ServiceCategory", "ServiceName", "SkuId", "SkuPriceId", "SubAccountId", "SubAccountName", "Tags",
)  # fmt: skip
"""Of FOCUS 1.0, in the order of the alphabet."""
OWN_COLUMNS = (
    "x_InstanceType", "x_IsEstimate", "x_CostBasis", "x_Record", "x_RunCost", "x_RunId",
    "x_RecommendationId", "x_Gpu", "x_GpuCount", "x_Script", "x_RunStatus",
)  # fmt: skip
ACCOUNT = UNKNOWN
"""No bill tells us an account, and FOCUS asks for one."""
_PRICING = {
    Market.ON_DEMAND: "Standard",
    Market.SPOT: "Dynamic",
    **dict.fromkeys((Market.RESERVED, Market.COMMIT_1Y, Market.COMMIT_3Y), "Committed"),
}


def focus_document(review: TeamReview) -> Document:
    """The charges and runs of the report.

    A run on a day of which its cloud's bill has machines stands in that bill, too: its own row costs nothing,
    and ``x_RunCost`` tells what it cost. Runs of unknown cost are left out, as FOCUS has no unknown cost.
    """
    charges = () if review.billing is None else review.billing.charges
    apart = () if review.billing is None else review.billing.apart
    billed = set(billed_days(charges))
    categories = _categories((*charges, *apart))
    rows = [_of_charge(charge, categories[_service_of(charge)]) for charge in (*charges, *apart)]
    rows += [row for run in review.runs for row in _of_run(run, is_billed=outlay_of(run).place in billed)]
    names = (*COLUMNS, *OWN_COLUMNS)
    table = Table(
        columns=columns(*names), rows=tuple(Row(tuple(row.get(name, "") for name in names)) for row in rows)
    )
    return Document(facts=warnings_json(review.unknown), blocks=(table,), sheet=table)


_COSTS = ("BilledCost", "ConsumedQuantity", "ContractedCost", "EffectiveCost", "ListCost", "PricingQuantity")
_TIMES = ("BillingPeriodEnd", "BillingPeriodStart", "ChargePeriodEnd", "ChargePeriodStart")


def to_parquet(document: Document) -> bytes:
    """As a Parquet file: decimals, times, a map of tags, nulls. Raises InputError: no pyarrow."""
    pa = pyarrow()
    (table,) = document.tables()
    kinds = {
        **dict.fromkeys((*_COSTS, "x_RunCost"), pa.decimal128(38, 18)),
        **dict.fromkeys(_TIMES, pa.timestamp("s", tz="UTC")),
        "Tags": pa.map_(pa.string(), pa.string()),
    }
    columns = {}
    for place, column in enumerate(table.columns):
        kind = kinds.get(column.name, pa.string())
        values = [_typed(str(row.cells[place]), column.name) for row in table.rows]
        columns[column.name] = pa.array(values, kind)
    return parquet_of(pa.table(columns))


def pyarrow() -> Any:
    """The library. Raises InputError: it is not installed."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise InputError(
            "Parquet needs pyarrow: pip install 'gpu-advisor[parquet]' in advisor's own environment, or write"
            " a .csv."
        ) from error
    return pyarrow


def parquet_of(table: Any) -> bytes:
    """A table of pyarrow as a file."""
    out = io.BytesIO()
    pyarrow().parquet.write_table(table, out)
    return out.getvalue()


def _typed(text: str, column: str) -> object:
    if not text:
        return None
    if column in (*_COSTS, "x_RunCost"):
        return Decimal(text).quantize(Decimal("1e-18"))
    if column in _TIMES:
        return datetime.fromisoformat(text)
    return list(json.loads(text).items()) if column == "Tags" else text


def _service_of(charge: Charge) -> tuple[str, str]:
    return charge.provider, charge.service


def _categories(charges: Sequence[Charge]) -> Mapping[tuple[str, str], str]:
    """The category of each service: FOCUS has one a service, and a bill may tell it in some rows alone."""
    categories = {_service_of(charge): "Other" for charge in charges}
    categories |= {_service_of(charge): "Compute" for charge in charges if charge.instance_type}
    told = ((charge, charge.details.get("ServiceCategory")) for charge in charges)
    return categories | {_service_of(charge): category for charge, category in told if category}


def _of_charge(charge: Charge, category: str) -> dict[str, str]:
    """Costs that the bill does not tell are what was billed; ``x_CostBasis`` names those that it tells."""
    told = {
        "BilledCost": charge.billed_cost,
        "EffectiveCost": charge.effective_cost,
        "ContractedCost": charge.contracted_cost,
        "ListCost": charge.list_cost,
    }
    known = {name: cost for name, cost in told.items() if cost is not None}
    is_tax = charge.category is ChargeCategory.TAX
    tags = dict(charge.tags) or ({"project": charge.project} if charge.project else {})
    row = {
        **_common(charge.provider, charge.start, charge.end, charge.currency, charge.project),
        **{name: f"{known.get(name, charge.billed_cost):f}" for name in told},
        "ChargeCategory": charge.category,
        "ChargeDescription": f"{charge.service} {charge.instance_type or charge.sku or ''}".strip(),
        "ChargeFrequency": "Usage-Based" if charge.category is ChargeCategory.USAGE else "One-Time",
        "ServiceName": charge.service or UNKNOWN,
        "SkuId": charge.sku or "",
        "Tags": json.dumps(tags),
        "RegionId": charge.region or "",
        "RegionName": charge.region or "",
        "x_InstanceType": charge.instance_type or "",
        "x_IsEstimate": json.dumps(len(known) < len(told)),
        "x_CostBasis": " ".join(known),
        "x_Record": "charge",
        **charge.details,
        "ServiceCategory": category,
    }
    # Tax has neither a price nor a SKU in FOCUS, and only use has a commitment that is used or not.
    empty = ("PricingCategory", "SkuId") if is_tax else ()
    if charge.category is not ChargeCategory.USAGE:
        empty = (*empty, "CommitmentDiscountStatus")
    return {**row, **dict.fromkeys(empty, "")}


def _of_run(run: Run, *, is_billed: bool) -> Iterator[dict[str, str]]:
    if run.cost_usd is None or run.cost_kind is None:
        return
    run_cost = f"{exact(run.cost_usd):f}"
    cost = "0" if is_billed else run_cost
    end = run.started_at + timedelta(seconds=run.duration_s or 0.0)
    hours = "" if run.duration_s is None else f"{Decimal(repr(run.duration_s)) / 3600:.6f}"
    yield {
        **_common(run.provider or "unknown", run.started_at, end, "USD", run.project),
        **dict.fromkeys(("BilledCost", "EffectiveCost", "ContractedCost", "ListCost"), cost),
        "AvailabilityZone": run.zone or "",
        "ChargeCategory": "Usage",
        "ChargeDescription": f"run of {run.script or 'a job'}",
        "ConsumedQuantity": hours,
        "ConsumedUnit": "Hours" if hours else "",
        "PricingCategory": _PRICING.get(run.market, "Other") if run.market else "Other",
        "PricingQuantity": hours,
        "PricingUnit": "Hours" if hours else "",
        "RegionId": run.region or "",
        "RegionName": run.region or "",
        "ResourceId": run.id,
        "ResourceType": "Training run",
        "ServiceCategory": "Compute",
        "ServiceName": "Training run",
        "x_InstanceType": run.instance_type or "",
        "x_IsEstimate": json.dumps(run.cost_kind is not CostKind.BILLED),
        "x_CostBasis": run.cost_kind,
        "x_Record": "run",
        "x_RunCost": run_cost,
        "x_RunId": run.id,
        "x_RecommendationId": run.recommendation_id or "",
        "x_Gpu": run.gpu,
        "x_GpuCount": f"{run.num_gpus}",
        "x_Script": run.script,
        "x_RunStatus": run.status,
    }


def _common(
    provider: str, start: datetime, end: datetime, currency: str, project: str | None
) -> Mapping[str, str]:
    month = month_of(start + timedelta(microseconds=1))
    return {
        "BillingAccountId": ACCOUNT,
        "BillingCurrency": currency,
        "BillingPeriodStart": _time(month.since),
        "BillingPeriodEnd": _time(month.until),
        "ChargeFrequency": "Usage-Based",
        "ChargePeriodStart": _time(start),
        "ChargePeriodEnd": _time(end),
        "InvoiceIssuerName": provider,
        "ProviderName": provider,
        "PublisherName": provider,
        "Tags": json.dumps({"project": project}) if project else "{}",
    }


def _time(moment: datetime) -> str:
    """As FOCUS writes it: UTC, in seconds."""
    return f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
