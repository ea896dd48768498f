"""What stands for the script on the command line: a file, a notebook, or the command that starts it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.cli.listening import note

if TYPE_CHECKING:
    from advisor.service.traces import TraceRequest


@contextmanager
def script_request(
    source: Path,
    arguments: Sequence[str] | None,
    *,
    world_size: int | None,
    origin_gpu: str | None = None,
    pretended_gpu: str | None = None,
) -> Iterator[TraceRequest]:
    """What to profile, as long as it is needed: of a notebook, the code in a temporary file.

    Args:
        source: script, trace, notebook, or the first word of a command (torchrun, python, run.sh).
        arguments: of the script, or the other words of the command.
        world_size: processes to profile as; if None, those that the command starts.
        origin_gpu: where a profiler's export was recorded.
        pretended_gpu: the GPU that the script sees.

    Raises:
        InputError: no script is in the command, or the notebook cannot be read.
    """
    from advisor.profile.launch_lines import is_launch_line
    from advisor.service.traces import TraceRequest

    request = TraceRequest(
        source=source,
        arguments=tuple(arguments or ()),
        origin_gpu=origin_gpu,
        pretended_gpu=pretended_gpu,
        world_size=world_size,
    )
    if is_launch_line(str(source)):
        request = _of_command(request)
    if not str(request.source).endswith(".ipynb"):
        yield request
        return
    from advisor.profile.notebooks import notebook_script

    notebook = Path(str(request.source))
    beside = os.pathsep.join(filter(None, (str(notebook.parent.resolve()), os.environ.get("PYTHONPATH"))))
    with notebook_script(notebook) as script:
        yield replace(request, source=script, variables={**request.variables, "PYTHONPATH": beside})


def _of_command(request: TraceRequest) -> TraceRequest:
    from advisor.profile.launch_lines import read_launch_line

    line = read_launch_line((str(request.source), *request.arguments))
    world_size = request.world_size or line.world_size
    words = " ".join((str(line.script), *line.arguments))
    note(f"profiling {words}" + (f" as one of {world_size} processes" if world_size else ""))
    return replace(
        request,
        source=line.script,
        arguments=line.arguments,
        world_size=world_size,
        python=Path(line.python) if line.python else None,
        variables=line.variables,
    )
