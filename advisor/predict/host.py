"""How long the host takes to launch a step, by kind of call.

    host = sum over kinds of calls * seconds a call

A ResNet-50 step in eager mode is some 500 calls that launch kernels. Those of the forward pass come through
Python, the dispatcher and autograd's bookkeeping, those of the backward pass from the autograd engine in C++.
A CUDA graph launches a whole pass at once.

Kernels wait in a queue, so the host runs ahead of the GPU and a step takes the longer of the two. Where the
script reads a value from the GPU, the queue runs empty: what follows is launched beside an idle GPU.

Source: ``catalogs/host.toml``; docs/methods/host.md.
"""

import math
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from itertools import pairwise

from advisor.core.errors import CatalogError
from advisor.core.gpus import catalog_path
from advisor.core.values import Z90, Interval, Launch, Op, Phase, Trace
from advisor.predict.distinct import kept
from advisor.predict.interval import spread

FILE = "host.toml"
# What waits for the GPU: a value that a script reads.
SYNCHRONISING = "advisor::d2h_copy"
# A step that took so many times its kernels waited for more than the gaps between them.
LEAST_WAIT = 1.25


class HostCall(StrEnum):
    """What the host does to launch kernels.

    ``STEP`` is a call of an optimizer, ``TENSOR`` each tensor of a list that it works on. ``COMPILED`` is a
    kernel of a compiled pass, ``GRAPH`` a CUDA graph and ``NODE`` one of its kernels.
    """

    FORWARD = "forward"
    BACKWARD = "backward"
    STEP = "step"
    TENSOR = "tensor"
    COMPILED = "compiled"
    GRAPH = "graph"
    NODE = "node"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCosts:
    """What launching costs a host."""

    call_s: Mapping[HostCall, float]
    """Of one call, by its kind."""
    sigma: float
    """Log-normal, of the sum of a step on a machine whose CPU was not measured."""

    def seconds(self, calls: Mapping[HostCall, int]) -> float:
        """Median seconds of so many calls."""
        return sum(self.call_s[call] * number for call, number in calls.items())


@cache
def host_costs() -> HostCosts:
    """As shipped. Raises CatalogError: the file is missing or broken."""
    path = catalog_path(FILE)
    try:
        return parsed(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise CatalogError(f"cannot read {str(path)!r}: {error}. Reinstall gpu-advisor.") from error


def parsed(text: str) -> HostCosts:
    """The costs of a ``host.toml``."""
    document = tomllib.loads(text)
    costs = {call: float(document["call_s"][call]) for call in HostCall}
    return HostCosts(call_s=costs, sigma=float(document["sigma"]))


@kept(8)
def calls_of(ops: Sequence[Op], launch: Launch = Launch.EAGER) -> Mapping[Phase, Mapping[HostCall, int]]:
    """How often the host does what in each phase.

    Args:
        launch: of forward and backward passes; optimizers step in eager mode.
    """
    calls: dict[Phase, Counter[HostCall]] = {phase: Counter() for phase in Phase}
    for op in ops:
        calls[op.phase].update(_calls(op, launch))
    for phase in (Phase.FORWARD, Phase.BACKWARD):
        if launch is Launch.GRAPH and calls[phase]:
            calls[phase][HostCall.GRAPH] = 1
    return calls


def _calls(op: Op, launch: Launch) -> Mapping[HostCall, int]:
    if op.phase is Phase.OPTIMIZER:
        tensors = op.attributes.get("num_tensors")
        of_lists = op.count * tensors if isinstance(tensors, int) else 0
        return {HostCall.STEP: op.count, HostCall.TENSOR: of_lists}
    if launch is Launch.EAGER:
        return {HostCall.BACKWARD if op.phase is Phase.BACKWARD else HostCall.FORWARD: op.count}
    return {HostCall.COMPILED if launch is Launch.COMPILED else HostCall.NODE: op.count}


def launching(trace: Trace, stepping: float = 1.0) -> Mapping[Phase, float]:
    """Median seconds in which the host launches each phase, no more than a measured step took.

    Args:
        stepping: calls of the optimizer, over those of the trace.
    """
    costs = host_costs()
    calls, repeats = calls_of(trace.ops, trace.launch), trace.mean_step.calls
    by_phase = {phase: costs.seconds(of_phase) * repeats for phase, of_phase in calls.items()}
    by_phase[Phase.OPTIMIZER] *= stepping
    whole_s, measured_s = sum(by_phase.values()), _waited_s(trace)
    if measured_s is None:
        measured_s = whole_s if trace.iteration_s is None else min(whole_s, trace.iteration_s)
    return {phase: seconds * measured_s / whole_s for phase, seconds in by_phase.items()}


def _waited_s(trace: Trace) -> float | None:
    """What launching took, where a measured step took longer than its kernels; None where it may have hid.

    Samples that the same process loads are apart; behind other workers' samples this is unknown.
    """
    if trace.iteration_s is None or any(op.measured_s is None for op in trace.ops):
        return None
    gpu_s = sum((op.measured_s or 0.0) * op.count for op in trace.ops)
    loading_s = trace.data_loading_s or 0.0
    step_s = trace.iteration_s - (0.0 if trace.num_workers else loading_s)
    is_fed = loading_s < step_s * (trace.num_workers or math.inf)
    return step_s if is_fed and step_s > LEAST_WAIT * gpu_s else None


def launching_s(trace: Trace, stepping: float = 1.0) -> Interval:
    """Seconds in which the host launches a step; arguments as of :func:`launching`."""
    return spread(sum(launching(trace, stepping).values()), host_costs().sigma)


@dataclass(frozen=True, slots=True)
class Copies:
    """What a backward pass runs besides the operators of the trace."""

    num_calls: int = 0
    """Operators."""
    seconds: float = 0.0
    """Of all of them."""
    last_s: float = 0.0
    """Of those that run when all gradients are there."""


def launched(
    trace: Trace,
    computing_s: Mapping[Phase, float],
    sigma: float,
    stepping: float = 1.0,
    copies: Copies = Copies(),
) -> Interval:
    """Seconds of a step of one GPU and its host, whose errors have nothing to do with each other.

    Args:
        computing_s: median seconds of the GPU, by phase.
        sigma: log-normal, of these.
        stepping: calls of the optimizer, over those of the trace.
        copies: besides the trace's operators.
    """
    own_s, sigma_host, waits = dict(launching(trace, stepping)), host_costs().sigma, waits_in(trace.ops)
    calls_s = host_costs().call_s[HostCall.BACKWARD] * copies.num_calls
    own_s[Phase.BACKWARD] = own_s.get(Phase.BACKWARD, 0.0) + calls_s
    computing_s = {**computing_s, Phase.BACKWARD: computing_s.get(Phase.BACKWARD, 0.0) + copies.seconds}

    def at(z_host: float, z_gpu: float) -> float:
        return step_s(
            {phase: seconds * math.exp(z_host * sigma_host) for phase, seconds in own_s.items()},
            {phase: seconds * math.exp(z_gpu * sigma) for phase, seconds in computing_s.items()},
            waits,
        )

    p50 = at(0.0, 0.0)
    early, late = (math.hypot(math.log(at(z, 0.0) / p50), math.log(at(0.0, z) / p50)) for z in (-Z90, Z90))
    return Interval(p10=p50 * math.exp(-early), p50=p50, p90=p50 * math.exp(late))


def beside(measured_s: float, gpu_s: float, sigma: float) -> Interval:
    """The same of a step that was measured: what it took beyond its kernels was waiting for the host."""
    host_s = max(measured_s - gpu_s, 0.0)
    whole_s = gpu_s + host_s
    return spread(whole_s, math.hypot(sigma * gpu_s, host_costs().sigma * host_s) / whole_s)


@kept(8)
def waits_in(ops: Sequence[Op]) -> Mapping[Phase, int]:
    """How often a script waits for the GPU, by phase: behind the backward pass, at that one's end.

    A loss scaler waits there to see whether a gradient is infinite. Profiles call all forward that is neither
    backward nor within an optimizer's step.
    """
    waits, has_passed = Counter[Phase](), False
    for op in ops:
        has_passed |= op.phase is Phase.BACKWARD
        if op.name == SYNCHRONISING:
            waits[Phase.BACKWARD if has_passed and op.phase is Phase.FORWARD else op.phase] += op.count
    return waits


def step_s(
    host_s: Mapping[Phase, float], gpu_s: Mapping[Phase, float], waits: Mapping[Phase, int] | None = None
) -> float:
    """Seconds of a step: between two waits, launches up to some point and the kernels from there on.

    A phase of n waits is n equal pieces, at each of whose ends the host waits. All but the first are
    launched while nothing of other phases is left to compute.

    Args:
        host_s: of launching, by phase.
        waits: of the host for the GPU, by phase; none by default.
    """
    if not waits:
        return max(sum(host_s.values()), sum(gpu_s.values()))
    order, first = list(Phase), {phase: 1 / waits.get(phase, 1) for phase in Phase}
    ends = [i for i, phase in enumerate(order) if phase in waits]
    # Between two waits; what follows the last one goes on into the next step.
    stretches = [order[ends[-1] + 1 :] + order[: ends[0] + 1]]
    stretches += [order[a + 1 : b + 1] for a, b in pairwise(ends)]
    alone_s = sum((1 - share) * max(host_s[phase], gpu_s[phase]) for phase, share in first.items())
    return alone_s + sum(
        max(
            sum(first[phase] * host_s[phase] for phase in stretch[:at])
            + sum(first[phase] * gpu_s[phase] for phase in stretch[at:])
            for at in range(len(stretch) + 1)
        )
        for stretch in stretches
    )
