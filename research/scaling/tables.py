"""Efficiencies in Markdown: errors of each source, on one node and several, of rows that fit and judge."""

from __future__ import annotations

from collections.abc import Sequence

from research.scaling.cases import Judged
from research.scaling.fitting import coverage, mean_error

_HEAD = (
    "| source | nodes | rows | mean error | worst | of perfect scaling | p10..p90 holds | use |\n"
    "|---|---|--:|--:|--:|--:|--:|---|"
)


def summary_table(rows: Sequence[Judged]) -> str:
    """A line for each source, number of nodes and use."""
    groups: dict[tuple[str, str, str], list[Judged]] = {}
    for row in rows:
        nodes, use = (
            ("one" if row.case.is_one_node else "several"),
            ("fits" if row.case.is_fitted else "judges"),
        )
        for source in (row.case.source, "all"):
            groups.setdefault((source, nodes, use), []).append(row)
    in_order = sorted(groups, key=lambda key: (key[0] == "all", key[2], key[0], key[1]))
    return "\n".join([_HEAD, *(_line(*key, groups[key]) for key in in_order)])


def _line(source: str, nodes: str, use: str, rows: Sequence[Judged]) -> str:
    worst = max(abs(row.error) for row in rows)
    perfect = sum(abs(1 - row.case.published) for row in rows) / len(rows)
    held = coverage(rows)
    return (
        f"| {source} | {nodes} | {len(rows)} | {100 * mean_error(rows):.1f} | {100 * worst:.1f} |"
        f" {100 * perfect:.1f} | {'' if held is None else f'{held:.0%}'} | {use} |"
    )


def row_table(rows: Sequence[Judged]) -> str:
    """A line for each row."""
    lines = ["| source | rows of | GPUs | published | predicted | use |", "|---|---|--:|--:|--:|---|"]
    for row in rows:
        case = row.case
        gpus = f"{case.layout.gpus_per_node} x {case.layout.num_nodes}"
        use = "fits" if case.is_fitted else "judges"
        lines.append(
            f"| {case.source} | {case.group} | {gpus} | {case.published:.3f} | {row.predicted:.3f} | {use} |"
        )
    return "\n".join(lines)
