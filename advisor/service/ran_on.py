"""The machine a run was on: from the id of a plan, from what is told beside it, or from both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from advisor.core.errors import InputError
from advisor.core.values import Market

if TYPE_CHECKING:
    from advisor.config.layers import Config


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


def place_of(
    config: Config, plan: str | None, *, provider: str | None, gpu: str | None, market: Market | None
) -> Place:
    """What was typed, before what the id of a plan tells.

    Args:
        config: what is a cluster of one's own.
        plan: as ``advisor recommend`` prints it; a cloud's is looked up in the prices.
        provider: a cloud, a cluster or ``local``.
        gpu: one GPU with its number, such as ``L4:8``.
        market: None where it was not told.

    Raises:
        InputError: the id has no such form, or a GPU with several numbers.
        UnknownGpuError: a name that no GPU has.
    """
    from advisor.service.plan_facts import given_facts

    facts = given_facts(config, plan, gpu=gpu, spent_usd=None, provider=provider, market=market)
    known = None if facts.market is None else Market(facts.market)
    return Place(provider=facts.provider, gpu=facts.gpu, num_gpus=facts.num_gpus, market=known)
