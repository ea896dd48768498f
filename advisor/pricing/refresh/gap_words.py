"""Gaps of many scopes -> one line for each reason, with the scopes and machines that it is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def joined(gaps: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Lines ``"SCOPES: REASON: MACHINES"`` in the order of their first gap; nothing is left out.

    A machine is named where a gap begins with it and its scope: ``"a2-highgpu-1g us-central1 spot: late"``.

    Args:
        gaps: scope and gap, in words.

    >>> joined([("a spot", "m1 a spot: no price"), ("a spot", "m2 a spot: no price"), ("b", "late")])
    ('a spot: no price: m1, m2', 'b: late')
    """
    scopes: dict[tuple[str, str], list[str]] = {}
    for scope, gap in dict.fromkeys(gaps):
        machine, is_of_machine, reason = gap.partition(f" {scope}: ")
        key = (reason, machine) if is_of_machine else (gap, "")
        scopes.setdefault(key, []).append(scope)
    return tuple(
        ": ".join(filter(None, (", ".join(where), reason, ", ".join(filter(None, machines)))))
        for (reason, where), machines in _by_scopes(scopes).items()
    )


def _by_scopes(
    scopes: Mapping[tuple[str, str], list[str]],
) -> dict[tuple[str, tuple[str, ...]], list[str]]:
    """Machines that lack the same in the same scopes."""
    by_scopes: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (reason, machine), where in scopes.items():
        by_scopes.setdefault((reason, tuple(where)), []).append(machine)
    return by_scopes
