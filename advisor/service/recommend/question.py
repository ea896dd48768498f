"""The question where to run a script."""

from dataclasses import dataclass
from pathlib import Path

from advisor.core.changes import ALL, CHANGE_NAMES
from advisor.core.errors import InputError, did_you_mean
from advisor.core.values import Job
from advisor.service.listening import Listener
from advisor.service.traces import TraceRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommendRequest:
    """What to recommend a machine for.

    Attributes:
        trace: the script.
        gpus: GPUs or families with counts of all nodes, such as ``A100:8`` or ``H100:1..8``; none for any.
        num_nodes: machines that train together; None for one, or as many as the settings allow.
        vendors: whose GPUs count.
        policies: files of rules to obey, besides those of the settings.
        project: whose budget it is, for monthly limits and the ledger.
        what_if: names of changes of the script, ``all`` for every one; None for the best of one line.
        patch: also write these changes into the script.
        everywhere: also at places that are never the cheapest for a machine, for who names a place.
    """

    trace: TraceRequest
    job: Job
    gpus: tuple[str, ...] = ()
    vendors: tuple[str, ...] = ("nvidia",)
    policies: tuple[Path, ...] = ()
    project: str = ""
    what_if: tuple[str, ...] | None = None
    patch: bool = False
    everywhere: bool = False
    num_nodes: int | None = None


def what_if_names(request: RecommendRequest, listener: Listener) -> tuple[str, ...] | None:
    """The changes that are asked for, each once; None where none was named.

    Raises:
        InputError: there is no such change.
    """
    if request.what_if is None:
        return None
    for name in request.what_if:
        if name not in (ALL, *CHANGE_NAMES):
            raise InputError(
                f"{listener.name_of('what_if')} must be {ALL} or some of {', '.join(CHANGE_NAMES)}, got"
                f" {name!r}.{did_you_mean(name, (ALL, *CHANGE_NAMES))}"
            )
    return CHANGE_NAMES if ALL in request.what_if else tuple(dict.fromkeys(request.what_if))
