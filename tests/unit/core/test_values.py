"""The face of the values: whole, and the one place to import them from."""

import dataclasses
import importlib
import inspect
import pkgutil
import re
from dataclasses import replace
from enum import Enum
from pathlib import Path
from types import ModuleType

import pytest

from advisor.core import values
from tests.recommendations import many_options

ROOT = Path(__file__).resolve().parents[3]
MODULES = [
    importlib.import_module(f"{values.__name__}.{one.name}") for one in pkgutil.iter_modules(values.__path__)
]


def made_in(module: ModuleType) -> list[type]:
    return [
        one for _, one in inspect.getmembers(module, inspect.isclass) if one.__module__ == module.__name__
    ]


def test_the_face_shows_every_value():
    shown = {name for name, value in vars(values).items() if inspect.isclass(value)}
    assert shown >= {one.__name__ for module in MODULES for one in made_in(module)}


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_values_are_frozen_slotted_and_keyword_only(module):
    for one in made_in(module):
        if issubclass(one, Enum | tuple):
            continue
        assert dataclasses.is_dataclass(one), one
        options = vars(one)["__dataclass_params__"]
        assert options.frozen, one
        assert "__slots__" in vars(one), one
        assert all(field.kw_only for field in dataclasses.fields(one)), one


def test_everybody_imports_from_the_face():
    paths = [
        path for folder in ("advisor", "recommender", "benchmarks") for path in (ROOT / folder).rglob("*.py")
    ]
    inner = [path for path in paths if re.search(r"\bcore\.values\.\w", path.read_text())]
    assert {path.relative_to(ROOT).parent.as_posix() for path in inner} == {"advisor/core/values"}


def test_an_option_is_found_by_its_plan_and_the_chosen_one_by_the_answer():
    answer = many_options(12)
    for option in answer.options:
        assert answer.option(option.plan.id) is option
        assert replace(answer, recommended=option.plan.id).chosen is option
    assert answer.option("of no plan") is None
    assert replace(answer, recommended=None).chosen is None
