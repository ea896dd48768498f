"""Live prices of AWS: the price list, the history of spot prices and, on request, capacity blocks."""

from advisor.pricing.sources.aws.source import AwsSource, aws_source

__all__ = ["AwsSource", "aws_source"]
