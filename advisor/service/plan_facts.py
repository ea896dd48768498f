"""What is given of a plan -> facts that a policy can judge, and the machine that a run was on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from advisor.config.layers import ARGUMENT, Config, PricingSettings
from advisor.config.settings import ClusterSettings, SpotSettings
from advisor.core.errors import InputError, NoOfferError, did_you_mean
from advisor.core.globs import same_name
from advisor.core.gpus import parse_gpu_request, resolve_gpu
from advisor.core.limits import MAX_USD
from advisor.core.values import Market, Offer, Tier
from advisor.service.listening import Listener

if TYPE_CHECKING:
    from advisor.store.ledger import LedgerEntry
    from recommender.conditions import Facts


_FORMS = (
    "PROVIDER/INSTANCE_TYPE/REGION_OR_ZONE/MARKET (2xINSTANCE_TYPE for two nodes), local/NxGPU or"
    " cluster/NAME/NxGPU (2xNxGPU for two nodes)"
)
_COUNTED = re.compile(r"([1-9]\d{0,3})x(.+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """A plan by its id, by facts, or by both: a fact beside an id wins. None is not given."""

    plan: str | None = None
    """Id as ``advisor recommend`` prints it; a cloud's is looked up in the prices."""
    tier: Tier | None = None
    provider: str | None = None
    instance_type: str | None = None
    region: str | None = None
    market: Market | None = None
    gpu: str | None = None
    """One GPU of the catalog with its number, such as ``A100-SXM-80GB:8`` or ``A100-SXM-80GB:8x2``."""
    num_nodes: int | None = None
    """Of the whole plan."""
    usd_per_h: float | None = None
    """Of the whole plan."""
    usd_per_job: float | None = None
    """What 9 of 10 runs stay under."""
    spent_usd: float | None = None
    """Since the first of the month."""
    train_s: float | None = None


_FACTS = (
    "tier", "provider", "instance_type", "region", "market", "num_nodes", "usd_per_h", "usd_per_job",
    "train_s",
)  # fmt: skip


def given_facts(request: PlanRequest, config: Config, listener: Listener) -> Facts:
    """Facts of a plan by its id, of what is given, or of both; what is given wins.

    Raises:
        InputError: the id has no such form, an amount is negative or a GPU is not one.
        UnknownGpuError: a name that no GPU has.
    """
    from recommender.conditions import Facts, Spent

    amounts = {"usd_per_h": request.usd_per_h, "usd_per_job": request.usd_per_job, "spent": request.spent_usd}
    for name, amount in amounts.items():
        if amount is not None and not 0 <= amount <= MAX_USD:
            raise InputError(
                f"an amount of US dollars must be 0 or more, got {amount:g} ({name}): at most {MAX_USD:,.0f}."
            )
    given = {name: getattr(request, name) for name in _FACTS if getattr(request, name) is not None}
    known = (
        Facts(tier=_tier(config.settings.clusters, request.provider))
        if request.plan is None
        else _facts_of_id(request.plan, config.pricing, listener)
    )
    spot, spent = config.settings.spot, request.spent_usd
    facts = replace(
        known,
        saves_checkpoints=_saves_checkpoints(spot),
        spent=None if spent is None else Spent(all_usd=spent, project_usd=spent),
        **given,
    )
    facts = facts if request.gpu is None else _with_gpu(facts, request.gpu)
    return replace(facts, preemptions_per_h=_rate_per_h(facts, spot.preemptions_per_h))


def _saves_checkpoints(spot: SpotSettings) -> bool | None:
    """By the settings alone: no script is looked at."""
    if spot.checkpoint_interval is None or spot.checkpoints == "none":
        return False
    return None if spot.checkpoints is None else True


def _rate_per_h(facts: Facts, configured: float | None) -> float:
    """Of the machine on spot: what is configured, else of its class."""
    from advisor.pricing.spot_odds import spot_odds
    from recommender.outcome.nodes import times_of_one

    num_nodes = facts.num_nodes or 1
    of_one = spot_odds(facts.gpu or "", (facts.num_gpus or 1) // num_nodes).preemptions_per_h
    return (of_one if configured is None else configured) * times_of_one(num_nodes)


def _tier(clusters: Sequence[ClusterSettings], provider: str | None) -> Tier:
    if provider is not None and same_name(provider, "local"):
        return Tier.LOCAL
    is_cluster = provider in {cluster.name for cluster in clusters}
    return Tier.CLUSTER if is_cluster else Tier.CLOUD


def _with_gpu(facts: Facts, text: str) -> Facts:
    request = parse_gpu_request(text)
    if len(request.counts) > 1:
        raise InputError(f"{text!r} means several numbers of GPUs: a plan has one, such as L4:8.")
    name = request.gpus[0].name if len(request.gpus) == 1 else resolve_gpu(text.partition(":")[0]).name
    num_gpus = request.counts[0] if request.counts else facts.num_gpus
    return replace(facts, gpu=name, num_gpus=num_gpus, num_nodes=request.num_nodes or facts.num_nodes)


def _facts_of_id(plan: str, pricing: PricingSettings, listener: Listener) -> Facts:
    parts = plan.split("/")
    if parts[0] in ("local", "cluster") and len(parts) >= (2 if parts[0] == "local" else 3):
        facts = _facts_of_own(parts)
        if facts is not None:
            return facts
    if len(parts) != 4 or not all(parts):
        raise InputError(f"{plan!r} is not the id of a plan: write {_FORMS}.")
    return _facts_of_rented(parts, pricing, listener)


def _facts_of_own(parts: Sequence[str]) -> Facts | None:
    """Of ``cluster/lab/8xL4``, or ``cluster/lab/2x8xL4`` for two nodes; None for another form."""
    from recommender.conditions import Facts

    counted = _COUNTED.fullmatch(parts[-1])
    if counted is None:
        return None
    nodes = _COUNTED.fullmatch(counted[2])
    num_nodes, each, gpu = (counted[1], *nodes.groups()) if nodes else ("1", *counted.groups())
    return Facts(
        tier=Tier(parts[0]),
        provider="/".join(parts[1:-1]) or "local",
        gpu=resolve_gpu(gpu).name,
        num_gpus=int(num_nodes) * int(each),
        num_nodes=int(num_nodes),
    )


def _facts_of_rented(parts: Sequence[str], pricing: PricingSettings, listener: Listener) -> Facts:
    from recommender.conditions import Facts

    provider, machine, place, market = *parts[:3], _market(parts[3])
    counted = _COUNTED.fullmatch(machine)
    num_nodes, instance_type = (int(counted[1]), counted[2]) if counted else (1, machine)
    known = Facts(
        provider=provider, instance_type=instance_type, region=place, market=market.value, num_nodes=num_nodes
    )
    offer = cheapest_at(pricing, provider, instance_type, place, market, listener)
    if offer is not None:
        return replace(
            known,
            region=offer.region,
            gpu=offer.gpu,
            num_gpus=offer.num_gpus * num_nodes,
            usd_per_h=offer.usd_per_h * num_nodes,
        )
    names = f"{listener.name_of('gpu')} and {listener.name_of('usd_per_h')}"
    listener.note(f"no price of {instance_type} in {place} ({market}) is known: {names} tell")
    return known


def _market(text: str) -> Market:
    try:
        return Market(text)
    except ValueError:
        hint = did_you_mean(text, [known.value for known in Market])
        raise InputError(f"{text!r} is no market.{hint} There are {', '.join(Market)}.") from None


def cheapest_at(
    pricing: PricingSettings,
    provider: str,
    instance_type: str,
    place: str,
    market: Market,
    listener: Listener,
) -> Offer | None:
    """The cheapest offer of a machine at a place, whatever places and clouds the settings look at.

    Raises AdvisorError: the prices of the settings' sources cannot be read.
    """
    from advisor.service.prices.book import PriceBook
    from advisor.service.prices.offers import query_offers
    from advisor.service.prices.query_limits import OfferFilter
    from recommender.plans.candidates import place_in_id

    try:
        book = PriceBook(settings=_wherever(pricing, provider, market))
        offers = query_offers(book, OfferFilter(wanted={}), listener).offers
    except NoOfferError:
        return None
    there = [
        offer
        for offer in offers
        if same_name(offer.instance_type, instance_type)
        and any(same_name(place, name) for name in (offer.region, offer.zone or "", place_in_id(offer)))
    ]
    return min(there, key=lambda offer: offer.usd_per_h, default=None)


def _wherever(pricing: PricingSettings, provider: str, market: Market) -> PricingSettings:
    """The settings for offers of a cloud in any region, as if the caller had asked for them."""
    given = {"providers": (provider,), "regions": ("*",), "markets": (market,)}
    origins = {**pricing.origins, **{f"cloud.{name}": ARGUMENT for name in given}}
    return replace(
        pricing, cloud=pricing.cloud.model_copy(update=given), origins=origins, may_add_providers=True
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What is known of a machine; None is not known, a market of None perhaps not rented."""

    provider: str | None
    gpu: str | None
    num_gpus: int | None
    """Of all machines that a plan or a job names."""
    market: Market | None
    instance_type: str | None = None
    region: str | None = None
    num_nodes: int | None = None
    """How many those are; None where the GPUs are those of the one that we see."""

    @classmethod
    def of(cls, known: Facts | LedgerEntry) -> Place:
        """What facts of a plan say, or where a recommendation sends its job."""
        return cls(**{field.name: getattr(known, field.name) for field in fields(cls)})

    def or_else(self, other: Place) -> Place:
        """What is known here, then what is known there; market, type and region go with their provider."""
        is_elsewhere = self.provider is not None and self.provider != other.provider
        is_other_machine = is_elsewhere or (self.gpu is not None and self.gpu != other.gpu)
        return Place(
            provider=self.provider or other.provider,
            gpu=self.gpu or other.gpu,
            num_gpus=self.num_gpus or other.num_gpus,
            market=self.market or (None if is_elsewhere else other.market),
            instance_type=self.instance_type or (None if is_other_machine else other.instance_type),
            region=self.region or (None if is_elsewhere else other.region),
            num_nodes=self.num_nodes if self.num_gpus else other.num_nodes,
        )

    def complete(
        self, clusters: Sequence[ClusterSettings], listener: Listener
    ) -> tuple[str, str, int, Market | None]:
        """Provider, GPU, number of GPUs and market.

        Raises InputError: one is missing, or an own machine has a market.
        """
        called = listener.name_of
        missing = [called(name) for name in ("provider", "gpu") if not getattr(self, name)]
        if self.provider is None or self.gpu is None or missing:
            raise InputError(
                f"where did it run? {' and '.join(missing)} missing: give {called('recommendation')} ID,"
                f" {called('plan')} ID, or {called('provider')}, {called('gpu')} and {called('market')}."
            )
        is_own = self.provider in {"local", *(cluster.name for cluster in clusters)}
        _check_provider(self.provider, clusters, listener)
        if is_own and self.market is not None:
            raise InputError(f"{self.provider!r} is a machine of your own: leave {called('market')} out.")
        if not is_own and self.market is None:
            raise InputError(
                f"how was {self.provider!r} rented? Give {called('market')} ({', '.join(Market)})."
                " A cluster of your own has to be in the settings (clusters)."
            )
        return self.provider, self.gpu, self.num_gpus or 1, self.market


def _check_provider(name: str, clusters: Sequence[ClusterSettings], listener: Listener) -> None:
    """Any cloud may be named; one that is nearly another is mistyped, and would split its spending."""
    from advisor.pricing.providers import load_providers

    known = {"local", *load_providers(), *(cluster.name for cluster in clusters)}
    if not any(same_name(name, one) for one in known) and (near := did_you_mean(name, known)):
        raise InputError(f"{listener.name_of('provider')}: no provider is called {name!r}.{near}")


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineHere:
    """A machine that a command runs on."""

    place: Place
    zone: str | None
    """As offers have it; None if not known."""
    share: float
    """Of the machine's GPUs that the command got, which is its share of the price."""


def place_of(asked: PlanRequest, config: Config, listener: Listener) -> Place:
    """What is given of the machine, before what the id of a plan says.

    Raises:
        InputError: the id has no such form, or a GPU with several numbers.
        UnknownGpuError: a name that no GPU has.
    """
    facts = given_facts(asked, config, listener)
    return replace(Place.of(facts), market=None if facts.market is None else Market(facts.market))
