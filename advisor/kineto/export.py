"""An exported profiler trace (PyTorch's Kineto, any schema up to 1) -> Trace of its median step."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from advisor.core.errors import InputError, TraceError
from advisor.core.findings import Code, Finding, finding
from advisor.core.gpus import resolve_gpu
from advisor.core.values import Collective, MemoryUse, Op, Phase, Precision, Trace
from advisor.formats.trace_checks import check_trace
from advisor.formats.trace_files import SCHEMA_VERSION
from advisor.kineto.events import DeviceEvent, Recording, read_recording
from advisor.kineto.joining import Call, Step, Unjoined, join
from advisor.kineto.launches import kernels_of, merged
from advisor.kineto.shapes import Autograd, cost_of_call, tensors_of
from advisor.operators.work import tensor_bytes

# Names under which copies and fills appear; their bytes are the profiler's own.
_COPY_NAMES = {"HtoD": "advisor::h2d_copy", "DtoH": "advisor::d2h_copy"}


def read_kineto(path: Path, *, origin_gpu: str | None = None) -> Trace:
    """The median step of an exported profile.

    Args:
        path: what ``export_chrome_trace`` wrote, gzipped or not.
        origin_gpu: the GPU it ran on, where the file does not say or says it wrongly.

    Raises:
        TraceError: the file is damaged, foreign, of an unknown schema or without kernels or steps.
        InputError: the GPU is needed and not given.
        UnknownGpuError: the GPU is not in the catalog.
    """
    recording = read_recording(path)
    trace = _trace(recording, path, origin_gpu)
    try:
        check_trace(trace)
    except ValueError as error:
        raise TraceError(f"the profile {str(path)!r} is damaged: {error}. Export it again.") from error
    return trace


def _trace(recording: Recording, path: Path, origin_gpu: str | None) -> Trace:
    origin = _origin(path, recording, origin_gpu)
    steps, unjoined = join(recording)
    step = _median_step(steps)
    exchanged = [call for call in step.calls if _is_collective(call)]
    computed = [call for call in step.calls if not _is_collective(call)]
    autograd = Autograd.of(recording.operators)
    return Trace(
        schema_version=SCHEMA_VERSION,
        script=str(path),
        arguments=(),
        backend="kineto",
        origin_gpu=origin,
        versions={},
        precision=Precision(amp_dtype=None, tf32_matmul=False, tf32_cudnn=True),
        batch_size=None,
        samples_per_epoch=None,
        iterations_per_epoch=None,
        accumulation=1,
        ops=merged(op for call in computed for op in _ops(call, autograd)),
        # A profiled step waits for the profiler, so its wall time says little about a run without one.
        iteration_s=None,
        data_loading_s=None,
        num_workers=None,
        memory=_memory(recording, len(steps)),
        collectives=_collectives(exchanged),
        warnings=(*_warnings(steps, step, unjoined, recording), *_exchange_warnings(exchanged)),
    )


def _origin(path: Path, recording: Recording, given: str | None) -> str:
    name = given or recording.device_name
    if name is None:
        raise InputError(
            f"the profile {str(path)!r} does not say which GPU it ran on: add `origin_gpu` NAME."
        )
    return resolve_gpu(name).name


def _is_collective(call: Call) -> bool:
    return all("nccl" in event.name.lower() for event in call.device_events)


def _collectives(calls: Sequence[Call]) -> tuple[Collective, ...]:
    """That there is communication, and how often; a profile does not tell its size."""
    if not calls:
        return ()
    return (Collective(kind="nccl", num_bytes=None, world_size=None, count=len(calls)),)


def _exchange_warnings(calls: Sequence[Call]) -> list[Finding]:
    if not calls:
        return []
    seconds = sum(event.duration_s for call in calls for event in call.device_events)
    return [finding(Code.EXCHANGE_LEFT_OUT, num_kernels=len(calls), time_s=seconds)]


def _median_step(steps: Sequence[Step]) -> Step:
    return sorted(steps, key=lambda step: step.device_s)[(len(steps) - 1) // 2]


def _ops(call: Call, autograd: Autograd) -> list[Op]:
    """One Op for the kernels of a call, and one for each copy and fill in it."""
    kernels = [event for event in call.device_events if event.kind == "kernel"]
    others = [event for event in call.device_events if event.kind != "kernel"]
    ops = [_traffic_op(event, call.phase) for event in others]
    if not kernels:
        return ops
    inputs = tensors_of(call.operator) if call.operator else ()
    outputs, flops, num_bytes = cost_of_call(call.operator, inputs, autograd)
    op = Op(
        name=call.operator.name if call.operator else f"unjoined::{_short(kernels[0].name)}",
        phase=call.phase,
        inputs=inputs,
        outputs=outputs,
        attributes={},
        flops=flops,
        bytes=num_bytes,
        count=1,
        measured_s=sum(event.duration_s for event in kernels),
        kernels=kernels_of(kernels),
    )
    return [op, *ops]


def _traffic_op(event: DeviceEvent, phase: Phase) -> Op:
    direction = next((name for word, name in _COPY_NAMES.items() if word in event.name), None)
    num_bytes = event.args.get("bytes") or 0
    # A copy within the device reads and writes, a fill only writes.
    within = 2 * num_bytes if event.kind == "memcpy" else num_bytes
    return Op(
        name=direction or f"advisor::{event.kind}",
        phase=phase,
        inputs=(),
        outputs=(),
        attributes={},
        flops=0,
        bytes=num_bytes if direction else within,
        count=1,
        measured_s=event.duration_s,
    )


def _short(name: str) -> str:
    return name.removeprefix("void ").partition("<")[0].partition("(")[0]


def _memory(recording: Recording, num_steps: int) -> MemoryUse:
    """Gradients from what autograd accumulates; a profile tells nothing of the rest."""
    gradients = [
        tensor_bytes(tensor)
        for operator in recording.operators
        if operator.name.startswith("torch::autograd::AccumulateGrad")
        for tensor in tensors_of(operator)[:1]
    ]
    gradient_bytes = sum(gradients) // num_steps or None
    return MemoryUse(
        parameter_bytes=gradient_bytes,
        gradient_bytes=gradient_bytes,
        optimizer_bytes=None,
        activation_bytes=None,
        peak_bytes=None,
    )


def _warnings(
    steps: Sequence[Step], step: Step, unjoined: Unjoined, recording: Recording
) -> tuple[Finding, ...]:
    warnings = [finding(Code.STEP_TAKEN, step=step.name, num_steps=len(steps))]
    if unjoined.kernels:
        shares = {
            "share_of_kernels": unjoined.share_of_kernels,
            "share_of_time": unjoined.share_of_time,
        }
        warnings.append(finding(Code.KERNELS_UNJOINED, **shares))
    if not any(operator.args.get("input dims") for operator in recording.operators):
        warnings.append(finding(Code.NO_SHAPES))
    elif not any(operator.args.get("input type") for operator in recording.operators):
        warnings.append(finding(Code.NO_DTYPES))
    return (*warnings, finding(Code.FLAGS_ASSUMED))
