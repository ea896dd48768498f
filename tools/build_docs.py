"""Writes the documents that follow from the code: ``python tools/build_docs.py [--check]``."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeVar

# Help pages wrap at the terminal's width; documents must not depend on it.
os.environ["COLUMNS"] = "88"
os.environ["TERMINAL_WIDTH"] = "88"

import typer
from pydantic.fields import FieldInfo

from advisor.cli import app
from advisor.cli.common import full_help
from advisor.config.delivery_settings import CHANNEL_KINDS
from advisor.config.setting_kinds import ProjectMay
from advisor.config.settings import LIST_SECTIONS, project_may, setting_field, setting_names
from advisor.core.findings import (  # noqa: F401
    Finding,
    Severity,
    about_answers,
    about_estimates,
    about_options,
    about_spending,
    about_traces,
)
from recommender.policy.model import json_schema
from tools.architecture_map import architecture_page

DOCS = Path(__file__).resolve().parent.parent / "docs"
GENERATED = "<!-- written by tools/build_docs.py; do not edit -->"
TRUST = """## Project files

A `.advisor.yaml` may come with a repository that you do not know. So it may only do what the column
*a project may* allows ([why](decisions/0014-what-a-project-may-set.md)). Each line that goes further is
ignored with a warning. Its lists of `clusters`, `quotas` and `policy.files` are added to yours. It must be a
regular file of at most 64 kB, no link, and the files that it names lie in its own folder.

- `advisor trust DIR` accepts all of `DIR/.advisor.yaml` until it changes. The policies and tables that it
  names are not watched.
- `advisor trust --list` shows what you trust; `advisor trust --revoke DIR` takes it back.
- In CI, `advisor --trust-project COMMAND` or `ADVISOR_TRUST_PROJECT=1` trusts whatever is checked out: use it
  only where no one else can change the branch.
- `advisor config show` also lists what was refused.

## Settings
"""
LONG_PAGES = (
    "What every command takes. Those with more than twenty options show the common ones with `--help`, and\n"
    "all with `--help-all`; here the common ones come first. Commands that print an answer also take\n"
    "`--format` (`-f`) and `--json`."
)
EVERYWHERE = {"--format", "--json"}
"""Options that the top of the page names."""
MAY_IN_WORDS = {
    ProjectMay.ANYTHING: "set it",
    ProjectMay.LOWER: "lower it",
    ProjectMay.SWITCH_ON: "switch it on",
    ProjectMay.ADD: "add to it",
    ProjectMay.NARROW: "narrow it",
    ProjectMay.NOTHING: "",
}
SEVERITIES = {
    Severity.REMOVAL: "Why an option is not feasible.",
    Severity.WARNING: "What may mislead.",
    Severity.CHANGE: "What to change in the script.",
    Severity.NOTE: "What is assumed or known.",
    Severity.ERROR: "Why there is no answer.",
}


C = TypeVar("C")
"""A command of click, which typer may bring itself."""


def commands_page() -> str:
    """Every command's --help-all, each option described once; a group's commands follow it."""
    group = typer.main.get_command(app)
    known: set[str] = set()
    parts = [f"# Commands\n\n{GENERATED}", LONG_PAGES]
    for name, command in _walk(group, "advisor"):
        context = command.make_context(name, [], resilient_parsing=True)
        parts.append(f"## {name}\n\n```\n{_short_help(full_help(command, context), known)}\n```")
    return "\n\n".join(parts) + "\n"


def _short_help(text: str, known: set[str]) -> str:
    """What a command's --help adds: options that an earlier one described are named alone."""
    whole = text.replace("\n\nMore options:\n", "\n")
    head, _, rest = whole.partition("\n\nCommands:")[0].partition("\n\nOptions:\n")
    usage, _, arguments = head.partition("\n\nArguments:\n")
    described, named = [], []
    for record in re.split(r"\n(?=  -)", rest):
        words = "".join(record.split())
        if words in known:
            named += [name for name in re.findall(r"--[\w-]+", record)[:1] if name not in EVERYWHERE]
        elif words and not words.startswith("--help"):
            known.add(words)
            described.append(record)
    parts = [usage.replace("Usage: ", "").replace(" [OPTIONS]", "")]
    parts += ["Arguments:\n" + arguments.rstrip()] if arguments.strip() else []
    parts += ["Options:\n" + "\n".join(described)] if described else []
    if named:
        names = textwrap.fill(
            ", ".join(named), 80, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
        )
        parts.append(f"As for the commands above:\n{names}")
    return "\n\n".join(parts)


def _walk(command: C, name: str) -> list[tuple[str, C]]:
    commands = [(name, command)]
    for child, inner in getattr(command, "commands", {}).items():
        commands += _walk(inner, f"{name} {child}")
    return commands


def settings_page() -> str:
    """Every setting with default and meaning."""
    lines = [
        f"# Settings\n\n{GENERATED}\n",
        "Every setting, its default and meaning.\n",
        "Defaults < user file < the project's `.advisor.yaml` < `ADVISOR_*` < flags. `advisor init` writes",
        "a commented first file; `advisor config show` shows which layer won. The variable of",
        "`cloud.max_gpus` is `ADVISOR_CLOUD__MAX_GPUS`, read as YAML; the others follow the same rule.",
        "Durations carry a unit (`90m`, `12h`, `1d6h`). A relative path in a file counts from the file's",
        "folder, one of a variable or flag from the working directory; `~` is your home. An empty cell is no",
        "default, and nothing that a project may do.\n",
        TRUST,
        "| setting | default | a project may | meaning |",
        "|---|---|---|---|",
    ]
    for name in setting_names():
        field, may = setting_field(name), MAY_IN_WORDS[project_may(name)]
        cells = (f"`{name}`", _default(field.default), may, field.description)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    for section, entry in LIST_SECTIONS.items():
        lines += [f"\nEach entry of `{section}`: {_lower(entry.__doc__)}\n", *_keys(entry.model_fields)]
    for kind, entry in CHANNEL_KINDS.items():
        lines += [f"\nA channel of `delivery.channels` of the kind `{kind}`: {_lower(entry.__doc__)}\n"]
        lines += _keys({name: field for name, field in entry.model_fields.items() if name != "kind"})
    return "\n".join(lines) + "\n"


def _keys(fields: Mapping[str, FieldInfo]) -> Iterator[str]:
    yield from ("| key | default | meaning |", "|---|---|---|")
    for name, field in fields.items():
        default = "required" if field.is_required() else _default(field.default)
        yield f"| `{field.alias or name}` | {default} | {field.description} |"


def findings_page() -> str:
    """Every code and its facts, by severity."""
    lines = [
        f"# Findings\n\n{GENERATED}\n",
        "JSON has each reason, warning and assumption twice: as a sentence, which may be reworded at any",
        "time, and as `{code, severity, facts}` in the field of the same name that ends in `_finding` or",
        "`_findings`. Programs should read the codes: they keep their meaning, and facts have units in their",
        "names. A fact may be a finding itself. Of a code with several causes (`of`, `by`, `why`, `what`),",
        "facts that belong to another cause are 0, empty or null.",
    ]
    for severity, meaning in SEVERITIES.items():
        lines += [f"\n## {severity.capitalize()}\n\n{meaning}\n"]
        for kind in finding_kinds():
            if kind.severity == severity:
                facts = ", ".join(f"`{name}`" for name in kind.fact_names)
                text = f"- `{kind.code}`: {facts}" if facts else f"- `{kind.code}`"
                lines.append(textwrap.fill(text, 110, subsequent_indent="  ", break_on_hyphens=False))
    return "\n".join(lines) + "\n"


def finding_kinds(of: type[Finding] = Finding) -> Iterator[type[Finding]]:
    """Every class of findings, as they are defined."""
    for kind in of.__subclasses__():
        yield from finding_kinds(kind) if kind.__subclasses__() else (kind,)


def _lower(sentence: str | None) -> str:
    return (sentence or "")[:1].lower() + (sentence or "")[1:]


def _default(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, tuple):
        return ", ".join(f"`{item}`" for item in value) or "none"
    return f"`{value}`"


def main() -> None:
    """Write, or with --check say which page is out of date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    pages = {
        "architecture.md": architecture_page(),
        "commands.md": commands_page(),
        "settings.md": settings_page(),
        "findings.md": findings_page(),
        "policy.schema.json": json.dumps(json_schema(), indent=2) + "\n",
    }
    stale = [name for name, text in pages.items() if not _same(DOCS / name, text)]
    if check:
        sys.exit(f"out of date: {', '.join(stale)}; run python tools/build_docs.py" if stale else 0)
    for name in stale:
        (DOCS / name).write_text(pages[name])
        print(f"wrote {DOCS / name}")


def _same(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text() == text


if __name__ == "__main__":
    main()
