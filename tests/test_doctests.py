"""The examples in docstrings hold."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import advisor
import recommender
from tests.every import of_every

NEEDS_TORCH = "advisor.payload"
MODULES = sorted(
    module.name
    for package in (advisor, recommender)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not module.name.startswith((NEEDS_TORCH, "advisor.payload.child", "advisor.native._native"))
    and not module.name.endswith("__main__")
)


@of_every(MODULES, name=str)
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_there_are_examples() -> None:
    finder = doctest.DocTestFinder()
    examples = [
        test for name in MODULES for test in finder.find(importlib.import_module(name)) if test.examples
    ]
    assert len(examples) > 15
