"""From an answer to the run: what a job needs elsewhere, and starting a file that says it all."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.core import processes
from advisor.core.errors import InputError, did_you_mean
from advisor.core.redaction import redact_words
from advisor.service.job_files import KINDS, MARK, Handoff

if TYPE_CHECKING:
    from advisor.config.settings import ProfileSettings, SpotSettings
    from advisor.core.values import Option
    from advisor.service.receipts import CommandRequest
    from advisor.service.recommend.recommending import RecommendAnswer
    from advisor.service.traces import TraceRequest

REQUIREMENTS = "requirements.txt"
_MOST_BYTES = 100_000
_ASK_WITHIN_S = 60.0
# Runs in the user's own interpreter: names of modules -> distributions and their versions, as JSON.
_VERSIONS = """
import sys
# Nothing of the working folder is imported.
sys.path = [place for place in sys.path if place]
import json
from importlib.metadata import distribution, packages_distributions
found = packages_distributions()
names = {name for module in sys.argv[1:] for name in found.get(module, ())}
known = {name: distribution(name) for name in names}
# What was installed from a folder or a URL is not what an index has under its name.
print(json.dumps({n: d.version for n, d in known.items() if d.read_text("direct_url.json") is None}))
"""


def handoff_of(
    answer: RecommendAnswer,
    option: Option,
    trace: TraceRequest,
    settings: ProfileSettings,
    spot: SpotSettings,
) -> Handoff:
    """What is to be started for this option of an answer.

    Raises:
        InputError: the answer was not about a script, or its packages cannot be told.
    """
    from advisor.service.traces import holds_data

    script = trace.source
    if not isinstance(script, Path) or holds_data(script):
        raise InputError("a saved trace cannot be started: give the script itself.")
    if not script.resolve().is_relative_to(Path.cwd()):
        raise InputError(
            "the job gets the files of the current folder, and the script is not in it: change to its folder"
            " (`advisor recipe write` saves a recipe, and a notebook is exported as a script)."
        )
    script = script.resolve().relative_to(Path.cwd())
    python = trace.python or settings.python or Path(sys.executable)
    requirements = script.parent / REQUIREMENTS
    return Handoff(
        command=(str(script), *redact_words(trace.arguments, os.environ)),
        option=option,
        packages={} if requirements.is_file() else packages_of(script, python),
        requirements=str(requirements) if requirements.is_file() else None,
        checkpoint_interval_s=spot.checkpoint_interval,
        budget_usd=answer.recommendation.job.budget_usd,
        recommendation=answer.entry_id,
    )


def packages_of(script: Path, python: Path) -> Mapping[str, str]:
    """Distributions that the script imports, with the versions of an interpreter; it is parsed, never run.

    Raises:
        InputError: the script cannot be parsed, or the interpreter does not answer.
    """
    try:
        tree = ast.parse(script.read_bytes())
    except (OSError, SyntaxError, ValueError) as error:
        raise InputError(f"{str(script)!r} cannot be read: {error}.") from error
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {
        node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and not node.level
    }
    modules = sorted({name.partition(".")[0] for name in imported} - sys.stdlib_module_names)
    try:
        answer = processes.run((python, "-c", _VERSIONS, *modules), timeout_s=_ASK_WITHIN_S)
        return {str(name): str(version) for name, version in json.loads(answer.stdout).items()}
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise InputError(f"{str(python)!r} does not tell the versions of its packages: {error}.") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A file that can be started.

    Attributes:
        command: that starts it.
        comments: what the file says of itself, for who decides.
    """

    path: Path
    kind: str
    plan: str
    recommendation: str | None
    command: tuple[str, ...]
    comments: tuple[str, ...]


def launch_of(path: Path) -> Launch:
    """What starts a file that `recommend --emit` wrote.

    Raises:
        InputError: it is none, or the tool that starts it is not installed.
    """
    from advisor.formats.foreign_files import read_plain

    try:
        text = read_plain(path, most_bytes=_MOST_BYTES).decode()
    except (OSError, ValueError) as error:
        raise InputError(
            f"cannot read {str(path)!r}: {getattr(error, 'strerror', None) or error}."
        ) from error
    comments = [line for line in text.splitlines() if line.startswith("# ")]
    kind, plan, recommendation = _facts(path, comments)
    program = KINDS[kind].start[0]
    if processes.program(program) is None:
        raise InputError(f"{path} is started by {program!r}, which is not installed here (or not on PATH).")
    if kind == "kubernetes" and "image: IMAGE" in text:
        raise InputError(f"{path} names no image yet: set it to one that has the script.")
    return Launch(
        path=path,
        kind=kind,
        plan=plan,
        recommendation=recommendation,
        command=(*KINDS[kind].start, str(path)),
        comments=tuple(line[2:] for line in comments if not line.startswith(MARK)),
    )


def _facts(path: Path, comments: list[str]) -> tuple[str, str, str | None]:
    from advisor.formats.foreign_files import read_json

    marks = [line.removeprefix(MARK) for line in comments if line.startswith(MARK)]
    if len(marks) != 1:
        raise InputError(
            f"{path} is no file that advisor can start: `advisor recommend --emit KIND` writes one."
        )
    try:
        match read_json(marks[0]):
            case {"kind": str(kind), "plan": str(plan), "recommendation": str() | None as known} if (
                kind in KINDS
            ):
                return kind, plan, known
            case {"kind": str(kind)}:
                raise InputError(f"{path}: no tool is called {kind!r}.{did_you_mean(kind, KINDS)}")
    except ValueError:
        pass
    raise InputError(f"{path}: its line {MARK.strip()!r} was changed: write the file again.")


def receipt_request(wanted: Launch) -> CommandRequest | None:
    """The tool's command as a run with a receipt; None where the job keeps one itself, or goes on alone."""
    from advisor.service.receipts import CommandRequest

    if not KINDS[wanted.kind].has_receipt:
        return None
    return CommandRequest(command=wanted.command, plan=wanted.plan, recommendation=wanted.recommendation)


def start(wanted: Launch) -> int:
    """The exit code of the command, which has our terminal."""
    return processes.start(wanted.command, stdin=sys.stdin.fileno()).wait()
