"""``advisor measure``: kernels of this machine's GPU -> a recording."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from advisor.cli.common import FormatOption, JsonOption, PythonOption, chosen_format, note
from advisor.cli.progress import progress
from advisor.report.printing import Format, print_document

QuickOption = Annotated[bool, typer.Option("--quick", help="About a minute: some 170 kernels.")]
FullOption = Annotated[bool, typer.Option("--full", help="Up to an hour: some 7,800 kernels.")]


class Backend(StrEnum):
    """Where kernels are measured."""

    CUDA = "cuda"
    CPU = "cpu"


OnlyOption = Annotated[
    str | None,
    typer.Option(
        metavar="FAMILIES",
        help="These alone, such as gemm,conv; of gemm, bmm, conv, rnn, attention, norm, softmax, loss,"
        " elementwise, reduction, pooling, embedding, optimizer, transfer.",
    ),
]


def measure(
    quick: QuickOption = False,
    full: FullOption = False,
    only: OnlyOption = None,
    out: Annotated[Path, typer.Option(help="The recording; one that was cut short is continued.")] = Path(
        "kernels.jsonl"
    ),
    backend: Annotated[
        Backend, typer.Option(help="cpu tries it out: such times predict nothing.", case_sensitive=False)
    ] = Backend.CUDA,
    python: PythonOption = None,
    output: FormatOption = Format.TABLE,
    as_json: JsonOption = False,
) -> None:
    """Measure kernels on this machine's GPU, some 1,700 in about ten minutes, and keep them in a file."""
    from advisor.cli.common import settings_with, warn
    from advisor.core.errors import InputError
    from advisor.measure import Extent, grid, measure
    from advisor.predict.calibration.calibrating import drift_warnings
    from advisor.report.recording import recording_document, skipped_lines

    if quick and full:
        raise InputError("give either --quick or --full.")
    config = settings_with(profile__python=python)
    extent = Extent.QUICK if quick else Extent.FULL if full else Extent.DEFAULT
    families = [word.strip() for word in only.split(",")] if only is not None else []
    cases = grid(extent, only=families, backend=backend)
    with counting(f"measuring on {backend}") as tell, _kept_in(out, tell) as state:
        recording = measure(
            cases, out, backend=backend, python=config.settings.profile.python, progress=state
        )
    if state.was_done:
        note(f"{out} was complete already.")
    for line in skipped_lines(recording):
        note(line)
    warnings = drift_warnings(recording)
    warn(warnings)
    print_document(recording_document(recording, out, warnings), chosen_format(output, as_json))


class _Told:
    """How far the measuring has come."""

    def __init__(self, tell: Callable[[int, int], None]) -> None:
        self._tell = tell
        self.done = self.total = 0
        self.was_done = False

    def __call__(self, done: int, total: int) -> None:
        self.was_done = done == total and self.total == 0
        self.done, self.total = done, total
        self._tell(done, total)


@contextmanager
def _kept_in(out: Path, tell: Callable[[int, int], None]) -> Iterator[_Told]:
    """Where the command is interrupted, say what there is."""
    state = _Told(tell)
    try:
        yield state
    except KeyboardInterrupt:
        if state.done:
            note(f"{state.done} of {state.total} are kept in {out}; the same command goes on there.")
        raise


@contextmanager
def counting(message: str) -> Iterator[Callable[[int, int], None]]:
    """A bar with the time that is left on a terminal, a line every ten seconds elsewhere."""
    if not sys.stderr.isatty():
        with progress(message) as narration:
            yield lambda done, total: narration.update(f"{done:,} of {total:,} kernels")
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(message, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
