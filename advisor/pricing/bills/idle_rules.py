"""Contracts and quotas that are about no offer at all: most likely a slip, and nothing else tells of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from advisor.core.globs import Machines, is_any, same_name
from advisor.core.values import Offer

_KEYS = ("provider", "instance_types", "regions", "markets")


def idle_rules(rules: Mapping[str, Machines], offers: Iterable[Offer]) -> list[str]:
    """One line for each rule that no offer matches: what it means, and the key that no offer gets past.

    Args:
        rules: by what messages call them, such as ``"contracts, entry 2"``.
        offers: all that are known.
    """
    farthest = dict.fromkeys(rules, 0)
    for offer in offers:
        idle = [name for name, num_passed in farthest.items() if num_passed < len(_KEYS)]
        if not idle:
            break
        for name in idle:
            farthest[name] = max(farthest[name], _num_passed(rules[name], offer))
    return [
        _in_words(name, rules[name], _KEYS[num_passed])
        for name, num_passed in farthest.items()
        if num_passed < len(_KEYS)
    ]


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
