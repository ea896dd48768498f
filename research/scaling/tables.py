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


def link_table(rows: Sequence[Judged]) -> str:
    """A line for each kind of link within a node."""
    links: dict[str, list[Judged]] = {}
    for row in rows:
        fabric = row.case.layout.fabric
        links.setdefault(fabric.link.value if fabric else "", []).append(row)
    head = "| link | rows | mean error | worst | p10..p90 holds |\n|---|--:|--:|--:|--:|"
    lines = []
    for link, own in sorted(links.items()):
        worst = max(abs(row.error) for row in own)
        errors = f"{100 * mean_error(own):.1f} | {100 * worst:.1f}"
        lines.append(f"| {link} | {len(own)} | {errors} | {coverage(own) or 0:.0%} |")
    return "\n".join([head, *lines])


def row_table(rows: Sequence[Judged]) -> str:
    """A line for each row."""
    lines = ["| source | rows of | GPUs | published | predicted | use |", "|---|---|--:|--:|--:|---|"]
    for row in rows:
        case = row.case
        gpus = f"{case.layout.gpus_per_node} x {case.layout.num_nodes}"
        use = "fits" if case.is_fitted else "judges"
        rates = f"{case.published:.3f} | {row.predicted:.3f}"
        lines.append(f"| {case.source} | {case.name or case.group} | {gpus} | {rates} | {use} |")
    return "\n".join(lines)
