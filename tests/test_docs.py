"""Documents are generated where they can be, and name what exists."""

import dataclasses
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import typer

from advisor.cli import app
from advisor.config.settings import setting_names
from advisor.formats.trace_files import write_trace
from advisor.report.options_table import OPTION_COLUMNS, Form
from advisor.store.ledger import Run
from tests.builders import make_trace
from tests.end_to_end.cli import Shell

ROOT = Path(__file__).resolve().parent.parent
DOCS = sorted(
    [
        *ROOT.glob("*.md"),
        *(page for room in ("docs", "catalogs", "research") for page in (ROOT / room).rglob("*.md")),
    ]
)
BUILT = {"build", "dist"}
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)")
BACKTICKED_PATH = re.compile(
    r"`((?:advisor|recommender|catalogs|tests|tools|docs|examples|benchmarks|research)/[\w./-]+)`"
)


def test_generated_pages_are_up_to_date():
    answer = subprocess.run(
        [sys.executable, "tools/build_docs.py", "--check"], capture_output=True, text=True, cwd=ROOT
    )
    assert answer.returncode == 0, answer.stderr


@pytest.mark.parametrize("page", DOCS, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_paths_exist(page):
    text = page.read_text()
    for target in LINK.findall(text):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
    for path in BACKTICKED_PATH.findall(text):
        if path.startswith("advisor/_catalogs"):
            continue  # where catalogs/ lies once installed
        assert (ROOT / path).exists(), f"{page.name} names {path}"


def test_commands_of_ours_name_modules_that_exist():
    """In pages, catalogs and docstrings; history may name what is gone."""
    texts = [path for path in DOCS if path.name != "CHANGELOG.md" and path.parent.name != "decisions"]
    texts += (ROOT / "catalogs").glob("*.toml")
    for room in ("advisor", "recommender", "benchmarks", "research", "tools", "tests"):
        texts += (ROOT / room).rglob("*.py")
    command = re.compile(r"(?:python -m|\"-m\",) \"?((?:benchmarks|research|tools|training)\b[\w.]*\w)")
    named = {module for path in texts for module in command.findall(path.read_text())}
    assert {"benchmarks.accuracy", "research.training", "research.spot_fit"} <= named
    assert sorted(module for module in named if find_spec(module) is None) == []


def test_every_attack_names_tests_that_exist():
    page = (ROOT / "tests" / "security" / "promises.md").read_text()
    written = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    named = re.findall(r"`(?:[\w/]+\.py)?(?:::)?(test_\w+)\*?`", page)
    assert len(named) > 60
    assert not [name for name in named if f"def {name}" not in written]


def test_every_command_and_setting_is_documented():
    commands = (ROOT / "docs" / "commands.md").read_text()
    names = ("recommend", "profile", "predict", "gpus", "prices", "measure", "calibrate", "doctor", "init")
    groups = ("queue check", "config show", "run record", "run list", "policy explain", "prices refresh")
    for command in (*names, *groups):
        assert f"## advisor {command}\n" in commands
    settings = (ROOT / "docs" / "settings.md").read_text()
    assert all(f"`{name}`" in settings for name in setting_names())


@pytest.mark.parametrize("page", DOCS, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_of_pages_take_the_options_that_they_show(page):
    if page.name in {"commands.md", "CHANGELOG.md"}:
        return
    text = page.read_text().replace("\\\n", " ")
    blocks = "\n".join(re.findall(r"^```\w*\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL))
    shown = re.findall(r"^(?:\$ )?advisor (.+)", blocks, flags=re.MULTILINE)
    for words in (*shown, *re.findall(r"`advisor ([^`\n]+)`", text)):
        command, options = _command_of(re.split(r" (?:--|#|\||>) ", f"{words} ")[0].split())
        named = {word.partition("=")[0] for word in options if re.match(r"--?[a-z]", word)}
        assert not command or named <= _options_of(command), f"advisor {words}"


def _command_of(words: list[str]) -> tuple[Any, list[str]]:
    """The command that the words call, if they call one, and what follows its name."""
    command: Any = typer.main.get_command(app)
    rest = list(words)
    while rest and rest[0] in getattr(command, "commands", {}):
        command = command.commands[rest.pop(0)]
    # `advisor run -- COMMAND` is short for `advisor run command`.
    command = getattr(command, "commands", {}).get("command", command)
    return (command if len(rest) < len(words) else None), rest


def _options_of(command: Any) -> set[str]:
    context = command.make_context("advisor", [], resilient_parsing=True)
    parameters = command.get_params(context)
    return {"--help-all", *(name for one in parameters for name in (*one.opts, *one.secondary_opts))}


def test_every_json_field_is_documented():
    from tests.unit.report.test_option_facts import OPTION_FIELDS

    page = (ROOT / "docs" / "json.md").read_text()
    for field in OPTION_FIELDS:
        assert re.search(rf"\b{field}\b", page), field


def test_every_field_of_a_run_is_documented():
    page = (ROOT / "docs" / "json.md").read_text().partition("## advisor run")[2]
    for field in (*(item.name for item in dataclasses.fields(Run)), "total_usd", "is_new"):
        assert re.search(rf"\b{field}\b", page), field


def test_the_guide_names_every_column_and_flag():
    page = (ROOT / "docs" / "recommend.md").read_text()
    for column in (one.heading for one in OPTION_COLUMNS if one.heading and Form.WIDE in one.forms):
        assert f"| {column.name} |" in page
    for option in ("--explain", "--plot", "--top", "--all", "--confidence", "--record"):
        assert option in page
        assert option in (ROOT / "docs" / "commands.md").read_text()


def test_decisions_are_numbered_and_short():
    pages = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    numbers = [int(page.name[:4]) for page in pages]
    assert len(set(numbers)) == len(numbers) > 30
    assert all(len(page.read_text().splitlines()) <= 40 for page in pages)


def test_the_readme_starts_with_the_two_commands():
    blocks = re.findall(r"```\w*\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    assert blocks[0].split() == ["make", "demo", "make", "test"]


def test_no_path_of_a_developers_machine():
    own = [path for path in ROOT.iterdir() if not path.name.startswith(".") and path.name not in BUILT]
    files = [path for top in own for path in ([top] if top.is_file() else top.rglob("*"))]
    texts = [
        path for path in files if path.suffix in {".py", ".md", ".toml", ".yaml", ".csv", ".cpp", ".hpp"}
    ]
    assert len(texts) > 500
    for path in texts:
        assert not re.search(r"(?<![\w.])/(?:root|work)/\w", path.read_text()), path


def test_the_readme_is_short():
    readme = (ROOT / "README.md").read_text()
    assert len(readme.split()) < 700
    assert max(map(len, readme.splitlines())) <= 120


def test_the_readme_shows_parts_of_the_demo_in_their_order():
    shown = _demo_block(ROOT / "README.md").split("...\n")
    whole = _demo_block(ROOT / "docs" / "getting-started.md")
    assert len(shown) > 2
    for part in shown:
        _, separator, whole = whole.partition(part)
        assert separator, part


# Prices age, and what they are expected to be ages with them.
ON_ONE_DAY = """
import sys
from datetime import UTC, datetime

import advisor.service.prices.live as live

live.now = lambda: datetime(2026, 11, 22, tzinfo=UTC)
from advisor.__main__ import main

main()
"""


@pytest.mark.torch
@pytest.mark.usefixtures("warm_children")
def test_getting_started_shows_what_make_demo_prints(tmp_path):
    demo = next(line for line in (ROOT / "Makefile").read_text().splitlines() if "advisor recommend" in line)
    arguments = demo.split("advisor ", 1)[1].split()
    home = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "COLUMNS": "100"}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ADVISOR_")}
    answer = subprocess.run(
        [sys.executable, "-c", ON_ONE_DAY, *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=kept | home,
        check=True,
    )
    printed = "\n".join(line.rstrip() for line in answer.stdout.splitlines())
    command, _, shown = _demo_block(ROOT / "docs" / "getting-started.md").partition("\n")
    assert command == f"$ advisor {' '.join(arguments)}"
    assert shown.strip() == printed.strip()


def _demo_block(page: Path) -> str:
    blocks = re.findall(r"```\n(.*?)```", page.read_text(), flags=re.DOTALL)
    (demo,) = (block for block in blocks if block.startswith("$ advisor recommend"))
    return demo


def test_the_worked_changes_name_files_of_rooms_that_exist():
    blocks = re.findall(r"```\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), flags=re.DOTALL)[1:]
    files = [name for block in blocks for name in re.findall(r"[\w./-]+\.(?:py|toml|md|json)\b", block)]
    assert len(blocks) == 6
    assert len(files) > 20
    assert not [name for name in files if not (ROOT / name).parent.is_dir()]


def test_the_readme_counts_the_gpus():
    from advisor.core.gpus import load_gpus

    assert f" {len(load_gpus())} GPUs " in (ROOT / "README.md").read_text()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the folders of Linux are named")
def test_what_an_uninstall_leaves_is_named(tmp_path, monkeypatch):
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    shell = Shell(folder=tmp_path)
    environ = {"XDG_CONFIG_HOME": "", "XDG_DATA_HOME": ""}
    write_trace(make_trace(), tmp_path / "t.json")
    for typed in ("init", "recommend t.json --epochs 1 --gpu L4 --offline --record"):
        answer = shell.run(*typed.split(), **environ)
        assert answer.code == 0, answer
    text = (ROOT / "docs/getting-started.md").read_text().partition("## Uninstall")[2]
    named = {tmp_path / folder for folder in re.findall(r"`~/([\w./]+)`", text)}
    written = {path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".json"}
    written |= set((tmp_path / ".cache").rglob("*.json"))
    assert {next(folder for folder in named if folder in path.parents) for path in written} == named
