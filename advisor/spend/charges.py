"""A charge of a bill, and a bill as it was read: what could be read, and what could not."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

USD = "USD"


class ChargeCategory(StrEnum):
    """What a charge is for, in the words of FOCUS."""

    USAGE = "Usage"
    PURCHASE = "Purchase"
    TAX = "Tax"
    CREDIT = "Credit"
    ADJUSTMENT = "Adjustment"


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """A line of a bill; None is not known. Costs are in its currency, and exact.

    Attributes:
        start: of its period, with a time zone.
        end: when its period is over.
        provider: as advisor names it, such as ``aws``.
        project: value of the tag that names one.
        billed_cost: what is paid for it.
        effective_cost: after amortising what was paid ahead.
        contracted_cost: at negotiated prices.
        list_cost: at published prices.
    """

    start: datetime
    end: datetime
    provider: str
    service: str
    sku: str | None = None
    instance_type: str | None = None
    region: str | None = None
    project: str | None = None
    category: ChargeCategory = ChargeCategory.USAGE
    billed_cost: Decimal
    effective_cost: Decimal | None = None
    contracted_cost: Decimal | None = None
    list_cost: Decimal | None = None
    currency: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFault:
    """A row that cannot be true; ``line`` counts from 1, or is the row's number where there are no lines."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """What a file or an interface told.

    Attributes:
        name: of the file, or of the interface.
        faults: the rows that were left out, in order.
    """

    name: str
    charges: tuple[Charge, ...]
    faults: tuple[RowFault, ...] = ()
