"""Settings and flags -> a query of offers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from advisor.cli.common import note
from advisor.cli.live import now
from advisor.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from advisor.config import Config
    from advisor.pricing import Answer, Offers

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
    idle = idle_in_words(config, answers)
    answers = [replace(answer, offers=contracted(answer.offers, rules)) for answer in answers]
    prices = config.settings.prices
    found = load_offers(
        query, now=now(), max_age_s=prices.max_age, fresh_s=prices.refresh_after, answers=answers
    )
    kept = (
        offer
        for offer in found.offers
        if is_wanted(wanted, offer.gpu, offer.num_gpus) and (max_gpus is None or offer.num_gpus <= max_gpus)
    )
    return replace(found, offers=tuple(kept), warnings=(*found.warnings, *ended, *idle))


def idle_in_words(config: Config, answers: Sequence[Answer] = ()) -> list[str]:
    """A line for each contract and quota of the settings that is about nothing that is for rent.

    Args:
        config: the rules, and which sources there are.
        answers: what was asked for; what else is known is looked at only for rules that it does not match.

    Raises:
        ConfigError: a source that the settings name is not there or refuses its options.
        CatalogError: the data of a source cannot be read.
    """
    from advisor.cli.live import known_answers
    from advisor.errors import StoreError
    from advisor.pricing import OfferQuery
    from advisor.pricing.contracts import in_force
    from advisor.pricing.idle_rules import idle_rules

    settings = config.settings
    current, _ = in_force(settings.contracts, now().date())
    rules = {
        f"contracts, entry {number}": rule
        for number, rule in enumerate(settings.contracts, start=1)
        if rule in current
    } | {f"quotas, entry {number}": rule for number, rule in enumerate(settings.quotas, start=1)}

    def idle(answers: Sequence[Answer]) -> list[str]:
        return idle_rules(rules, (offer for answer in answers for offer in answer.offers))

    try:
        return idle(known_answers(config, OfferQuery())) if idle(answers) else []
    except StoreError:  # told by whoever asked for prices; without them nobody can say
        return []


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
