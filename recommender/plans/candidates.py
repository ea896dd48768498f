"""Tiers and offers -> Plans: what could be rented or used for a job."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import repeat
from operator import itemgetter, le

from advisor.core.errors import InputError
from advisor.core.findings import Finding, about_options
from advisor.core.globs import is_among
from advisor.core.iterables import grouped
from advisor.core.values import (
    Elsewhere,
    EmpiricalWait,
    Fabric,
    Layout,
    Market,
    Offer,
    Plan,
    Price,
    Quantiles,
    QueueLimit,
    StartWait,
    Tier,
)
from advisor.pricing.node_counts import USEFUL, NodeLimits, fabric_of_offer, numbers_of_nodes, useful_counts
from advisor.pricing.providers import quota_of
from advisor.pricing.spot_odds import load_interruptions, rarest_start, spot_odds, start_odds
from advisor.pricing.storage_rates import StorageRate, load_rates
from recommender.outcome.bill import rents_to_compare
from recommender.outcome.nodes import all_at_once, slowest_boot, times_of_one
from recommender.outcome.spot_history import Watched, start_with_history
from recommender.plans.extras import CloudTerms, Extras, extras_at, extras_of_own
from recommender.queue.waits import assumed_wait


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """What an account may run at once of machines that match; wildcards stand for any."""

    provider: str
    vcpus: int
    instance_types: tuple[str, ...] = ("*",)
    regions: tuple[str, ...] = ("*",)
    markets: tuple[Market, ...] = (Market.ON_DEMAND, Market.SPOT)


def over_quota(offer: Offer, quotas: Sequence[Quota], num_nodes: int = 1) -> Finding | None:
    """Why the account may not start so many of a machine; None if no quota is known to forbid it.

    Of several quotas that match, each must hold. A machine of unknown size is not judged.
    """
    if offer.num_vcpus is None:
        return None
    for quota in quotas:
        if is_among(offer, quota) and offer.num_vcpus * num_nodes > quota.vcpus:
            return about_options.RemovedByQuota(
                num_vcpus=offer.num_vcpus * num_nodes,
                most_vcpus=quota.vcpus,
                instance_types=quota.instance_types,
                region=offer.region,
                provider=quota.provider,
            )
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountLimits:
    """What the user's accounts may start, as they said."""

    limits: Mapping[tuple[str, str, str], int] = field(default_factory=dict)
    """By provider, region (``"global"`` for all) and the quota's name there."""
    read_on: str = ""
    """The day, for people."""
    leaves_out: bool = False
    """Whether machines beyond them are removed, rather than named with what to request."""

    def of(self, offer: Offer, quota: str) -> int | None:
        """None where the account said nothing of it."""
        most = self.limits.get((offer.provider, offer.region, quota))
        is_on_demand = offer.market is Market.ON_DEMAND
        of_all = self.limits.get((offer.provider, "global", _OF_ALL_REGIONS)) if is_on_demand else None
        return most if most is None or of_all is None else min(most, of_all)


# Of GCP: a project has one for all GPUs beside those of its regions; preemptible ones have their own.
_OF_ALL_REGIONS = "GPUS_ALL_REGIONS"
_UNKNOWN_LIMITS = AccountLimits()


def quota_note(
    offer: Offer, num_nodes: int = 1, account: AccountLimits = _UNKNOWN_LIMITS
) -> about_options.QuotaNeeded | None:
    """Which quota so many machines need, in the provider's words, and what the account lacks of it.

    None where we know of none, or the account has enough.
    """
    quota = quota_of(offer.provider, offer.instance_type, offer.market)
    count = None if quota is None else quota.count_of(offer, num_nodes)
    if quota is None or count is None:
        return None
    most = account.of(offer, quota.quota)
    if most is not None and count <= most:
        return None
    return about_options.QuotaNeeded(
        provider=offer.provider,
        quota=quota.quota,
        name=quota.name,
        count=count,
        unit=quota.unit.value,
        region=offer.region,
        most=most,
        read_on=None if most is None else account.read_on,
    )


def layout_of(offer: Offer, num_nodes: int = 1) -> Layout:
    """So many machines of an offer, with as much of their fabric as the GPUs exchange over.

    Plans that exchange over the same share an estimate, whatever else differs between their machines.
    """
    return layout_on(fabric_of_offer(offer), offer.num_gpus, num_nodes)


@cache
def layout_on(
    fabric: Fabric | None, gpus_per_node: int, num_nodes: int, power_limit_w: float | None = None
) -> Layout:
    """So many nodes with as much of a fabric as they use, and what each GPU may draw."""
    used = None if gpus_per_node * num_nodes == 1 else fabric
    if used is not None and num_nodes == 1:
        used = replace(used, network=None, network_bytes_per_s=None)
    return Layout(gpus_per_node=gpus_per_node, num_nodes=num_nodes, fabric=used, power_limit_w=power_limit_w)


# As use1-az4 and usw2-lax1-az1: https://docs.aws.amazon.com/global-infrastructure/latest/regions/az-ids.html
_AWS_ZONE_ID = re.compile(r"[a-z]+\d+(-\w+)*-\w*z\d+")


NotedWait = tuple[Quantiles, tuple[Finding, ...]]
"""A wait, and what it rests on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnMachine:
    """GPUs the user has: this machine, or a node type of the organisation's cluster."""

    tier: Tier
    name: str
    gpu: str
    num_gpus: int
    usd_per_gpu_h: float | None
    """Internal cost; None if none is configured."""
    wait_s: Quantiles | None
    """None if neither configured nor measured: then that of jobs on other clusters is assumed."""
    cost_source: str | None = None
    """In words, what that cost was made of; None if it is configured."""
    waits: Mapping[int, NotedWait] = field(default_factory=dict)
    """By number of GPUs of all nodes, where a log tells it; goes before ``wait_s``."""
    in_use: tuple[Finding, ...] = ()
    """One for each GPU that others work on."""
    num_vcpus: int | None = None
    """Hardware threads of one node; None if unknown."""
    num_nodes: int = 1
    """Of this type."""
    fabric: Fabric | None = None
    """Over what its GPUs and nodes exchange; None if unknown."""
    power_limit_w: float | None = None
    """What each GPU may draw; None where unlimited."""
    walltime_s: float | None = None
    """The run time that jobs ask its scheduler for; None if unknown."""
    queue_limits: tuple[QueueLimit, ...] = ()
    """Of its scheduler; none if none are known."""

    @property
    def num_free(self) -> int:
        """GPUs that are idle."""
        return self.num_gpus - len(self.in_use)


def plans_of_machine(
    machine: OwnMachine,
    *,
    asked: Collection[int] = (),
    terms: CloudTerms | None = None,
    catalog: Sequence[StorageRate] | None = None,
    nodes: NodeLimits = USEFUL,
) -> list[Plan]:
    """One plan for each useful count of free GPUs, powers of two and all, then one for each of whole nodes.

    Where none is free there is nothing to prefer: any may be waited for.

    Args:
        asked: counts the user named: those of all its GPUs are planned though some are in use.
        terms: tell where the data lies; None for a job without data elsewhere.
        catalog: rates of egress; None for those that ship.
        nodes: how many to plan of its nodes.
    """
    counts = set(useful_counts(machine.num_free or machine.num_gpus))
    counts |= {count for count in useful_counts(machine.num_gpus) if count in asked}
    extras = Extras() if terms is None else extras_of_own(terms, load_rates() if catalog is None else catalog)
    most = machine.num_nodes if nodes.most is None else min(nodes.most, machine.num_nodes)
    sizes = [
        (count, num_nodes)
        for num_nodes in sorted(numbers_of_nodes(nodes, most, machine.num_gpus, asked))
        for count in (sorted(counts) if num_nodes == 1 else [machine.num_gpus])
    ]
    return [_machine_plan(machine, *size, extras) for size in sizes]


def _machine_plan(machine: OwnMachine, gpus_per_node: int, num_nodes: int, extras: Extras) -> Plan:
    layout = layout_on(machine.fabric, gpus_per_node, num_nodes, machine.power_limit_w)
    local, rate, num_vcpus = machine.tier is Tier.LOCAL, machine.usd_per_gpu_h, machine.num_vcpus
    if num_vcpus is not None and not local:  # others share the node
        num_vcpus = num_vcpus * gpus_per_node // machine.num_gpus
    cost = {} if machine.cost_source is None else {"training": machine.cost_source}
    wait_s, notes = _wait_of(machine, layout)
    size = f"{'' if num_nodes == 1 else f'{num_nodes}x'}{gpus_per_node}x{machine.gpu}"
    return Plan(
        id=f"local/{size}" if local else f"cluster/{machine.name}/{size}",
        tier=machine.tier,
        provider="local" if local else machine.name,
        gpu=machine.gpu,
        layout=layout,
        offer=None,
        usd_per_h=None if rate is None else rate * layout.num_gpus,
        wait_s=wait_s,
        startup_s=extras.download_s,
        minimum_billed_s=0.0,
        download_s=extras.download_s,
        transfer_usd=extras.transfer_usd,
        transfer_gib=extras.transfer_gib,
        rates={**extras.rates, **cost},
        num_vcpus=num_vcpus,
        notes=(*machine.in_use, *notes, *extras.notes),
        queue_limits=machine.queue_limits,
        walltime_s=machine.walltime_s,
    )


def _wait_of(machine: OwnMachine, layout: Layout) -> NotedWait | tuple[None, tuple[()]]:
    """Of this machine none where enough is free; of a cluster's what its log tells, or that for one node.

    A cluster of which nothing is known is taken for one like others.
    """
    if machine.tier is Tier.LOCAL:
        # It is unknown when the others will be done.
        is_free = layout.gpus_per_node <= machine.num_free
        return (Quantiles(p50=0.0, p90=0.0), ()) if is_free else (None, ())
    if (logged := machine.waits.get(layout.num_gpus)) is not None:
        return logged
    if machine.wait_s is None:
        assumed_s, note = assumed_wait(layout.num_gpus, machine.walltime_s)
        return assumed_s, (note,)
    return for_all((machine.wait_s, ()), layout.num_nodes)


def plans_of_offers(
    offers: Iterable[Offer],
    *,
    terms: CloudTerms,
    catalog: Sequence[StorageRate] | None = None,
    quotas: Sequence[Quota] = (),
    account: AccountLimits = _UNKNOWN_LIMITS,
    prices: Sequence[Price] | None = None,
    node_counts: Callable[[Offer], Iterable[int]] = lambda _: (1,),
) -> list[Plan]:
    """Whole machines, with every GPU in them: one plan for an offer and a number of nodes.

    Args:
        terms: what the job needs of any machine.
        catalog: rates of storage and egress, what it lacks at the dearest of them; None for those that ship.
        quotas: what the account may start at once, by the user's word, which goes first.
        account: the same by the account's own word.
        prices: what an hour of each offer will cost; as it is quoted if None.
        node_counts: how many machines of an offer to take together; each alone by default.
    """
    rates = load_rates() if catalog is None else catalog

    @cache
    def extras(provider: str, region: str, num_nodes: int) -> Extras:
        return extras_at(provider, region, terms, rates, num_nodes)

    plans = []
    in_zones: dict[object, tuple[Layout, _OfQuota]] = {}
    for offer, price in zip(offers, repeat(None) if prices is None else prices, strict=False):
        for num_nodes in node_counts(offer):
            machine = offer.provider, offer.instance_type, offer.gpu, offer.num_gpus, offer.num_vcpus
            key = *machine, offer.region, offer.market, num_nodes
            if key not in in_zones:
                of_quota = _quota_of_plan(offer, num_nodes, quotas, account)
                in_zones[key] = layout_of(offer, num_nodes), of_quota
            added = extras(offer.provider, offer.region, num_nodes)
            plans.append(_cloud_plan(offer, price, terms, added, *in_zones[key], num_nodes))
    return plans


def _quota_of_plan(offer: Offer, num_nodes: int, quotas: Sequence[Quota], account: AccountLimits) -> _OfQuota:
    """What forbids the plan, what to say of its quota, and whether the account lacks some.

    Where the user states what the account may start, nothing else counts.
    """
    if any(is_among(offer, quota) for quota in quotas):
        return over_quota(offer, quotas, num_nodes), (), False
    note = quota_note(offer, num_nodes, account)
    if note is None:
        return None, (), False
    if note.most is None or not account.leaves_out:
        return None, (note,), note.most is not None
    removed = about_options.RemovedByQuota(
        num_vcpus=note.count,
        most_vcpus=note.most,
        unit=note.unit,
        instance_types=(note.quota,),
        region=offer.region,
        provider=offer.provider,
    )
    return removed, (), True


_OfQuota = tuple[Finding | None, tuple[Finding, ...], bool]


def _cloud_plan(
    offer: Offer, price: Price | None, terms: CloudTerms, extras: Extras, layout: Layout, of_quota: _OfQuota,
    num_nodes: int,
) -> Plan:  # fmt: skip
    """So many machines of an offer; their nodes stand in one zone, so that nothing is paid between them."""
    blocked, quota_notes, lacks_quota = of_quota
    wait_s, notes = wait_of(offer, price, configured=terms.wait_s, history=terms.history, num_nodes=num_nodes)
    machine = offer.instance_type if num_nodes == 1 else f"{num_nodes}x{offer.instance_type}"
    return Plan(
        id="/".join([offer.provider, machine, place_in_id(offer), offer.market]),
        tier=Tier.CLOUD,
        provider=offer.provider,
        gpu=offer.gpu,
        layout=layout,
        offer=offer,
        usd_per_h=(offer.usd_per_h if price is None else price.usd_per_h.p50) * num_nodes,
        price=price if price is None or num_nodes == 1 else price.times(num_nodes),
        wait_s=wait_s,
        startup_s=terms.startup_s * slowest_boot(num_nodes) + extras.download_s,
        minimum_billed_s=offer.minimum_billed_s,
        billed_step_s=offer.billed_step_s,
        download_s=extras.download_s,
        storage_usd_per_h=extras.storage_usd_per_h,
        egress_usd=extras.egress_usd,
        transfer_usd=extras.transfer_usd,
        transfer_gib=extras.transfer_gib,
        read_gib=terms.dataset_gib,
        rates=extras.rates,
        notes=(*notes, *extras.notes, *quota_notes),
        blocked=blocked,
        lacks_quota=lacks_quota,
    )


def place_in_id(offer: Offer) -> str:
    """The zone, with its region where it does not tell it: two regions may both have a zone ``"b"``."""
    if offer.zone is None:
        return offer.region
    tells = offer.zone.startswith(offer.region) or _AWS_ZONE_ID.fullmatch(offer.zone)
    return offer.zone if tells else f"{offer.region}:{offer.zone}"


def with_known_gpu(offers: Iterable[Offer], known: Container[str]) -> tuple[list[Offer], tuple[Finding, ...]]:
    """Offers whose GPU can be predicted, and one warning that names the GPUs of the others."""
    offers = list(offers)
    unknown = sorted({offer.gpu for offer in offers if offer.gpu not in known})
    if not unknown:
        return offers, ()
    return [offer for offer in offers if offer.gpu in known], (
        about_options.Unknown(what="gpu", names=unknown),
    )


# A zone that costs more, over a spot plan's own, is none to move to: the job's price limit would stop it.
_MOST_OVER_OWN = 1.1


def with_elsewhere(plans: Sequence[Plan], among: Sequence[Plan]) -> list[Plan]:
    """Rented plans; those on spot with where else in the region their job could go on, among plans."""
    there = grouped(among, lambda plan: _machine_in_region(plan, _offer_of(plan).market))

    def of(plan: Plan) -> Plan:
        zone, most = _offer_of(plan).zone, _MOST_OVER_OWN * (plan.usd_per_h or 0.0)
        spots = there[_machine_in_region(plan, Market.SPOT)] if zone else ()
        rents = [rents_to_compare(other)[0] for other in spots if _offer_of(other).zone not in {None, zone}]
        # A job that begins in a dear zone does not stay in the cheapest: none counts as cheaper than its own.
        rents = [max(rent, plan.usd_per_h or 0.0) for rent in rents if rent <= most]
        on_demand = next(iter(there.get(_machine_in_region(plan, Market.ON_DEMAND), ())), None)
        elsewhere = Elsewhere(
            num_zones=len(rents), usd_per_h=statistics.fmean(rents) if rents else 0.0, on_demand=on_demand
        )
        return replace(plan, elsewhere=elsewhere) if rents or on_demand else plan

    return [of(plan) if _offer_of(plan).market is Market.SPOT else plan for plan in plans]


def _machine_in_region(plan: Plan, market: Market) -> tuple[str, str, str, int, str]:
    offer = _offer_of(plan)
    return offer.provider, offer.instance_type, offer.region, plan.num_nodes, market


def cheapest_plans(plans: Sequence[Plan]) -> list[Plan]:
    """Rented plans, machine by machine, without the places that are never the cheapest for so many of it.

    A job trains equally long everywhere, so a place is left out where another starts as soon and costs no
    more by the hour (rent and disks) nor once (data that moves). This must hold of the median rent, or the
    p90 of one that is guessed, and of the dearest that is drawn: an older, derived or rarer price never hides
    a surer one. Neither the cents of disks that are kept while the machine is away are compared, nor where a
    job could go on.

    Raises InputError: plans of one's own machines, which have no place to choose.
    """

    def machine_of(plan: Plan) -> tuple[str, str, int, str, float, float]:
        offer, bill = _offer_of(plan), (plan.minimum_billed_s, plan.billed_step_s)
        return offer.provider, offer.instance_type, plan.num_nodes, offer.market, *bill

    def order(plan: Plan) -> tuple[tuple[float, ...], tuple[int, float], str, str]:
        offer, doubt = _offer_of(plan), (0, 0.0) if plan.price is None else plan.price.doubt
        rents = [rent + plan.storage_usd_per_h for rent in rents_to_compare(plan)]
        costs = (*rents, plan.egress_usd + plan.transfer_usd, plan.startup_s)
        return costs, doubt, offer.region, offer.zone or ""

    cheapest = []
    for group in grouped(plans, machine_of).values():
        if len(group) == 1:
            cheapest += group
            continue
        kept: list[tuple[float, ...]] = []
        for (costs, *_), plan in sorted(((order(plan), plan) for plan in group), key=itemgetter(0)):
            if not any(all(map(le, other, costs)) for other in kept):
                kept.append(costs)
                cheapest.append(plan)
    return cheapest


def _offer_of(plan: Plan) -> Offer:
    if plan.offer is None:
        raise InputError(f"{plan.id} is not rented, so there is no cheapest place of it: leave it out here.")
    return plan.offer


# How long the start of a rented machine waits: what is configured, else its own log, else its class.


def wait_of(
    offer: Offer,
    price: Price | None = None,
    *,
    configured: Quantiles | None,
    history: Mapping[str, Watched],
    num_nodes: int = 1,
) -> NotedWait:
    """The wait for machines, and what it rests on; nothing is said of what was configured.

    Args:
        price: what an hour of it will cost; None if not asked for.
        configured: of any cloud machine, by its user.
        history: what was seen of spot machines, by instance type; ``""`` is any.
        num_nodes: how many of it must be there before the job starts.
    """
    of_one = (configured, ()) if configured is not None else _of_one(offer, price, history)
    return for_all(of_one, num_nodes)


def for_all(of_one: NotedWait, num_nodes: int) -> NotedWait:
    """The wait until the last of so many machines is there, and what it is taken to be."""
    if num_nodes == 1:
        return of_one
    wait_s = together(of_one[0], num_nodes)
    p_at_once = wait_s.p_at_once if isinstance(wait_s, StartWait) else None
    times = times_of_one(num_nodes)
    return wait_s, (
        *of_one[1],
        about_options.GangAssumed(num_nodes=num_nodes, p_at_once=p_at_once, times_of_one=times),
    )


# Of the machines of a place that AWS takes back within a month, in percent: the highest of its buckets.
_OFTEN_PCT = 20


def _of_one(offer: Offer, price: Price | None, history: Mapping[str, Watched]) -> NotedWait:
    seen = history.get(offer.instance_type) or history.get("")
    if seen is None or offer.market is not Market.SPOT:
        contended = _contended(offer, price)
        wait_s, note = _assumed(offer.gpu, offer.num_gpus, offer.market, is_rare=contended is not None)
        return wait_s, (note,) if contended is None else (note, contended)
    of_class = start_odds(offer.gpu, offer.num_gpus, Market.SPOT).wait_s
    wait = start_with_history(of_class, spot_odds(offer.gpu, offer.num_gpus), seen)
    hours = seen.up_h + seen.down_h
    return wait, (about_options.WaitOfStarts(p_at_once=wait.p_at_once, watched_h=hours),)


@cache
def together(of_one: Quantiles, num_nodes: int) -> Quantiles:
    """The wait until the last of so many machines is there, by that for one."""
    times = times_of_one(num_nodes)
    if isinstance(of_one, StartWait):
        return StartWait.of(
            p_at_once=all_at_once(of_one.p_at_once, num_nodes),
            at_once_s=of_one.at_once_s,
            later_p50_s=of_one.later_p50_s * times,
            later_p90_s=of_one.later_p90_s * times,
        )
    longer = replace(of_one, p50=of_one.p50 * times, p90=of_one.p90 * times)
    if isinstance(longer, EmpiricalWait):
        return replace(longer, waits_s=tuple(wait_s * times for wait_s in longer.waits_s))
    return longer


def _contended(offer: Offer, price: Price | None) -> Finding | None:
    """Why a place may have no machine: it asks its least price, or machines are often taken back there."""
    if offer.market is not Market.SPOT:
        return None
    taken_back = load_interruptions().get((offer.instance_type, offer.region))
    if offer.provider == "aws" and taken_back is not None and taken_back.low_pct >= _OFTEN_PCT:
        return about_options.PlaceContended(is_taken_back=True)
    is_near_floor = price is not None and price.is_near_floor
    return about_options.PlaceContended(is_taken_back=False) if is_near_floor else None


@cache
def _assumed(gpu: str, num_gpus: int, market: Market, *, is_rare: bool) -> tuple[StartWait, Finding]:
    """Of a class, since thousands of offers share a few; that which starts least often where it is rare."""
    odds = rarest_start(market) if is_rare else start_odds(gpu, num_gpus, market)
    wait = odds.wait_s
    note = about_options.WaitAssumed(
        p_at_once=wait.p_at_once,
        later_p50_s=wait.later_p50_s,
        later_p90_s=wait.later_p90_s,
        basis=odds.basis,
        num_traces=odds.num_traces,
        source=odds.source,
        as_of=str(odds.as_of),
    )
    return wait, note
