"""Use cases return values and tell their listener: nothing of theirs reaches a terminal or ends the process.

That they import neither typer, rich nor anything above them is import-linter's to say (pyproject.toml).
"""

import ast
from pathlib import Path

import pytest

import advisor.service

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
