"""What an epoch holds and how its data is loaded, from the DataLoader that fed the recorded iteration."""

from __future__ import annotations

import math
from dataclasses import dataclass

from advisor.payload.protocol import Loading, Result

_GIVE = "give `iterations`, or `iterations_per_epoch` with `epochs`"
NO_LOADER = "the script uses no torch DataLoader: batch size and samples per epoch are unknown; " + _GIVE

# Endless samplers and streams claim a length that nothing reaches: 10**8, 2**31, sys.maxsize.
_ENDLESS_SAMPLES, _ENDLESS_BATCHES = 10**8, 10**7


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """The part of a Trace that its DataLoader tells; None is unknown, and a warning says why.

    Attributes:
        seconds: of loading one iteration's samples in one process.
        cpu_s_per_sample: of the CPU, to load one.
    """

    accumulation: int
    batch_size: int | None = None
    samples_per_epoch: int | None = None
    iterations_per_epoch: int | None = None
    seconds: float | None = None
    cpu_s_per_sample: float | None = None
    num_workers: int | None = None
    warnings: tuple[str, ...] = ()


def epoch_of(recording: Result) -> Epoch:
    """The epoch of the child's recording."""
    # Without a DataLoader, backward passes tell; but a GAN's networks have one each.
    single = recording["num_optimizers"] <= 1
    passes = max(1, recording["num_backward_passes"]) if single else 1
    loading = recording["loading"]
    if loading is None:
        return Epoch(accumulation=passes, warnings=(NO_LOADER,))
    if loading["fetches"] == 0:
        warning = "no batch was loaded during the recorded iteration: the batch size is unknown; " + _GIVE
        return Epoch(
            accumulation=passes,
            samples_per_epoch=loading["num_samples"],
            num_workers=loading["num_workers"],
            warnings=(warning,),
        )
    iterations, warnings = _iterations(loading)
    return Epoch(
        # Batches of a critic's several steps are not accumulated.
        accumulation=max(1, loading["fetches"] // max(1, recording["most_steps"])),
        batch_size=loading["samples"],
        samples_per_epoch=loading["num_samples"],
        iterations_per_epoch=iterations,
        seconds=loading["seconds"],
        cpu_s_per_sample=_each(loading["cpu_seconds"], loading["samples"]),
        num_workers=loading["num_workers"],
        warnings=(
            *warnings,
            *_length_warnings(loading),
            *_rival_warnings(loading),
            *_batch_warnings(loading),
        ),
    )


def _each(seconds: float | None, num_samples: int | None) -> float | None:
    return None if seconds is None or not num_samples else seconds / num_samples


def _iterations(loading: Loading) -> tuple[int | None, list[str]]:
    if loading["num_batches"] is not None:
        return math.ceil(loading["num_batches"] / loading["fetches"]), []
    if loading["num_samples"] is None:
        return None, ["the script's data has no length: " + _GIVE]
    if loading["samples"] is None:
        return None, ["the size of the script's batches is unknown: " + _GIVE]
    per_epoch = math.ceil(loading["num_samples"] / loading["samples"])
    warning = (
        f"the script's sampler has no length: {per_epoch:,} iterations, one pass over the data set,"
        " count as an epoch; `iterations_per_epoch` says otherwise"
    )
    return per_epoch, [warning]


def _length_warnings(loading: Loading) -> list[str]:
    samples, batches = loading["num_samples"] or 0, loading["num_batches"] or 0
    if samples < _ENDLESS_SAMPLES and batches < _ENDLESS_BATCHES:
        return []
    claimed = f"{samples:,} samples" if samples else f"{batches:,} batches"
    warning = (
        f"the script's data claims {claimed} an epoch, as samplers without an end do: if training stops"
        f" before, {_GIVE}"
    )
    return [warning]


def _rival_warnings(loading: Loading) -> list[str]:
    if not loading["rivals"]:
        return []
    others = ", ".join(_batches(count) for count in loading["rivals"])
    warning = (
        f"{1 + len(loading['rivals'])} DataLoaders feed an iteration: the one with"
        f" {_batches(loading['num_batches'])}"
        f" is taken to drive the loop, so that its end is an epoch's and its batches are counted; beside it"
        f" {others}. `iterations_per_epoch` says otherwise"
    )
    return [warning]


def _batches(count: int | None) -> str:
    return "batches without end" if count is None else f"{count:,} batches"


def _batch_warnings(loading: Loading) -> list[str]:
    if not loading["is_dynamic"] or loading["batch_sizes"] is None:
        return []
    smallest, largest = loading["batch_sizes"]
    warning = (
        f"the script's batches differ in size, {smallest:,} to {largest:,} samples so far: time and memory"
        f" are of an iteration with {loading['samples']:,}"
    )
    return [warning]
