"""Where a profiling run is, as the child process tells it.

The child runs foreign code, which can write to the same place: what is not one of our own short lines is
ignored.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from advisor.payload.protocol import Counts, Phase

_MOST_CHARACTERS = 200
_MOST = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressEvent:
    """One message of the child.

    Attributes:
        phase: what it does.
        step: the optimizer step that is under way or, in an evaluation, was made last.
        num_steps: how many it is going to make.
        done: evaluated batches, or micro-steps of this optimizer step.
        total: of how many, if known.
    """

    phase: Phase
    step: int | None = None
    num_steps: int | None = None
    done: int | None = None
    total: int | None = None


_COUNTS = tuple(Counts.__annotations__)


def parse_event(line: str) -> ProgressEvent | None:
    """The event that a line tells, None for any other line.

    >>> parse_event('{"phase": "evaluation", "done": 120}')
    ProgressEvent(phase=<Phase.EVALUATION: 'evaluation'>, step=None, num_steps=None, done=120, total=None)
    >>> parse_event('{"phase": "mining", "done": 120}') is None
    True
    """
    if len(line) > _MOST_CHARACTERS:
        return None
    try:
        message = json.loads(line)
        phase = Phase(message["phase"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    counts = {name: message[name] for name in _COUNTS if name in message}
    if not all(type(count) is int and 0 < count <= _MOST for count in counts.values()):
        return None
    return ProgressEvent(phase=phase, **counts)
