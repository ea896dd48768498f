"""How a run ended, and how its cost is known."""

from __future__ import annotations

from enum import StrEnum


class RunStatus(StrEnum):
    """How a run ended."""

    FINISHED = "finished"
    FAILED = "failed"  # it ended with an exit code other than 0
    INTERRUPTED = "interrupted"  # by a signal, such as Ctrl-C or a spot machine that goes away
    LOST = "lost"  # nobody saw its end


class CostKind(StrEnum):
    """How the cost of a run came to be known."""

    BILLED = "billed"
    ESTIMATED = "estimated"  # price x time
    STATED = "stated"  # by a person
