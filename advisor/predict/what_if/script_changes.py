"""The changes that there are, by name: each is a trace of the changed script, or why it has none."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from advisor.core.findings import Finding
from advisor.core.findings.about_estimates import EditScript, NoGain, RetuneLearningRate, WhatIf
from advisor.core.values import GpuSpec, Trace
from advisor.operators.attention import ATTENTION
from advisor.operators.convolution import CONVOLUTION
from advisor.operators.elementwise import ELEMENTWISE
from advisor.operators.family import Family
from advisor.operators.gemm import GEMM
from advisor.operators.norm import NORM
from advisor.operators.optimizer import OPTIMIZER
from advisor.operators.registry import FAMILIES
from advisor.predict.interval import SIGMA_COMPILED
from advisor.predict.loading import faster_feeding
from advisor.predict.what_if.batch import accumulated, with_batch
from advisor.predict.what_if.channels_last import in_channels_last
from advisor.predict.what_if.compiled import compiled, graph_breaks, is_compiled
from advisor.predict.what_if.flash import with_fused_attention
from advisor.predict.what_if.fused_optimizer import is_fused, with_fused_optimizer
from advisor.predict.what_if.precision import allow_tf32, under_autocast

# A changed script was not profiled. Against profiles of models that fitted nothing, with the change written
# in, times under autocast are off by 7 % at most, others by 2 % but for one in channels_last, by 11 %
# (research/docs/accuracy/what-if.md). What no profile was compared with has a width that is a guess.
SIGMA_AUTOCAST = 0.1
SIGMA_REWRITTEN = 0.03
SIGMA_NOT_COMPARED = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceChange:
    """A change to the script."""

    name: str
    """Ends the ids of its options."""
    trace: Trace
    """The script's as the change would make it."""
    steps: tuple[Finding, ...]
    """What to change in the script."""
    assumption: Finding
    """What its estimates rest on besides."""
    why_not_on: Callable[[GpuSpec], Finding | None] = lambda _: None
    """Why a GPU gains nothing from it; None where it may."""
    why_not_fed: Finding | None = None
    """Why an iteration that does not wait for its samples gains nothing; None where it may."""
    new_kernels: frozenset[str] = frozenset()
    """Words of the families that run by other kernels than before; times of the others are wrong as they
    were."""
    sigma: float = SIGMA_REWRITTEN
    """Log-normal, of a time that was not profiled."""
    is_in_estimate: bool = False
    """The estimate of the changed trace is as wide as ``sigma`` makes it already."""
    samples: int = 1
    """Of a step, over those of the script as it is."""


BATCH_FACTOR = 2
PASSES = 4
_TF32_LEAST = (8, 0)
_PRODUCTS = frozenset(family.word for family in FAMILIES if family.compute.tensor_cores)
_DTYPES = {"bf16": "bfloat16", "fp16": "float16"}
_ALREADY, _NOTHING_IN_FP32 = NoGain(why="already"), NoGain(why="nothing", lacking="products in FP32")

Maker = Callable[[Trace], TraceChange | Finding]


def _tf32(trace: Trace) -> TraceChange | Finding:
    changed = allow_tf32(trace)
    if changed is None:
        return _ALREADY if trace.precision.tf32_matmul else _NOTHING_IN_FP32
    return TraceChange(
        name="tf32",
        trace=changed,
        why_not_on=partial(_why_no_rate, "tf32"),
        new_kernels=_PRODUCTS,
        steps=(EditScript(what="allow-tf32"),),
        assumption=WhatIf(how="tf32"),
    )


def _why_no_rate(rate: str, gpu: GpuSpec) -> Finding | None:
    """Where there is bfloat16, float16 is no faster and needs a scaler."""
    if rate == "fp16" and "bf16" in gpu.tensor_flops_per_s:
        return NoGain(why="bf16-instead", gpu=gpu.name)
    major, _, minor = gpu.compute_capability.partition(".")
    is_new = major.isdecimal() and minor.isdecimal() and (int(major), int(minor)) >= _TF32_LEAST
    is_there = rate in gpu.tensor_flops_per_s and (is_new or rate != "tf32")
    return None if is_there else NoGain(why="no-rate", gpu=gpu.name, rate=rate)


def _autocast(name: str, trace: Trace) -> TraceChange | Finding:
    dtype = _DTYPES[name]
    changed = under_autocast(trace, dtype)
    if changed is None:
        return _ALREADY if trace.precision.amp_dtype else _NOTHING_IN_FP32
    steps = [EditScript(what="use-autocast", name=dtype)]
    if dtype == "float16":
        steps.append(EditScript(what="add-grad-scaler"))
    return TraceChange(
        name=name,
        trace=changed,
        why_not_on=partial(_why_no_rate, name),
        new_kernels=_PRODUCTS,
        sigma=SIGMA_AUTOCAST,
        steps=tuple(steps),
        assumption=WhatIf(how="autocast", dtype=dtype),
    )


class _Rewrite(NamedTuple):
    """A change that other kernels come of."""

    change: Callable[[Trace], Trace | None]
    step: EditScript
    lacking: str
    """Without which there is nothing to change."""
    families: tuple[Family, ...]
    """That run by new kernels."""
    is_done: Callable[[Trace], bool] = lambda _: False
    sigma: float = SIGMA_REWRITTEN


_REWRITES = {
    "channels_last": _Rewrite(
        in_channels_last,
        EditScript(what="use-channels-last"),
        "convolutions of images in the usual layout",
        (CONVOLUTION, NORM),
    ),
    "compile": _Rewrite(
        compiled,
        EditScript(what="compile-model"),
        "operators that could be fused",
        (NORM, ELEMENTWISE),
        is_compiled,
        SIGMA_COMPILED,
    ),
    "fused": _Rewrite(
        with_fused_optimizer,
        EditScript(what="fuse-optimizer"),
        "Adam, AdamW or SGD that steps over lists of tensors",
        (OPTIMIZER, ELEMENTWISE),
        is_fused,
    ),
    "flash": _Rewrite(
        with_fused_attention,
        EditScript(what="use-fused-attention"),
        "attention written out as products and a softmax",
        (ATTENTION, GEMM, NORM, ELEMENTWISE),
        sigma=SIGMA_NOT_COMPARED,
    ),
}


def _rewritten(name: str, trace: Trace) -> TraceChange | Finding:
    rewrite = _REWRITES[name]
    changed = rewrite.change(trace)
    if changed is None:
        return _ALREADY if rewrite.is_done(trace) else NoGain(why="nothing", lacking=rewrite.lacking)
    if name == "compile" and (num_breaks := graph_breaks(trace)):
        return NoGain(why="graph-breaks", num_breaks=num_breaks)
    return TraceChange(
        name=name,
        trace=changed,
        new_kernels=frozenset(family.word for family in rewrite.families),
        sigma=rewrite.sigma,
        is_in_estimate=name == "compile",
        steps=(rewrite.step,),
        assumption=WhatIf(how="rewritten", change=name),
    )


def _larger_step(name: str, trace: Trace) -> TraceChange | Finding:
    if trace.batch_size is None:
        return NoGain(why="batch-unknown")
    if name == "batch":
        factor, changed = BATCH_FACTOR, with_batch(trace, BATCH_FACTOR)
        why_not = NoGain(why="batch-not-seen", batch_size=trace.batch_size)
    else:
        factor, changed = PASSES, accumulated(trace, PASSES)
        why_not = NoGain(why="parameters-unknown")
    if changed is None:
        return why_not
    sizes = {"global_batch_size": trace.batch_size * factor, "batch_size": trace.batch_size}
    how = EditScript(what="enlarge-batch" if name == "batch" else "accumulate", name=f"{factor}")
    return TraceChange(
        name=name,
        trace=changed,
        steps=(how, RetuneLearningRate(**sizes)),
        assumption=WhatIf(how="rewritten", change=name),
        samples=factor,
    )


def _feeding(name: str, trace: Trace) -> TraceChange | Finding:
    ways = faster_feeding(trace)
    if name not in ways:
        return NoGain(why="not-fed")
    fed_faster, step = ways[name]
    return TraceChange(
        name=name,
        trace=fed_faster,
        why_not_fed=NoGain(why="not-fed"),
        steps=(step,),
        assumption=WhatIf(how="fed-faster"),
    )


CHANGES: Mapping[str, Maker] = {
    "tf32": _tf32,
    "bf16": partial(_autocast, "bf16"),
    "fp16": partial(_autocast, "fp16"),
    **{name: partial(_rewritten, name) for name in _REWRITES},
    "batch": partial(_larger_step, "batch"),
    "accumulate": partial(_larger_step, "accumulate"),
    **{name: partial(_feeding, name) for name in ("workers", "packed", "nvme")},
}
# Those that leave what is trained alone: only these may be named to someone who asked for none.
ONE_LINE = ("tf32", "bf16", "fp16", "workers", "packed", "nvme")
