"""A row of a FOCUS 1.x file -> a charge (https://focus.finops.org/focus-specification)."""

from __future__ import annotations

from collections.abc import Collection

from advisor.spend import cells
from advisor.spend.charges import Charge, ChargeCategory

REQUIRED = (
    "BilledCost",
    "BillingCurrency",
    "ChargeCategory",
    "ChargePeriodEnd",
    "ChargePeriodStart",
    "ServiceName",
)
"""Columns without which a row says too little; all of them are mandatory in FOCUS."""
# The first until version 1.2, the other since 1.3.
PROVIDER = ("ProviderName", "ServiceProviderName")
# Where clouds write the machine: FOCUS 1.1 and later, exports of ours, and the usage type of AWS.
_DETAILS, _OWN, _USAGE_TYPE = "SkuPriceDetails", "x_InstanceType", "x_UsageType"
_USES = ("BoxUsage:", "SpotUsage:")


def missing_columns(columns: Collection[str]) -> list[str]:
    """What a file would need besides.

    >>> missing_columns([*REQUIRED, "ServiceProviderName"])
    []
    """
    missing = [name for name in REQUIRED if name not in columns]
    return missing if any(name in columns for name in PROVIDER) else [*missing, PROVIDER[0]]


def charge_of(row: cells.Row, project_tag: str) -> Charge:
    """The charge of a row.

    Raises:
        ValueError: says what is wrong with it.
    """
    start, end = cells.period(row, "ChargePeriodStart", "ChargePeriodEnd")
    provider = cells.text(row, PROVIDER[1]) or cells.required_text(row, PROVIDER[0])
    return Charge(
        start=start,
        end=end,
        provider=cells.provider_name(provider),
        service=cells.required_text(row, "ServiceName"),
        sku=cells.text(row, "SkuId"),
        instance_type=_instance_type(row),
        region=cells.text(row, "RegionId"),
        project=_project(row, project_tag),
        category=_category(row),
        billed_cost=cells.required_amount(row, "BilledCost"),
        effective_cost=cells.amount(row, "EffectiveCost"),
        contracted_cost=cells.amount(row, "ContractedCost"),
        list_cost=cells.amount(row, "ListCost"),
        currency=cells.currency(row, "BillingCurrency"),
    )


def _category(row: cells.Row) -> ChargeCategory:
    written = cells.required_text(row, "ChargeCategory")
    try:
        return ChargeCategory(written)
    except ValueError:
        raise ValueError(
            f"ChargeCategory is {written[:40]!r}: FOCUS has {', '.join(ChargeCategory)}"
        ) from None


def _project(row: cells.Row, tag: str) -> str | None:
    tags = cells.pairs(row.get("Tags"))
    return tags.get(tag) or tags.get(f"user:{tag}")  # AWS marks what users tagged


def _instance_type(row: cells.Row) -> str | None:
    named = cells.pairs(row.get(_DETAILS)).get("InstanceType") or cells.text(row, _OWN)
    if named:
        return named
    use, _, machine = (cells.text(row, _USAGE_TYPE) or "").rpartition(":")
    return machine if any(f"{use}:".endswith(known) for known in _USES) else None
