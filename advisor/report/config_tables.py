"""Settings and the installation as documents: values, what a project's file may set, and checks."""

import json
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib import resources

from pydantic import BaseModel

from advisor.config.layers import Config
from advisor.config.project_layer import Refused, Why, is_current, remembered
from advisor.config.setting_kinds import ProjectMay
from advisor.config.settings import LIST_SECTIONS, Settings, json_values
from advisor.core.redaction import named_without_secrets, without_secrets
from advisor.core.values import Layout
from advisor.report.document import Document, Row, Table, Tone, columns
from advisor.service.health import Check

_MOST_CHARACTERS = 80
_RULE_IN_WORDS: Mapping[ProjectMay, str] = {
    ProjectMay.LOWER: "a project may only lower it",
    ProjectMay.SWITCH_ON: "a project may only switch it on",
    ProjectMay.ADD: "a project may only add to it",
    ProjectMay.NARROW: "a project may only narrow it",
    ProjectMay.NOTHING: "a project may not set it",
}


def refused_in_words(refused: Refused) -> str:
    """One line: where it stands, what it asks for, why it does not count, and how to let it.

    >>> from pathlib import Path
    >>> from advisor.config.setting_kinds import ProjectMay
    >>> line = Refused(setting="profile.sandbox", value=False, file=Path("/a/.advisor.yaml"), line=2,
    ...                allowed=ProjectMay.SWITCH_ON, why=Why.NOT_ALLOWED)
    >>> refused_in_words(line)
    '/a/.advisor.yaml:2: profile.sandbox: false is refused: a project may only switch it on. If you \
trust this file: advisor trust /a'
    """
    trust = f"advisor trust {shlex.quote(str(refused.file.parent))}"
    reason = _REASONS.get(refused.why) or _RULE_IN_WORDS[refused.allowed]
    return (
        f"{refused.file}:{refused.line}: {request_in_words(refused)} is refused: {reason}."
        f" If you trust this file: {trust}"
    )


def request_in_words(refused: Refused) -> str:
    """The setting and the value as in the file, on one line, cut and without secrets."""
    return f"{refused.setting}: {_value_in_words(refused)}"


def project_json(config: Config) -> dict[str, object]:
    """The project's file, whether it is trusted, and each line of it that does not count."""
    project = config.project
    return {
        "project": None if project is None else {"file": str(project.path), "is_trusted": project.is_trusted},
        "refused": [
            {
                "setting": line.setting,
                "value": _without_secrets_of(line),
                "file": str(line.file),
                "line": line.line,
                "project_may": line.allowed,
                "why": line.why,
            }
            for line in config.refused
        ],
    }


def _without_secrets_of(refused: Refused) -> object:
    """As JSON takes it: what YAML knows besides, such as dates, as text."""
    plain: object = json.loads(json.dumps(without_secrets(refused.value), default=str))
    return plain


def _value_in_words(refused: Refused) -> str:
    text = json.dumps(_without_secrets_of(refused))
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}..."


_REASONS = {
    Why.CHANGES_AN_ENTRY: "a project may not change an entry of the same name",
    Why.NAMES_A_FILE_ELSEWHERE: "a project may only name files in its own folder",
}


COLUMNS = columns("Setting", "Value", "Set by", "Refused")
DEFAULT = "default"


def settings_document(config: Config) -> Document:
    """Every setting with its value and origin, and what a project was refused; without secrets."""
    values = {
        name: named_without_secrets(name, value) for name, value in json_values(config.settings).items()
    }
    origins = {name: config.origins.get(name, DEFAULT) for name in values}
    body = {name: {"value": value, "origin": origins[name]} for name, value in values.items()}
    refused = {one.setting: f"{_value_in_words(one)} ({one.file.name}:{one.line})" for one in config.refused}
    texts = {name: _text(value) for name, value in values.items()} | _lists_in_words(config.settings)
    rows = tuple(Row((name, text, origins[name], refused.get(name, ""))) for name, text in texts.items())
    return Document(
        facts={"settings": body, **project_json(config), "warnings": config.warnings},
        blocks=(Table(columns=COLUMNS, rows=rows),),
    )


def _lists_in_words(settings: Settings) -> dict[str, str]:
    layouts = [Layout(gpus_per_node=one.num_gpus, num_nodes=one.num_nodes) for one in settings.clusters]
    clusters = zip(settings.clusters, layouts, strict=True)
    entries = {
        "clusters": [f"{one.name} ({layout.of(one.gpu)})" for one, layout in clusters],
        "quotas": [f"{one.provider} {' '.join(one.instance_types)}: {one.vcpus}" for one in settings.quotas],
        "rates": [f"{one.provider} {one.region} {one.kind}: {one.usd:g}" for one in settings.rates],
        "contracts": [f"{one.provider} {' '.join(one.instance_types)}" for one in settings.contracts],
    }
    return {name: ", ".join(texts) or "none" for name, texts in entries.items()}


def _text(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, list):
        return ", ".join(_text(item) for item in value) or "none"
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_text(item)}" for key, item in value.items()) or "none"
    return str(value)


def template() -> str:
    """A settings file in which everything is commented out, with its default and meaning."""
    lines = [
        "# Settings of advisor; see `advisor config show` for what is in force and why.",
        "# A project's own .advisor.yaml goes before this file, ADVISOR_SECTION__NAME before both.",
    ]
    for section, field in Settings.model_fields.items():
        model = field.annotation
        lines.append("")
        if isinstance(model, type) and issubclass(model, BaseModel):
            lines += [f"# {model.__doc__}", f"# {section}:"]
            fields = model.model_fields.items()
            lines += [f"#   {name}: {_yaml(one.default)}  # {one.description}" for name, one in fields]
        else:
            lines += [f"# {field.description}", f"# {section}:", *_example_entry(section)]
    return "\n".join(lines) + "\n"


def _yaml(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, tuple):
        texts = ('"*"' if item == "*" else str(item) for item in value)
        return f"[{', '.join(texts)}]"
    return str(value)


def _example_entry(section: str) -> list[str]:
    text = resources.files("advisor.report").joinpath("templates", "list_entries.toml").read_text("utf-8")
    values = tomllib.loads(text)[section]
    fields = LIST_SECTIONS[section].model_fields.items()
    return [
        f"#   {'  ' if i else '- '}{name}: {values.get(name, 'null')}  # {field.description}"
        for i, (name, field) in enumerate(fields)
    ]


def trusted_document() -> Document:
    """Every file that was trusted, by path."""
    rows = tuple((str(trusted.path), _STATES[is_current(trusted)]) for trusted in remembered())
    facts = {"trusted": [{"file": file, "state": state} for file, state in rows]}
    return Document(
        facts=facts, blocks=(Table(columns=columns("File", "State"), rows=tuple(map(Row, rows))),)
    )


_STATES = {True: "in force", False: "changed since", None: "gone or unreadable"}
_TONES = {"ok": Tone.PLAIN, "note": Tone.DOUBTFUL, "broken": Tone.BAD}


def checks_document(checks: Sequence[Check]) -> Document:
    """Every finding."""
    rows = tuple(
        Row((check.name, check.state, tuple(check.detail.split("\n"))), _TONES[check.state])
        for check in checks
    )
    facts = {"checks": [asdict(check) for check in checks]}
    return Document(facts=facts, blocks=(Table(columns=columns("Check", "State", "Detail"), rows=rows),))
