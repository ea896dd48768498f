"""Acting on a module right after its import."""

import importlib
import importlib.resources
import sys

import pytest

from advisor.profile.fake.imports import after_import


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package that can be imported, and is forgotten afterwards."""
    folder = tmp_path / "some_framework"
    folder.mkdir()
    (folder / "__init__.py").write_text("from .extension import answer\n")
    (folder / "extension.py").write_text("answer = 41\n")
    (folder / "data.txt").write_text("data")
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.syspath_prepend(tmp_path)
    yield "some_framework"
    for name in [name for name in sys.modules if name.startswith("some_framework")]:
        del sys.modules[name]


def add_one(module):
    module.answer += 1


def test_the_action_sees_the_module_before_its_importer_does(package):
    after_import(package + ".extension", add_one)
    assert importlib.import_module(package).answer == 42


def test_it_acts_at_once_on_a_module_that_is_loaded(package):
    module = importlib.import_module(package + ".extension")
    after_import(package + ".extension", add_one)
    assert module.answer == 42


def test_two_actions_on_one_module_both_act(package):
    after_import(package + ".extension", add_one)
    after_import(package + ".extension", add_one)
    assert importlib.import_module(package).answer == 43


def test_other_modules_and_missing_ones_are_left_alone(package):
    after_import(package + ".missing", add_one)
    assert importlib.import_module(package).answer == 41
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(package + ".missing")


def test_files_beside_the_module_can_still_be_read(package):
    after_import(package, repr)
    importlib.import_module(package)
    assert importlib.resources.files(package).joinpath("data.txt").read_text() == "data"
