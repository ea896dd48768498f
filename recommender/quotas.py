"""Quotas: what an account may start at once in a region."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from advisor.types import Market, Offer


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """How many vCPUs of some machines an account may run at once.

    Attributes:
        instance_types: globs of names, letter case aside.
        regions: the same of regions.
        num_vcpus: 0 lets none start.
    """

    provider: str
    instance_types: tuple[str, ...]
    regions: tuple[str, ...]
    markets: tuple[Market, ...]
    num_vcpus: int


def over_quota(offer: Offer, quotas: Sequence[Quota]) -> str | None:
    """Why the account may not start a machine, in words; None if no quota is known to forbid it.

    Of several quotas that match, each must hold. A machine of unknown size is not judged.
    """
    for quota in quotas:
        if _is_of(quota, offer) and offer.num_vcpus is not None and offer.num_vcpus > quota.num_vcpus:
            return (
                f"over the quota: it has {offer.num_vcpus} vCPU, and {quota.num_vcpus} are allowed for"
                f" {' '.join(quota.instance_types)} in {offer.region}; ask {quota.provider} for more"
            )
    return None


def _is_of(quota: Quota, offer: Offer) -> bool:
    return (
        quota.provider == offer.provider
        and offer.market in quota.markets
        and _is_any(quota.instance_types, offer.instance_type)
        and _is_any(quota.regions, offer.region)
    )


def _is_any(globs: Iterable[str], name: str) -> bool:
    return any(fnmatchcase(name.lower(), glob.lower()) for glob in globs)
