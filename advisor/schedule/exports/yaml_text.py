"""YAML in the order in which it was put together, with scripts as blocks."""

from __future__ import annotations

from collections.abc import Mapping

import yaml


class _Blocks(yaml.SafeDumper):
    pass


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Blocks.add_representer(str, _text)


def yaml_text(document: Mapping[str, object]) -> str:
    """A document that every YAML reader reads back as it was."""
    return yaml.dump(dict(document), Dumper=_Blocks, sort_keys=False, allow_unicode=True, width=1000)
