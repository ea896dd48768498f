"""Providers of GPUs and their regions: how prices are known, how time is billed, who owns the hosts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache

from advisor.core.globs import is_any
from advisor.core.gpus import catalog_path
from advisor.core.values import Market, Offer
from advisor.pricing.instance_types import parse_date, positive, read_as, read_rows

PROVIDER_FILE = "providers.csv"
PROVIDER_COLUMNS = (
    "provider", "gpuhunt_name", "access", "locations", "left_out_locations", "machines",
    "community_locations", "spot_is", "spot_floor_share", "minimum_billed_s", "billed_step_s", "source",
    "as_of",
)  # fmt: skip
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
    """A provider of GPUs."""

    name: str
    """Ours, as the settings have it."""
    gpuhunt_name: str
    """Gpuhunt's."""
    access: PriceAccess
    locations: Locations = Locations.REGION
    left_out_locations: tuple[str, ...] = ()
    """Globs of places that are no regions."""
    machines: RowKind = RowKind.NAMED
    community_locations: tuple[str, ...] = ()
    """Globs of places where hosts belong to others than the provider."""
    spot_is: str = ""
    """What a spot price is of, where it is not of the region as a whole; "" if it is."""
    spot_floor_share: float | None = None
    """Of on-demand; no spot price falls below it, so a quote there shows no demand."""
    minimum_billed_s: float
    """Least time billed; where that is not known, the longest of those known."""
    billed_step_s: float
    """Time is billed in whole multiples of it; where that is not known, the longest known."""
    are_terms_known: bool
    """Whether those two are known."""


@cache
def load_providers() -> Mapping[str, Provider]:
    """All of the file by our name. Raises CatalogError: names file and line; broken or double rows."""
    rows: dict[str, list[str]] = {}

    def read_row(row: list[str]) -> None:
        if row[0] in rows:
            raise ValueError(f"{row[0]!r} is listed twice")
        _provider(row, 1.0, 1.0)
        rows[row[0]] = row

    read_rows(catalog_path(PROVIDER_FILE), PROVIDER_COLUMNS, read_row)
    longest_s, coarsest_s = (
        max(float(row[PROVIDER_COLUMNS.index(name)] or 0) for row in rows.values())
        for name in ("minimum_billed_s", "billed_step_s")
    )
    return {name: _provider(row, longest_s, coarsest_s) for name, row in rows.items()}


def _provider(row: Sequence[str], longest_s: float, coarsest_s: float) -> Provider:
    """A row; the last two stand in for billing terms that it leaves open."""
    provider, gpuhunt_name, access, locations, left_out, machines, community, spot_is, floor, *terms = row
    minimum, step, source, as_of = terms
    parse_date(as_of)
    if not all((provider, gpuhunt_name, source)) or bool(minimum) is not bool(step):
        raise ValueError("provider, gpuhunt_name or source is empty, or only one of the billing terms")
    return Provider(
        name=provider,
        gpuhunt_name=gpuhunt_name,
        access=PriceAccess(access),
        locations=Locations(locations),
        left_out_locations=tuple(left_out.split()),
        machines=RowKind(machines),
        community_locations=tuple(community.split()),
        spot_is=spot_is,
        spot_floor_share=positive("spot_floor_share", float(floor)) if floor else None,
        minimum_billed_s=positive("minimum_billed_s", float(minimum)) if minimum else longest_s,
        billed_step_s=positive("billed_step_s", float(step)) if step else coarsest_s,
        are_terms_known=bool(minimum),
    )


def is_community_host(provider: str, region: str) -> bool:
    """Whether a machine belongs to a third party that lists it with the provider.

    >>> is_community_host("runpod", "CA"), is_community_host("runpod", "CA-MTL-1")
    (True, False)
    """
    known = load_providers().get(provider)
    return known is not None and is_any(known.community_locations, region)


def known_form(provider: str, instance_type: str) -> str | None:
    """The form of the GPUs of a machine, such as ``SXM``; None if it is not listed."""
    return next(
        (
            known.form
            for known in load_forms()
            if known.provider == provider and fnmatchcase(instance_type, known.instance_types)
        ),
        None,
    )


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


# Which of a provider's quotas a machine counts against: ``catalogs/quotas.csv``.
#
# Accounts that are new have none of most of them, and get them on request.


QUOTAS_FILE = "quotas.csv"


class QuotaUnit(StrEnum):
    """What a quota counts."""

    VCPU = "vCPU"
    GPU = "GPU"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedQuota:
    """A quota of a provider, for each region."""

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
