"""Writes docs/compatibility.md from the rows: ``python -m tests.compatibility.table``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.compatibility.row import Row
from tests.compatibility.rows import ROWS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "compatibility.md"
_HEAD = """# Compatibility

<!-- written by python -m tests.compatibility.table; do not edit -->

Training scripts written the way the libraries' own documentation writes them, each profiled without a GPU by
`advisor profile`. `tests/compatibility/test_rows.py` runs every row and compares its trace with what
`tests/compatibility/rows.py` says, mostly by arithmetic: it fails if a row that holds breaks, and if one that
does not hold begins to. {passing} of {all} rows hold.

| what | script | library | holds | what the trace shows |
|---|---|---|---|---|
"""


def page() -> str:
    """The whole document."""
    passing = sum(row.fails is None for row in ROWS)
    lines = [f"| {' | '.join(_cells(row))} |" for row in ROWS]
    notes = [f"- {row.docstring()[0]}: {row.docstring()[1]}" for row in _each_script_once()]
    head = _HEAD.format(passing=passing, all=len(ROWS))
    return head + "\n".join(lines) + "\n\n## Where the scripts come from\n\n" + "\n".join(notes) + "\n"


def _each_script_once() -> Iterator[Row]:
    yield from {row.script: row for row in reversed(ROWS)}.values()


def _cells(row: Row) -> tuple[str, ...]:
    path = row.path.relative_to(ROOT).as_posix()
    script = " ".join(
        (f"[{row.script}](../{path})", *(f"`{text}`" for text in (*row.options, *row.arguments)))
    )
    library = row.library or "torch"
    holds = "yes" if row.fails is None else f"no: {row.fails}"
    return row.docstring()[0], script, f"{library} {pinned_version(library)}", holds, ", ".join(_shown(row))


def pinned_version(library: str) -> str:
    """The version that constraints.txt names."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return next(line.partition("==")[2] for line in lines if line.lower().startswith(f"{library}=="))


def _shown(row: Row) -> Iterator[str]:
    if row.fails is not None:
        return
    if row.batch is not None:
        accumulated = f" in {row.accumulation} passes" if row.accumulation > 1 else ""
        between = isinstance(row.batch, range)
        yield f"batch {f'{row.batch[0]} to {row.batch[-1]}' if between else row.batch}{accumulated}"
    if row.iterations is not None:
        yield f"{row.iterations:,} iterations an epoch"
    if row.amp is not None:
        yield row.amp
    if row.parameters:
        yield f"{len(row.parameters)} parameters to the byte"
    if row.product_flops is not None:
        yield f"{row.product_flops / 1e6:,.3g} MFLOP of products"
    yield from (f"{kind} of {sent:,} bytes" for kind, sent in row.collectives.items())
    yield from (f"{count} x `{name.strip('_')}`" for name, count in list(row.calls.items())[:3])


if __name__ == "__main__":
    PAGE.write_text(page())
