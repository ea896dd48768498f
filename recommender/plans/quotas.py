"""Quotas: what an account may start at once in a region."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from advisor.core.findings import Code, Finding, finding
from advisor.core.globs import is_among
from advisor.core.values import Market, Offer


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """What an account may run at once of machines that match; wildcards stand for any."""

    provider: str
    vcpus: int
    instance_types: tuple[str, ...] = ("*",)
    regions: tuple[str, ...] = ("*",)
    markets: tuple[Market, ...] = (Market.ON_DEMAND, Market.SPOT)


def over_quota(offer: Offer, quotas: Sequence[Quota], num_nodes: int = 1) -> Finding | None:
    """Why the account may not start so many of a machine; None if no quota is known to forbid it.

    Of several quotas that match, each must hold. A machine of unknown size is not judged.
    """
    if offer.num_vcpus is None:
        return None
    for quota in quotas:
        if is_among(offer, quota) and offer.num_vcpus * num_nodes > quota.vcpus:
            return finding(
                Code.QUOTA,
                num_vcpus=offer.num_vcpus * num_nodes,
                most_vcpus=quota.vcpus,
                instance_types=quota.instance_types,
                region=offer.region,
                provider=quota.provider,
            )
    return None
