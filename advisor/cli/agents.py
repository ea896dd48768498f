"""``advisor mcp``: questions of agents and editors, each answered by a command of advisor that only reads.

A tool's arguments become words of a command line, and its answer is what that command prints: an agent sees
what a person would see, and nothing is answered twice.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from advisor.cli.common import option
from advisor.core.errors import AdvisorError, InputError
from advisor.core.processes import ADVISOR

if TYPE_CHECKING:
    from mcp.server import MCPServer

_WITHIN_S = 600
_MOST_CHARACTERS = 60_000
_INSTRUCTIONS = (
    "Where a PyTorch training should run, with predicted time, dated prices and odds. Profile a script first"
    " in a terminal (`advisor profile train.py`): tools take the saved trace, or a recipe and a model. Costs"
    " are US dollars before tax; p90 is what nine of ten runs stay under."
)


def mcp(
    folder: Annotated[
        Path,
        option("Where traces and bills may be read; nothing outside it is.", "--folder", metavar="FOLDER"),
    ] = Path(),
) -> None:
    """Answer questions of agents and editors over standard input and output (Model Context Protocol).

    Tools only read: recommend, explain, compare, prices, spend. No script of the user's is ever run.
    """
    if not folder.is_dir():
        raise InputError(f"there is no folder {str(folder)!r}: name one that holds traces.")
    try:
        server = server_of(folder.resolve())
    except ImportError as error:
        raise InputError(
            f"agents need the package mcp ({error}): pip install 'gpu-advisor[agents]' in advisor's own"
            " environment."
        ) from error
    server.run()


def server_of(folder: Path) -> MCPServer[Any]:
    """The server with its tools, for files in a folder. Raises ImportError: the SDK is not installed."""
    from mcp.server import MCPServer

    from advisor import __version__

    server: MCPServer[Any] = MCPServer(
        "advisor", instructions=_INSTRUCTIONS, version=__version__, log_level="WARNING"
    )
    for tool in _tools(folder):
        server.tool(structured_output=False)(_in_a_sentence(tool))
    return server


def _in_a_sentence(tool: Callable[..., Any]) -> Callable[..., Any]:
    """The tool; errors reach the agent in our words."""
    from mcp.server.mcpserver.exceptions import ToolError

    @wraps(tool)
    async def told(**arguments: Any) -> str:
        try:
            answer: str = await tool(**arguments)
        except AdvisorError as error:
            raise ToolError(str(error)) from error
        return answer

    return told


def _tools(folder: Path) -> Iterable[Callable[..., Any]]:
    # Types stand in the tools' schemas, so their names must be known at run time.
    async def recommend(
        trace: str | None = None,
        recipe: str | None = None,
        model: str | None = None,
        tokens: str | None = None,
        epochs: float | None = None,
        iterations: int | None = None,
        budget_usd: float | None = None,
        deadline: str | None = None,
        gpus: list[str] | None = None,
        providers: list[str] | None = None,
        max_nodes: int | None = None,
    ) -> str:
        """Where to train: the machine to take, its cost and time with odds, and the alternatives.

        Give a saved trace (a file) with epochs or iterations, or a recipe (lora, qlora, full, pretrain, ...)
        with a model (llama-3.1-8b, a path of a config.json) and tokens (20M). deadline is such as 12h or 3d;
        gpus are such as L4, A100:8, H100:1..8; providers are aws, gcp, ...
        """
        subject = _subject(folder, trace, recipe)
        options = _options(
            recipe=recipe, model=_model(folder, model), tokens=tokens, epochs=epochs, iterations=iterations,
            budget=budget_usd, deadline=deadline, gpu=gpus, provider=providers, max_nodes=max_nodes,
        )  # fmt: skip
        return await _answer(folder, ["recommend", *subject, *options, "--no-record", "--format", "markdown"])

    async def explain(
        trace: str, option: str, epochs: float | None = None, iterations: int | None = None
    ) -> str:
        """One option of a recommendation line by line, by its id, such as aws/g6.xlarge/us-east-1/spot."""
        options = _options(epochs=epochs, iterations=iterations, explain=option)
        return await _answer(folder, ["recommend", *_subject(folder, trace, None), *options, "--no-record"])

    async def compare(
        trace: str, a: str, b: str, epochs: float | None = None, iterations: int | None = None
    ) -> str:
        """Two plans side by side: a and b are ids, or words such as 'g6.12xlarge spot' and L4:4."""
        options = _options(epochs=epochs, iterations=iterations)
        plans = [_word("a", a), _word("b", b)]
        subject = _subject(folder, trace, None)
        return await _answer(folder, ["compare", *subject, *plans, *options, "--format", "markdown"])

    async def prices(
        gpus: list[str] | None = None,
        providers: list[str] | None = None,
        regions: list[str] | None = None,
        markets: list[str] | None = None,
        max_usd_per_h: float | None = None,
    ) -> str:
        """Machines for rent, cheapest first, each price with its age. regions take wildcards: us-*."""
        options = _options(
            gpu=gpus, provider=providers, region=regions, market=markets, max_price=max_usd_per_h
        )
        return await _answer(folder, ["prices", *options, "--format", "markdown"])

    async def spend(since: str | None = None, team: str | None = None, project: str | None = None) -> str:
        """What was spent, billed and predicted: since is a date or how far back (30d)."""
        options = _options(since=since, team=team, project=project)
        return await _answer(folder, ["report", *options, "--format", "markdown"])

    return recommend, explain, compare, prices, spend


def _subject(folder: Path, trace: str | None, recipe: str | None) -> Sequence[str]:
    """The trace as a path within the folder; a script, or what lies outside, is refused."""
    if (trace is None) == (recipe is None):
        raise InputError("give either trace or recipe.")
    return () if trace is None else (str(allowed(folder, trace)),)


def _model(folder: Path, name: str | None) -> str | None:
    """A model's name or Hugging Face id; a path only within the folder."""
    if name is None:
        return name
    is_path = Path(name).is_absolute() or ".." in Path(name).parts or (folder / name).exists()
    if is_path and not (folder / name).resolve().is_relative_to(folder):
        raise InputError(f"model {name!r} lies outside {folder}: name a model, or a config.json in it.")
    return name


def allowed(folder: Path, name: str) -> Path:
    """A saved trace in the folder, wherever links lead.

    Raises InputError: it lies elsewhere, or is no saved trace: a script is not run for an agent.
    """
    from advisor.formats.trace_files import is_trace

    try:
        path = (folder / name).resolve()
        is_ours = path.is_relative_to(folder) and path.is_file() and is_trace(path)
    except (OSError, ValueError):
        is_ours = False
    if not is_ours:
        raise InputError(
            f"{name!r} is no saved trace in {folder}: write one there with `advisor profile`. Scripts are not"
            " run for agents."
        )
    return path


def _options(**given: object) -> list[str]:
    """Flags and their values; lists repeat a flag, and None leaves it out."""
    words = []
    for name, value in given.items():
        for one in value if isinstance(value, list) else () if value is None else (value,):
            words += [f"--{name.replace('_', '-')}", _word(name, str(one))]
    return words


def _word(name: str, text: str) -> str:
    """A value that cannot be taken for a flag. Raises InputError: it could be."""
    if not text or text.startswith("-"):
        raise InputError(f"{name} is {text!r}: a value does not begin with a dash.")
    return text


async def _answer(folder: Path, arguments: Sequence[str]) -> str:
    """What the command prints; its messages are the error where it fails."""
    import anyio
    from mcp.server.mcpserver.exceptions import ToolError

    with anyio.move_on_after(_WITHIN_S):
        done = await anyio.run_process(
            [*ADVISOR, *arguments],
            stdin=subprocess.DEVNULL,
            check=False,
            cwd=folder,
            env={**os.environ, "COLUMNS": "120", "NO_COLOR": "1"},
        )
        out, err = (text.decode(errors="replace").strip() for text in (done.stdout, done.stderr))
        # 4 is an answer, too: nothing meets the limits, and the rows say why.
        if done.returncode and not out:
            raise ToolError(err[-_MOST_CHARACTERS:])
        return "\n\n".join(filter(None, (out[:_MOST_CHARACTERS], err[-_MOST_CHARACTERS:])))
    raise ToolError(f"no answer within {_WITHIN_S} s")
