"""The machine a run was on: from the id of a plan, from what is given beside it, or from both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from advisor.core.errors import InputError
from advisor.core.values import Market

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor.config.layers import Config
    from advisor.config.settings import ClusterSettings
    from advisor.service.listening import Listener
    from advisor.service.plan_facts import PlanRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What is known of a machine; None is not known, a market of None perhaps not rented."""

    provider: str | None
    gpu: str | None
    num_gpus: int | None
    market: Market | None
    instance_type: str | None = None
    region: str | None = None

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
        )

    def complete(
        self, clusters: Sequence[ClusterSettings], listener: Listener
    ) -> tuple[str, str, int, Market | None]:
        """Provider, GPU, number of GPUs and market.

        Raises:
            InputError: one is missing, or an own machine has a market.
        """
        called = listener.name_of
        missing = [called(name) for name in ("provider", "gpu") if not getattr(self, name)]
        if self.provider is None or self.gpu is None or missing:
            raise InputError(
                f"where did it run? {' and '.join(missing)} missing: give"
                f" {called('recommendation')} ID, {called('plan')} ID, or {called('provider')},"
                f" {called('gpu')} and {called('market')}."
            )
        is_own = self.provider in {"local", *(cluster.name for cluster in clusters)}
        if is_own and self.market is not None:
            raise InputError(f"{self.provider!r} is a machine of your own: leave {called('market')} out.")
        if not is_own and self.market is None:
            raise InputError(
                f"how was {self.provider!r} rented? Give {called('market')} ({', '.join(Market)})."
                " A cluster of your own has to be in the settings (clusters)."
            )
        return self.provider, self.gpu, self.num_gpus or 1, self.market


def place_of(asked: PlanRequest, config: Config, listener: Listener) -> Place:
    """What is given of the machine, before what the id of a plan says.

    Raises:
        InputError: the id has no such form, or a GPU with several numbers.
        UnknownGpuError: a name that no GPU has.
    """
    from advisor.service.plan_facts import given_facts

    facts = given_facts(asked, config, listener)
    known = None if facts.market is None else Market(facts.market)
    return Place(
        provider=facts.provider,
        gpu=facts.gpu,
        num_gpus=facts.num_gpus,
        market=known,
        instance_type=facts.instance_type,
        region=facts.region,
    )
