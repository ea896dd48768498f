"""Policies and what they say of a plan, as documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from advisor.report.document import NARROW, PLAIN, Column, Document, Lines, Row, Section, Table, Tone, columns

if TYPE_CHECKING:
    from advisor.site_files.policy_files import Checked
    from recommender.conditions import Facts
    from recommender.policy.merge import Policy
    from recommender.policy.rules import Judgement, Rule

_IN_FORCE = "in force"
_TONES = {
    "removes": Tone.BAD,
    "needs approval": Tone.DOUBTFUL,
    "unknown": Tone.DOUBTFUL,
    "does not apply": Tone.FAINT,
}
_FILE_COLUMNS = (*columns("File", "Layer", "Name"), Column("Rules", PLAIN))
_RULE_COLUMNS = (
    Column("Rule", wraps=False),
    Column("Value"),
    *columns("From", "Layer", wraps=False),
    Column("State"),
)
_JUDGEMENT_COLUMNS = (Column("Rule"), *columns("From", "Says", wraps=False), Column("Why"))


def check_document(checked: Checked) -> Document:
    """Files and how many rules each has; faults for programs alone, since an error names them to people."""
    files = _files(checked.policy) if checked.policy else []
    rows = tuple(Row(tuple(str(value) for value in file.values())) for file in files)
    return Document(
        facts={"files": files, "faults": [asdict(fault) for fault in checked.faults]},
        blocks=(Table(columns=_FILE_COLUMNS, rows=rows),) if checked.policy else (),
    )


def _files(policy: Policy) -> list[dict[str, object]]:
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


def policy_document(policy: Policy) -> Document:
    """Every rule, where it stands, and which one goes before it."""
    winners = {id(rule): winner for rule, winner in policy.overruled}
    rules = [*policy.rules, *(rule for rule, _ in policy.overruled)]
    facts = [
        _rule(rule) | {"overruled_by": str(winners[id(rule)].origin) if id(rule) in winners else None}
        for rule in rules
    ]
    rows = [
        (rule.key, _meaning(rule), str(rule.origin), rule.origin.layer.value, _state(winners.get(id(rule))))
        for rule in rules
    ]
    rows += [
        ("lock", f"{lock['key']}", f"{lock['file']}:{lock['line']}", f"{lock['layer']}", _IN_FORCE)
        for lock in _locks(policy)
    ]
    return Document(
        facts={"files": _files(policy), "rules": facts, "locks": list(_locks(policy))},
        blocks=(_rules_table(rows),),
    )


def _rules_table(rows: Sequence[tuple[str, ...]]) -> Table:
    tones = [Tone.PLAIN if row[-1] == _IN_FORCE else Tone.FAINT for row in rows]
    lines = (
        line
        for key, meaning, where, layer, state in rows
        for line in (f"{key}: {meaning}", f"    {where} ({layer}), {state}")
    )
    return Table(
        columns=_RULE_COLUMNS,
        rows=tuple(map(Row, rows, tones)),
        narrow=(Lines(tuple(lines)),),
        narrow_below=NARROW,
        keeps_words=False,
    )


def _locks(policy: Policy) -> Iterator[dict[str, object]]:
    for source in policy.sources:
        for index, key in enumerate(source.content.lock):
            origin = source.origin("lock", index)
            yield {"key": key, "file": origin.file, "line": origin.line, "layer": source.layer.value}


def _rule(rule: Rule) -> dict[str, object]:
    origin = rule.origin
    place = {"file": origin.file, "line": origin.line, "layer": origin.layer.value}
    return {"key": rule.key, "value": rule.value, "means": list(rule.means), **place}


def _meaning(rule: Rule) -> str:
    """The value, and the GPUs that a family or a glob means."""
    return f"{rule.value_text} (means {', '.join(rule.means)})" if rule.means else rule.value_text


def _state(winner: Rule | None) -> str:
    return _IN_FORCE if winner is None else f"overruled by {winner.origin}"


def explained_document(facts: Facts, policy: Policy) -> Document:
    """What each rule in force says of a plan."""
    from recommender.policy.judge import explain, judge_facts

    judged = explain(facts, policy)
    verdict = judge_facts(facts, policy)
    return Document(
        facts={
            "plan": asdict(facts),
            "removed": bool(verdict.removals),
            "approvals": [need.by for need in verdict.approvals],
            "rules": [_rule(rule) | asdict(judgement) for rule, judgement in judged],
        },
        blocks=(_judgements_table(judged),),
    )


def _judgements_table(judged: Sequence[tuple[Rule, Judgement]]) -> Table:
    return Table(
        columns=_JUDGEMENT_COLUMNS,
        rows=tuple(
            Row((rule.text, str(rule.origin), judgement.effect.value, judgement.detail), _tone(judgement))
            for rule, judgement in judged
        ),
        narrow=tuple(
            Section(f"{judgement.effect.value}: {rule.text}", (f"{judgement.detail} ({rule.origin})",))
            for rule, judgement in judged
        ),
        narrow_below=NARROW,
        keeps_words=False,
    )


def _tone(judgement: Judgement) -> Tone:
    return _TONES.get(judgement.effect.value, Tone.PLAIN)
