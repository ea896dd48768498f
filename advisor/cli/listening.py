"""The command line as a listener: notes and warnings on standard error, flags as names of arguments."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager

from advisor.cli.live_line import Narration, counting, progress
from advisor.core.findings import Finding
from advisor.report.plain import few, print_message

# Where a flag is not the argument's name with dashes.
FLAGS: Mapping[str, str] = {
    "budget_usd": "--budget",
    "cloud.providers": "--provider",
    "cloud.regions": "--region",
    "cloud.markets": "--market",
    "cost_usd": "--cost",
    "policies": "--policy",
    "deadline_s": "--deadline",
    "duration_s": "--duration",
    "gpus": "--gpu",
    "local.gpu": "--local-gpu",
    "max_usd_per_h": "--max-price",
    "num_gpus": "--gpus",
    "pretended_gpu": "--as",
    "run_id": "--id",
    "source": "--from",
    "started_at": "--start",
    "usd_per_h": "--usd-per-hour",
    "value_of_time_usd_per_h": "--value-of-time",
    "vendors": "--allow-vendor",
    "world_size": "--world",
}


def warn(messages: Iterable[str]) -> None:
    """Warnings go to stderr, so that results stay clean; of very many only the first."""
    for message in few(messages):
        print_message("warning", message)


def note(message: str) -> None:
    """What is worth knowing and no warning."""
    print_message("note", message)


class Terminal:
    """Hears what use cases have to say to a person at a terminal, or to a log that a person will read."""

    def note(self, message: str) -> None:
        """One line."""
        note(message)

    def warn(self, messages: Iterable[str | Finding]) -> None:
        """One line each."""
        from advisor.report.words import text_of

        warn(map(text_of, messages))

    def step(
        self, name: str, *, limit_s: float | None = None, at_once: bool = False
    ) -> AbstractContextManager[Narration]:
        """A live line; elsewhere than on a terminal a line every ten seconds."""
        if at_once and not sys.stderr.isatty():
            note(name)
        return progress(name, limit_s=limit_s)

    def count(self, name: str) -> AbstractContextManager[Callable[[int, int], None]]:
        """A bar, or a line every ten seconds."""
        return counting(name)

    def name_of(self, argument: str) -> str:
        """The flag."""
        return FLAGS.get(argument) or f"--{argument.rpartition('.')[2].replace('_', '-')}"


TERMINAL = Terminal()
