"""What a person tells of a plan -> facts that a policy can judge."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from advisor.cli.common import load_settings, note
from advisor.core.errors import InputError, NoOfferError, did_you_mean
from advisor.core.globs import same_name
from advisor.core.limits import MAX_USD
from advisor.core.values import Market, Offer, Tier

if TYPE_CHECKING:
    from advisor.config.layers import Config
    from recommender.policy import Facts

_FORMS = "PROVIDER/INSTANCE_TYPE/REGION_OR_ZONE/MARKET, local/NxGPU or cluster/NAME/NxGPU"
_COUNTED_GPU = re.compile(r"([1-9]\d{0,3})x(.+)")


def given_facts(
    config: Config, plan: str | None, *, gpu: str | None, spent_usd: float | None, **given: Any
) -> Facts:
    """Facts of a plan by its id, of what is given, or of both; what is given wins.

    Args:
        config: tells how spot machines behave and what is a cluster.
        plan: id as ``advisor recommend`` prints it; a cloud's is looked up in the prices.
        gpu: one GPU of the catalog with its number, such as ``A100-SXM-80GB:8``.
        spent_usd: since the first of the month.
        given: fields of ``Facts``; None is not given.

    Raises:
        InputError: the id has no such form, an amount is negative or a GPU is not one.
    """
    from recommender.policy import Facts, Spent

    known = {name: value for name, value in given.items() if value is not None}
    _check_amounts({**known, "spent": spent_usd})
    spot = config.settings.spot
    facts = replace(
        _facts_of_id(plan) if plan is not None else Facts(tier=_tier(config, known.get("provider"))),
        saves_checkpoints=spot.checkpoint_interval is not None,
        preemptions_per_h=spot.preemptions_per_h,
        **known,
    )
    if spent_usd is not None:
        facts = replace(facts, spent=Spent(all_usd=spent_usd, project_usd=spent_usd))
    return facts if gpu is None else _with_gpu(facts, gpu)


def _check_amounts(given: dict[str, Any]) -> None:
    for name in ("usd_per_h", "usd_per_job", "spent"):
        amount = given.get(name)
        if amount is not None and not 0 <= amount <= MAX_USD:
            raise InputError(
                f"an amount of US dollars must be 0 or more, got {amount:g} ({name}): at most {MAX_USD:,.0f}."
            )


def _tier(config: Config, provider: str | None) -> Tier:
    if provider is not None and same_name(provider, "local"):
        return Tier.LOCAL
    is_cluster = provider in {cluster.name for cluster in config.settings.clusters}
    return Tier.CLUSTER if is_cluster else Tier.CLOUD


def _with_gpu(facts: Facts, text: str) -> Facts:
    from advisor.core.gpus import parse_gpu_request, resolve_gpu

    request = parse_gpu_request(text)
    if len(request.counts) > 1:
        raise InputError(f"{text!r} means several numbers of GPUs: a plan has one, such as L4:8.")
    name = request.gpus[0].name if len(request.gpus) == 1 else resolve_gpu(text.partition(":")[0]).name
    return replace(facts, gpu=name, num_gpus=request.counts[0] if request.counts else facts.num_gpus)


def _facts_of_id(plan: str) -> Facts:
    from advisor.core.gpus import resolve_gpu
    from recommender.policy import Facts

    parts = plan.split("/")
    counted = _COUNTED_GPU.fullmatch(parts[-1])
    if counted and parts[0] in ("local", "cluster") and len(parts) >= (2 if parts[0] == "local" else 3):
        return Facts(
            tier=Tier(parts[0]),
            provider="/".join(parts[1:-1]) or "local",
            gpu=resolve_gpu(counted[2]).name,
            num_gpus=int(counted[1]),
        )
    if len(parts) != 4 or not all(parts):
        raise InputError(f"{plan!r} is not the id of a plan: write {_FORMS}.")
    return _facts_of_cloud(*parts)


def _facts_of_cloud(provider: str, instance_type: str, place: str, market: str) -> Facts:
    from recommender.policy import Facts

    try:
        market = Market(market).value
    except ValueError:
        hint = did_you_mean(market, [known.value for known in Market])
        raise InputError(f"{market!r} is no market.{hint} There are {', '.join(Market)}.") from None
    offer = _cheapest(provider, instance_type, place, market)
    if offer is None:
        note(f"no price of {instance_type} in {place} ({market}) is known: --gpu and --usd-per-hour tell")
        return Facts(provider=provider, instance_type=instance_type, region=place, market=market)
    return Facts(
        provider=provider,
        instance_type=instance_type,
        region=offer.region,
        market=market,
        gpu=offer.gpu,
        num_gpus=offer.num_gpus,
        usd_per_h=offer.usd_per_h,
    )


def _cheapest(provider: str, instance_type: str, place: str, market: str) -> Offer | None:
    from advisor.cli.filters import Asked
    from advisor.service.offers import query_offers
    from recommender.plans.candidates import place_in_id

    flags = {"cloud.providers": [provider], "cloud.regions": ["*"], "cloud.markets": [market]}
    config = load_settings(flags)  # whoever asks has warned already
    try:
        found = query_offers(config, Asked(wanted={})).offers
    except NoOfferError:
        return None
    offers = [
        offer
        for offer in found
        if same_name(offer.instance_type, instance_type)
        and any(same_name(place, at) for at in (offer.region, offer.zone or "", place_in_id(offer)))
    ]
    return min(offers, key=lambda offer: offer.usd_per_h, default=None)
