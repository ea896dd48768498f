"""Published runs beside what is predicted for them. Nothing was fitted to them, and none chose anything."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from advisor.core.values import WHOLE, GpuSpec, Interval, Layout, Split, Trace
from advisor.operators.attention import kernel_of
from advisor.operators.attention_kernels import (
    AttentionBackend,
    attention_call,
    backend_of,
    rate_flops_per_s,
    seconds,
)
from advisor.predict.iteration import predict
from advisor.predict.knowledge import Knowledge
from advisor.predict.what_if.batch import accumulated
from advisor.predict.what_if.compiled import compiled
from research.training_runs.recipes import Recipe
from research.training_runs.runs import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A run with the interval of tokens/s of one GPU that is predicted for it."""

    run: Run
    tokens_per_s: Interval

    @property
    def error(self) -> float:
        """Relative, positive where the prediction is too fast."""
        return self.tokens_per_s.p50 / self.run.tokens_per_s - 1

    @property
    def is_inside(self) -> bool:
        """Whether the published rate lies between p10 and p90."""
        return self.tokens_per_s.p10 <= self.run.tokens_per_s <= self.tokens_per_s.p90


def judged(run: Run, trace_of: Callable[[Recipe], Trace]) -> Judged:
    """The run beside its prediction.

    Args:
        run: as published.
        trace_of: the trace of one of its ranks' forward and backward pass.
    """
    trace = in_passes(trace_of(run.recipe), run.passes)
    trace = (compiled(trace) or trace) if run.compiles else trace
    step = step_s(trace, run.gpu, run.layout, run.attention, split=run.split)
    tokens = run.passes * run.tokens
    return Judged(
        run=run, tokens_per_s=Interval(p10=tokens / step.p90, p50=tokens / step.p50, p90=tokens / step.p10)
    )


def in_passes(trace: Trace, passes: int) -> Trace:
    """The trace of a step of so many passes, each of which gathers parameters and scatters gradients."""
    if passes == 1:
        return trace
    longer = accumulated(trace, passes)
    assert longer is not None, trace.script
    exchanged = tuple(replace(each, count=each.count * passes) for each in trace.collectives)
    return replace(longer, collectives=exchanged)


def step_s(
    trace: Trace,
    gpu: GpuSpec,
    layout: Layout,
    attention: Interval,
    *,
    split: Split = WHOLE,
    knowledge: Knowledge | None = None,
) -> Interval:
    """Seconds of a step with another kernel of attention than PyTorch takes today.

    From 2.10 on it takes cuDNN's on some GPUs. All runs are older: the first choice was FlashAttention 2.

    Args:
        trace: of one rank's step.
        gpu: of which kind all are.
        layout: how many they are.
        attention: time of their kernel of attention over FlashAttention 2's.
        split: how the model is divided; a part has its share of attention.
        knowledge: constants and networks, by default what ships.
    """
    step = predict(trace, gpu, layout, split=split, knowledge=knowledge).iteration_s
    flash_s = attention_s(trace, gpu, AttentionBackend.FLASH_2) / split.gpus_per_copy
    p50 = step.p50 + attention.p50 * flash_s - attention_s(trace, gpu, None) / split.gpus_per_copy
    early_s = math.hypot(step.p50 - step.p10, (attention.p50 - attention.p10) * flash_s)
    late_s = math.hypot(step.p90 - step.p50, (attention.p90 - attention.p50) * flash_s)
    return Interval(p10=p50 - early_s, p50=p50, p90=p50 + late_s)


def attention_s(trace: Trace, gpu: GpuSpec, backend: AttentionBackend | None) -> float:
    """Seconds of all attention of an iteration by one backend; by PyTorch's choice if None."""
    total_s = 0.0
    for op in trace.ops:
        if (call := attention_call(op)) is None:
            continue
        kernel = kernel_of(call, backend or backend_of(call, gpu))
        if kernel is not None:
            total_s += op.count * seconds(call, kernel, gpu, rate_flops_per_s(kernel, gpu, "bf16"))
    return total_s
