"""What a list of estimates rests on: every assumption once, with the GPUs it is about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from advisor.core.findings import Finding
from advisor.core.values import IterationEstimate


def by_gpus(estimates: Sequence[IterationEstimate]) -> Iterator[tuple[Finding, str]]:
    """Each assumption and whose it is: first those of all, of nobody in particular, then the others.

    GPUs are named as ``--gpu`` takes them, or those that are left out where they are fewer: ``all but T4``.
    """
    names = [_name(estimate) for estimate in estimates]
    holders: dict[Finding, list[str]] = {}
    for name, estimate in zip(names, estimates, strict=True):
        for assumption in dict.fromkeys(estimate.assumptions):
            holders.setdefault(assumption, []).append(name)
    for assumption, holding in sorted(holders.items(), key=lambda item: len(item[1]) < len(names)):
        yield assumption, _named(holding, names)


def _name(estimate: IterationEstimate) -> str:
    if estimate.num_gpus == 1:
        return estimate.gpu
    nodes = "" if estimate.layout.num_nodes == 1 else f"x{estimate.layout.num_nodes}"
    return f"{estimate.gpu}:{estimate.layout.gpus_per_node}{nodes}"


def _named(holding: Sequence[str], names: Sequence[str]) -> str:
    others = [name for name in names if name not in holding]
    if not others:
        return ""
    return f"all but {', '.join(others)}" if len(others) < len(holding) else ", ".join(holding)
