"""What was paid ahead (reservations, savings plans): how much of it was used, and what it covered."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from advisor.spend.charges import Charge, ChargeCategory

_NOTHING = Decimal(0)
_SPOT = "dynamic"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitmentUse:
    """A commitment in a period, amortised.

    Attributes:
        name: its name, else its id.
    """

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
    """The share of machines' use that commitments covered, at negotiated prices without them; no spot.

    None where no machine was used.
    """
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
