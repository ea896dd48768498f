"""Measures one case after the other and tells each as soon as it is known."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

import torch
from torch._ops import OpOverload

from . import protocol
from .backend import tf32_flags
from .protocol import KernelCase, MeasuredLine, MeasuringLine, Operator, SkippedLine, Timing
from .recording.memory import MemoryTracker
from .recording.recorder import Recorder

# How long a device takes for a number of equal calls: by CUDA's events, or by the CPU's clock.

Launch = Callable[[int], object]
# Of GPUs that do not tell the size of their L2.
_L2_BYTES = 64 * 2**20
_CLOCK_HZ = 2e9
_SHORTEST_HEAD_START_S = 1e-3
_LONGEST_HEAD_START_S = 0.2
_ATTEMPTS = 6


class HostTooSlowError(Exception):
    """The host launches the kernels of a call more slowly than the device runs them."""


class DeviceClock(Protocol):
    """Times calls on one device."""

    device: str
    """As torch names it."""
    cache_bytes: int
    """What the device's last cache holds."""
    most_calls: int
    """How many calls are worth putting behind each other."""

    def time_s(self, launch: Launch, num_calls: int) -> float:
        """Device seconds of one call, the mean over ``num_calls`` in a row; ``launch`` gets their numbers."""


class CpuClock:
    """The CPU's own clock, and one of its cores: for trying things out."""

    device = "cpu"
    cache_bytes = 0
    most_calls = 10_000

    def __init__(self) -> None:
        # Where others compute as well, threads that wait for each other take as long as those others do.
        torch.set_num_threads(1)

    def time_s(self, launch: Launch, num_calls: int) -> float:
        begin_s = time.perf_counter()
        for number in range(num_calls):
            launch(number)
        return (time.perf_counter() - begin_s) / num_calls


class CudaClock:
    """CUDA's events around calls that wait in the stream behind a kernel that idles.

    Python launches a call every few microseconds, small kernels take less: without the head start one
    would time the host. Whether it was long enough shows in the first event, which must still be pending
    when the last call was launched.
    """

    device = "cuda"
    # A stream holds about a thousand launches before the host has to wait.
    most_calls = 200

    def __init__(self) -> None:
        facts = torch.cuda.get_device_properties(0)
        self.cache_bytes = int(getattr(facts, "L2_cache_size", 0)) or _L2_BYTES
        # In kHz; newer versions of torch tell it.
        self._clock_hz = 1e3 * getattr(facts, "clock_rate", 0) or _CLOCK_HZ
        self._head_start_s = _SHORTEST_HEAD_START_S

    def time_s(self, launch: Launch, num_calls: int) -> float:
        """Device seconds of one call. Raises HostTooSlowError: no head start is long enough."""
        for attempt in range(_ATTEMPTS):
            device_s, host_s, is_covered = self._attempt(launch, num_calls)
            self._head_start_s = min(max(_SHORTEST_HEAD_START_S, 2 * host_s), _LONGEST_HEAD_START_S)
            # A device with more work than the host has never waits for it.
            if is_covered or host_s < device_s / 2:
                return device_s / num_calls
            if attempt > 0:
                # Kernels of many calls fill the stream, and the host waits with the device.
                num_calls = max(1, num_calls // 4)
        raise HostTooSlowError("the host launches its kernels too slowly to time them")

    def _attempt(self, launch: Launch, num_calls: int) -> tuple[float, float, bool]:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        torch.cuda._sleep(int(self._head_start_s * self._clock_hz))
        begin.record()
        host_begin_s = time.perf_counter()
        for number in range(num_calls):
            launch(number)
        host_s = time.perf_counter() - host_begin_s
        end.record()
        is_covered = not begin.query()
        end.synchronize()
        return begin.elapsed_time(end) * 1e-3, host_s, is_covered


def clock_of(backend: str) -> DeviceClock:
    """The clock of a backend, ``cuda`` or ``cpu``."""
    return CudaClock() if backend == "cuda" else CpuClock()


# One robust time from many samples.

SAMPLE_S = 2e-3
NUM_SAMPLES = 7
MOST_SAMPLES = 21
WARM_UPS = 10
STEADY = 0.05
NARROW = 0.02


@dataclass(frozen=True)
class Sampled:
    """Median seconds of a call, and the median absolute deviation of the samples over it."""

    time_s: float
    spread: float
    num_samples: int


def sample(launch: Launch, clock: DeviceClock) -> Sampled:
    """Time a call: warm up until two times agree, then the median of seven samples or more.

    A sample is as many calls as take 2 ms. The median leaves out what something else disturbed; where
    samples scatter, more are taken.
    """
    # How many calls make a sample; libraries have chosen their kernels and clocks have risen then.
    # The first call loads kernels.
    clock.time_s(launch, 1)
    before_s = clock.time_s(launch, 1)
    for _ in range(WARM_UPS):
        num_calls = calls_per_sample(before_s, clock.most_calls)
        now_s = clock.time_s(launch, num_calls)
        is_steady = abs(now_s - before_s) <= STEADY * before_s
        before_s = now_s
        if is_steady:
            break
    num_calls = calls_per_sample(before_s, clock.most_calls)
    samples: list[float] = []
    while len(samples) < MOST_SAMPLES:
        samples += [clock.time_s(launch, num_calls) for _ in range(NUM_SAMPLES)]
        time_s, spread = summary(samples)
        if spread <= NARROW:
            break
    return Sampled(time_s, spread, len(samples))


def summary(samples: list[float]) -> tuple[float, float]:
    """Median, and median absolute deviation over it."""
    median_s = statistics.median(samples)
    return median_s, statistics.median(abs(value - median_s) for value in samples) / median_s


def calls_per_sample(call_s: float, most: int) -> int:
    """So many calls take 2 ms, at least one and at most ``most``.

    >>> calls_per_sample(1e-3, 200), calls_per_sample(1e-6, 200), calls_per_sample(1.0, 200)
    (2, 200, 1)
    """
    return max(1, min(most, math.ceil(SAMPLE_S / max(call_s, 1e-9))))


# Calls and their tensors from the descriptions of ``advisor/operators/case.py``.

TorchOperator = OpOverload | Callable[..., object]
# Values of a normal distribution: hardware draws less power, and so runs faster, on zeros.
_SEED = 0
COPIES = ("advisor::h2d_copy", "advisor::d2h_copy")


class NoSuchOperatorError(Exception):
    """This torch has no operator of that name."""


class Build:
    """One set of tensors for a case; calls that are prepared are made at once.

    Raises NoSuchOperatorError: torch lacks an operator.
    """

    def __init__(self, case: KernelCase, device: str) -> None:
        self._device = device
        self._named: dict[str, object] = {}
        self.num_bytes = 0
        """Of the tensors that were made from a description."""
        for call in case["prepare"]:
            operator, args, kwargs = self._call(call)
            result = operator(*args, **kwargs)
            results = result if isinstance(result, (tuple, list)) else (result,)
            self._named.update(zip(call["results"], results, strict=False))
        self.operator, self.args, self.kwargs = self._call(case["call"])

    def run(self) -> object:
        return self.operator(*self.args, **self.kwargs)

    def _call(self, call: protocol.OperatorCall) -> tuple[TorchOperator, list[object], dict[str, object]]:
        args = [self._value(value) for value in call["arguments"]]
        kwargs = {name: self._value(value) for name, value in call["keywords"].items()}
        return operator_of(call["operator"]), args, kwargs

    def _value(self, spec: object) -> object:
        if isinstance(spec, list):
            return [self._value(item) for item in spec]
        if not isinstance(spec, dict):
            return spec
        ((kind, described),) = spec.items()
        if kind == "tensor":
            return self._tensor(**described)
        return self._named[described] if kind == "result" else getattr(torch, described)

    def _tensor(
        self, shape: list[int], dtype: str, name: str | None = None, stride: list[int] | None = None,
        below: int | None = None, on_host: bool = False,
    ) -> object:  # fmt: skip
        if name in self._named:
            return self._named[name]
        kind = getattr(torch, dtype)
        if stride is None:
            made = torch.empty(shape, dtype=kind, device="cpu" if on_host else self._device)
        else:
            made = torch.empty_strided(shape, stride, dtype=kind, device=self._device)
        if on_host and self._device == "cuda":
            made = made.pin_memory()
        if below is not None:
            made.random_(0, below)
        elif made.dtype is torch.bool:
            made.bernoulli_(0.8)
        else:
            made.normal_()
        self.num_bytes += made.numel() * made.element_size()
        if name is not None:
            self._named[name] = made
        return made


def operator_of(name: str) -> TorchOperator:
    """The operator of a name such as ``aten::add.Tensor``, or a copy between host and device.

    Raises NoSuchOperatorError: this torch has none.
    """
    if name in COPIES:
        return lambda source, target: target.copy_(source, non_blocking=True)
    namespace, _, rest = name.partition("::")
    packet, _, overload = rest.partition(".")
    try:
        operator: OpOverload = getattr(getattr(getattr(torch.ops, namespace), packet), overload)
    except AttributeError as error:
        raise NoSuchOperatorError(f"torch {torch.__version__} has no {name}") from error
    return operator


def seed() -> None:
    """Make the values of all tensors to come the same in each run."""
    torch.manual_seed(_SEED)


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


def measure_all(cases: Sequence[KernelCase], clock: DeviceClock, reference: KernelCase, tell: Tell) -> None:
    """Measure the cases in order, and the reference at the start, now and then, and at the end.

    Raises:
        LostDeviceError: the last reported case took the device with it.
        Exception: the reference cannot be measured; see ``is_out_of_memory``.
    """
    seed()
    for number, case in enumerate(cases):
        if number % REFERENCE_EVERY == 0:
            tell({"reference_s": _measured(reference, clock)["time_s"]})
        tell(_outcome(case, clock))
        _settle(clock)
    tell({"reference_s": _measured(reference, clock)["time_s"]})


def _outcome(case: KernelCase, clock: DeviceClock) -> MeasuredLine | SkippedLine:
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


def missing_ability(case: KernelCase, device: str) -> str | None:
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


def _measured(case: KernelCase, clock: DeviceClock) -> Timing:
    torch.set_float32_matmul_precision("high" if case["tf32"] else "highest")
    torch.backends.cudnn.allow_tf32 = case["tf32"]
    builds = [Build(case, clock.device)]
    operator = described(builds[0], case, clock.device)
    builds += [Build(case, clock.device) for _ in range(num_sets(builds[0].num_bytes, clock) - 1)]
    samples = sample(lambda number: builds[number % len(builds)].run(), clock)
    return {
        "operator": operator, "precision": {"amp_dtype": None, **tf32_flags()}, "time_s": samples.time_s,
        "spread": samples.spread, "num_samples": samples.num_samples,
    }  # fmt: skip


def described(build: Build, case: KernelCase, device: str) -> Operator:
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


def num_sets(num_bytes: int, clock: DeviceClock) -> int:
    """How many sets of tensors fill the cache four times, 8 at most: small ones stay in it, as they do."""
    wanted = -(-CACHES_TO_FILL * clock.cache_bytes // max(1, num_bytes))
    return max(1, min(MOST_SETS, wanted))


def is_out_of_memory(error: Exception) -> bool:
    """Whether the device or the machine had no room, by any library's error."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return any(words in str(error) for words in _OUT_OF_MEMORY)


def first_line(error: Exception) -> str:
    """What it says, in short."""
    text = str(error).strip().partition("\n")[0] or type(error).__name__
    return text[:_LONGEST_REASON]


def _settle(clock: DeviceClock) -> None:
    """Wait for the device and give its memory back. Raises LostDeviceError: it does not answer any more."""
    if clock.device != "cuda":
        return
    try:
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
    except RuntimeError as error:
        raise LostDeviceError(first_line(error)) from error
