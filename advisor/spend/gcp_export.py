"""A row of Google Cloud's billing export in BigQuery -> a charge.

Columns: https://docs.cloud.google.com/billing/docs/how-to/export-data-bigquery-tables/detailed-usage. Costs
follow Google's own mapping to FOCUS: what is billed is the cost less its credits.
"""

from collections.abc import Collection, Mapping
from decimal import Decimal

from advisor.formats.foreign_files import read_json
from advisor.spend import cells
from advisor.spend.charges import Charge, ChargeCategory

REQUIRED = ("cost", "currency", "usage_end_time", "usage_start_time")
"""Columns that every row has; BigQuery leaves others out where they are null."""
_MACHINE = "compute.googleapis.com/machine_spec"
_CATEGORIES: Mapping[str, ChargeCategory] = {
    "regular": ChargeCategory.USAGE,
    "tax": ChargeCategory.TAX,
    "adjustment": ChargeCategory.ADJUSTMENT,
    "rounding_error": ChargeCategory.ADJUSTMENT,
}


def with_dots(row: cells.Row) -> cells.Row:
    """A row with its inner fields as columns, such as ``service.description``.

    JSON and Parquet nest them; a query for CSV names them with a dot or an underscore.

    >>> with_dots({"cost": 1, "service": {"description": "Compute Engine"}})
    {'cost': 1, 'service.description': 'Compute Engine'}
    >>> with_dots({"service_description": "Compute Engine"})
    {'service.description': 'Compute Engine'}
    """
    flat: dict[str, object] = {}
    for name, value in row.items():
        group, _, rest = name.partition("_")
        if isinstance(value, Mapping) and name in _GROUPS:
            flat |= {f"{name}.{inner}": item for inner, item in value.items()}
        elif rest and group in _GROUPS:
            flat[f"{group}.{rest}"] = value
        else:
            flat[name] = value
    return flat


_GROUPS = frozenset({"service", "sku", "project", "location"})


def missing_columns(columns: Collection[str]) -> list[str]:
    """What an export would need besides; inner fields are named with dots."""
    return [name for name in REQUIRED if name not in columns]


def charge_of(row: cells.Row, project_tag: str) -> Charge:
    """The charge of a row whose inner fields are named with dots. Raises ValueError: what is wrong."""
    start, end = cells.period(row, "usage_start_time", "usage_end_time")
    billed = billed_cost(row)
    odd: list[str] = []
    labels = cells.optional(cells.pairs, row, "labels", odd) or {}
    system_labels = cells.optional(cells.pairs, row, "system_labels", odd) or {}
    return Charge(
        start=start,
        end=end,
        provider="gcp",
        service=cells.text(row, "service.description") or "",
        sku=cells.text(row, "sku.id"),
        instance_type=system_labels.get(_MACHINE),
        region=cells.text(row, "location.region"),
        project=labels.get(project_tag) or None,
        category=_category(cells.text(row, "cost_type")),
        billed_cost=billed,
        effective_cost=billed,
        contracted_cost=cells.required_amount(row, "cost"),
        list_cost=cells.optional(cells.amount, row, "cost_at_list", odd),
        currency=cells.currency(row, "currency"),
        tags=labels,
        odd="; ".join(odd),
    )


def billed_cost(row: cells.Row) -> Decimal:
    """The cost of a row less its credits. Raises ValueError: either is unreadable."""
    return cells.required_amount(row, "cost") + _credited(row.get("credits"))


def _category(cost_type: str | None) -> ChargeCategory:
    known = _CATEGORIES.get(cost_type or "regular")
    if known is None:
        raise ValueError(f"cost_type is {str(cost_type)[:40]!r}: Google has {', '.join(_CATEGORIES)}")
    return known


def _credited(value: object) -> Decimal:
    """The sum of a row's credits, which are below zero."""
    if isinstance(value, str):
        try:
            value = read_json(value, parse_float=Decimal) if value.strip() else None
        except ValueError:
            raise ValueError("credits is no JSON") from None
    if value is None:
        return Decimal(0)
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        raise ValueError("credits is no list of credits")
    return sum((cells.required_amount(item, "amount") for item in value), Decimal(0))
