"""What a change of the script does to its job."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.core.findings import Code
from advisor.core.units import format_bytes, format_change, format_duration, format_signed, format_usd
from advisor.report.words.table import Words


def costs(
    *,
    machine: str,
    measure: str,
    relative: float,
    base_usd: float | None,
    base_p90_usd: float | None,  # noqa: ARG001
    base_s: float,
    head_usd: float | None,
    head_p90_usd: float | None,  # noqa: ARG001
    head_s: float,
) -> str:
    """More or less on the same machine."""
    more = _more(measure, relative, base_usd, head_usd, base_s, head_s)
    return f"{more} per run on {machine}: {_from_to(base_usd, head_usd, base_s, head_s)}"


def rules_out(
    *,
    machine: str,
    why: str | None,
    instead: str,
    measure: str,
    relative: float,
    base_usd: float | None,
    base_p90_usd: float | None,  # noqa: ARG001
    base_s: float,
    head_usd: float | None,
    head_p90_usd: float | None,  # noqa: ARG001
    head_s: float,
) -> str:
    """The machine of before cannot do it any more."""
    more = _more(measure, relative, base_usd, head_usd, base_s, head_s)
    because = "" if why is None else f" ({why})"
    return (
        f"{more} per run: {machine} no longer does the job{because}; the one to take is {instead}:"
        f" {_from_to(base_usd, head_usd, base_s, head_s)}"
    )


def enables(*, machine: str, head_usd: float | None, head_p90_usd: float | None, head_s: float) -> str:  # noqa: ARG001
    """Something does the job for the first time."""
    return f"before the change no machine did the job; now {machine} does it: {_figures(head_usd, head_s)}"


def ends_all(*, machine: str | None) -> str:
    """Nothing does the job any more."""
    before = "no machine did the job before either" if machine is None else f"before, {machine} did it"
    return f"after the change no machine does the job; {before}"


def moves(*, machine: str, head_usd: float | None, head_p90_usd: float | None, head_s: float) -> str:  # noqa: ARG001
    """Another machine is the one to take now."""
    return f"after the change {machine} is the one to take: {_figures(head_usd, head_s)}"


def memory(*, base_bytes: int, head_bytes: int, no_longer: Sequence[str], newly: Sequence[str]) -> str:
    """What a GPU must hold, and which GPUs that rules in or out."""
    fits = [f"no longer fits {', '.join(no_longer)}"] if no_longer else []
    fits += [f"now fits {', '.join(newly)}"] if newly else []
    memory = f"memory of a GPU {format_bytes(base_bytes)} -> {format_bytes(head_bytes)}"
    return ": ".join([memory, *(["; ".join(fits)] if fits else [])])


def _more(
    measure: str,
    relative: float,
    base_usd: float | None,
    head_usd: float | None,
    base_s: float,
    head_s: float,
) -> str:
    if measure == "cost" and base_usd is not None and head_usd is not None:
        more = format_signed(head_usd - base_usd, format_usd)
    else:
        more = format_signed(head_s - base_s, format_duration)
    return f"{more} ({format_change(relative)})"


def _from_to(base_usd: float | None, head_usd: float | None, base_s: float, head_s: float) -> str:
    return f"{_figures(base_usd, base_s)} -> {_figures(head_usd, head_s)}"


def _figures(usd: float | None, seconds: float) -> str:
    cost = "at an unknown cost" if usd is None else format_usd(usd)
    return f"{cost} in {format_duration(seconds)}"


SCRIPT_CHANGES: Words = {
    Code.CHANGE_COSTS: costs,
    Code.CHANGE_ENABLES: enables,
    Code.CHANGE_ENDS_ALL: ends_all,
    Code.CHANGE_MOVES: moves,
    Code.CHANGE_OF_MEMORY: memory,
    Code.CHANGE_RULES_OUT: rules_out,
}
