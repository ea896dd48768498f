"""Changes to libraries wait for the script to import them."""

import importlib
import sys

import pytest

from advisor.payload import replacing


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Makes an importable module; all is undone after the test."""
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(replacing, "_finder", replacing._Finder())
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(name, code):
        path = tmp_path / (name.replace(".", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code)
        for part in (name, name.partition(".")[0]):
            monkeypatch.delitem(sys.modules, part, raising=False)
        importlib.invalidate_caches()
        return name

    return make


def test_the_action_follows_the_import(package):
    name = package("stand_in_a", "value = 1")
    seen = []
    replacing.when_imported(name, lambda module: seen.append(module.value))
    assert (seen, name in sys.modules) == ([], False)
    module = importlib.import_module(name)
    assert seen == [1]
    assert module.__spec__.origin.endswith("stand_in_a.py")


def test_a_module_that_is_there_is_changed_at_once(package):
    name = package("stand_in_b", "value = 1")
    importlib.import_module(name)
    seen = []
    replacing.when_imported(name, lambda module: seen.append(module.value))
    assert seen == [1]


def test_names_imported_from_it_are_the_changed_ones(package):
    name = package("stand_in_c", "value = 1")
    replacing.when_imported(name, lambda module: setattr(module, "value", 2))
    replacing.when_imported(name, lambda module: setattr(module, "value", module.value + 1))
    names = {}
    exec(f"from {name} import value", names)  # noqa: S102
    assert names["value"] == 3


def test_a_submodule(package):
    name = package("stand_in_d.inner", "value = 1")
    seen = []
    replacing.when_imported(name, seen.append)
    assert importlib.import_module(name) is seen[0]


def test_a_missing_module_stays_missing(package):
    replacing.when_imported("stand_in_e", pytest.fail)
    with pytest.raises(ModuleNotFoundError, match="stand_in_e"):
        importlib.import_module("stand_in_e")


def test_an_import_that_fails_changes_nothing(package):
    name = package("stand_in_f", "raise ValueError('broken')")
    replacing.when_imported(name, pytest.fail)
    with pytest.raises(ValueError, match="broken"):
        importlib.import_module(name)


def test_attributes_of_classes_and_modules():
    owner, last, value = replacing.attribute(replacing, "_Finder.find_spec")
    assert (owner, last, value) == (replacing._Finder, "find_spec", replacing._Finder.find_spec)
    assert replacing.attribute(replacing, "when_imported")[0] is replacing
    assert replacing.attribute(replacing, "NoClass.method")[2] is None
    assert replacing.attribute(replacing, "_Finder.nothing")[2] is None
