"""How a script is started: as ``python train.py`` or, inside a package, as ``python -m pkg.train``.

A file with relative imports works only as a module of its package, so it is started as one.
"""

from __future__ import annotations

import ast
import runpy
import sys
from pathlib import Path


def start(script: str, source: bytes) -> None:
    """Run the script as ``__main__``."""
    path = Path(script).resolve()
    root = _package_root(path) if _has_relative_imports(source) else None
    if root is None:
        sys.path.insert(0, str(path.parent))
        runpy.run_path(script, run_name="__main__")
        return
    sys.path.insert(0, str(root))
    name = ".".join(path.relative_to(root).with_suffix("").parts)
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def _has_relative_imports(source: bytes) -> bool:
    return any(isinstance(node, ast.ImportFrom) and node.level > 0 for node in ast.walk(ast.parse(source)))


def _package_root(path: Path) -> Path | None:
    """The folder that holds the outermost package; None if the names on the way are no modules."""
    root = path.parent
    while (root / "__init__.py").exists():
        root = root.parent
    if root == path.parent and Path.cwd() in root.parents:
        # A package may do without __init__.py; then `python -m` is called from its parent.
        root = Path.cwd()
    parts = path.relative_to(root).with_suffix("").parts
    return root if len(parts) > 1 and all(part.isidentifier() for part in parts) else None
