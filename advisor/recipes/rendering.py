"""A recipe's script with its parts written in and its settings filled in: one file that runs by itself."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(__file__).with_name("scripts")
_WIDTH = 110


def rendered(script: str, settings: Mapping[str, object], replaced: Mapping[str, str]) -> str:
    """The text of a script of this folder, with its constants set.

    Args:
        script: its name, without the ending.
        settings: values of constants at the top level, by name.
        replaced: parts in whose place stand others with the same names.

    Raises KeyError: there is no such constant.
    """
    own = _Module.read(script)
    parts = [_Module.read(name) for name in own.parts(replaced)]
    imports = _imports(node for module in (own, *parts) for node in module.imports)
    head, functions = own.body_halves()
    bodies = (f"# {part.summary}\n\n{part.body}" for part in parts)
    text = "\n\n\n".join(("\n\n".join((own.docstring, imports, head)), *bodies, functions)) + "\n"
    for name, value in settings.items():
        text = _with_constant(text, name, value)
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class _Module:
    """A script or a part of one."""

    lines: tuple[str, ...]
    tree: ast.Module

    @classmethod
    def read(cls, name: str) -> _Module:
        text = (SCRIPTS / f"{name}.py").read_text(encoding="utf-8")
        return cls(lines=tuple(text.splitlines()), tree=ast.parse(text))

    @property
    def docstring(self) -> str:
        return self._text(0, self.tree.body[0].end_lineno or 1)

    @property
    def summary(self) -> str:
        return (ast.get_docstring(self.tree) or "").splitlines()[0]

    @property
    def imports(self) -> list[ast.Import | ast.ImportFrom]:
        return [node for node in self.tree.body if isinstance(node, ast.Import | ast.ImportFrom)]

    @property
    def body(self) -> str:
        """All behind the imports."""
        return self._text(self._end_of_imports(), len(self.lines))

    def body_halves(self) -> tuple[str, str]:
        """Constants, and what begins with the first function or class."""
        first = next(node for node in self.tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef))
        start = min([first.lineno, *(node.lineno for node in first.decorator_list)]) - 1
        return self._text(self._end_of_imports(), start), self._text(start, len(self.lines))

    def parts(self, replaced: Mapping[str, str]) -> list[str]:
        """Names of the files of the folder that it imports, those that they import before them."""
        imported = [
            node.module or "" for node in self.imports if isinstance(node, ast.ImportFrom) and _is_part(node)
        ]
        names = [replaced.get(name, name) for name in imported]
        nested = [part for name in names for part in (*_Module.read(name).parts(replaced), name)]
        return list(dict.fromkeys(nested))

    def _end_of_imports(self) -> int:
        return max(node.end_lineno or 0 for node in self.imports)

    def _text(self, start: int, stop: int) -> str:
        return "\n".join(self.lines[start:stop]).strip("\n")


def _is_part(node: ast.Import | ast.ImportFrom) -> bool:
    return isinstance(node, ast.ImportFrom) and (SCRIPTS / f"{node.module}.py").exists()


def _imports(nodes: Iterable[ast.Import | ast.ImportFrom]) -> str:
    """Each name once, the standard library first."""
    whole: set[str] = set()
    names: dict[str, set[str]] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            whole.update(map(ast.unparse, node.names))
        elif not _is_part(node):
            names.setdefault(node.module or "", set()).update(map(ast.unparse, node.names))
    sections = (_section(whole, names, is_standard=is_standard) for is_standard in (True, False))
    return "\n\n".join(section for section in sections if section)


def _section(whole: set[str], names: Mapping[str, set[str]], *, is_standard: bool) -> str:
    def lines() -> Iterator[str]:
        yield from (f"import {name}" for name in sorted(whole) if belongs(name))
        for module in filter(belongs, sorted(names)):
            # As isort has it: constants, classes, functions.
            order = sorted(names[module], key=lambda name: (not name.isupper(), name.islower(), name))
            line = f"from {module} import {', '.join(order)}"
            split = ",\n    ".join(order)
            yield line if len(line) <= _WIDTH else f"from {module} import (\n    {split},\n)"

    def belongs(name: str) -> bool:
        return (name.partition(".")[0] in sys.stdlib_module_names) is is_standard

    return "\n".join(lines())


def _with_constant(text: str, name: str, value: object) -> str:
    pattern = re.compile(rf"^{name} = .*?(?P<comment>  #.*)?$", re.MULTILINE)
    found = pattern.search(text)
    if found is None:
        raise KeyError(name)
    line = f"{name} = {_literal(value)}{found['comment'] or ''}"
    return text[: found.start()] + line + text[found.end() :]


def _literal(value: object) -> str:
    """A value as Python writes it; dictionaries a line for each key, large numbers in groups."""
    if isinstance(value, dict):
        return "{\n" + "".join(f"    {_literal(key)}: {_literal(value[key])},\n" for key in value) + "}"
    if isinstance(value, str):
        return '"' + repr(value)[1:-1].replace('"', '\\"') + '"'
    if isinstance(value, bool) or not isinstance(value, int):
        return repr(value)
    return f"{value:_}" if abs(value) >= 10_000 else str(value)
