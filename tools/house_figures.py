"""Counts the size, the shape and the prose of source trees, to compare them side by side.

``python tools/house_figures.py`` counts this project; each ``NAME=CODE[,CODE][:PROSE[,PROSE]]`` adds another:
folders with Python code, and the README and folders with Markdown or reStructuredText pages.

Tests are not counted. A line is a physical line. A function counts from ``def`` to its last line, nested
ones as well. Public is what has no leading underscore on the way from the module; a function is annotated
when all its parameters (but self) and its result are. The first page named is the README.
"""

from __future__ import annotations

import argparse
import ast
import io
import os
import re
import statistics
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OURS = "ours=advisor,recommender:README.md,docs,CONTRIBUTING.md,SECURITY.md"
FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
BLOCK_START = re.compile(r"^\s*(?:[-*+]|\d+\.)\s+")
SENTENCE_END = re.compile(r"(?<=[.!?])[)\"'*_]*\s+(?=[A-Z`\"'(*_\[])")
ABBREVIATION = re.compile(r"\b(e\.g|i\.e|vs|etc|cf|et al|Fig|Eq)\.\s")
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """What was counted in Python files."""

    file_lines: tuple[int, ...]
    function_lines: tuple[int, ...]
    documented: tuple[bool, ...]
    annotated: tuple[bool, ...]
    num_any: int
    num_comment_lines: int
    num_filled_lines: int


def main() -> None:
    """Print one column for each tree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("trees", nargs="*", metavar="NAME=CODE[:PROSE]")
    parser.add_argument("--pages", action="store_true", help="print the prose of each page instead")
    arguments = parser.parse_args()
    if arguments.pages:
        print_pages(prose_pages(ROOT, OURS.partition(":")[2].split(",")))
        return
    columns = [_column(OURS, ROOT), *(_column(tree, Path()) for tree in arguments.trees)]
    for cells in zip(*columns, strict=True):
        print(f"| {' | '.join((cells[0][0], *(cell[1] for cell in cells)))} |")
        if cells[0][0] == "":
            print(f"|{'---|' * (len(cells) + 1)}")


def _column(tree: str, root: Path) -> list[tuple[str, str]]:
    name, _, places = tree.partition("=")
    code_places, _, prose_places = places.partition(":")
    code = count_code(python_files(root / place for place in code_places.split(",")))
    lines = sum(code.file_lines)
    pages = prose_pages(root, prose_places.split(",")) if prose_places else {}
    lengths = [len(sentence.split()) for page in pages.values() for sentence in sentences(page)]
    readme = len(next(iter(pages.values())).split()) if pages else 0
    return [
        ("", name),
        ("files / lines", f"{len(code.file_lines)} / {lines / 1000:.1f}k"),
        ("file median / p90 / max", spread(code.file_lines)),
        ("function median / p90 / max", spread(code.function_lines)),
        ("public docstrings / annotated, %", f"{percent(code.documented)} / {percent(code.annotated)}"),
        ("`Any` per 1,000 lines that are not blank", f"{1000 * code.num_any / code.num_filled_lines:.0f}"),
        ("comment lines, %", f"{100 * code.num_comment_lines / lines:.1f}"),
        ("README words", f"{readme:,}" if readme else "-"),
        ("words per sentence, median / p90", spread(lengths, largest=False)),
    ]


def python_files(folders: Iterable[Path]) -> list[Path]:
    """All Python files below the folders, tests apart."""
    paths = [path for folder in folders for path in sorted(folder.rglob("*.py"))]
    return [path for path in paths if "tests" not in path.parts]


def count_code(paths: Iterable[Path]) -> Code:
    """Count files of Python code."""
    files: list[int] = []
    functions: list[int] = []
    documented: list[bool] = []
    annotated: list[bool] = []
    num_any = num_comments = num_filled = 0
    for path in paths:
        text = path.read_text()
        tree = ast.parse(text)
        files.append(len(text.splitlines()))
        nodes = list(ast.walk(tree))
        own = [node for node in nodes if isinstance(node, Function)]
        functions += [(node.end_lineno or node.lineno) - node.lineno + 1 for node in own]
        annotated += [_is_annotated(node) for node in own]
        documented += [ast.get_docstring(node) is not None for node in _public(tree)]
        names, comments = _tokens(text)
        num_any += names.count("Any")
        num_comments += comments
        num_filled += sum(bool(line.strip()) for line in text.splitlines())
    return Code(
        file_lines=tuple(files),
        function_lines=tuple(functions),
        documented=tuple(documented),
        annotated=tuple(annotated),
        num_any=num_any,
        num_comment_lines=num_comments,
        num_filled_lines=num_filled,
    )


def _is_annotated(node: Function) -> bool:
    given = node.args
    parameters = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    named = [item for item in parameters if item is not None and item.arg not in {"self", "cls"}]
    return node.returns is not None and all(item.annotation is not None for item in named)


def _public(node: ast.Module | ast.ClassDef) -> Iterator[ast.ClassDef | Function]:
    for child in node.body:
        if isinstance(child, ast.ClassDef | Function) and not child.name.startswith("_"):
            yield child
            if isinstance(child, ast.ClassDef):
                yield from _public(child)


def _tokens(text: str) -> tuple[list[str], int]:
    """All names of a module, and how many lines hold nothing but a comment."""
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    comments = [item for item in tokens if item.type == tokenize.COMMENT]
    names = [item.string for item in tokens if item.type == tokenize.NAME]
    return names, sum(item.line.lstrip().startswith("#") for item in comments)


def prose_pages(root: Path, places: Iterable[str]) -> dict[str, str]:
    """Pages of prose by path, in the order of the places.

    Args:
        root: Folder that the places are relative to.
        places: Files, and folders with .md and .rst pages.
    """
    pages: dict[str, str] = {}
    for place in map(root.joinpath, places):
        below = sorted(path for path in place.rglob("*.*") if path.suffix in {".md", ".rst"})
        for path in below if place.is_dir() else [place]:
            pages[os.path.relpath(path, root)] = path.read_text()
    return pages


def sentences(page: str) -> list[str]:
    r"""Sentences of a page, without code, tables, headings and directives.

    >>> sentences("# Title\n\nOne. Two\ngoes on.\n\n- a point\n- another\n\n| a | b |\n")
    ['One.', 'Two goes on.', 'a point', 'another']
    """
    blocks: list[list[str]] = [[]]
    for line in FENCE.sub("\n", page).splitlines():
        bare = line.strip()
        if not bare or bare.startswith(("|", "#", "<!--", "..", "+-", "===", "---", ">>>", ":")):
            blocks.append([])
        elif line.startswith("    ") and not blocks[-1]:
            continue  # indented code
        else:
            if BLOCK_START.match(line):
                blocks.append([])
            blocks[-1].append(BLOCK_START.sub("", line).strip())
    texts = (ABBREVIATION.sub(r"\1 ", " ".join(block)) for block in blocks if block)
    return [sentence for text in texts for sentence in SENTENCE_END.split(text) if sentence.strip()]


def print_pages(pages: dict[str, str]) -> None:
    """Print for each page the number of sentences, and the median and p90 of their words."""
    for name, page in pages.items():
        lengths = [len(sentence.split()) for sentence in sentences(page)]
        print(f"{len(lengths):5} {spread(lengths):>14}  {name}")


def spread(counts: Iterable[int], *, largest: bool = True) -> str:
    """Median, 90th percentile and maximum.

    >>> spread(range(1, 12))
    '6 / 10 / 11'
    """
    ordered = sorted(counts)
    if not ordered:
        return "-"
    figures = [int(statistics.median(ordered)), ordered[round(0.9 * (len(ordered) - 1))]]
    return " / ".join(map(str, figures + [ordered[-1]] * largest))


def percent(answers: Iterable[bool]) -> str:
    """Share of what is true.

    >>> percent([True, False, True])
    '67'
    """
    ordered = list(answers)
    return f"{100 * sum(ordered) / len(ordered):.0f}" if ordered else "-"


if __name__ == "__main__":
    main()
