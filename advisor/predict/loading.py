"""What the samples of an iteration take: measured where it was profiled, else assumed by their kind."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from math import prod
from pathlib import Path

from advisor.core.errors import CatalogError
from advisor.core.findings import Change
from advisor.core.findings.about_estimates import EditScript
from advisor.core.gpus import catalog_path
from advisor.core.values import InputWork, Interval, Op, TensorSpec, Trace
from advisor.predict.distinct import kept
from advisor.predict.interval import SIGMA_LOADING, spread, widened

LOADERS_FILE = "loaders.toml"
IMAGE, TOKENS, ARRAY = "image", "tokens", "array"
KINDS = (IMAGE, TOKENS, ARRAY)
COPY_TO_GPU = "advisor::h2d_copy"
# Depth maps and masks included; more channels are features that someone computed.
_MOST_CHANNELS = 4
# Sequences of a sample's several choices; stacked frames of a game have one more.
_MOST_DIMENSIONS_OF_TEXT = 3
# Below it the last two dimensions are no picture but a filter or a patch.
_LEAST_SIDE = 16
_NS = 1e-9


def kind_of(batch: TensorSpec) -> str:
    """What a tensor of samples holds.

    >>> kind_of(TensorSpec(shape=(64, 3, 224, 224), dtype="float32"))
    'image'
    >>> kind_of(TensorSpec(shape=(12, 1024), dtype="int64"))
    'tokens'
    >>> kind_of(TensorSpec(shape=(512, 9, 84, 84), dtype="uint8"))
    'array'
    """
    if len(batch.shape) >= 4 and _num_pixels(batch.shape) is not None:
        return IMAGE
    is_text = len(batch.shape) <= _MOST_DIMENSIONS_OF_TEXT and batch.dtype.startswith(("int", "uint"))
    return TOKENS if is_text else ARRAY


@kept(4)
def copied_batches(ops: Sequence[Op]) -> tuple[Op, ...]:
    """The copies that bring an iteration's samples to the GPU, the largest first."""
    copies = [op for op in ops if op.name == COPY_TO_GPU and op.inputs and op.inputs[0].shape]
    return tuple(sorted(copies, key=lambda op: -op.count * prod(op.inputs[0].shape)))


def num_copied(trace: Trace) -> int | None:
    """Samples of an iteration, by the first dimension of what is copied most; None without a copy."""
    copies = copied_batches(trace.ops)
    return copies[0].count * copies[0].inputs[0].shape[0] if copies else None


def assumed_cpu_s(trace: Trace) -> tuple[str, Interval] | None:
    """The kind of samples, and seconds of one vCPU for those of an iteration; None if none are copied.

    Wider than the table: what the script does to its samples is not known.

    Raises CatalogError: the catalog is missing or broken.
    """
    copies = copied_batches(trace.ops)
    if not copies:
        return None
    priors = load_loader_priors()
    parts = []
    for op in copies:
        kind, shape = kind_of(op.inputs[0]), op.inputs[0].shape
        number = (_num_pixels(shape) or 0) if kind == IMAGE else prod(shape)
        parts.append((priors[kind], op.count * number))
    whole = Interval(
        p10=sum(each.p10 * number for each, number in parts),
        p50=sum(each.p50 * number for each, number in parts),
        p90=sum(each.p90 * number for each, number in parts),
    )
    return kind_of(copies[0].inputs[0]), widened(whole, SIGMA_LOADING)


def _num_pixels(shape: tuple[int, ...]) -> int | None:
    """Of N x C x ... x H x W or N x ... x H x W x C; None for anything else."""
    for channels, sides in ((shape[1], shape[-2:]), (shape[-1], shape[-3:-1])):
        if 1 <= channels <= _MOST_CHANNELS and min(sides) >= _LEAST_SIDE:
            return prod(shape) // channels
    return None


@cache
def load_loader_priors() -> Mapping[str, Interval]:
    """The shipped table by kind of sample. Raises CatalogError: the file is missing or broken."""
    return read_loader_priors(catalog_path(LOADERS_FILE))


def read_loader_priors(path: Path) -> dict[str, Interval]:
    """A table by kind of sample: seconds of one vCPU for one element of it, a pixel, a token, a number.

    Raises CatalogError: it cannot be read, lacks a kind, or quantiles are no times in order.
    """
    priors = {}
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
        for kind in KINDS:
            entry = tables[kind]
            p10, p50, p90 = (float(str(entry[f"{name}_ns"])) * _NS for name in ("p10", "p50", "p90"))
            if not 0 < p10 <= p50 <= p90:
                raise ValueError(f"quantiles of {p10:g}, {p50:g} and {p90:g} s are no times in order")
            priors[kind] = Interval(p10=p10, p50=p50, p90=p90)
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise CatalogError(
            f"{path}: {error}. Build the catalog again (research/build_loaders.py) or reinstall gpu-advisor."
        ) from error
    return priors


# Below this a single run tells more about the machine's other work than about loading.
SHORTEST_S = 1e-3


def input_work(trace: Trace) -> InputWork | None:
    """What the samples of one GPU's iteration take: measured, else assumed by their kind.

    None where loading is too short to time, or nothing is copied to the GPU.
    """
    measured = _measured(trace)
    if measured is not None:
        return measured if measured.cpu_s.p50 + measured.wait_s >= SHORTEST_S else None
    assumed = assumed_cpu_s(trace)
    if assumed is None:
        return None
    kind, cpu_s = assumed
    return InputWork(
        cpu_s=cpu_s, wait_s=0.0, num_workers=trace.num_workers, num_samples=_num_samples(trace), kind=kind
    )


def _measured(trace: Trace) -> InputWork | None:
    whole_s, each_s, count = trace.data_loading_s, trace.loader_cpu_s_per_sample, _num_samples(trace)
    if each_s is not None and count is not None:
        cpu_s = each_s * count
    elif whole_s is not None:
        cpu_s = whole_s  # a trace of before CPUs were measured
    else:
        return None
    return InputWork(
        cpu_s=spread(cpu_s, SIGMA_LOADING),
        wait_s=max(0.0, (whole_s or 0.0) - cpu_s),
        num_workers=trace.num_workers,
        num_samples=count,
    )


def _num_samples(trace: Trace) -> int | None:
    return trace.batch_size or num_copied(trace)


def work_beside_measured(trace: Trace, iteration_s: float) -> InputWork | None:
    """The same where the iteration was measured on this GPU: it has waited for its data already.

    Another machine's vCPUs may be fewer. The measured ones, one a worker, made all samples in that time.
    """
    work = None if trace.num_workers == 0 else input_work(trace)
    if work is None or work.kind is None or work.num_workers is None:
        return work
    most_s = work.num_workers * iteration_s
    p10, p50, p90 = (min(s, most_s) for s in (work.cpu_s.p10, work.cpu_s.p50, work.cpu_s.p90))
    return replace(work, cpu_s=Interval(p10=p10, p50=p50, p90=p90))


def is_uncounted(trace: Trace, device_s: float) -> bool:
    """Whether loading was too short to time for an iteration that is as short."""
    return 0 < (trace.data_loading_s or 0.0) < SHORTEST_S and device_s < SHORTEST_S


def faster_feeding(trace: Trace) -> dict[str, tuple[Trace, Change]]:
    """By name the trace of a changed input pipeline, and what to change.

    More workers, samples stored as training wants them, and disks that never keep a worker waiting.
    """
    work, ways = input_work(trace), dict[str, tuple[Trace, Change]]()
    if work is None:
        return ways
    if trace.num_workers is not None:
        ways["workers"] = replace(trace, num_workers=None), EditScript(what="use-workers")
    # To read and collate samples of which nothing is decoded.
    numbers = sum(op.count * prod(op.inputs[0].shape) for op in copied_batches(trace.ops))
    packed_s = load_loader_priors()[ARRAY].p50 * numbers
    if numbers and work.num_samples and packed_s < work.cpu_s.p50:
        each_s = packed_s / work.num_samples
        packed = replace(trace, loader_cpu_s_per_sample=each_s, data_loading_s=None)
        ways["packed"] = packed, EditScript(what="pack-data")
    if work.wait_s:
        ways["nvme"] = replace(trace, data_loading_s=work.cpu_s.p50), EditScript(what="use-nvme")
    return ways
