"""Quotas: what an account may start at once in a region."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from advisor.core.globs import is_among
from advisor.core.values import Offer

if TYPE_CHECKING:
    from advisor.config.settings import QuotaSettings


def over_quota(offer: Offer, quotas: Sequence[QuotaSettings]) -> str | None:
    """Why the account may not start a machine, in words; None if no quota is known to forbid it.

    Of several quotas that match, each must hold. A machine of unknown size is not judged.
    """
    for quota in quotas:
        if is_among(offer, quota) and offer.num_vcpus is not None and offer.num_vcpus > quota.vcpus:
            return (
                f"over the quota: it has {offer.num_vcpus} vCPU, and {quota.vcpus} are allowed for"
                f" {' '.join(quota.instance_types)} in {offer.region}; ask {quota.provider} for more"
            )
    return None
