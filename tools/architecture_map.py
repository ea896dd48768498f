"""The generated parts of docs/architecture.md: the rooms, and the way of one answer through them.

Both are read from the source without importing it, so a function that moved is an error, not a stale row.
"""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "architecture.md"
START = "<!-- written by tools/build_docs.py: {} -->"
END = "<!-- end -->"
# What `advisor recommend train.py` calls, in this order: file and function.
WAY = (
    ("advisor/cli/recommend.py", "recommend"),
    ("advisor/service/recommend/recommending.py", "recommend"),
    ("advisor/service/recommend/plan_sources.py", "plans_of"),
    ("advisor/pricing/answers.py", "load_offers"),
    ("recommender/plans/candidates.py", "cheapest_plans"),
    ("advisor/profile/profiling.py", "profile"),
    ("advisor/payload/run.py", "run"),
    ("advisor/profile/recording.py", "trace_of"),
    ("advisor/service/recommend/pipeline.py", "recommendation_of"),
    ("advisor/workloads/script_versions.py", "as_written"),
    ("advisor/predict/iteration.py", "predict_counts"),
    ("advisor/predict/methods.py", "op_times"),
    ("recommender/engine.py", "recommend"),
    ("recommender/outcome/evaluate.py", "evaluate_all"),
    ("recommender/ranking/choice.py", "rank"),
    ("advisor/service/recommend/pipeline.py", "with_variants"),
    ("recommender/ranking/what_ifs.py", "with_what_ifs"),
    ("advisor/report/recommendation.py", "recommendation_document"),
    ("advisor/report/printing.py", "print_document"),
)


def architecture_page() -> str:
    """The page as it stands, its generated parts written anew."""
    page = PAGE.read_text()
    for name, lines in (("way", way_table()), ("rooms", room_table())):
        before, start, rest = page.partition(START.format(name))
        if not start:
            raise ValueError(f"{PAGE.name} lacks the line {START.format(name)!r}")
        page = "".join((before, start, "\n\n", "\n".join(lines), "\n\n", END, rest.partition(END)[2]))
    return page


def way_table() -> list[str]:
    """A row for each function that an answer passes through."""
    rows = ["| | file | function | gives | does |", "|---|---|---|---|---|"]
    for number, (file, name) in enumerate(WAY, 1):
        function = _function(file, name)
        gives = ast.unparse(function.returns) if function.returns else ""
        rows.append(f"| {number} | `{file}` | `{name}` | `{gives}` | {_first_line(function)} |")
    return rows


def room_table() -> list[str]:
    """The rooms from top to bottom, as the import-linter's layers order them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract.get("containers") == ["advisor"])
    levels = {
        folder: str(level)
        for level, layer in zip(range(len(layers), 0, -1), layers, strict=True)
        for package in layer.split(" | ")
        # The recommender stands beside the last room that sees a trace: neither knows the other.
        for folder in [f"advisor/{package}", *(["recommender"] if package == "workloads" else [])]
    }
    rows = ["| level | room | holds |", "|---|---|---|"]
    for folder, level in levels.items():
        path = ROOT / f"{folder}.py"
        module = path if path.exists() else ROOT / folder / "__init__.py"
        name = path.relative_to(ROOT).as_posix() if path.exists() else folder
        rows.append(f"| {level} | `{name}` | {_first_line(_module(str(module)))} |")
    return rows


def _module(file: str) -> ast.Module:
    return ast.parse((ROOT / file).read_text())


def _function(file: str, name: str) -> ast.FunctionDef:
    for node in _module(file).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return node
    raise ValueError(f"{file} has no function {name!r}; mend WAY in {Path(__file__).name}")


def _first_line(node: ast.Module | ast.FunctionDef) -> str:
    return (ast.get_docstring(node) or "").partition("\n")[0].replace("``", "`").replace("|", "\\|")
