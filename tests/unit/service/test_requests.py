"""Requests of use cases are frozen values, the same for the command line, Python and whatever comes."""

import ast
import dataclasses
import importlib
import pkgutil
from pathlib import Path

import pytest

import advisor.service


def requests() -> list[type]:
    modules = [
        importlib.import_module(info.name)
        for info in pkgutil.walk_packages(advisor.service.__path__, "advisor.service.")
    ]
    named = {one for module in modules for name, one in vars(module).items() if name.endswith("Request")}
    return sorted(named, key=lambda one: one.__name__)


@pytest.mark.parametrize("request_type", requests(), ids=lambda one: one.__name__)
def test_a_request_is_a_frozen_value(request_type):
    fields = dataclasses.fields(request_type)
    assert request_type.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert {*request_type.__slots__} == {field.name for field in fields}  # type: ignore[attr-defined]
    assert all(field.kw_only for field in fields)
    assert not [field.name for field in fields if str(field.type).startswith(("list", "dict", "set"))]


FILES = sorted(Path(advisor.service.__file__).parent.rglob("*.py"))
FORBIDDEN = {"print", "input", "exit", "quit", "SystemExit", "stdout", "stderr"}


def names_in(tree: ast.AST) -> set[str]:
    """Names that are read and attributes that are looked up; not words in texts."""
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    # The output of a process that was run is no output of ours.
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    return names | {a.attr for a in attributes if isinstance(a.value, ast.Name) and a.value.id == "sys"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_use_case_neither_prints_nor_exits(path):
    assert not names_in(ast.parse(path.read_text())) & FORBIDDEN


@pytest.mark.parametrize(
    "code", ["print(1)", "import sys; sys.exit(2)", "sys.stderr.write('')", "raise SystemExit"]
)
def test_what_would_be_noticed(code):
    assert names_in(ast.parse(code)) & FORBIDDEN
