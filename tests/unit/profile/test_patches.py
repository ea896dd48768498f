"""Every patch of torch is needed: its probe fails, or answers otherwise, without it."""

import ast
import importlib
from pathlib import Path

import pytest

import advisor
from tests.unit.profile.probes import PATCH_PROBES

FOLDER = Path(advisor.__file__).parent / "payload" / "fake" / "patches"
pytestmark = pytest.mark.torch


@pytest.mark.parametrize("name", PATCH_PROBES)
def test_works_with_the_patch(name, probe):
    assert probe("with " + name) == PATCH_PROBES[name][1]


@pytest.mark.parametrize("name", PATCH_PROBES)
def test_does_not_work_without_the_patch(name, probe_results):
    assert probe_results["without " + name].get("result") != PATCH_PROBES[name][1]


INSTALLERS = {
    (path.stem, node.name.removeprefix("install_")): ast.get_docstring(node)
    for path in sorted(FOLDER.glob("[a-z]*.py"))
    for node in ast.parse(path.read_text()).body
    if isinstance(node, ast.FunctionDef) and node.name.startswith("install_")
}


def test_every_patch_has_a_probe():
    assert {patch for _, patch in INSTALLERS} == set(PATCH_PROBES)


@pytest.mark.parametrize(("file", "patch"), INSTALLERS)
def test_every_patch_says_why(file, patch):
    assert len(INSTALLERS[file, patch].splitlines()) >= 3


def test_the_registry_lists_every_patch_with_its_file():
    patching = importlib.import_module("advisor.payload.backend")
    assert {(file, patch) for patch, file in patching.PATCHES.items()} == set(INSTALLERS)
    with pytest.raises(ValueError, match="no such patches: \\['droput'\\]"):
        patching.install(None, frozenset({"droput"}))
