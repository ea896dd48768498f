"""What stands for the script on the command line: a file, a notebook, or the command that starts it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.cli.listening import note

if TYPE_CHECKING:
    from advisor.profile.launch_lines import LaunchLine
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
    from advisor.profile.launch_lines import LaunchLine, is_launch_line
    from advisor.service.traces import TraceRequest

    line = LaunchLine(script=source, arguments=tuple(arguments or ()))
    if is_launch_line(str(source)):
        line = _read(line, world_size)
    with _python_file(line) as (script, variables):
        yield TraceRequest(
            source=script,
            arguments=line.arguments,
            origin_gpu=origin_gpu,
            pretended_gpu=pretended_gpu,
            world_size=world_size or line.world_size,
            python=Path(line.python) if line.python else None,
            variables=variables,
        )


def _read(typed: LaunchLine, world_size: int | None) -> LaunchLine:
    """What the words of a command start, told to the user."""
    from advisor.profile.launch_lines import read_launch_line

    line = read_launch_line((str(typed.script), *typed.arguments))
    words, num_processes = " ".join((str(line.script), *line.arguments)), world_size or line.world_size
    note(f"profiling {words}" + (f" as one of {num_processes} processes" if num_processes else ""))
    return line


@contextmanager
def _python_file(line: LaunchLine) -> Iterator[tuple[Path, Mapping[str, str]]]:
    """The script and its variables; a notebook's code imports from the notebook's folder."""
    if line.script.suffix != ".ipynb":
        yield line.script, line.variables
        return
    from advisor.profile.notebooks import notebook_script

    folders = str(line.script.parent.resolve()), os.environ.get("PYTHONPATH")
    with notebook_script(line.script) as script:
        yield script, {**line.variables, "PYTHONPATH": os.pathsep.join(filter(None, folders))}
