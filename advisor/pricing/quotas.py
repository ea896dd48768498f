"""Which of a provider's quotas a machine counts against: ``catalogs/quotas.csv``.

Accounts that are new have none of most of them, and get them on request.
"""

from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from functools import cache

from advisor.core.globs import is_any
from advisor.core.gpus import catalog_path
from advisor.core.values import Market, Offer
from advisor.pricing.instance_types import read_as

QUOTAS_FILE = "quotas.csv"


class Unit(StrEnum):
    """What a quota counts."""

    VCPU = "vCPU"
    GPU = "GPU"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedQuota:
    """A quota of a provider, for each region.

    Attributes:
        instance_types: globs of machines that count against it.
        quota: the code or metric by which the provider asks for it.
        name: what it counts, in the provider's words.
    """

    provider: str
    instance_types: tuple[str, ...]
    market: Market
    quota: str
    name: str
    unit: Unit
    source: str
    as_of: date

    def count_of(self, offer: Offer, num_nodes: int = 1) -> int | None:
        """How much of it so many machines need; None where the machine's size is unknown."""
        each = offer.num_gpus if self.unit is Unit.GPU else offer.num_vcpus
        return None if each is None else each * num_nodes


@cache
def quota_of(provider: str, instance_type: str, market: Market) -> NamedQuota | None:
    """The first that matches; None where we know of none.

    Raises CatalogError: the file is missing or broken.
    """
    return next(
        (
            quota
            for quota in shipped_quotas()
            if (quota.provider, quota.market) == (provider, market)
            and is_any(quota.instance_types, instance_type)
        ),
        None,
    )


@cache
def shipped_quotas() -> tuple[NamedQuota, ...]:
    """All of the file, in its order. Raises CatalogError: the file is missing or broken."""
    return read_as(catalog_path(QUOTAS_FILE), NamedQuota)
