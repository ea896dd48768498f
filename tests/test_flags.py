"""Flags belong to the command line: the rooms below call an argument or a setting by its name."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from typer.main import get_command

from advisor.cli import app
from advisor.report.plain import FLAGS, NAMED, flag_of, in_flags

KNOW_FLAGS = {"cli", "report"}
# What may hold a flag all the same.
COMMANDS = re.compile(r"advisor [a-z]+(?: [a-z]+)?(?: LOG)? --[a-z-]+")  # a whole line to type
OTHER_PROGRAMS = {
    "advisor/core/devices.py": {"--format", "--id"},  # of nvidia-smi
    "advisor/receipt/command.py": {"--format", "--id"},  # of nvidia-smi
    "advisor/service/schedule/managing.py": {"--to"},  # of the command that is scheduled
    "advisor/profile/profiling.py": {"--to"},  # of the user's script, and of jupyter
    "advisor/schedule/schedulable.py": {"--to", "--when", "--fail-above"},  # of the command that is scheduled
    "advisor/review/who_spent.py": {"--epochs"},  # of a recorded command
    "advisor/service/fleet.py": {"--gpu", "--market", "--max-nodes", "--provider", "--region"},  # of a grid
    "advisor/service/revisions.py": {"--add"},  # of git
    "advisor/service/sweeping.py": {"--json", "--offline", "--policy"},  # of its own commands
    # Of what the file starts.
    "advisor/service/job_files.py": {
        "--canary",
        "--max-cost",
        "--max-time",
        "--nodes",
        "--plan",
        "--recommendation",
        "--yes",
    },
    "advisor/site_files/job_logs.py": {"--format"},  # of sacct
    "advisor/site_files/log_rows.py": {"--format"},  # of sacct
    "advisor/site_files/slurm_limits.py": {"--all", "--format"},  # of squeue
}
NAME = re.compile(r"`([a-z_]+(?:\.[a-z_]+)?)`")


def flags_of(command: object) -> set[str]:
    own = {name for parameter in command.params for name in parameter.opts if name.startswith("--")}  # type: ignore[attr-defined]
    return own.union(*(flags_of(inner) for inner in getattr(command, "commands", {}).values()))


ROOT = Path(__file__).resolve().parents[1]
OURS = flags_of(get_command(app))


@cache
def texts(path: Path) -> tuple[str, ...]:
    """String constants of a module that are no docstrings."""
    tree = ast.parse(path.read_text())
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    constants = [node for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return tuple(n.value for n in constants if isinstance(n.value, str) and id(n) not in docstrings)


def flags_in(text: str) -> set[str]:
    return OURS & set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", COMMANDS.sub("", text)))


MODULES = [
    path.relative_to(ROOT)
    for room in ("advisor", "recommender")
    for path in sorted((ROOT / room).rglob("*.py"))
    if path.relative_to(ROOT).parts[1] not in KNOW_FLAGS
]


def test_no_room_below_the_report_speaks_flags():
    spoken = {str(path): {flag for text in texts(ROOT / path) for flag in flags_in(text)} for path in MODULES}
    assert {path: flags for path, flags in spoken.items() if flags} == OTHER_PROGRAMS


def test_what_they_name_is_known_and_nothing_else_is():
    modules = (*MODULES, Path("advisor/report/words/estimate_notes.py"))
    named = {name for path in modules for text in texts(ROOT / path) for name in NAME.findall(text)}
    named |= set(NAME.findall((ROOT / "advisor/report/words/texts.toml").read_text("utf-8")))
    # profile_callable, which takes a setup, is no command.
    assert named - {"setup"} == NAMED


@pytest.mark.parametrize("name", sorted(NAMED | FLAGS.keys()))
def test_each_has_a_flag_that_exists(name):
    assert flag_of(name) in OURS


def test_a_flag_stands_where_an_argument_was_named():
    assert in_flags("`profile.backend` fake, or `world_size` 8") == "--backend fake, or --world 8"


@pytest.mark.parametrize("text", ["`advisor prices`", "`--`", "profile.backend", "`profile.nothing`", ""])
def test_what_names_no_argument_stays(text):
    assert in_flags(text) == text


@pytest.mark.parametrize("text", ["give --python PATH", "(--world N)", "--out"])
def test_a_flag_in_a_message_is_seen(text):
    assert flags_in(text)


def test_a_command_to_type_may_have_flags():
    assert not flags_in("`advisor prices --sort place` shows them")
    assert flags_in("advisor prices shows them with --sort place")
