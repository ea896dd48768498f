"""A charge of a bill, and a bill as it was read: what could be read, and what could not."""

from collections.abc import Iterable, Mapping
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
    """A line of a bill; None is not known. Costs are in its currency, and exact."""

    start: datetime
    """Of its period, with a time zone."""
    end: datetime
    provider: str
    """As advisor names it, such as ``aws``."""
    service: str
    """"" where the bill does not tell."""
    sku: str | None = None
    instance_type: str | None = None
    region: str | None = None
    project: str | None = None
    """Value of the tag that names one."""
    category: ChargeCategory = ChargeCategory.USAGE
    billed_cost: Decimal
    effective_cost: Decimal | None = None
    """After amortising what was paid ahead."""
    contracted_cost: Decimal | None = None
    """At negotiated prices."""
    list_cost: Decimal | None = None
    """At published prices."""
    currency: str
    tags: Mapping[str, str] = field(default_factory=dict)
    """All of them, that of the project as well."""
    details: Mapping[str, str] = field(default_factory=dict)
    """Cells of FOCUS that are handed on as they are, by column: those that are not empty."""
    odd: str = ""
    """What is wrong with a cell that the charge does without, and its line; "" if nothing."""

    @property
    def amortised_cost(self) -> Decimal:
        """With what was paid ahead spread over its use; where the bill does not tell, what was billed."""
        return self.billed_cost if self.effective_cost is None else self.effective_cost

    @property
    def is_unused(self) -> bool:
        """Whether it is the part of a commitment that was not used."""
        return self.details.get("CommitmentDiscountStatus", "").lower() == "unused"

    @property
    def machine(self) -> str | None:
        """The kind of machine that was used; None also where one was only paid ahead."""
        is_use = self.category is not ChargeCategory.PURCHASE and not self.is_unused
        return self.instance_type if is_use else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFault:
    """A row that cannot be true."""

    line: int
    """From 1, or the row's number where there are no lines."""
    reason: str
    usd: Decimal | None = None
    """What it says was billed; None where that is unknown, or no dollars."""
    start: datetime | None = None
    """Of its period; None where it is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """What a file or an interface told."""

    name: str
    """Of the file, or of the interface."""
    charges: tuple[Charge, ...] = ()
    faults: tuple[RowFault, ...] = ()
    """The rows that were left out, in order."""
    trouble: str = ""
    """Why nothing could be asked; "" if it could."""


_NOTHING = Decimal(0)
_SPOT = "dynamic"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitmentUse:
    """A commitment in a period, amortised."""

    provider: str
    name: str
    used_usd: Decimal
    unused_usd: Decimal

    @property
    def utilisation(self) -> float | None:
        """The share of it that was used; None where nothing of it fell into the period."""
        paid_usd = self.used_usd + self.unused_usd
        return float(self.used_usd / paid_usd) if paid_usd > 0 else None


def commitments_of(charges: Iterable[Charge]) -> tuple[CommitmentUse, ...]:
    """Commitments of charges in one currency, that with most unused first.

    A purchase is not use: FOCUS spreads its cost over the charges that it covers, and over unused ones.
    """
    sums: dict[tuple[str, str], list[Decimal]] = {}
    names: dict[tuple[str, str], str] = {}
    for charge in charges:
        known_as = charge.details.get("CommitmentDiscountId")
        if known_as is None and not charge.is_unused:
            continue
        key = charge.provider, known_as or ""
        names[key] = charge.details.get("CommitmentDiscountName") or names.get(key, known_as or "")
        if charge.category is not ChargeCategory.PURCHASE:
            sums.setdefault(key, [_NOTHING, _NOTHING])[charge.is_unused] += charge.amortised_cost
    uses = (
        CommitmentUse(provider=key[0], name=names[key], used_usd=used, unused_usd=unused)
        for key, (used, unused) in sums.items()
    )
    return tuple(sorted(uses, key=lambda use: (-use.unused_usd, use.provider, use.name)))


def coverage_of(charges: Iterable[Charge]) -> float | None:
    """The share of machines' use (spot aside) that commitments covered, at negotiated prices, if any use."""
    covered, whole = _NOTHING, _NOTHING
    for charge in charges:
        is_spot = charge.details.get("PricingCategory", "").lower() == _SPOT
        if charge.machine is None or charge.category is not ChargeCategory.USAGE or is_spot:
            continue
        usd = charge.amortised_cost if charge.contracted_cost is None else charge.contracted_cost
        whole += usd
        if "CommitmentDiscountId" in charge.details:
            covered += usd
    return float(covered / whole) if whole > 0 else None
