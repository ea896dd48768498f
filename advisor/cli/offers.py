"""Settings and flags -> a query of offers, and machines -> what the recommender takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from advisor.cli.common import note, warn
from advisor.cli.live import now
from advisor.errors import ConfigError, InputError, UnknownGpuError, did_you_mean
from advisor.types import GpuSpec, Quantiles, Tier

if TYPE_CHECKING:
    from advisor.config import Config
    from advisor.pricing import Answer, Offers
    from advisor.settings import ClusterSettings, Settings
    from recommender.candidates import Machine

ANY = "*"


def query_offers(
    config: Config,
    wanted: Mapping[str, set[int]],
    *,
    max_usd_per_h: float | None = None,
    max_gpus: int | None,
    may_refresh: bool = False,
) -> Offers:
    """Offers of the clouds in the settings, of the GPUs and counts asked for (``wanted_counts``) or of all.

    Prices are those of the organisation's contracts.

    Args:
        config: which clouds, regions and markets, and how old prices may be.
        wanted: GPU name -> counts.
        max_usd_per_h: most that a machine may cost.
        max_gpus: most GPUs a machine may have.
        may_refresh: pull live prices first where they are due.

    Raises:
        UnknownGpuError: a name that no GPU and no family has.
        InputError: a provider that no source knows.
        StaleCatalogError: prices older than ``prices.max_age``.
        StoreError: the database of the settings cannot be read.
    """
    from advisor.cli.live import current_answers
    from advisor.pricing import OfferQuery, load_offers
    from advisor.pricing.contracts import contracted, in_force

    cloud = config.settings.cloud
    query = OfferQuery(
        providers=() if ANY in cloud.providers else cloud.providers,
        regions=cloud.regions,
        gpus=tuple(wanted),
        markets=cloud.markets,
        max_usd_per_h=max_usd_per_h,
    )
    answers = current_answers(config, query, may_refresh=may_refresh)
    _check_providers(query.providers, answers)
    rules, ended = in_force(config.settings.contracts, now().date())
    answers = [replace(answer, offers=contracted(answer.offers, rules)) for answer in answers]
    found = load_offers(query, now=now(), max_age_s=config.settings.prices.max_age, answers=answers)
    kept = (
        offer
        for offer in found.offers
        if is_wanted(wanted, offer.gpu, offer.num_gpus) and (max_gpus is None or offer.num_gpus <= max_gpus)
    )
    return replace(found, offers=tuple(kept), warnings=(*found.warnings, *ended))


def wanted_counts(texts: Sequence[str]) -> dict[str, set[int]]:
    """GPU name -> counts asked for (empty: any) of texts such as ``A100:1..8``; families said aloud."""
    from advisor.gpus import parse_gpu_request

    wanted: dict[str, set[int]] = {}
    for request in map(parse_gpu_request, texts):
        if len(request.gpus) > 1:
            note(f"{request.text!r} means {', '.join(spec.name for spec in request.gpus)}")
        for spec in request.gpus:
            wanted.setdefault(spec.name, set()).update(request.counts)
    return wanted


def is_wanted(wanted: Mapping[str, set[int]], gpu: str, num_gpus: int) -> bool:
    """Whether a machine is among those asked for; nothing asked for means any."""
    return not wanted or (gpu in wanted and (not wanted[gpu] or num_gpus in wanted[gpu]))


def _check_providers(providers: Sequence[str], answers: Sequence[Answer]) -> None:
    """Refuse a provider that nobody has a price of, limits aside."""
    known = sorted({provider for answer in answers for provider in answer.providers})
    for provider in providers:
        if provider not in known:
            hint = did_you_mean(provider, known)
            raise InputError(
                f"there are no prices of provider {provider!r}.{hint} Known are {', '.join(known)}."
            )


def own_machines(settings: Settings) -> list[Machine]:
    """This machine's GPUs and the clusters of the settings.

    Raises:
        UnknownGpuError: a configured GPU is not in the catalog, or is a family.
        ConfigError: a cluster names one GPU twice, or half a wait.
    """
    clusters = [_cluster(cluster) for cluster in settings.clusters]
    keys = [(machine.name, machine.gpu) for machine in clusters]
    for name, gpu in keys:
        if keys.count((name, gpu)) > 1:
            raise ConfigError(f"cluster {name!r} has {gpu} twice: give each node type its own name.")
    return [*_local(settings), *clusters]


def _local(settings: Settings) -> list[Machine]:
    from advisor.devices import detect_devices
    from advisor.gpus import resolve_gpu
    from recommender.candidates import Machine

    local = settings.local
    if local.gpu is not None:
        names = [local.gpu] * local.num_gpus
    else:
        names = [device.name for device in detect_devices()]
    if not names:
        note("this machine has no GPU, so there is no local option (--local-gpu NAME adds one)")
    specs: dict[str, tuple[GpuSpec, int]] = {}
    for name in names:
        try:
            spec = resolve_gpu(name)
        except UnknownGpuError:
            if local.gpu is not None:
                raise
            hint = "--local-gpu NAME names one like it"
            warn([f"the catalog has no {name!r}, so this GPU is left out; {hint}"])
            continue
        specs[spec.name] = (spec, specs.get(spec.name, (spec, 0))[1] + 1)
    return [
        Machine(
            tier=Tier.LOCAL,
            name="local",
            gpu=spec.name,
            num_gpus=count,
            usd_per_gpu_h=local.usd_per_gpu_h,
            wait_s=Quantiles(p50=0.0, p90=0.0),
        )
        for spec, count in specs.values()
    ]


def _cluster(cluster: ClusterSettings) -> Machine:
    from advisor.gpus import resolve_gpu
    from recommender.candidates import Machine

    p50, p90 = cluster.wait_p50, cluster.wait_p90
    if p50 is not None and p90 is not None and p90 < p50:
        raise ConfigError(f"cluster {cluster.name!r}: wait_p90 must not be below wait_p50.")
    if (p50 is None) != (p90 is None):
        raise ConfigError(f"cluster {cluster.name!r}: give both wait_p50 and wait_p90, or neither.")
    return Machine(
        tier=Tier.CLUSTER,
        name=cluster.name,
        gpu=resolve_gpu(cluster.gpu).name,
        num_gpus=cluster.num_gpus,
        usd_per_gpu_h=cluster.usd_per_gpu_h,
        wait_s=None if p50 is None or p90 is None else Quantiles(p50=p50, p90=p90),
    )
