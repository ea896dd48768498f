"""Negotiated discounts and commitments: from list prices to what an organisation really pays.

The three prices are those of FOCUS (https://focus.finops.org): ListUnitPrice is what the provider publishes;
ContractedUnitPrice comes after negotiated discounts and before commitments; EffectiveCost, by unit, after
both. With a discount d, a commitment's discount c and the share s of the use that it covers

    contracted = list x (1 - d)
    effective  = contracted x (1 - s c)

so that effective <= contracted <= list.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

from advisor.core.globs import is_among
from advisor.core.values import Offer

if TYPE_CHECKING:
    from advisor.config.settings import ContractSettings


def in_force(
    rules: Sequence[ContractSettings], today: date
) -> tuple[tuple[ContractSettings, ...], tuple[str, ...]]:
    """The rules that have not ended, and one warning about those that have."""
    kept = tuple(rule for rule in rules if rule.until is None or today <= rule.until)
    ended = [f"{rule.provider} (until {rule.until})" for rule in rules if rule not in kept]
    if not ended:
        return kept, ()
    return kept, (
        f"contracts have ended and do not count: {', '.join(ended)}; see contracts in the settings",
    )


def contracted(offers: Iterable[Offer], rules: Sequence[ContractSettings]) -> tuple[Offer, ...]:
    """Offers with the contracted and the effective price that the first rule that matches gives.

    A rule holds for the markets it names, which are on-demand unless it says otherwise. An offer that no rule
    matches stays as it is, and so does one whose source tells a contracted or effective price (own rates).
    """
    return tuple(_priced(offer, rules) for offer in offers)


def _priced(offer: Offer, rules: Sequence[ContractSettings]) -> Offer:
    rule = next((rule for rule in rules if is_among(offer, rule)), None)
    is_told = offer.contracted_usd_per_h is not None or offer.effective_usd_per_h is not None
    if rule is None or is_told:
        return offer
    negotiated = offer.list_usd_per_h * (1 - rule.discount)
    saving = rule.coverage * rule.commitment_discount
    return replace(
        offer,
        contracted_usd_per_h=negotiated if rule.discount else None,
        effective_usd_per_h=negotiated * (1 - saving) if saving else None,
    )
