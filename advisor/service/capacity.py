"""Spot placement scores and quotas of AWS, as far as the credentials allow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from advisor.core.errors import CloudError, InputError
from advisor.core.findings import Finding, quoted
from advisor.service.listening import Listener

if TYPE_CHECKING:
    from advisor.config.settings import PriceSettings
    from advisor.pricing.sources.aws.account import PlacementScore, VcpuQuota

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityRequest:
    """Machines that are to start at once: any of some types, in regions of AWS."""

    instance_types: tuple[str, ...]
    regions: tuple[str, ...]
    num_nodes: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """Scores by zone, quotas by region, and what could not be asked."""

    scores: tuple[PlacementScore, ...]
    quotas: tuple[VcpuQuota, ...]
    warnings: tuple[Finding, ...]


def ask_capacity(request: CapacityRequest, settings: PriceSettings, listener: Listener) -> Capacity:
    """Ask AWS whether it would start them.

    Raises:
        InputError: ``prices.offline`` is set, or a region is no name.
        ConfigError: ``prices.options.aws`` is wrong.
        CloudError: nothing at all could be asked.
    """
    from advisor.pricing.sources.aws.account import placement_scores, vcpu_quotas
    from advisor.pricing.sources.aws.aws_calls import read_options

    if settings.offline:
        raise InputError("prices.offline is set: AWS cannot be asked without a network.")
    if wild := [region for region in request.regions if "*" in region or not region]:
        raise InputError(
            f"{listener.name_of('cloud.regions')} takes names in full, such as us-east-1, not {wild[0]!r}."
        )
    options = read_options(settings.options.get("aws", {}))
    problems: list[str] = []

    def asked(ask: Callable[[], tuple[T, ...]]) -> tuple[T, ...]:
        try:
            return ask()
        except CloudError as error:
            problems.append(str(error))
            return ()

    scores = asked(
        lambda: placement_scores(
            request.instance_types, num_instances=request.num_nodes, regions=request.regions, options=options
        )
    )
    quotas = [
        quota for region in request.regions for quota in asked(partial(vcpu_quotas, region, options=options))
    ]
    if not scores and not quotas and problems:
        raise CloudError("; ".join(dict.fromkeys(problems)))
    return Capacity(scores=scores, quotas=tuple(quotas), warnings=tuple(map(quoted, dict.fromkeys(problems))))
