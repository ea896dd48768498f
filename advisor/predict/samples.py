"""What kind of samples a script trains on, and what one of that kind takes of a CPU where nobody measured it.

A batch crosses to the GPU, so the trace has its shapes and dtypes. The seconds are those of
``catalogs/loaders.toml``, an element at a time, since larger samples take longer.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from math import prod
from pathlib import Path

from advisor.core.errors import CatalogError
from advisor.core.gpus import catalog_path
from advisor.core.values import Interval, Op, TensorSpec, Trace
from advisor.predict.distinct import Same
from advisor.predict.interval import SIGMA_LOADING, widened

LOADERS_FILE = "loaders.toml"
IMAGE, TOKENS, ARRAY = "image", "tokens", "array"
KINDS = (IMAGE, TOKENS, ARRAY)
_COPY = "advisor::h2d_copy"
# Depth maps and masks included; more channels are features that somebody computed.
_MOST_CHANNELS = 4
# Sequences of a sample's several choices; stacked frames of a game have one more.
_MOST_DIMENSIONS_OF_TEXT = 3
# Below it the last two dimensions are no picture but a filter or a patch.
_LEAST_SIDE = 16
_NS = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class LoaderPrior:
    """Seconds of one vCPU for one element of a sample: a pixel, a token, a number."""

    cpu_s: Interval
    source: str
    as_of: str


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


def copied_batches(trace: Trace) -> tuple[Op, ...]:
    """The copies that bring an iteration's samples to the GPU, the largest first."""
    return _copied(Same(trace.ops))


@lru_cache(maxsize=4)
def _copied(same: Same) -> tuple[Op, ...]:
    copies = [op for op in same.ops if op.name == _COPY and op.inputs and op.inputs[0].shape]
    return tuple(sorted(copies, key=lambda op: -op.count * prod(op.inputs[0].shape)))


def num_copied(trace: Trace) -> int | None:
    """Samples of an iteration, by the first dimension of what is copied most; None without a copy."""
    copies = copied_batches(trace)
    return copies[0].count * copies[0].inputs[0].shape[0] if copies else None


def assumed_cpu_s(trace: Trace) -> tuple[str, Interval] | None:
    """The kind of samples, and seconds of one vCPU for those of an iteration; None if none are copied.

    Wider than the table: what the script does to its samples is not known.

    Raises:
        CatalogError: the catalog is missing or broken.
    """
    copies = copied_batches(trace)
    if not copies:
        return None
    priors = load_loader_priors()
    parts = [(priors[kind_of(op.inputs[0])].cpu_s, op.count * _num_elements(op.inputs[0])) for op in copies]
    whole = Interval(
        p10=sum(each.p10 * number for each, number in parts),
        p50=sum(each.p50 * number for each, number in parts),
        p90=sum(each.p90 * number for each, number in parts),
    )
    return kind_of(copies[0].inputs[0]), widened(whole, SIGMA_LOADING)


def _num_elements(batch: TensorSpec) -> int:
    return (_num_pixels(batch.shape) or 0) if kind_of(batch) == IMAGE else prod(batch.shape)


def _num_pixels(shape: tuple[int, ...]) -> int | None:
    """Of N x C x ... x H x W or N x ... x H x W x C; None for anything else."""
    for channels, sides in ((shape[1], shape[-2:]), (shape[-1], shape[-3:-1])):
        if 1 <= channels <= _MOST_CHANNELS and min(sides) >= _LEAST_SIDE:
            return prod(shape) // channels
    return None


@cache
def load_loader_priors() -> Mapping[str, LoaderPrior]:
    """The shipped table by kind of sample.

    Raises:
        CatalogError: the file is missing or broken.
    """
    return read_loader_priors(catalog_path(LOADERS_FILE))


def read_loader_priors(path: Path) -> dict[str, LoaderPrior]:
    """A table by kind of sample.

    Raises:
        CatalogError: it cannot be read, lacks a kind, or quantiles are no times in order.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
        return {kind: _prior(tables[kind]) for kind in KINDS}
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise CatalogError(
            f"{path}: {error}. Build the catalog again (research/build_loaders.py) or reinstall gpu-advisor."
        ) from error


def _prior(entry: Mapping[str, object]) -> LoaderPrior:
    p10, p50, p90 = (float(str(entry[f"{name}_ns"])) * _NS for name in ("p10", "p50", "p90"))
    if not 0 < p10 <= p50 <= p90:
        raise ValueError(f"quantiles of {p10:g}, {p50:g} and {p90:g} s are no times in order")
    return LoaderPrior(
        cpu_s=Interval(p10=p10, p50=p50, p90=p90), source=str(entry["source"]), as_of=str(entry["as_of"])
    )
