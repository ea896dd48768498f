"""From an answer to the run: what a job needs elsewhere, and starting a file that says it all."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advisor.config.setting_kinds import catalog_name
from advisor.core import processes
from advisor.core.errors import InputError, did_you_mean
from advisor.core.redaction import redact, redact_words
from advisor.core.values import Option, Tier, Trace
from advisor.service.job_files import KINDS, MARK, Handoff
from advisor.service.recommend.policy_in_force import check_guarded

if TYPE_CHECKING:
    from advisor.config.settings import ClusterSettings, PolicySettings, ProfileSettings, SpotSettings
    from advisor.service.receipts import CommandRequest
    from advisor.service.recommend.recommending import RecommendAnswer
    from advisor.service.traces import TraceRequest

REQUIREMENTS = "requirements.txt"
# Of each kind of file: our own guard, coreutils, dstack, Kubernetes.
_LIMIT = re.compile(r"--max-(time|cost) |timeout --signal=|max_duration: \d|activeDeadlineSeconds: \d")
_MOST_BYTES = 100_000
_ASK_WITHIN_S = 60.0
# Runs in the user's own interpreter: names of modules -> distributions, their versions, and where from.
_VERSIONS = """
import sys
# Nothing of the working folder is imported.
sys.path = [place for place in sys.path if place]
import json
from importlib.metadata import distribution, packages_distributions
found = packages_distributions()
known = {name: distribution(name) for module in sys.argv[1:] for name in found.get(module, ())}
print(json.dumps({
    "modules": {module: found.get(module, []) for module in sys.argv[1:]},
    "from": {name: [one.version, json.loads(one.read_text("direct_url.json") or "null")]
             for name, one in known.items()},
}))
"""


def script_to_start(source: Path | Trace) -> Path:
    """The script by its place in the current folder. Raises InputError: a trace, or not in that folder."""
    from advisor.service.traces import holds_data

    if not isinstance(source, Path) or holds_data(source):
        raise InputError("a saved trace cannot be started: give the script itself.")
    if not source.resolve().is_relative_to(Path.cwd()):
        raise InputError(
            "the job gets the files of the current folder, and the script is not in it: change to its folder"
            " (`advisor recipe write` saves a recipe, and a notebook is exported as a script)."
        )
    return source.resolve().relative_to(Path.cwd())


def handoff_of(
    answer: RecommendAnswer,
    option: Option,
    trace: TraceRequest,
    settings: ProfileSettings,
    spot: SpotSettings,
    clusters: Sequence[ClusterSettings] = (),
) -> Handoff:
    """What is to be started for this option of an answer, from settings.

    Raises InputError: the answer was not about a script, or its packages cannot be told.
    """
    script = script_to_start(trace.source)
    python = trace.python or settings.python or Path(sys.executable)
    requirements = script.parent / REQUIREMENTS
    packages, not_packaged = ((), ()) if requirements.is_file() else packages_of(script, python)
    # A cluster may have several kinds of nodes under one name.
    of_cluster = (
        one for one in clusters if (option.plan.tier, option.plan.provider) == (Tier.CLUSTER, one.name)
    )
    walltimes = (one.walltime for one in of_cluster if catalog_name(one.gpu) == option.plan.gpu)
    return Handoff(
        command=(str(script), *redact_words(trace.arguments, os.environ)),
        option=option,
        packages=packages,
        not_packaged=not_packaged,
        requirements=str(requirements) if requirements.is_file() else None,
        checkpoint_interval_s=spot.checkpoint_interval,
        budget_usd=answer.recommendation.job.budget_usd,
        recommendation=answer.entry_id,
        walltime_s=next(walltimes, None),
    )


def packages_of(script: Path, python: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a script imports, as pip takes it, and what pip cannot install elsewhere; it is parsed, never run.

    Raises InputError: the script cannot be parsed, or the interpreter does not answer.
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
    names = {name.partition(".")[0] for name in imported} - sys.stdlib_module_names
    # These come with the folder of the script.
    modules = sorted(n for n in names if not any((script.parent / at).exists() for at in (n, f"{n}.py")))
    try:
        # An empty or relative entry means the working folder, which may be anybody's.
        absolute = filter(os.path.isabs, os.environ.get("PYTHONPATH", "").split(os.pathsep))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(absolute)}
        answer = processes.run(
            (python, "-c", _VERSIONS, *modules), timeout_s=_ASK_WITHIN_S, environment=environment
        )
        told: dict[str, dict[str, Any]] = json.loads(answer.stdout)
        wanted = {name: _requirement(name, *told["from"][name]) for name in sorted(told["from"])}
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{str(python)!r} does not tell the versions of its packages: {error}.") from error
    unknown = [module for module, found in told["modules"].items() if not found]
    here = sorted({*unknown, *(name for name, requirement in wanted.items() if requirement is None)})
    return tuple(one for one in wanted.values() if one is not None), tuple(here)


def _requirement(name: str, version: str, direct: Mapping[str, Any] | None) -> str | None:
    """As pip takes it; None for what was installed from a folder or file of this machine (PEP 610)."""
    if direct is None:
        return f"{name}=={version.partition('+')[0]}"
    url = redact(str(direct["url"]))
    if url.startswith("file:"):
        return None
    vcs = direct.get("vcs_info")
    at = url if vcs is None else f"{vcs['vcs']}+{url}@{vcs['commit_id']}"
    subfolder = direct.get("subdirectory")
    return f"{name} @ {at}" + (f"#subdirectory={subfolder}" if subfolder else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFile:
    """A file that can be started."""

    path: Path
    kind: str
    plan: str
    recommendation: str | None
    text: str
    command: tuple[str, ...]

    @property
    def has_limit(self) -> bool:
        """Whether the job ends at some cost or time, as each file that we write says."""
        lines = (line for line in self.text.splitlines() if not line.lstrip().startswith("#"))
        return any(_LIMIT.search(line) for line in lines)

    def check(self, policy: PolicySettings) -> None:
        """Whether it can be started here.

        Raises:
            InputError: the tool that starts it is not installed, or the file is to be changed first.
            PolicyViolationError: the policy demands a limit, and someone took it out of the file.
        """
        if not self.has_limit:
            check_guarded(policy, f"{self.path} has none (any more): write the file again.")
        program = self.command[0]
        if processes.program(program) is None:
            raise InputError(
                f"{self.path} is started by {program!r}, which is not installed here (or not on PATH)."
            )
        if self.kind == "kubernetes" and "image: IMAGE" in self.text:
            raise InputError(f"{self.path} names no image yet: set it to one that has the script.")


def launch_of(path: Path) -> LaunchFile:
    """What starts a file that `recommend --emit` wrote. Raises InputError: it is none."""
    from advisor.formats.foreign_files import read_plain

    try:
        text = read_plain(path, most_bytes=_MOST_BYTES).decode()
    except (OSError, ValueError) as error:
        raise InputError(
            f"cannot read {str(path)!r}: {getattr(error, 'strerror', None) or error}."
        ) from error
    kind, plan, recommendation = _facts(path, text)
    return LaunchFile(
        path=path,
        kind=kind,
        plan=plan,
        recommendation=recommendation,
        text=text,
        command=(*KINDS[kind].command(text), str(path)),
    )


def _facts(path: Path, text: str) -> tuple[str, str, str | None]:
    from advisor.formats.foreign_files import read_json

    marks = [line.removeprefix(MARK) for line in text.splitlines() if line.startswith(MARK)]
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
                near = did_you_mean(kind, KINDS)
                raise InputError(f"{path}: no tool is called {kind!r}.{near} There are {', '.join(KINDS)}.")
    except ValueError:
        pass
    raise InputError(f"{path}: its line {MARK.strip()!r} was changed: write the file again.")


def receipt_request(wanted: LaunchFile) -> CommandRequest | None:
    """The tool's command as a run with a receipt; None where the job keeps one itself, or goes on alone."""
    from advisor.service.receipts import CommandRequest

    if not KINDS[wanted.kind].has_receipt:
        return None
    return CommandRequest(
        command=wanted.command,
        plan=wanted.plan,
        recommendation=wanted.recommendation,
        has_limit=wanted.has_limit,
    )


def start(wanted: LaunchFile) -> int:
    """The exit code of the command, which has our terminal."""
    process = processes.start(wanted.command, stdin=sys.stdin.fileno(), stdout=processes.for_printing())
    return process.wait()
