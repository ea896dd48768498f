"""Settings -> the job's data set: how large it is, and in which region of which cloud it lies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.core.errors import CloudError, InputError, did_you_mean
from advisor.core.findings import Finding, quoted
from advisor.core.findings.about_answers import DataRegionUnknown
from advisor.core.findings.about_options import Unknown
from advisor.core.globs import same_name
from advisor.core.values import DataPlace, DataSet
from advisor.service.listening import Listener

if TYPE_CHECKING:
    from advisor.config.layers import PricingSettings

LOCAL = "local"
_STORES = {"s3": "aws", "gs": "gcp"}
# A name before @ would be printed as ***: it could be a password.
_FORMS = "s3:// or gs:// with a bucket, @ and its region, a region such as us-east-1, or local"


def data_set_of(pricing: PricingSettings, listener: Listener) -> tuple[DataSet | None, tuple[Finding, ...]]:
    """The data set of the settings, and what is not known of it; None where its size is 0 or not known.

    A bucket without a region is looked up if the caller named it, not a file: a file of a stranger must not
    make this account's credentials call on a bucket of his.

    Raises InputError: the place has no such form, no cloud has the region, or the size is missing.
    """
    cloud = pricing.cloud
    if cloud.data is None:
        place = None
    elif not cloud.dataset_gb and "cloud.dataset_gb" not in pricing.origins:
        name, size = listener.name_of("cloud.data"), listener.name_of("cloud.dataset_gb")
        raise InputError(f"{name} says where the data set lies, and not how large it is: give {size} too.")
    else:
        place = place_of(cloud.data, listener.name_of("cloud.data"))
    if not cloud.dataset_gb:
        is_said = "cloud.dataset_gb" in pricing.origins
        return None, () if is_said else (Unknown(what="data-size"),)
    if place is None:
        return DataSet(gib=cloud.dataset_gb), (Unknown(what="data-place"),)
    place, warnings = _looked_up(place, pricing)
    return DataSet(gib=cloud.dataset_gb, place=place), warnings


def place_of(text: str, argument: str = "data") -> DataPlace:
    """Where a data set lies, by its address or its region.

    Args:
        text: as the user writes it.
        argument: what the caller calls it.

    Raises InputError: with the forms there are, or near names of regions.
    """
    from advisor.pricing.providers import load_regions

    if same_name(text, LOCAL):
        return DataPlace(name=LOCAL)
    scheme, _, address = text.partition("://")
    provider = _STORES.get(scheme.lower()) if address else None
    if address and (provider is None or not _bucket(address)):
        raise InputError(f"{argument} is {text!r}: give {_FORMS}.")
    name = address.rpartition("@")[2] if "@" in address else "" if address else text
    if not name and provider is not None:
        return DataPlace(name=text, provider=provider)
    regions = {
        known: region
        for known, region in load_regions().items()
        if provider is None or region.provider == provider
    }
    if (region := regions.get(name.lower())) is None:
        whose = f" of {provider}" if provider else ""
        hint = did_you_mean(name.lower(), regions)
        raise InputError(f"{argument} is {text!r}: no region{whose} is called {name!r}.{hint} Give {_FORMS}.")
    return DataPlace(name=text.rpartition("@")[0] or text, provider=region.provider, region=region.name)


def _bucket(address: str) -> str:
    return address.partition("@")[0].partition("/")[0]


def _looked_up(place: DataPlace, pricing: PricingSettings) -> tuple[DataPlace, tuple[Finding, ...]]:
    """The place with the region of its bucket, where AWS can be asked; else a warning that it is unknown."""
    if place.provider is None or place.region is not None:
        return place, ()
    unknown = DataRegionUnknown(place=place.name, provider=place.provider)
    if place.provider != "aws" or pricing.prices.offline or not pricing.is_given("cloud.data"):
        return place, (unknown,)
    from advisor.pricing.sources.aws.aws_calls import may_have_credentials

    if not may_have_credentials():
        return place, (unknown,)
    from advisor.pricing.sources.aws.account import bucket_region
    from advisor.pricing.sources.aws.aws_calls import read_options

    options = read_options(pricing.prices.options.get("aws", {}))
    try:
        region = bucket_region(_bucket(place.name.partition("://")[2]), options)
    except CloudError as error:
        return place, (quoted(str(error)), unknown)
    return DataPlace(name=place.name, provider=place.provider, region=region), ()
