"""Providers of GPUs and their regions: how prices are known, how time is billed, who owns the hosts."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache

from advisor.core.globs import is_any
from advisor.core.gpus import catalog_path
from advisor.core.values import Market, Offer
from advisor.pricing.instance_types import read_as

PROVIDER_FILE = "providers.csv"
FORM_FILE = "gpu_forms.csv"


class PriceAccess(StrEnum):
    """How gpuhunt knows a provider's prices."""

    PUBLISHED = "published"
    ASKED = "asked"


class RowKind(StrEnum):
    """What a row of a provider's list is: a kind of machine, or one host of someone's."""

    NAMED = "named"
    HOSTS = "hosts"


class Locations(StrEnum):
    """What a provider's list names as the place."""

    REGION = "region"
    ZONE = "zone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A provider of GPUs; a row of the file."""

    name: str
    """Ours, as the settings have it."""
    gpuhunt_name: str
    access: PriceAccess
    locations: Locations
    left_out_locations: tuple[str, ...]
    """Globs of places that are no regions."""
    machines: RowKind
    community_locations: tuple[str, ...]
    """Globs of places where hosts belong to others than the provider."""
    spot_is: str
    """What a spot price is of, where it is not of the region as a whole; "" if it is."""
    spot_floor_share: float | None
    """Of on-demand; no spot price falls below it, so a quote there shows no demand."""
    known_minimum_billed_s: float | None
    known_billed_step_s: float | None
    """None, as is the minimum, where the billing terms are not known."""
    source: str
    as_of: date

    @property
    def minimum_billed_s(self) -> float:
        """Least time billed; where that is not known, the longest of those known."""
        known = self.known_minimum_billed_s
        return known or max(one.known_minimum_billed_s or 0.0 for one in load_providers().values())

    @property
    def billed_step_s(self) -> float:
        """Time is billed in whole multiples of it; where that is not known, the longest known."""
        known = self.known_billed_step_s
        return known or max(one.known_billed_step_s or 0.0 for one in load_providers().values())


@cache
def load_providers() -> Mapping[str, Provider]:
    """All of the file by our name. Raises CatalogError: as `read_as`."""
    return {one.name: one for one in read_as(catalog_path(PROVIDER_FILE), Provider)}


def is_community_host(provider: str, region: str) -> bool:
    """Whether a machine belongs to a third party that lists it with the provider.

    >>> is_community_host("runpod", "CA"), is_community_host("runpod", "CA-MTL-1")
    (True, False)
    """
    known = load_providers().get(provider)
    return known is not None and is_any(known.community_locations, region)


def known_form(provider: str, instance_type: str) -> str | None:
    """The form of the GPUs of a machine, such as ``SXM``; None if it is not listed."""
    own = (known for known in load_forms() if known.provider == provider)
    return next((known.form for known in own if fnmatchcase(instance_type, known.instance_types)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuForm:
    """In which form machines hold their GPUs, such as ``SXM``, where the provider does not say."""

    provider: str
    instance_types: str
    """A glob of their names."""
    form: str
    source: str
    as_of: date


@cache
def load_forms() -> tuple[GpuForm, ...]:
    """The shipped forms, in the order in which they count. Raises CatalogError: as `read_as`."""
    return read_as(catalog_path(FORM_FILE), GpuForm)


REGION_FILE = "regions.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """A region of a cloud."""

    provider: str
    name: str
    is_opt_in: bool
    """Closed to an account until it enables the region."""
    source: str
    as_of: date


@cache
def load_regions() -> Mapping[str, Region]:
    """The shipped regions by name; no two clouds here share one. Raises CatalogError: as `read_as`."""
    return {region.name: region for region in read_as(catalog_path(REGION_FILE), Region)}


QUOTAS_FILE = "quotas.csv"


class QuotaUnit(StrEnum):
    """What a quota counts."""

    VCPU = "vCPU"
    GPU = "GPU"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedQuota:
    """A quota of a provider, for each region. New accounts have none of most, and get them on request."""

    provider: str
    instance_types: tuple[str, ...]
    """Globs of machines that count against it."""
    market: Market
    quota: str
    """The code or metric by which the provider asks for it."""
    name: str
    """What it counts, in the provider's words."""
    unit: QuotaUnit
    source: str
    as_of: date

    def count_of(self, offer: Offer, num_nodes: int = 1) -> int | None:
        """How much of it so many machines need; None where the machine's size is unknown."""
        each = offer.num_gpus if self.unit is QuotaUnit.GPU else offer.num_vcpus
        return None if each is None else each * num_nodes


@cache
def quota_of(provider: str, instance_type: str, market: Market) -> NamedQuota | None:
    """The first that matches; None where we know of none. Raises CatalogError: as `read_as`."""
    own = (one for one in shipped_quotas() if (one.provider, one.market) == (provider, market))
    return next((one for one in own if is_any(one.instance_types, instance_type)), None)


@cache
def shipped_quotas() -> tuple[NamedQuota, ...]:
    """All of the file, in its order. Raises CatalogError: the file is missing or broken."""
    return read_as(catalog_path(QUOTAS_FILE), NamedQuota)
