"""The examples in docstrings hold."""

import doctest
import importlib.util
import pkgutil
from pathlib import Path

import advisor
import recommender
from tests.every import of_every


def _text(name: str) -> str:
    """The source of a module; none of a compiled one."""
    spec = importlib.util.find_spec(name)
    return (
        "" if spec is None or spec.origin is None else Path(spec.origin).read_text("utf-8", errors="replace")
    )


NEEDS_TORCH = "advisor.payload"
MODULES = sorted(
    module.name
    for package in (advisor, recommender)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not module.name.startswith((NEEDS_TORCH, "advisor.payload.child", "advisor.native._native"))
    and not module.name.endswith("__main__")
)


# To look through all functions of a module takes much longer than to see that its text has no example.
WITH_EXAMPLES = [name for name in MODULES if ">>> " in _text(name)]


@of_every(WITH_EXAMPLES, name=str)
def test_examples(name):
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted
    assert not found.failed


def test_there_are_examples():
    assert len(WITH_EXAMPLES) > 15
