"""What one GPU must hold, part by part, the batch that would fill it, and what would make it fit."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import asdict

from advisor.core.units import format_bytes
from advisor.core.values import Confirmation, Fit, IterationEstimate, LargestBatch, Remedy, Trace
from advisor.predict.fitting import arguments_of_largest
from advisor.report.document import Fact
from advisor.report.remedies import remedy_text

_FITS = {Fit.CERTAIN: "", Fit.LIKELY: ", likely", Fit.NO: ", not enough"}
# Those that cost the least time; JSON has all.
_MOST_REMEDIES = 5


def memory_json(estimate: IterationEstimate) -> Mapping[str, object] | None:
    """Parts, need and what would fit, by contract (docs/json.md); None where the need is unknown."""
    memory, largest = estimate.memory, estimate.largest_batch
    if memory is None:
        return None
    return {
        "parts": {f"{part}_bytes": num_bytes for part, num_bytes in memory.parts.items()},
        "need_bytes": asdict(memory.need_bytes),
        "fit": estimate.fit,
        "largest_batch": None if largest is None else asdict(largest),
        "remedies": [asdict(remedy) for remedy in estimate.remedies],
    }


def memory_facts(estimate: IterationEstimate, trace: Trace | None = None) -> Iterator[Fact]:
    """A line each; parts add up to the need. The trace tells how to confirm the largest batch."""
    memory = estimate.memory
    if memory is None:
        yield Fact("needed", "unknown")
        yield Fact("available", format_bytes(estimate.memory_limit_bytes))
        return
    yield from (Fact(part, format_bytes(num_bytes)) for part, num_bytes in memory.parts.items() if num_bytes)
    low, high = format_bytes(memory.need_bytes.p10), format_bytes(memory.need_bytes.p90)
    yield Fact("needed", f"{format_bytes(memory.need_bytes.p50)} ({low} .. {high})")
    fit = _FITS[memory.fit(estimate.memory_limit_bytes)]
    yield Fact("available", f"{format_bytes(estimate.memory_limit_bytes)}{fit}")
    if (largest := estimate.largest_batch) is not None:
        yield Fact("largest batch", _largest(largest, None if trace is None else trace.batch_size))
        command = None if trace is None else _confirming(trace, estimate, largest)
        if command is not None:
            yield Fact("to confirm", command)
    yield from (Fact("would fit", _remedy(remedy)) for remedy in estimate.remedies[:_MOST_REMEDIES])


def _largest(largest: LargestBatch, batch_size: int | None) -> str:
    if largest.likely is None or largest.certain is None:
        return f"{largest.share:.2g} of the profiled one"
    profiled = "" if batch_size is None else f"; {batch_size:,} was profiled"
    if largest.certain == largest.likely:
        return f"{largest.likely:,}{profiled}"
    return f"{largest.certain:,}, and likely up to {largest.likely:,}{profiled}"


def _confirming(trace: Trace, estimate: IterationEstimate, largest: LargestBatch) -> str | None:
    """The command that profiles the script with that batch, where it takes its batch as an argument."""
    arguments = arguments_of_largest(trace, largest)
    if arguments is None:
        return None
    return f"advisor predict {shlex.join([trace.script, '--gpu', estimate.gpu, '--', *arguments])}"


def confirmed_fact(confirmation: Confirmation) -> Fact:
    """What profiling the largest batch showed."""
    estimate, size = confirmation.estimate, confirmation.batch_size
    memory = estimate.memory
    profiled = "the largest batch was profiled" if size is None else f"{size:,} was profiled"
    if memory is None:
        return Fact("confirmed", f"{profiled}, and its need is unknown")
    limit = format_bytes(estimate.memory_limit_bytes)
    fits = {Fit.CERTAIN: "fits", Fit.LIKELY: "is likely to fit", Fit.NO: "does not fit"}[
        estimate.fit or Fit.NO
    ]
    return Fact("confirmed", f"{profiled}: {format_bytes(memory.need_bytes.p50)} of {limit}, which {fits}")


def _remedy(remedy: Remedy) -> str:
    facts = {
        "changes": remedy.changes,
        "needed_bytes": remedy.need_bytes.p50,
        "slower": remedy.slower.p50,
    }
    likely = ", likely" if remedy.fit is Fit.LIKELY else ""
    return f"{remedy_text(facts)}{likely}"
