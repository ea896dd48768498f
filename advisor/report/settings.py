"""Settings as a document, and as a commented first file."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from advisor.config.layers import Config
from advisor.config.settings import LIST_SECTIONS, ClusterSettings, Settings, json_values
from advisor.core.redaction import named_without_secrets
from advisor.core.values import Layout
from advisor.report.document import Document, Row, Table, columns
from advisor.report.project import asked_in_words, project_json

COLUMNS = columns("Setting", "Value", "Set by", "Refused")
DEFAULT = "default"


def settings_document(config: Config) -> Document:
    """Every setting with its value and origin, and what a project was refused; without secrets."""
    values = {
        name: named_without_secrets(name, value) for name, value in json_values(config.settings).items()
    }
    body = {name: {"value": value, "origin": _origin(config, name)} for name, value in values.items()}
    refused = {line.setting: asked_in_words(line) for line in config.refused}
    texts = {name: _text(value) for name, value in values.items()} | _lists_in_words(config.settings)
    rows = tuple(
        Row((name, text, _origin(config, name), refused.get(name, ""))) for name, text in texts.items()
    )
    return Document(
        facts={"settings": body, **project_json(config), "warnings": config.warnings},
        blocks=(Table(columns=COLUMNS, rows=rows),),
    )


def _origin(config: Config, name: str) -> str:
    return config.origins.get(name, DEFAULT)


def _lists_in_words(settings: Settings) -> dict[str, str]:
    """Each list of entries in one line."""
    entries = {
        "clusters": [f"{one.name} ({_nodes_of(one)})" for one in settings.clusters],
        "quotas": [f"{one.provider} {' '.join(one.instance_types)}: {one.vcpus}" for one in settings.quotas],
        "rates": [f"{one.provider} {one.region} {one.kind}: {one.usd:g}" for one in settings.rates],
        "contracts": [f"{one.provider} {' '.join(one.instance_types)}" for one in settings.contracts],
    }
    return {name: ", ".join(texts) or "none" for name, texts in entries.items()}


def _nodes_of(cluster: ClusterSettings) -> str:
    return Layout(gpus_per_node=cluster.num_gpus, num_nodes=cluster.num_nodes).of(cluster.gpu)


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
            lines += [_commented(name, item) for name, item in model.model_fields.items()]
        else:
            lines += [f"# {field.description}", f"# {section}:", *_example_entry(section)]
    return "\n".join(lines) + "\n"


def _commented(name: str, field: FieldInfo) -> str:
    return f"#   {name}: {_yaml(field.default)}  # {field.description}"


def _yaml(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, tuple):
        return f"[{', '.join(_quoted(str(item)) for item in value)}]"
    return str(value)


def _quoted(text: str) -> str:
    return f'"{text}"' if text == "*" else text


_EXAMPLES: Mapping[str, Mapping[str, str]] = {
    "clusters": {
        "name": "lab",
        "gpu": "A100-SXM-80GB",
        "num_gpus": "8",
        "num_nodes": "4",
        "network": "infiniband 8x200 Gbit",
        "usd_per_gpu_h": "0.50",
        "wait_p50": "3h",
        "wait_p90": "8h",
    },
    "contracts": {
        "provider": "aws",
        "instance_types": '["p5*"]',
        "regions": '["us-*"]',
        "markets": "[on-demand]",
        "discount": "0.05",
        "commitment_discount": "0.27",
        "coverage": "0.8",
        "until": "2027-06-30",
    },
    "quotas": {
        "provider": "aws",
        "instance_types": '["p*"]',
        "regions": "[us-east-1]",
        "markets": "[on-demand]",
        "vcpus": "192",
    },
    "rates": {
        "provider": "lambda",
        "region": '"*"',
        "kind": "egress-internet",
        "to_region": '"*"',
        "usd": "0",
    },
}


def _example_entry(section: str) -> list[str]:
    values = _EXAMPLES[section]
    fields = LIST_SECTIONS[section].model_fields.items()
    return [
        f"#   {'  ' if i else '- '}{name}: {values.get(name, 'null')}  # {field.description}"
        for i, (name, field) in enumerate(fields)
    ]
