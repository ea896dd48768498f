"""A second profile of a distributed script, in another world: what becomes of its batch and its model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.core.errors import ProfileError
from advisor.core.findings.about_traces import World
from advisor.core.values import RankWork, Trace

if TYPE_CHECKING:
    from advisor.service.listening import Listener

_MOST_BYTES = 2**20


def with_second_profile(
    trace: Trace,
    script: Path,
    profiled: Callable[[int], Trace],
    listener: Listener,
    *,
    is_world_asked: bool,
    is_scaling_known: bool,
) -> Trace:
    """The trace with what a rank does in another world; as it was where there is none.

    Of a script that shards its model, and that nobody asked to profile alone, it is the other world's trace:
    that tells what ranks hold and exchange, and it serves for any number of them.

    Args:
        trace: of the script.
        script: its file.
        profiled: the script's trace as one of so many processes.
        listener: hears where that cannot be had.
        is_world_asked: the trace's world is the user's.
        is_scaling_known: somebody said what becomes of its batch.
    """
    # Imported late: with numpy, which nobody waits for who looks at the package.
    from advisor.predict.exchange.collectives import sharding_group, state_group

    size = _other_size(trace, script)
    # Whether a script shards its model shows in the other world alone.
    if size is None or (is_scaling_known and is_world_asked):
        return trace
    try:
        other = profiled(size)
    except ProfileError:
        listener.note(f"as one of {size} the script cannot be profiled: how it scales is assumed")
        return trace
    shows_more = state_group(other) is not None and state_group(trace) is None
    if is_world_asked or not (shows_more or sharding_group(other) is not None):
        return replace(trace, work_elsewhere=_work_of(other, trace))
    warning = World(of="shards", num_ranks=size)
    return replace(other, work_elsewhere=_work_of(trace, other), warnings=(warning, *other.warnings))


def _other_size(trace: Trace, script: Path) -> int | None:
    """Of a world that may tell more; None where the script has but one.

    A script that reads ``WORLD_SIZE`` may make a group only under torchrun, and divide its batch there.
    """
    if trace.backend != "fake":
        return None
    if trace.world_size is None:
        return 2 if _reads_world(script) else None
    if trace.world_size == 1:
        return 2
    return None if trace.is_sharded else 1


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
