"""No help page cuts the line of a command."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from advisor.cli import app
from advisor.cli.common import COMMON_OPTIONS, first_sentence, full_help


def walk(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    yield name, command
    for child, inner in getattr(command, "commands", {}).items():
        yield from walk(inner, f"{name} {child}")


COMMANDS = dict(walk(typer.main.get_command(app), "advisor"))
GROUPS = {name: command for name, command in COMMANDS.items() if getattr(command, "commands", None)}


def page(name: str) -> str:
    context = COMMANDS[name].make_context(name, [], resilient_parsing=True)
    return str(COMMANDS[name].get_help(context))


@pytest.mark.parametrize("columns", ["80", "60"])
@pytest.mark.parametrize("name", GROUPS)
def test_a_group_shows_the_whole_first_sentence_of_each_command(name, columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("TERMINAL_WIDTH", columns)
    _, heading, listed = page(name).partition("Commands:\n")
    assert heading
    assert "..." not in listed
    assert max(map(len, listed.splitlines())) <= int(columns)
    words = " ".join(listed.split())
    for child, command in GROUPS[name].commands.items():
        assert f"{child} {first_sentence(command.help)}" in words


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_explained_and_no_line_of_its_page_is_cut(name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert COMMANDS[name].help
    body = page(name).split("\n\n", 1)[1]
    assert not [line for line in body.splitlines() if line.rstrip().endswith("...") or len(line) > 80]


def test_there_are_groups_to_look_at():
    assert {"advisor", "advisor prices", "advisor queue", "advisor policy"} <= set(GROUPS)
    assert len(COMMANDS) > 25


def options_on(text: str) -> list[str]:
    return re.findall(r"^  (?:-\w, )?(--[\w-]+)", text, flags=re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS)
def test_no_page_shows_more_than_twenty_options(name):
    assert len(options_on(page(name))) <= 20


@pytest.mark.parametrize("name", COMMON_OPTIONS)
def test_a_long_command_shows_its_common_options_and_all_with_help_all(name):
    command = COMMANDS[f"advisor {name}"]
    declared = [param.opts[0] for param in command.params if param.param_type_name == "option"]
    assert len(declared) > 20
    assert set(COMMON_OPTIONS[name]) < set(declared)
    assert set(options_on(page(f"advisor {name}"))) == {*COMMON_OPTIONS[name], "--help", "--help-all"}

    everything = CliRunner().invoke(app, [name, "--help-all"])
    assert everything.exit_code == 0
    assert sorted(options_on(everything.output)) == sorted([*declared, "--help", "--help-all"])
    assert everything.output.index("More options:") > everything.output.index(COMMON_OPTIONS[name][-1])
    assert f"Show all {len(declared) + 1} options" in everything.output


def test_a_short_command_has_no_second_page():
    command = COMMANDS["advisor profile"]
    context = command.make_context("advisor profile", [], resilient_parsing=True)
    assert full_help(command, context) == page("advisor profile")
    assert "--help-all" not in page("advisor profile")
