"""Settings, and what nvidia-smi and job logs say -> machines that are not rented."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from advisor.core.errors import ConfigError, InputError, UnknownGpuError
from advisor.core.fabrics import stated_fabric
from advisor.core.findings import Finding
from advisor.core.findings.about_options import WaitOfLog
from advisor.core.gpus import resolve_gpu
from advisor.core.limits import MIN_W
from advisor.core.processes import user_name
from advisor.core.values import EmpiricalWait, Fabric, GpuSpec, Quantiles, Tier
from advisor.service.listening import Listener

if TYPE_CHECKING:
    from advisor.config.settings import ClusterSettings, LocalSettings, Settings
    from recommender.plans.candidates import NotedWait, OwnMachine
    from recommender.queue.fitted import WaitBin, WaitQuantiles

WATTS_PER_KW = 1000.0


def own_machines(settings: Settings, listener: Listener, origin: str | None = None) -> list[OwnMachine]:
    """This machine's GPUs and the clusters of the settings.

    Raises:
        UnknownGpuError: this machine's GPU is not in the catalog, or is a family.
        ConfigError: a cluster's GPU is not, or a log that tells its waits cannot be used.
    """
    machines = _local(settings.local, listener)
    try:
        return [*machines, *(cluster_machine(cluster, listener) for cluster in settings.clusters)]
    except ConfigError as error:
        raise ConfigError(str(error) if origin is None else f"{origin}: {error}") from error


def _local(local: LocalSettings, listener: Listener) -> list[OwnMachine]:
    cards = _detected(listener) if local.gpu is None else [_Card(resolve_gpu(local.gpu))] * local.num_gpus
    if not cards:
        hint = f"{listener.name_of('local.gpu')} NAME counts a GPU that you own"
        listener.note(f"this machine has no GPU ({hint})")
    models = {card.spec.name: card.spec for card in cards}
    return [_local_machine([card for card in cards if card.spec is spec], local) for spec in models.values()]


class _Card(NamedTuple):
    """A GPU of this machine: who uses it, and what it may draw where nvidia-smi says so."""

    spec: GpuSpec
    use: Finding | None = None
    power_limit_w: float | None = None


def _detected(listener: Listener) -> list[_Card]:
    from advisor.core.devices import detect_devices, why_in_use

    cards: list[_Card] = []
    for index, device in enumerate(detect_devices()):
        try:
            spec, use = resolve_gpu(device.name), why_in_use(index, device)
            cards.append(_Card(spec, use, device.power_limit_w))
        except UnknownGpuError:
            hint = f"{listener.name_of('local.gpu')} NAME names one like it"
            listener.warn([f"the catalog has no {device.name!r}, so this GPU is left out; {hint}"])
    return cards


def _local_machine(cards: Sequence[_Card], local: LocalSettings) -> OwnMachine:
    from recommender.plans.candidates import OwnMachine

    spec, limit_w = cards[0].spec, _limit_w(cards, local)
    usd_per_gpu_h, source = local.usd_per_gpu_h, None
    if usd_per_gpu_h is None and local.usd_per_kwh is not None:
        drawn_w, what = (spec.tdp_w, "its TDP") if limit_w is None else (limit_w, "its power limit")
        usd_per_gpu_h = local.usd_per_kwh * drawn_w / WATTS_PER_KW
        source = (
            f"electricity alone: {drawn_w:g} W a GPU ({what}) at {local.usd_per_kwh:g} USD/kWh"
            " (local.usd_per_kwh)"
        )
    return OwnMachine(
        tier=Tier.LOCAL,
        name="local",
        gpu=spec.name,
        num_gpus=len(cards),
        usd_per_gpu_h=usd_per_gpu_h,
        cost_source=source,
        wait_s=Quantiles(p50=0.0, p90=0.0),
        in_use=tuple(card.use for card in cards if card.use is not None),
        num_vcpus=os.cpu_count(),
        power_limit_w=limit_w,
    )


def _limit_w(cards: Sequence[_Card], local: LocalSettings) -> float | None:
    """Of the card that may draw least, since the others wait for it; None where unknown."""
    told = [card.power_limit_w or 0.0 for card in cards]
    limit_w = min((watts for watts in told if watts >= MIN_W), default=None)
    return limit_w if local.power_limit_w is None else local.power_limit_w


def cluster_machine(cluster: ClusterSettings, listener: Listener) -> OwnMachine:
    """A node type of the settings, with the waits of its log.

    Raises ConfigError: its GPU is not in the catalog or is a family, its link or network is none, or its log
    cannot be used.
    """
    from recommender.plans.candidates import OwnMachine

    p50, p90 = cluster.wait_p50, cluster.wait_p90
    try:
        gpu, fitted = resolve_gpu(cluster.gpu), _fitted(cluster, listener)
        return OwnMachine(
            tier=Tier.CLUSTER,
            name=cluster.name,
            gpu=gpu.name,
            num_gpus=cluster.num_gpus,
            usd_per_gpu_h=cluster.usd_per_gpu_h,
            wait_s=None if p50 is None or p90 is None else Quantiles(p50=p50, p90=p90),
            waits={}
            if fitted is None
            else {count * of: _logged_wait(fitted, cluster, count * of, of) for count, of in _sizes(cluster)},
            num_vcpus=cluster.vcpus,
            num_nodes=cluster.num_nodes,
            fabric=_fabric_of(cluster, gpu),
            power_limit_w=cluster.power_limit_w,
            walltime_s=cluster.walltime,
            queue_limits=() if fitted is None else fitted.limits.get(cluster.queue or "", ()),
        )
    except (ConfigError, InputError, UnknownGpuError) as error:
        raise ConfigError(f"cluster {cluster.name!r}: {error}") from error


def _fabric_of(cluster: ClusterSettings, gpu: GpuSpec) -> Fabric | None:
    """What the settings say of its links and network; None where nothing is said and needed."""
    if cluster.link is None and cluster.network is None and cluster.num_nodes == 1:
        return None
    return stated_fabric(gpu, cluster.link, cluster.network)


def _fitted(cluster: ClusterSettings, listener: Listener) -> WaitQuantiles | None:
    """What its log tells; None without one."""
    if cluster.wait_log is None:
        return None
    from advisor.site_files.fitted_files import load_fit

    with listener.step(f"reading {cluster.wait_log.name}"):
        return load_fit(cluster.wait_log, cluster.timezone, user_name())


def _sizes(cluster: ClusterSettings) -> Iterator[tuple[int, int]]:
    """GPUs of a node, and nodes, that a job may ask for."""
    from advisor.pricing.node_counts import useful_counts

    yield from ((count, 1) for count in useful_counts(cluster.num_gpus))
    yield from ((cluster.num_gpus, num_nodes) for num_nodes in range(2, cluster.num_nodes + 1))


def _logged_wait(fitted: WaitQuantiles, cluster: ClusterSettings, num_gpus: int, num_nodes: int) -> NotedWait:
    from advisor.service.prices.live import now
    from recommender.plans.candidates import for_all
    from recommender.queue.fitted import warnings_of

    size = num_nodes if fitted.size_unit == "nodes" else num_gpus
    num_waiting = fitted.waiting_now(cluster.queue, now().timestamp())
    alike = fitted.of(size=size, walltime_s=cluster.walltime, queue=cluster.queue, num_waiting=num_waiting)
    doubts = warnings_of(fitted, alike, size)
    wait_s = EmpiricalWait(p50=alike.p50_s, p90=alike.p90_s, levels=fitted.levels, waits_s=alike.waits_s)
    noted = wait_s, (_basis(alike, fitted.size_unit, num_waiting), *doubts)
    # Jobs of any size are small ones, most of them.
    return for_all(noted, num_nodes) if alike.size is None else noted


def _basis(alike: WaitBin, size_unit: str, num_waiting: int | None) -> Finding:
    return WaitOfLog(
        num_jobs=alike.num_jobs,
        size=alike.size,
        size_unit=size_unit,
        walltime=alike.walltime,
        queue=alike.queue,
        num_waiting=num_waiting,
    )
