"""Settings and what is asked for -> plans: this machine, the clusters, and what clouds offer."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.core.errors import CloudError, ConfigError, InputError, NoOfferError, did_you_mean
from advisor.core.findings import Finding, quoted
from advisor.core.findings.about_answers import DataRegionUnknown
from advisor.core.findings.about_options import Unknown
from advisor.core.globs import same_name
from advisor.core.gpus import load_gpus, parse_gpu_request
from advisor.core.limits import MAX_NODES, check_count
from advisor.core.units import HOUR_S
from advisor.core.values import CheckpointUse, DataPlace, DataSet, Plan, Quantiles
from advisor.service.listening import Listener
from advisor.service.prices.account_quotas import known_quotas
from advisor.service.prices.book import PriceBook
from advisor.service.recommend.policy_in_force import Site, places_by_verdict

if TYPE_CHECKING:
    from advisor.config.layers import Config, PricingSettings
    from advisor.config.settings import CloudSettings, QuotaSettings, RateSettings, SpotSettings
    from advisor.pricing.node_counts import NodeLimits
    from advisor.pricing.storage_rates import StorageRate
    from advisor.service.prices.query_limits import OfferFilter
    from recommender.outcome.spot import SpotTerms
    from recommender.outcome.spot_history import Watched
    from recommender.plans.candidates import AccountLimits, Quota
    from recommender.plans.extras import CloudTerms


def plans_of(
    site: Site,
    book: PriceBook,
    listener: Listener,
    *,
    gpus: Sequence[str],
    vendors: Collection[str],
    everywhere: bool,
    num_nodes: int | None,
) -> tuple[list[Plan], tuple[Finding, ...]]:
    """What could be used or rented, and warnings about it.

    Args:
        gpus: such as ``A100:8``; none for any.
        everywhere: also at places that are never the cheapest for a machine.
        num_nodes: of every plan; None for one, or as many as the settings allow.

    Raises:
        InputError: a GPU that is asked for runs other software, or a name or number that nothing has.
        UnknownGpuError: a name that no GPU and no family has.
        NoOfferError: there is no machine of one's own, and clouds have none within the limits.
        AdvisorError: prices cannot be had, as ``query_offers``.
    """
    from advisor.service.prices.offers import wanted_counts
    from advisor.service.prices.query_limits import OfferFilter, known_vendors

    known = known_vendors(vendors)
    wanted = wanted_counts(gpus, listener)
    cloud = book.settings.cloud
    terms = cloud_terms(cloud, site.data, site.spot.history)
    nodes = _node_limits(book.settings, gpus, num_nodes, listener)
    # A setting of clouds says nothing of clusters, an argument is meant for all plans.
    own_nodes = nodes if book.settings.is_given("cloud.max_nodes") else replace(nodes, most=None)
    own = list(_own(site, wanted, terms, own_nodes))
    _refuse_foreign({*wanted, *(plan.gpu for plan in own)}, known, listener)
    asked = OfferFilter(
        gpus=gpus,
        wanted=wanted,
        max_gpus=cloud.max_gpus,
        nodes=nodes,
        own={(plan.gpu, plan.num_gpus) for plan in own},
    )
    try:
        rented, warnings = _rented(book, asked, terms, site.rates, listener)
    except NoOfferError as error:
        if not own:
            raise NoOfferError(f"there is nothing to choose from: no GPU of your own, and {error}") from error
        return own, (quoted(str(error)),)
    kept = places_by_verdict(rented, site.policy, site.spot, everywhere=everywhere)
    return [*own, *_of_vendors(kept, known, listener, is_all=not own)], warnings


def _own(site: Site, wanted: Mapping[str, set[int]], terms: CloudTerms, nodes: NodeLimits) -> Iterator[Plan]:
    """Of this machine and the clusters, with the numbers of GPUs that are asked for."""
    from advisor.service.prices.query_limits import is_wanted
    from recommender.plans.candidates import plans_of_machine

    for machine in site.machines:
        counts = wanted.get(machine.gpu, ())
        for plan in plans_of_machine(machine, asked=counts, terms=terms, catalog=site.rates, nodes=nodes):
            if is_wanted(wanted, plan.gpu, plan.num_gpus):
                yield plan


def _node_limits(
    pricing: PricingSettings, gpus: Sequence[str], num_nodes: int | None, listener: Listener
) -> NodeLimits:
    """How many nodes a plan may have: what is asked for within what the settings allow.

    Raises InputError: several numbers of nodes, more than the settings allow, or fewer than one.
    """
    from advisor.pricing.node_counts import NodeLimits
    from advisor.service.prices.query_limits import setting_in_words

    name = "cloud.max_nodes"
    most = pricing.cloud.max_nodes if name in pricing.origins else None
    said = {request.num_nodes for request in map(parse_gpu_request, gpus) if request.num_nodes is not None}
    numbers = said if num_nodes is None else {*said, num_nodes}
    if len(numbers) > 1:
        texts = " and ".join(map(str, sorted(numbers)))
        by = f"{listener.name_of('num_nodes')}, or {listener.name_of('gpus')} as in H100:8x4"
        raise InputError(f"{texts} nodes are asked for, and a question has one number of them: {by}.")
    num_nodes = next(iter(numbers), None)
    if num_nodes is not None:
        called = listener.name_of("num_nodes")
        check_count(called, num_nodes, most=MAX_NODES)
        if most is not None and num_nodes > most:
            where = setting_in_words(pricing, name, listener)
            raise InputError(f"{called} is {num_nodes}, and {where} allows {most} at most.")
    return NodeLimits(most=most, exactly=num_nodes)


def rates_of(rates: Sequence[RateSettings]) -> tuple[StorageRate, ...]:
    """The rates of the settings, and behind them those that ship.

    Raises CatalogError: the shipped ones are missing or broken.
    """
    from advisor.pricing.storage_rates import RateKind, StorageRate, load_rates
    from advisor.service.prices.live import now

    own = (
        StorageRate(
            provider=entry.provider,
            region=entry.region,
            kind=RateKind(entry.kind),
            to_region=entry.to_region,
            up_to_gib=math.inf,
            usd=entry.usd,
            source=f"rates of the settings, entry {number}",
            as_of=now().date(),
        )
        for number, entry in enumerate(rates, start=1)
    )
    return (*own, *load_rates())


def _refuse_foreign(names: Iterable[str], vendors: Collection[str], listener: Listener) -> None:
    gpus = load_gpus()
    foreign = sorted(name for name in names if gpus[name].vendor not in vendors)
    if foreign:
        raise InputError(
            f"{', '.join(foreign)} runs other software than the CUDA this script was profiled for:"
            f" {listener.name_of('vendors')} amd takes it in all the same."
        )


def _of_vendors(
    plans: Sequence[Plan], vendors: Collection[str], listener: Listener, *, is_all: bool
) -> list[Plan]:
    """The plans whose GPUs count; ``is_all`` if there are no others, so that some must be left."""
    gpus = load_gpus()
    kept = [plan for plan in plans if gpus[plan.gpu].vendor in vendors]
    if plans and not kept and is_all:
        others = ", ".join(sorted({gpus[plan.gpu].vendor.lower() for plan in plans}))
        raise NoOfferError(
            f"only GPUs of {others} are left: {listener.name_of('vendors')} takes them in all the same."
        )
    return kept


def _rented(
    book: PriceBook, asked: OfferFilter, terms: CloudTerms, rates: Sequence[StorageRate], listener: Listener
) -> tuple[list[Plan], tuple[Finding, ...]]:
    from advisor.service.prices.offers import prices_of, query_offers
    from recommender.plans.candidates import plans_of_offers, with_known_gpu

    answer = query_offers(book, asked, listener, to_rent=True)
    offers, unknown = with_known_gpu(answer.offers, load_gpus())
    plans = plans_of_offers(
        offers,
        terms=terms,
        catalog=rates,
        quotas=quotas_of(book.settings.quotas),
        account=account_limits(book.settings),
        prices=prices_of(offers),
        node_counts=asked.node_counts(offers).of,
    )
    if (asked.nodes.most or 1) > 1 and all(plan.num_nodes == 1 for plan in plans):
        listener.note("no machine that is asked for makes a plan of several nodes: each stays alone")
    return plans, (*answer.warnings, *unknown)


def account_limits(pricing: PricingSettings) -> AccountLimits:
    """What the user's accounts said that they may start."""
    from recommender.plans.candidates import AccountLimits

    limits, read_on = known_quotas(pricing.store)
    leaves_out = pricing.cloud.without_quota == "leave-out"
    return AccountLimits(limits=limits, read_on=read_on, leaves_out=leaves_out)


def quotas_of(quotas: Sequence[QuotaSettings]) -> list[Quota]:
    """What the settings say that an account may run at once."""
    from recommender.plans.candidates import Quota

    return [Quota(**dict(one)) for one in quotas]


def cloud_terms(cloud: CloudSettings, data: DataSet | None, history: Mapping[str, Watched]) -> CloudTerms:
    """What the settings say of any rented machine: its wait, its disks, and the data that it needs."""
    from recommender.plans.extras import CloudTerms

    p50, p90 = cloud.wait_p50, cloud.wait_p90
    return CloudTerms(
        wait_s=None if p50 is None or p90 is None else Quantiles(p50=p50, p90=p90),
        history=history,
        startup_s=cloud.startup,
        boot_disk_gib=cloud.boot_disk_gb,
        dataset_gib=0.0 if data is None else data.gib,
        data=None if data is None else data.place,
        result_gib=cloud.result_gb,
        download_bits_per_s=cloud.download_gbit_per_s * 1e9,
    )


def spot_terms(settings: SpotSettings) -> SpotTerms:
    """What the settings say of preemptible machines; what they do not say is assumed by class.

    Raises ConfigError: ``spot.history`` cannot be used.
    """
    from recommender.outcome.spot import ASSUMED, RATE, REACQUIRE, SpotTerms

    spot = settings
    interval_s, reacquire_s = spot.checkpoint_interval, spot.reacquire
    terms = SpotTerms(
        checkpoint_interval_h=None if interval_s is None else interval_s / HOUR_S,
        checkpoint_h=spot.checkpoint / HOUR_S,
        restart_h=spot.restart / HOUR_S,
        assumed=ASSUMED,
        history=_history(spot.history),
    )
    if spot.preemptions_per_h is not None:
        terms = replace(terms, preemptions_per_h=spot.preemptions_per_h, assumed=terms.assumed - {RATE})
    if reacquire_s is not None:
        terms = replace(terms, reacquire_h=reacquire_s / HOUR_S, assumed=terms.assumed - {REACQUIRE})
    return terms


def checkpoints_of(config: Config) -> CheckpointUse | None:
    """What the settings say that scripts do with checkpoints; None leaves it to the script's text.

    An interval that someone set says that scripts save and resume; null says that they do neither.
    """
    spot = config.settings.spot
    if spot.checkpoints is not None:
        return CheckpointUse(spot.checkpoints)
    if spot.checkpoint_interval is None:
        return CheckpointUse.NONE
    return CheckpointUse.RESUMES if "spot.checkpoint_interval" in config.origins else None


def _history(path: Path | None) -> Mapping[str, Watched]:
    if path is None:
        return {}
    from advisor.service.prices.live import now
    from advisor.site_files.fitted_files import load_history

    try:
        return load_history(path, now()).machines
    except InputError as error:
        raise ConfigError(f"spot.history: {error}") from error


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

    Raises InputError: with the forms there are, or near names of regions.
    """
    from advisor.pricing.providers import load_regions

    if same_name(text, LOCAL):
        return DataPlace(name=LOCAL)
    scheme, _, address = text.partition("://")
    provider = _STORES.get(scheme.lower()) if address else None
    if address and (provider is None or not _bucket_of(address)):
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


def _bucket_of(address: str) -> str:
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
        region = bucket_region(_bucket_of(place.name.partition("://")[2]), options)
    except CloudError as error:
        return place, (quoted(str(error)), unknown)
    return DataPlace(name=place.name, provider=place.provider, region=region), ()
