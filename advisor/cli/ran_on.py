"""The machine a run was on: from the id of a plan, from what is told beside it, or from both."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from advisor.errors import InputError, did_you_mean
from advisor.types import Market

if TYPE_CHECKING:
    from advisor.config import Config

FORMS = "PROVIDER/INSTANCE_TYPE/REGION_OR_ZONE/MARKET, local/NxGPU or cluster/NAME/NxGPU"
_OWN = re.compile(r"(?:(local)|cluster/(.+))/(\d{1,4})x(.+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What is known of a machine; None is not known, a market of None perhaps not rented."""

    provider: str | None
    gpu: str | None
    num_gpus: int | None
    market: Market | None

    def or_else(self, other: Place) -> Place:
        """What is known here, then what is known there; a market goes with its provider."""
        is_elsewhere = self.provider is not None and self.provider != other.provider
        return Place(
            provider=self.provider or other.provider,
            gpu=self.gpu or other.gpu,
            num_gpus=self.num_gpus or other.num_gpus,
            market=self.market or (None if is_elsewhere else other.market),
        )

    def complete(self, config: Config) -> tuple[str, str, int, Market | None]:
        """Provider, GPU, number of GPUs and market.

        Raises:
            InputError: one is missing, or an own machine has a market.
        """
        missing = [f"--{name}" for name in ("provider", "gpu") if not getattr(self, name)]
        if self.provider is None or self.gpu is None or missing:
            raise InputError(
                f"where did it run? {' and '.join(missing)} missing: give --recommendation ID, --plan ID,"
                " or --provider, --gpu and --market."
            )
        is_own = self.provider in {"local", *(cluster.name for cluster in config.settings.clusters)}
        if is_own and self.market is not None:
            raise InputError(f"{self.provider!r} is a machine of your own: leave --market out.")
        if not is_own and self.market is None:
            raise InputError(
                f"how was {self.provider!r} rented? Give --market ({', '.join(Market)})."
                " A cluster of your own has to be in the settings (clusters)."
            )
        return self.provider, self.gpu, self.num_gpus or 1, self.market


def place_of(config: Config, plan: str | None, given: Place, gpu: str | None) -> Place:
    """What was typed, before what the id of a plan tells.

    Args:
        config: where prices come from, which tell the GPUs of a cloud's machine.
        plan: as ``advisor recommend`` prints it.
        given: what was typed beside it.
        gpu: one GPU with its number, such as ``L4:8``.

    Raises:
        InputError: the id has no such form, its machine is unknown, or a text means several numbers of GPUs.
        UnknownGpuError: a name that no GPU has.
    """
    if gpu is not None:
        name, count = _counted(gpu)
        given = Place(provider=given.provider, gpu=name, num_gpus=count, market=given.market)
    return given if plan is None else given.or_else(_place_of_id(config, plan, is_gpu_told=gpu is not None))


def _counted(text: str) -> tuple[str, int]:
    from advisor.gpus import parse_gpu_request, resolve_gpu

    request = parse_gpu_request(text)
    if len(request.counts) > 1:
        raise InputError(f"--gpu: {text!r} means several numbers of GPUs: a run has one, such as L4:8.")
    if len(request.gpus) > 1:
        resolve_gpu(text.rpartition(":")[0] if request.counts else text)
    return request.gpus[0].name, request.counts[0] if request.counts else 1


def _place_of_id(config: Config, plan: str, *, is_gpu_told: bool) -> Place:
    from advisor.gpus import resolve_gpu

    own = _OWN.fullmatch(plan)
    if own is not None and int(own[3]) > 0:
        return Place(
            provider=own[1] or own[2], gpu=resolve_gpu(own[4]).name, num_gpus=int(own[3]), market=None
        )
    parts = plan.split("/")
    if own is not None or len(parts) != 4 or not all(parts):
        raise InputError(f"--plan: {plan!r} is not the id of a plan: write {FORMS}.")
    provider, instance_type, _, market = parts
    markets = [known.value for known in Market]
    if market not in markets:
        hint = did_you_mean(market, markets)
        raise InputError(f"--plan: {market!r} is no market.{hint} There are {', '.join(markets)}.")
    found = None if is_gpu_told else _gpus_of(config, provider, instance_type)
    return Place(
        provider=provider,
        gpu=found[0] if found is not None else None,
        num_gpus=found[1] if found is not None else None,
        market=Market(market),
    )


def _gpus_of(config: Config, provider: str, instance_type: str) -> tuple[str, int]:
    """GPU and their number of a cloud's machine, whatever it costs and wherever it stands."""
    from advisor.cli.live import current_answers
    from advisor.pricing import OfferQuery

    answers = current_answers(config, OfferQuery(providers=(provider,)), may_refresh=False)
    offers = [offer for answer in answers for offer in answer.offers if offer.provider == provider]
    for offer in offers:
        if offer.instance_type == instance_type:
            return offer.gpu, offer.num_gpus
    hint = did_you_mean(instance_type, {offer.instance_type for offer in offers})
    raise InputError(
        f"--plan: no price of {provider} {instance_type} is known, which would tell its GPUs.{hint}"
        " Give them with --gpu NAME:COUNT."
    )
