"""What a project's settings file asked for and was refused, in words and as JSON."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping

from advisor.config.layers import Config
from advisor.config.project_layer import Refused, Why
from advisor.config.setting_kinds import ProjectMay
from advisor.core.redaction import without_secrets

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
    >>> from advisor.config.settings import ProjectMay
    >>> line = Refused(setting="profile.sandbox", value=False, file=Path("/a/.advisor.yaml"), line=2,
    ...                allowed=ProjectMay.SWITCH_ON, why=Why.NOT_ALLOWED)
    >>> refused_in_words(line)
    '/a/.advisor.yaml:2: profile.sandbox: false is refused: a project may only switch it on. If you \
trust this file: advisor trust /a'
    """
    trust = f"advisor trust {shlex.quote(str(refused.file.parent))}"
    return (
        f"{refused.file}:{refused.line}: {request_in_words(refused)} is refused: {_reason(refused)}."
        f" If you trust this file: {trust}"
    )


def request_in_words(refused: Refused) -> str:
    """The setting and the value as in the file, on one line, cut and without secrets."""
    return f"{refused.setting}: {_value_in_words(refused)}"


def asked_in_words(refused: Refused) -> str:
    """The value and its place, for a table that names the setting beside it."""
    return f"{_value_in_words(refused)} ({refused.file.name}:{refused.line})"


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


def _reason(refused: Refused) -> str:
    match refused.why:
        case Why.CHANGES_AN_ENTRY:
            return "a project may not change an entry of the same name"
        case Why.NAMES_A_FILE_ELSEWHERE:
            return "a project may only name files in its own folder"
        case Why.NOT_ALLOWED:
            return _RULE_IN_WORDS[refused.allowed]
