"""A second profile of a distributed script, in a world of another size: what becomes of its batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.core.errors import ProfileError
from advisor.core.values import RankWork, Trace

if TYPE_CHECKING:
    from advisor.service.listening import Listener

_MOST_BYTES = 2**20


def with_second_world(
    trace: Trace, script: Path, profiled: Callable[[int], Trace], listener: Listener
) -> Trace:
    """The trace with what a rank does in another world; as it was where there is none.

    Args:
        trace: of the script.
        script: its file.
        profiled: the script's trace as one of so many processes.
        listener: hears where that cannot be had.
    """
    size = _other_size(trace, script)
    if size is None:
        return trace
    try:
        return replace(trace, work_elsewhere=_work_of(profiled(size), trace))
    except ProfileError:
        listener.note(f"as one of {size} the script cannot be profiled: how it scales is assumed")
        return trace


def _other_size(trace: Trace, script: Path) -> int | None:
    """Of a world that may tell more; None where the script has but one.

    A script that reads ``WORLD_SIZE`` may make a group only under torchrun, and divide its batch there.
    """
    if trace.backend != "fake" or trace.is_sharded:
        return None
    if trace.world_size is None:
        return 2 if _reads_world(script) else None
    return 1 if trace.world_size > 1 else 2


def _reads_world(script: Path) -> bool:
    with script.open("rb") as file:
        return b"WORLD_SIZE" in file.read(_MOST_BYTES)


def _work_of(elsewhere: Trace, trace: Trace) -> RankWork | None:
    """What a rank does elsewhere; None where that is a world of the same size after all."""
    if elsewhere.world_size in (None, trace.world_size):
        return None
    return RankWork(
        world_size=elsewhere.world_size,
        batch_size=elsewhere.batch_size,
        accumulation=elsewhere.accumulation,
        flops=elsewhere.flops,
    )
