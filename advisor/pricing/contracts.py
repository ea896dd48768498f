"""Negotiated discounts and commitments: from list prices to what an organisation really pays."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date

from advisor.config.settings import ContractSettings
from advisor.core.globs import Machines, is_among, is_any, same_name
from advisor.core.values import Offer


def in_force(
    rules: Sequence[ContractSettings], today: date
) -> tuple[tuple[ContractSettings, ...], tuple[str, ...]]:
    """The rules that have not ended, and one warning about those that have."""
    kept = tuple(rule for rule in rules if rule.until is None or today <= rule.until)
    ended = [f"{rule.provider} (until {rule.until})" for rule in rules if rule not in kept]
    words = f"contracts have ended and do not count: {', '.join(ended)}; see contracts in the settings"
    return kept, (words,) if ended else ()


def contracted(offers: Iterable[Offer], rules: Sequence[ContractSettings]) -> tuple[Offer, ...]:
    """Offers with the contracted and the effective price that the first rule that matches gives.

    A rule holds for the markets it names, which are on-demand unless it says otherwise. An offer that no rule
    matches stays as it is, and so does one whose source tells a contracted or effective price (own rates).
    """

    def priced(offer: Offer) -> Offer:
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

    return tuple(map(priced, offers))


_PASSES: Mapping[str, Callable[[Machines, Offer], bool]] = {
    "provider": lambda rule, offer: same_name(rule.provider, offer.provider),
    "instance_types": lambda rule, offer: is_any(rule.instance_types, offer.instance_type),
    "regions": lambda rule, offer: is_any(rule.regions, offer.region),
    "markets": lambda rule, offer: offer.market in rule.markets,
}
"""Keys of a rule, in the order in which they are tried."""


def idle_rules(rules: Mapping[str, Machines], offers: Iterable[Offer]) -> list[str]:
    """Of each rule that no offer matches, by its name: what it means, and the key that stops all."""
    idle = []
    every = [*offers]
    for name, rule in rules.items():
        passing = every
        for key, passes in _PASSES.items():
            passing = [offer for offer in passing if passes(rule, offer)]
            if not passing:
                meant = f"{rule.provider} {' '.join(rule.instance_types)} in {' '.join(rule.regions)}"
                words = f"matches no offer of any source: {meant}, {' '.join(rule.markets)}"
                idle.append(f"{name}, {words}; nothing gets past its {key}")
                break
    return idle
