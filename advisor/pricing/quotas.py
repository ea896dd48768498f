"""Which of a provider's quotas a machine counts against: ``catalogs/quotas.csv``.

Accounts that are new have none of most of them, and get them on request.
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path

from advisor.core.globs import is_any
from advisor.core.gpus import catalog_path
from advisor.core.values import Market, Offer
from advisor.pricing.instance_types import parse_date, read_rows

QUOTAS_FILE = "quotas.csv"
COLUMNS = ("provider", "instance_types", "market", "quota", "name", "unit", "source", "as_of")


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

    def count_of(self, offer: Offer, num_nodes: int = 1) -> int | None:
        """How much of it so many machines need; None where the machine's size is unknown."""
        each = offer.num_gpus if self.unit is Unit.GPU else offer.num_vcpus
        return None if each is None else each * num_nodes


@cache
def quota_of(provider: str, instance_type: str, market: Market) -> NamedQuota | None:
    """The first that matches; None where we know of none.

    Raises:
        CatalogError: the file is missing or broken.
    """
    return next(
        (
            quota
            for quota in _shipped()
            if (quota.provider, quota.market) == (provider, market)
            and is_any(quota.instance_types, instance_type)
        ),
        None,
    )


@cache
def _shipped() -> tuple[NamedQuota, ...]:
    return read_quotas(catalog_path(QUOTAS_FILE))


def read_quotas(path: Path) -> tuple[NamedQuota, ...]:
    """All of a file.

    Raises:
        CatalogError: the file is missing, or a row is broken or double.
    """
    quotas: dict[tuple[str, str], NamedQuota] = {}

    def read_row(row: list[str]) -> None:
        provider, instance_types, market, quota, name, unit, source, as_of = row
        parse_date(as_of)
        if not all((provider, instance_types, quota, name, source)) or (provider, quota) in quotas:
            raise ValueError("a cell is empty, or the quota is listed twice")
        quotas[provider, quota] = NamedQuota(
            provider=provider,
            instance_types=tuple(instance_types.split()),
            market=Market(market),
            quota=quota,
            name=name,
            unit=Unit(unit),
        )

    read_rows(path, COLUMNS, read_row)
    return tuple(quotas.values())
