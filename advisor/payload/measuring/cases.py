"""Measures one case after the other and tells each as soon as it is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import torch
from torch._ops import OpOverload

from ..protocol import Case, MeasuredLine, MeasuringLine, Operator, SkippedLine, Timing
from ..recording.memory import MemoryTracker
from ..recording.precision import tf32_flags
from ..recording.recorder import Recorder
from .building import COPIES, Build, NoSuchOperatorError, seed
from .clocks import Clock, HostTooSlowError
from .sampling import sample

# Between two measurements of the reference product.
REFERENCE_EVERY = 20
# Sets of tensors that are used in turn, so that large ones come from memory and not from the cache.
MOST_SETS = 8
CACHES_TO_FILL = 4
_LONGEST_REASON = 200
# PyTorch has an exception of its own for its allocator alone: not for contexts, workspaces and CPUs.
_OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "ALLOC_FAILED")

Tell = Callable[[MeasuringLine], None]


class LostDeviceError(Exception):
    """A kernel failed in a way after which this process can use the device no more."""


def measure_all(cases: Sequence[Case], clock: Clock, reference: Case, tell: Tell) -> None:
    """Measure the cases in order, and the reference at the start, now and then, and at the end.

    Raises:
        LostDeviceError: the case that was told last took the device with it.
        Exception: the reference cannot be measured; see ``is_out_of_memory``.
    """
    seed()
    for number, case in enumerate(cases):
        if number % REFERENCE_EVERY == 0:
            tell({"reference_s": _measured(reference, clock)["time_s"]})
        tell(_outcome(case, clock))
        _settle(clock)
    tell({"reference_s": _measured(reference, clock)["time_s"]})


def _outcome(case: Case, clock: Clock) -> MeasuredLine | SkippedLine:
    try:
        reason = missing_ability(case, clock.device)
        if reason is None:
            return {"case": case["key"], **_measured(case, clock)}
    except (NoSuchOperatorError, HostTooSlowError) as error:
        reason = str(error)
    except NotImplementedError:
        reason = f"{case['call']['operator']} does not run on {clock.device}"
    except Exception as error:  # noqa: BLE001 - kernels refuse sizes, dtypes and devices in all ways
        reason = "out of memory" if is_out_of_memory(error) else first_line(error)
    return {"case": case["key"], "reason": reason}


def missing_ability(case: Case, device: str) -> str | None:
    """What the device lacks for the case, in words; None if it has all."""
    if case["call"]["operator"] in COPIES:
        return "a CPU has no link to copy over" if device == "cpu" else None
    wanted = "TF32" if case["tf32"] else "bfloat16" if case["dtype"] == "bfloat16" else None
    if wanted is None:
        return None
    if device == "cpu":
        return "a CPU has no TF32" if wanted == "TF32" else None
    ability = torch.cuda.get_device_capability()
    return None if ability >= (8, 0) else f"{wanted} needs compute capability 8.0, this GPU has {ability}"


def _measured(case: Case, clock: Clock) -> Timing:
    torch.set_float32_matmul_precision("high" if case["tf32"] else "highest")
    torch.backends.cudnn.allow_tf32 = case["tf32"]
    builds = [Build(case, clock.device)]
    operator = described(builds[0], case, clock.device)
    builds += [Build(case, clock.device) for _ in range(num_sets(builds[0].num_bytes, clock) - 1)]
    samples = sample(lambda number: builds[number % len(builds)].run(), clock)
    return {
        "operator": operator,
        "precision": {"amp_dtype": None, **tf32_flags()},
        "time_s": samples.time_s,
        "spread": samples.spread,
        "num_samples": samples.num_samples,
    }


def described(build: Build, case: Case, device: str) -> Operator:
    """The operator as it is recorded when a script calls it; calls it once."""
    recorder = Recorder(MemoryTracker(), device)
    recorder.phase = case["phase"]
    result = build.run()
    name = case["call"]["operator"]
    if name in COPIES:
        source, target = cast("list[torch.Tensor]", build.args)
        recorder.record_copy(name, source, target.dtype)
    else:
        recorder.record(cast("OpOverload", build.operator), build.args, build.kwargs, result)
    (operator,) = recorder.operators()
    return operator


def num_sets(num_bytes: int, clock: Clock) -> int:
    """How many sets of tensors fill the cache four times, 8 at most: small ones stay in it, as they do."""
    wanted = -(-CACHES_TO_FILL * clock.cache_bytes // max(1, num_bytes))
    return max(1, min(MOST_SETS, wanted))


def is_out_of_memory(error: Exception) -> bool:
    """Whether the device or the machine had no room, whoever says so."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return any(words in str(error) for words in _OUT_OF_MEMORY)


def first_line(error: Exception) -> str:
    """What it says, in short."""
    text = str(error).strip().partition("\n")[0] or type(error).__name__
    return text[:_LONGEST_REASON]


def _settle(clock: Clock) -> None:
    """Wait for the device and give its memory back.

    Raises:
        LostDeviceError: it does not answer any more.
    """
    if clock.device != "cuda":
        return
    try:
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
    except RuntimeError as error:
        raise LostDeviceError(first_line(error)) from error
