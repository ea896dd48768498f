"""Writes docs/compatibility.md from the rows: ``python -m tests.compatibility.table``."""

from pathlib import Path

from tests.compatibility.row import Row
from tests.compatibility.rows import ROWS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "compatibility.md"
_HEAD = """# Compatibility

<!-- written by python -m tests.compatibility.table; do not edit -->

Training scripts as the libraries' own documentation writes them, each profiled without a GPU by
`advisor profile`. `tests/compatibility/test_rows.py` runs every row and compares its trace with what
`tests/compatibility/rows.py` expects: batch, epoch, precision, parameters, FLOPs, communication.
{passing} of {all} rows hold. Each script names its source.
"""


def page() -> str:
    """The whole document."""
    passing = sum(row.fails is None for row in ROWS)
    parts = [_HEAD.format(passing=passing, all=len(ROWS))]
    for library in dict.fromkeys(row.library or "torch" for row in ROWS):
        of_script: dict[str, list[str]] = {}
        for row in (row for row in ROWS if (row.library or "torch") == library):
            of_script.setdefault(_script(row), []).append(_how(row))
        lines = [
            script + (" or".join(way or " as it is" for way in ways) if len(ways) > 1 else ways[0])
            for script, ways in of_script.items()
        ]
        parts.append(f"\n## {library} {pinned_version(library)}\n\n" + "\n".join(lines) + "\n")
    return "".join(parts)


def _script(row: Row) -> str:
    return f"- [{row.docstring()[0]}](../{row.path.relative_to(ROOT).as_posix()})"


def _how(row: Row) -> str:
    given = "".join(f" `{text}`" for text in (*row.options, *row.arguments))
    fails = "" if row.fails is None else f" (does not hold: {row.fails})"
    return f"{given}{fails}"


def pinned_version(library: str) -> str:
    """The version that constraints.txt names."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return next(line.partition("==")[2] for line in lines if line.lower().startswith(f"{library}=="))


if __name__ == "__main__":
    PAGE.write_text(page())
