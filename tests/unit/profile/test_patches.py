"""Every patch of torch is needed: its probe fails, or answers otherwise, without it."""

import ast
import importlib
from pathlib import Path

import pytest

import advisor
from tests.unit.profile.probes import PATCH_PROBES

PATCHES = Path(advisor.__file__).parent / "payload" / "fake" / "patches"
pytestmark = pytest.mark.torch


@pytest.mark.parametrize("name", PATCH_PROBES)
def test_works_with_the_patch(name, probe):
    assert probe("with " + name) == PATCH_PROBES[name][1]


@pytest.mark.parametrize("name", PATCH_PROBES)
def test_does_not_work_without_the_patch(name, probe_results):
    assert probe_results["without " + name].get("result") != PATCH_PROBES[name][1]


def test_every_patch_has_a_probe():
    files = {path.stem for path in PATCHES.glob("*.py")} - {"__init__"}
    assert files == set(PATCH_PROBES)


@pytest.mark.parametrize("path", sorted(PATCHES.glob("[a-z]*.py")), ids=lambda path: path.stem)
def test_every_patch_says_why(path):
    module = ast.parse(path.read_text())
    assert len(ast.get_docstring(module).splitlines()) >= 3


def test_the_order_lists_every_patch():
    patching = importlib.import_module("advisor.payload.fake.patching")
    assert set(patching.ORDER) == set(PATCH_PROBES)
    with pytest.raises(ValueError, match="no such patches: \\['droput'\\]"):
        patching.install(None, frozenset({"droput"}))
