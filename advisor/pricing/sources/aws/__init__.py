"""Live prices of AWS: the price list, the history of spot prices and, on request, capacity blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from advisor.pricing.sources.aws.options import read_options
from advisor.pricing.sources.aws.source import AwsSource

__all__ = ["AwsSource", "aws_source"]


def aws_source(options: Mapping[str, Any]) -> AwsSource:
    """The entry point; `AwsOptions` tells the options (``prices.options.aws`` of the settings).

    Raises:
        ConfigError: an option is unknown or has a value that cannot be.
    """
    return AwsSource(read_options(options))
