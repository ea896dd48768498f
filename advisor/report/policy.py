"""Policies and what they say of a plan, as tables and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from advisor.report.plain import print_lines, print_text
from advisor.report.rows import Format, console, print_rows, print_wrapped, to_json

if TYPE_CHECKING:
    from recommender.policy import Facts, Policy
    from recommender.policy.reading import Checked
    from recommender.policy.rules import Rule

NARROW = 110
_STYLES = {"removes": "bold red", "needs approval": "yellow", "unknown": "yellow", "does not apply": "dim"}


def print_check(checked: Checked, output: Format) -> None:
    """Files and how many rules each has; faults in JSON alone, since an error tells them to people."""
    files = _files(checked.policy) if checked.policy else []
    if output is Format.JSON:
        print_text(to_json({"files": files, "faults": [asdict(fault) for fault in checked.faults]}))
    elif checked.policy:
        rows = [[str(value) for value in file.values()] for file in files]
        print_rows(("File", "Layer", "Name", "Rules"), rows, output, right=frozenset({"Rules"}))


def _files(policy: Policy) -> list[dict[str, Any]]:
    rules = [*policy.rules, *(rule for rule, _ in policy.overruled)]
    return [
        {
            "file": source.file,
            "layer": source.layer.value,
            "name": source.content.name,
            "num_rules": sum(rule.origin.file == source.file for rule in rules),
        }
        for source in policy.sources
    ]


def print_policy(policy: Policy, output: Format) -> None:
    """Every rule, where it stands, and which one goes before it."""
    winners = {id(rule): winner for rule, winner in policy.overruled}
    rules = [*policy.rules, *(rule for rule, _ in policy.overruled)]
    if output is Format.JSON:
        found = [
            _rule(rule) | {"overruled_by": _where(winners[id(rule)]) if id(rule) in winners else None}
            for rule in rules
        ]
        print_text(to_json({"files": _files(policy), "rules": found, "locks": list(_locks(policy))}))
        return
    rows = [
        [rule.key, _meaning(rule), _where(rule), rule.origin.layer.value, _state(winners.get(id(rule)))]
        for rule in rules
    ]
    rows += [
        ["lock", lock["key"], f"{lock['file']}:{lock['line']}", lock["layer"], "in force"]
        for lock in _locks(policy)
    ]
    if output is Format.TABLE and console().width < NARROW:
        for key, meaning, where, layer, state in rows:
            print_lines(f"{key}: {meaning}", f"    {where} ({layer}), {state}")
        return
    styles = ["dim" if row[-1] != "in force" else "" for row in rows]
    columns, wrapping = ("Rule", "Value", "From", "Layer", "State"), frozenset({"Value", "State"})
    print_rows(columns, rows, output, styles=styles, wrapping=wrapping)


def _locks(policy: Policy) -> Iterator[dict[str, Any]]:
    for source in policy.sources:
        for index, key in enumerate(source.content.lock):
            origin = source.origin("lock", index)
            yield {"key": key, **_origin(origin.file, origin.line, source.layer.value)}


def _origin(file: str, line: int, layer: str) -> dict[str, Any]:
    return {"file": file, "line": line, "layer": layer}


def _rule(rule: Rule) -> dict[str, Any]:
    origin = rule.origin
    place = _origin(origin.file, origin.line, origin.layer.value)
    return {"key": rule.key, "value": rule.value, "means": list(rule.means), **place}


def _where(rule: Rule) -> str:
    return str(rule.origin)


def _meaning(rule: Rule) -> str:
    """The value, and the GPUs that a family or a glob means."""
    return f"{rule.value_text} (means {', '.join(rule.means)})" if rule.means else rule.value_text


def _state(winner: Rule | None) -> str:
    return "in force" if winner is None else f"overruled by {_where(winner)}"


def print_explained(facts: Facts, policy: Policy, output: Format) -> None:
    """What each rule in force says of a plan."""
    from recommender.policy import explain, judge_facts

    found = explain(facts, policy)
    if output is Format.JSON:
        verdict = judge_facts(facts, policy)
        rules = [_rule(rule) | asdict(judgement) for rule, judgement in found]
        body = {"removed": bool(verdict.removals), "approvals": [need.by for need in verdict.approvals]}
        print_text(to_json({"plan": asdict(facts), **body, "rules": rules}))
        return
    rows = [[rule.text, _where(rule), said.effect.value, said.detail] for rule, said in found]
    if output is Format.TABLE and console().width < NARROW:
        for text, where, says, why in rows:
            print_wrapped(f"{says}: {text}", [f"{why} ({where})"])
        return
    styles = [_STYLES.get(said.effect, "") for _, said in found]
    columns, wrapping = ("Rule", "From", "Says", "Why"), frozenset({"Rule", "Why"})
    print_rows(columns, rows, output, styles=styles, wrapping=wrapping)
