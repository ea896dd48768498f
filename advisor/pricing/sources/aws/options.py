"""What a person may choose about the calls to AWS."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from advisor.core.errors import ConfigError
from advisor.pricing.sources.protocol import check_options


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsOptions:
    """Options of the source ``aws``.

    Attributes:
        history_days: how far back spot prices are asked for; AWS keeps 90 days.
        capacity_blocks: also ask for capacity blocks, a call for each type and region.
        max_attempts: how often a call is made at most, the first time included.
        timeout_s: how long to wait for a connection, and then for a reply.
    """

    history_days: int = 90
    capacity_blocks: bool = False
    max_attempts: int = 5
    timeout_s: float = 20.0


_Options = Mapping[str, Any]  # each value is checked before AwsOptions gets it
_LIMITS = {"history_days": (1, 90), "max_attempts": (1, 20), "timeout_s": (0.1, 300)}


def read_options(options: _Options) -> AwsOptions:
    """The options as given in the settings, checked.

    Raises:
        ConfigError: an option is unknown, of the wrong type or out of range.
    """
    check_options("aws", options, [field.name for field in fields(AwsOptions)])
    for name, value in options.items():
        _check(name, value)
    return AwsOptions(**options)


def _check(name: str, value: object) -> None:
    if name not in _LIMITS:
        if not isinstance(value, bool):
            raise ConfigError(f"prices.options.aws.{name} is {value!r}: it must be true or false.")
        return
    low, high = _LIMITS[name]
    kinds = (int, float) if name == "timeout_s" else (int,)
    if isinstance(value, bool) or not isinstance(value, kinds) or not low <= value <= high:
        whole = "" if name == "timeout_s" else "whole "
        raise ConfigError(
            f"prices.options.aws.{name} is {value!r}: it must be a {whole}number from {low} to {high}."
        )
