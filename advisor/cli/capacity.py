"""Spot placement scores and quotas of AWS, as far as the credentials allow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from advisor.cli.common import warn
from advisor.report.printing import Format, print_document

if TYPE_CHECKING:
    from advisor.config.layers import Config

T = TypeVar("T")


def show_capacity(
    config: Config, instance_types: Sequence[str], regions: Sequence[str], num_nodes: int, output: Format
) -> None:
    """Scores by zone and quotas by region; what could not be asked is a warning.

    Raises:
        InputError: ``prices.offline`` is set, or a region is no name.
        ConfigError: ``prices.options.aws`` is wrong.
        CloudError: nothing at all could be asked.
    """
    from advisor.core.errors import CloudError, InputError
    from advisor.pricing.sources.aws.options import read_options
    from advisor.pricing.sources.aws.placement import placement_scores, vcpu_quotas
    from advisor.report.capacity import capacity_document

    if config.settings.prices.offline:
        raise InputError("prices.offline is set: AWS cannot be asked without a network.")
    if wild := [region for region in regions if "*" in region or not region]:
        raise InputError(f"--region takes names in full, such as us-east-1, not {wild[0]!r}.")
    options = read_options(config.settings.prices.options.get("aws", {}))
    problems: list[str] = []

    def asked(ask: Callable[[], tuple[T, ...]]) -> tuple[T, ...]:
        try:
            return ask()
        except CloudError as error:
            problems.append(str(error))
            return ()

    scores = asked(
        lambda: placement_scores(instance_types, num_instances=num_nodes, regions=regions, options=options)
    )
    quotas = [quota for region in regions for quota in asked(partial(vcpu_quotas, region, options=options))]
    if not scores and not quotas and problems:
        raise CloudError("; ".join(dict.fromkeys(problems)))
    warnings = tuple(dict.fromkeys(problems))
    warn(warnings)
    print_document(capacity_document(scores, quotas, warnings), output)
