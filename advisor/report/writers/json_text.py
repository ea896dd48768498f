"""The facts of a document as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping

from advisor.core.files import as_text
from advisor.report.plain import Shown

SCHEMA_VERSION = "2.2.0"


def to_json(facts: Mapping[str, object]) -> Shown:
    """A document with its schema version first; infinite or undefined numbers become null."""
    text = json.dumps({"schema_version": SCHEMA_VERSION, **_finite_items(facts)}, indent=2)
    # The one control character of ASCII that JSON lets pass.
    return Shown(text.replace("\x7f", "\\u007f"))


def _finite_items(items: Mapping[object, object] | Mapping[str, object]) -> dict[str, object]:
    return {as_text(str(key)): _finite(item) for key, item in items.items()}


def _finite(value: object) -> object:
    if isinstance(value, Mapping):
        return _finite_items(value)
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, str):
        return as_text(value)
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        return None
    return value
