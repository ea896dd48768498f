"""Negotiated discounts and commitments: from list prices to what an organisation really pays."""

from collections.abc import Iterable, Mapping, Sequence
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


_KEYS = ("provider", "instance_types", "regions", "markets")


def idle_rules(rules: Mapping[str, Machines], offers: Iterable[Offer]) -> list[str]:
    """Of each rule that no offer matches, by its name: what it means, and the key that stops all."""
    farthest = dict.fromkeys(rules, 0)
    for offer in offers:
        for name in [name for name, num_passed in farthest.items() if num_passed < len(_KEYS)]:
            farthest[name] = max(farthest[name], _num_passed(rules[name], offer))
    idle = {name: num_passed for name, num_passed in farthest.items() if num_passed < len(_KEYS)}
    return [_in_words(name, rules[name], _KEYS[num_passed]) for name, num_passed in idle.items()]


def _num_passed(rule: Machines, offer: Offer) -> int:
    """How many keys, in their order, let the offer through."""
    if not same_name(rule.provider, offer.provider):
        return 0
    if not is_any(rule.instance_types, offer.instance_type):
        return 1
    if not is_any(rule.regions, offer.region):
        return 2
    return 3 if offer.market not in rule.markets else len(_KEYS)


def _in_words(name: str, rule: Machines, key: str) -> str:
    meant = f"{rule.provider} {' '.join(rule.instance_types)} in {' '.join(rule.regions)}"
    return (
        f"{name}, matches no offer of any source: {meant}, {' '.join(rule.markets)}; nothing gets past its"
        f" {key}"
    )
