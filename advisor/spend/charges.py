"""A charge of a bill, and a bill as it was read: what could be read, and what could not."""

from collections.abc import Mapping
from dataclasses import dataclass, field
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
        service: "" where the bill does not tell.
        project: value of the tag that names one.
        billed_cost: what is paid for it.
        effective_cost: after amortising what was paid ahead.
        tags: all of them, that of the project as well.
        details: cells of FOCUS that are handed on as they are, by column: those that are not empty.
        odd: what is wrong with a cell that the charge does without, and its line; "" if nothing.
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
    tags: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, str] = field(default_factory=dict)
    odd: str = ""

    @property
    def amortised_cost(self) -> Decimal:
        """With what was paid ahead spread over its use; where the bill does not tell, what was billed."""
        return self.billed_cost if self.effective_cost is None else self.effective_cost

    @property
    def is_unused(self) -> bool:
        """Whether it is the part of a commitment that nobody used."""
        return self.details.get("CommitmentDiscountStatus", "").lower() == "unused"

    @property
    def machine(self) -> str | None:
        """The kind of machine that was used; None also where one was only paid ahead."""
        is_use = self.category is not ChargeCategory.PURCHASE and not self.is_unused
        return self.instance_type if is_use else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFault:
    """A row that cannot be true.

    Attributes:
        line: from 1, or the row's number where there are no lines.
        usd: what it says was billed; None where that is unknown, or no dollars.
        start: of its period; None where it is unknown.
    """

    line: int
    reason: str
    usd: Decimal | None = None
    start: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """What a file or an interface told.

    Attributes:
        name: of the file, or of the interface.
        faults: the rows that were left out, in order.
        trouble: why nothing could be asked; "" if it could.
    """

    name: str
    charges: tuple[Charge, ...] = ()
    faults: tuple[RowFault, ...] = ()
    trouble: str = ""
