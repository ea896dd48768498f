"""Fixtures and options of the product's tests."""

pytest_plugins = ["tests.conftest", "tests.unit.conftest", "tests.unit.benchmarks.conftest"]
