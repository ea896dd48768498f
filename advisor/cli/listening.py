"""The command line as a listener: notes and warnings on standard error, flags as names of arguments."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from advisor.core.findings import Finding
from advisor.core.units import format_duration
from advisor.report.plain import few, flag_of, in_flags, print_message, print_progress, shown, status_text
from advisor.service.listening import Listener, Step

if TYPE_CHECKING:
    from rich.text import Text

    from advisor.profile.profiling import ProgressEvent


EVERY_S = 10.0


class Narration(Step):
    """A step of the work, the phase it is in, and since when.

    Args:
        limit_s: seconds after which it is given up.
        clock: seconds of any beginning.
    """

    def __init__(
        self, step: str, *, limit_s: float | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._step = step
        self._limit_s = limit_s
        self._clock = clock
        self._began_s = clock()
        self._phase = ""

    def update(self, phase: str) -> None:
        """Say what the step is doing now."""
        self._phase = phase

    def follow(self, line: str) -> None:
        """Take a line of a profiling run; one that tells no event changes nothing."""
        from advisor.profile.profiling import parse_event

        event = parse_event(line)
        if event is not None:
            self.update(in_words(event))

    def line(self) -> str:
        """Step, phase, elapsed time and limit, as text without control characters."""
        elapsed = _whole(self._clock() - self._began_s)
        limit = "" if self._limit_s is None else f" of at most {_whole(self._limit_s)}"
        step = f"{self._step}: {self._phase}" if self._phase else self._step
        return f"{shown(step)} ({elapsed}{limit})"

    def __rich__(self) -> Text:
        """Rich asks anew for each frame."""
        return status_text(self.line())


def tell_until(has_ended: Callable[[], bool], line: Callable[[], str]) -> None:
    """Print a line each time that ``has_ended`` has waited in vain."""
    while not has_ended():
        print_progress(line())


def in_words(event: ProgressEvent) -> str:
    """The phase of a profiling run.

    >>> from advisor.profile.profiling import ProgressEvent, RunPhase
    >>> in_words(ProgressEvent(phase=RunPhase.TRAINING, step=2, num_steps=3, done=37, total=40))
    'optimizer step 2 of 3, micro-step 37 of 40'
    >>> in_words(ProgressEvent(phase=RunPhase.EVALUATION, done=120))
    'evaluation before training, batch 120'
    """
    step = f"optimizer step {_of(event.step, event.num_steps)}"
    match event.phase.name:
        case "TORCH":
            return "importing torch"
        case "SCRIPT":
            return "imports and set-up of the script"
        case "EVALUATION":
            when = "before training" if event.step is None else f"after optimizer step {event.step:,}"
            return f"evaluation {when}, batch {_of(event.done, event.total)}"
        case "MEASURING":
            return f"measuring, {step}"
    # A script that does not accumulate has one micro-step in each step.
    one = event.done in (None, 1) and event.total in (None, 1)
    return step if one else f"{step}, micro-step {_of(event.done, event.total)}"


def _of(done: int | None, total: int | None) -> str:
    count = "?" if done is None else f"{done:,}"
    return count if total is None else f"{count} of {total:,}"


def _whole(seconds: float) -> str:
    minutes, rest_s = divmod(int(seconds), 60)
    if minutes >= 60 or (minutes and not rest_s):
        return format_duration(seconds)
    return f"{minutes} min {rest_s} s" if minutes else f"{rest_s} s"


class Terminal(Listener):
    """Receives what use cases have to say to a person at a terminal, or to a log that a person will read."""

    def note(self, message: str) -> None:
        """One line."""
        print_message("note", message)

    def warn(self, messages: Iterable[str | Finding]) -> None:
        """One line each on stderr, so that results stay clean; of very many only the first."""
        from advisor.report.words import text_of

        for message in few(map(text_of, messages)):
            print_message("warning", in_flags(message))

    @contextmanager
    def step(self, name: str, *, limit_s: float | None = None, at_once: bool = False) -> Iterator[Narration]:
        """A live line; elsewhere than on a terminal a line every ten seconds."""
        if at_once and not sys.stderr.isatty():
            self.note(name)
        narration = Narration(name, limit_s=limit_s)
        if sys.stderr.isatty():
            from rich.console import Console

            with Console(stderr=True).status(narration):
                yield narration
            return
        ended = threading.Event()
        arguments = (lambda: ended.wait(EVERY_S), narration.line)
        thread = threading.Thread(target=tell_until, args=arguments, daemon=True)
        thread.start()
        try:
            yield narration
        finally:
            ended.set()
            thread.join()

    @contextmanager
    def count(self, name: str) -> Iterator[Callable[[int, int], None]]:
        """A bar with the time that is left on a terminal, a line every ten seconds elsewhere."""
        if not sys.stderr.isatty():
            with self.step(name) as narration:
                yield lambda done, total: narration.update(f"{done:,} of {total:,}")
            return
        from rich.console import Console
        from rich.progress import Progress

        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(name, total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)

    def name_of(self, argument: str) -> str:
        """The flag."""
        return flag_of(argument)


TERMINAL = Terminal()
