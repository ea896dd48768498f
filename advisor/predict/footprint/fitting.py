"""What would fit: the largest batch of a script, and the changes after which its batch fits.

Changes of different kinds are combined only where none is enough alone. They are ranked by what they cost in
time; those after which another model comes out, such as low-rank adapters, come last.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from advisor.core.values import Fit, GpuSpec, IterationEstimate, Phase, Remedy, Sharding, Trace
from advisor.predict.distinct import SameTrace
from advisor.predict.footprint.batches import largest_batch, largest_share
from advisor.predict.footprint.need import need_bytes
from advisor.predict.footprint.overheads import overheads
from advisor.predict.footprint.tensors import footprint
from advisor.predict.footprint.versions import (
    StepSeconds,
    Timed,
    Version,
    with_8_bit_optimizer,
    with_autocast,
    with_batch,
    with_bf16_weights,
    with_checkpointing,
    with_lora,
    with_qlora,
    with_sharding,
)
from advisor.predict.interval import spread

Change = tuple[str, Callable[[Version], Version | None]]
# One of each row at most, in this order.
_KINDS: tuple[tuple[Change, ...], ...] = (
    (("autocast", with_autocast), ("bf16-weights", with_bf16_weights)),
    (("8-bit-optimizer", with_8_bit_optimizer), ("lora", with_lora), ("qlora", with_qlora)),
    (("checkpointing", with_checkpointing),),
    tuple((one.value, partial(with_sharding, sharding=one)) for one in Sharding if one is not Sharding.NONE),
)
_BY_NAME = {name: change for kind in _KINDS for name, change in kind}
_KIND_OF = {name: place for place, kind in enumerate(_KINDS) for name, _ in kind}
_ACCUMULATION = "accumulation"
CHANGES = (*_BY_NAME, _ACCUMULATION)
"""The names of all changes."""
_MOST_HALVINGS = 11
# Log-normal, of what any change does to the time of an iteration: none of them was profiled.
_SIGMA_LEAST = 0.05
Versions = dict[tuple[str, ...], Version]


def fitted(
    estimate: IterationEstimate, trace: Trace, gpu: GpuSpec, timed: Timed, *, slowdown: float
) -> IterationEstimate:
    """The estimate with the largest batch, and where it does not fit with what would make it.

    Args:
        estimate: of the trace.
        trace: of the script as it is, with the batch that each GPU takes.
        gpu: the estimate's.
        timed: what iterations of changed scripts take there.
        slowdown: of kernels while GPUs exchange, as a share of their time.
    """
    tensors = footprint(trace, estimate.layout, estimate.split)
    if tensors is None:
        return estimate
    beside, limit_bytes = overheads(trace, gpu, estimate.layout), estimate.memory_limit_bytes
    largest = largest_batch(trace, partial(need_bytes, tensors, beside), limit_bytes)
    if estimate.fit is not Fit.NO:
        return replace(estimate, largest_batch=largest)
    version = Version(
        trace=trace,
        gpu=gpu,
        layout=estimate.layout,
        tensors=tensors,
        beside=beside,
        seconds=_seconds(estimate, timed(SameTrace(trace))),
        timed=timed,
        slowdown=slowdown,
        split=estimate.split,
    )
    return replace(estimate, largest_batch=largest, remedies=remedies(version, limit_bytes))


def _seconds(estimate: IterationEstimate, by_phase: Mapping[Phase, float]) -> StepSeconds:
    """Operators by phase, and what else the iteration takes, without what receipts corrected."""
    whole_s = estimate.device_s.p50 / estimate.correction
    exchange_s = estimate.communication_s / estimate.correction
    return StepSeconds(
        forward=by_phase[Phase.FORWARD],
        backward=by_phase[Phase.BACKWARD],
        optimizer=by_phase[Phase.OPTIMIZER],
        exchange=exchange_s,
        rest=max(whole_s - exchange_s - sum(by_phase.values()), 0.0),
    )


def changed(script: Version, names: Iterable[str]) -> Version | None:
    """The script with the changes of these names; None where one of them does not suit it."""
    version: Version | None = script
    for name in names:
        version = None if version is None else _BY_NAME[name](version)
    return version


def remedies(script: Version, limit_bytes: float) -> tuple[Remedy, ...]:
    """The changes after which the script fits, as few at once as it takes, the least slow first."""
    versions: Versions = {(): script}
    for _ in range(len(_KINDS) + 1):
        smaller = _with_smaller_batches(versions, limit_bytes)
        versions = dict(_with_one_more(versions))
        found = [
            (version.alters, remedy.slower.p50, remedy.need_bytes.p50, remedy)
            for names, version in (versions | dict(smaller)).items()
            for remedy in [_remedy(names, version, script, limit_bytes)]
            if remedy.fit is not Fit.NO
        ]
        if found:
            return tuple(remedy for *_, remedy in sorted(found, key=lambda item: item[:3]))
    return ()


def _remedy(names: tuple[str, ...], version: Version, script: Version, limit_bytes: float) -> Remedy:
    need = version.need_bytes()
    sigma = math.hypot(version.sigma, _SIGMA_LEAST)
    return Remedy(
        changes=names,
        batch_size=_samples(version),
        need_bytes=need,
        fit=Fit.of(need, limit_bytes),
        slower=spread(version.seconds.total / script.seconds.total, sigma),
    )


def _with_one_more(versions: Versions) -> Iterator[tuple[tuple[str, ...], Version]]:
    """Each of them with each change of a later kind."""
    for names, version in versions.items():
        first = _KIND_OF[names[-1]] + 1 if names else 0
        for name, change in itertools.chain.from_iterable(_KINDS[first:]):
            more = change(version)
            if more is not None:
                yield (*names, name), more


def _with_smaller_batches(
    versions: Versions, limit_bytes: float
) -> Iterator[tuple[tuple[str, ...], Version]]:
    """Each of them with as few passes as fit, none of less than a sample."""
    for names, version in versions.items():
        samples, share = _samples(version), largest_share(version.need_bytes, limit_bytes)
        passes = next((2**n for n in range(1, _MOST_HALVINGS) if 2**-n <= share), None)
        if passes is not None and samples is not None and passes <= samples:
            yield (*names, _ACCUMULATION), with_batch(version, 1 / passes)


def _samples(version: Version) -> int | None:
    """Of one pass."""
    trace = version.trace
    if trace.batch_size is None:
        return None
    return max(round(trace.batch_size / trace.accumulation * version.batch), 1)
