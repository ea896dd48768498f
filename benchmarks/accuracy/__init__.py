"""Predicted iteration times beside measured ones: ``python -m benchmarks.accuracy --end-to-end FILE``."""
