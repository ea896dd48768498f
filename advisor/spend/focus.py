"""A row of a FOCUS 1.x file -> a charge (https://focus.finops.org/focus-specification)."""

import re
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
_PROVIDERS = (*reversed(PROVIDER), "PublisherName", "InvoiceIssuerName")
UNKNOWN = "unknown"
DETAILS = (
    "BillingAccountId", "BillingAccountName", "ChargeClass", "ChargeDescription", "ChargeFrequency",
    "CommitmentDiscountCategory", "CommitmentDiscountId", "CommitmentDiscountName",
    "CommitmentDiscountStatus", "CommitmentDiscountType", "InvoiceIssuerName", "PricingCategory",
    "PublisherName", "ResourceId", "ServiceCategory", "SubAccountId", "SubAccountName",
)  # fmt: skip
"""Columns of FOCUS 1.0 that are handed on as they are."""
# Where clouds write the machine: FOCUS 1.1 and later, exports of ours, Azure, and the usage type of AWS.
_PRICE_DETAILS, _OWN, _AZURE, _USAGE_TYPE = "SkuPriceDetails", "x_InstanceType", "x_SkuDetails", "x_UsageType"
_EC2 = re.compile(r"(?:^|-)(?:BoxUsage|SpotUsage|DedicatedUsage|UnusedBox|UnusedDed):([\w.-]+)$")
_SAGEMAKER = re.compile(r"\bml\.\w+\.\w+")


def missing_columns(columns: Collection[str]) -> list[str]:
    """What a file would need besides.

    >>> missing_columns([*REQUIRED, "ServiceProviderName"])
    []
    """
    missing = [name for name in REQUIRED if name not in columns]
    return missing if any(name in columns for name in PROVIDER) else [*missing, PROVIDER[0]]


def charge_of(row: cells.Row, project_tag: str) -> Charge:
    """The charge of a row; a cell it can do without costs no money. Raises ValueError: what is wrong."""
    odd: list[str] = []
    start, end = cells.period(row, "ChargePeriodStart", "ChargePeriodEnd")
    tags = cells.optional(cells.pairs, row, "Tags", odd) or {}
    # AWS marks what users tagged; a tag that is written plainly goes before.
    names = sorted(tags, key=lambda name: not name.startswith("user:"))
    tags = {name.removeprefix("user:"): tags[name] for name in names}
    return Charge(
        start=start,
        end=end,
        provider=cells.provider_name(
            next(filter(None, (cells.text(row, name) for name in _PROVIDERS)), UNKNOWN)
        ),
        service=cells.text(row, "ServiceName") or "",
        sku=cells.text(row, "SkuId"),
        instance_type=_instance_type(row, odd),
        region=cells.text(row, "RegionId"),
        project=tags.get(project_tag) or None,
        category=_category(row),
        billed_cost=cells.required_amount(row, "BilledCost"),
        effective_cost=cells.optional(cells.amount, row, "EffectiveCost", odd),
        contracted_cost=cells.optional(cells.amount, row, "ContractedCost", odd),
        list_cost=cells.optional(cells.amount, row, "ListCost", odd),
        currency=cells.currency(row, "BillingCurrency"),
        tags=tags,
        details={name: told for name in DETAILS if (told := cells.text(row, name)) is not None},
        odd="; ".join(odd),
    )


def _category(row: cells.Row) -> ChargeCategory:
    written = cells.required_text(row, "ChargeCategory")
    try:
        return ChargeCategory(written)
    except ValueError:
        raise ValueError(
            f"ChargeCategory is {written[:40]!r}: FOCUS has {', '.join(ChargeCategory)}"
        ) from None


def _instance_type(row: cells.Row, odd: list[str]) -> str | None:
    told = cells.optional(cells.pairs, row, _PRICE_DETAILS, odd) or {}
    named = told.get("InstanceType") or cells.text(row, _OWN)
    if named:
        return named
    size = (cells.optional(cells.pairs, row, _AZURE, odd) or {}).get("ServiceType", "")
    return size if size.startswith("Standard_") else machine_of_use(cells.text(row, _USAGE_TYPE) or "")


def machine_of_use(usage_type: str) -> str | None:
    """The machine in a usage type of AWS: EC2's, reserved and unused ones, too, and SageMaker's.

    >>> machine_of_use("EU-SpotUsage:p5.48xlarge"), machine_of_use("UnusedBox:p4d.24xlarge")
    ('p5.48xlarge', 'p4d.24xlarge')
    >>> machine_of_use("USE1-Train:ml.g5.xlarge"), machine_of_use("EBS:VolumeUsage.gp3")
    ('ml.g5.xlarge', None)
    """
    found = _EC2.search(usage_type)
    if found is not None:
        return found[1]
    found = _SAGEMAKER.search(usage_type)
    return None if found is None else found[0]
