"""A script, a saved trace or a profiler's export -> the Trace that everything else rests on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from advisor.core.errors import InputError, ProfileError
from advisor.core.findings.about_traces import World
from advisor.core.values import RankWork, Trace
from advisor.formats.foreign_files import open_regular
from advisor.service.listening import Listener

if TYPE_CHECKING:
    from advisor.config.layers import TracingSettings
    from advisor.config.settings import InputSettings, ProfileSettings
    from advisor.profile.epoch import FakeField


_MOST_BYTES = 2**20


def with_second_profile(
    trace: Trace,
    script: Path,
    profiled: Callable[[int], Trace],
    listener: Listener,
    *,
    is_world_asked: bool,
    is_scaling_known: bool,
) -> Trace:
    """The trace with what a rank does in another world; as it was where there is none.

    Of a script that shards its model, and is not to be profiled alone, it is the other world's trace:
    that tells what ranks hold and exchange, and it serves for any number of them.

    Args:
        profiled: the script's trace as one of so many processes.
        is_world_asked: the trace's world is the user's.
        is_scaling_known: someone said what becomes of its batch.
    """
    # Imported late: it brings numpy, which a look at the package need not wait for.
    from advisor.predict.exchange.collectives import sharding_group, state_group

    size = _other_size(trace, script)
    # Whether a script shards its model shows in the other world alone.
    if size is None or (is_scaling_known and is_world_asked):
        return trace
    try:
        other = profiled(size)
    except ProfileError:
        listener.note(f"as one of {size} the script cannot be profiled: how it scales is assumed")
        return trace
    shows_more = state_group(other) is not None and state_group(trace) is None
    if is_world_asked or not (shows_more or sharding_group(other) is not None):
        return replace(trace, work_elsewhere=_work_of(other, trace))
    warning = World(of="shards", num_ranks=size)
    return replace(other, work_elsewhere=_work_of(trace, other), warnings=(warning, *other.warnings))


def _other_size(trace: Trace, script: Path) -> int | None:
    """Of a world that may tell more; None where the script has but one.

    A script that reads ``WORLD_SIZE`` may make a group only under torchrun, and divide its batch there.
    """
    if trace.backend != "fake":
        return None
    if trace.world_size is None:
        with script.open("rb") as file:
            return 2 if b"WORLD_SIZE" in file.read(_MOST_BYTES) else None
    if trace.world_size == 1:
        return 2
    return None if trace.is_sharded else 1


def _work_of(elsewhere: Trace, trace: Trace) -> RankWork | None:
    """What a rank does elsewhere; None where that is a world of the same size after all."""
    if elsewhere.world_size in (None, trace.world_size):
        return None
    return RankWork(
        world_size=elsewhere.world_size,
        batch_size=elsewhere.batch_size,
        accumulation=elsewhere.accumulation,
        flops=elsewhere.flops,
    )


# These settings may be there for scripts; as arguments of a call they are meant for this one.
_FOR_SCRIPTS = ("backend", "fake_data", "samples", "sandbox", "sandbox_read", "python", "timeout", "env")


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRequest:
    """What to learn an iteration from."""

    source: Path | Trace
    """A training script or a saved trace; a Trace is taken as it is."""
    arguments: tuple[str, ...] = ()
    """Of the script."""
    origin_gpu: str | None = None
    """Where a profiler's export was recorded, if it does not say."""
    pretended_gpu: str | None = None
    """The GPU that the script sees while it is profiled."""
    world_size: int | None = None
    """Profile the script as one of so many processes of one GPU each."""
    python: Path | None = None
    """The interpreter that the script's command names; a setting comes first."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Of the environment, which the script's command sets."""


def trace_of(request: TraceRequest, tracing: TracingSettings, listener: Listener) -> Trace:
    """The Trace in a file, of a profiler's export, or of a script that is profiled now, fed as settings say.

    Raises:
        InputError: nothing there, or options of profiling for a saved trace.
        TraceError: a damaged trace.
        ProfileError: the script yields no iteration.
    """
    return with_input(_trace(request, tracing, listener), tracing.input, listener)


def _trace(request: TraceRequest, tracing: TracingSettings, listener: Listener) -> Trace:
    source = request.source
    if isinstance(source, Trace):
        _refuse_profiling(request, tracing, listener, "the trace")
        return source
    check_exists(source)
    if not holds_data(source):
        return profile_script(request, tracing.profile, listener)
    _refuse_profiling(request, tracing, listener, repr(str(source)))
    from advisor.formats.trace_files import is_trace, read_trace

    return read_trace(source) if is_trace(source) else read_export(source, request.origin_gpu, listener)


def read_export(path: Path, origin_gpu: str | None, listener: Listener) -> Trace:
    """The Trace of a profile that torch.profiler exported.

    Raises TraceError: damaged, foreign, or an export that does not say its GPU.
    """
    from advisor.kineto.export import read_kineto

    with listener.step(f"reading the profile {path.name}"):
        return read_kineto(path, origin_gpu=origin_gpu)


def _refuse_profiling(request: TraceRequest, tracing: TracingSettings, listener: Listener, name: str) -> None:
    fixed = [f"{listener.name_of('world_size')} was"] if request.world_size is not None else []
    fixed += ["arguments for the script were"] if request.arguments else []
    if fixed:
        raise InputError(f"{name} is a saved trace: {fixed[0]} fixed when it was profiled.")
    for setting in (f"profile.{key}" for key in _FOR_SCRIPTS):
        if tracing.is_given(setting):
            called = listener.name_of(setting)
            raise InputError(f"{name} holds a profile: {called} is for a script to profile.")


def check_exists(source: Path | Trace) -> None:
    """Refuse a script or trace that is not there, before anything else is done.

    Raises InputError: says what can be given.
    """
    if isinstance(source, Trace):
        return
    if not source.exists():
        raise InputError(
            f"there is no file {str(source)!r}. Give a training script (train.py) or a trace"
            " that advisor profile wrote."
        )
    if source.is_dir():
        raise InputError(f"{str(source)!r} is a folder: give the .py file that starts the training.")
    if not source.is_file():
        raise InputError(f"{str(source)!r} is a pipe or a device: write its contents to a file.")


def holds_data(source: Path | Trace) -> bool:
    """By content, whatever the name says: gzip or JSON is a trace, anything else a script."""
    if isinstance(source, Trace):
        return True
    if source.is_dir():
        return False
    with open_regular(source) as file:
        start = file.read(64).lstrip()
    return start[:2] == b"\x1f\x8b" or start[:1] == b"{" or source.name.endswith((".json", ".json.gz"))


def profile_script(request: TraceRequest, settings: ProfileSettings, listener: Listener) -> Trace:
    """Profile a script now.

    Raises:
        InputError: a GPU or a world is pretended on a backend that takes no such thing.
        ProfileError: the script yields no iteration.
    """
    from advisor.profile import pretend, profile
    from advisor.profile.sandbox import warning_for_root

    assert isinstance(request.source, Path), "a Trace was profiled already"  # noqa: S101
    script = request.source
    backend = _backend(request, settings.backend, listener)
    listener.warn(warning_for_root(in_sandbox=settings.sandbox))

    def profiled(name: str, backend: str, world_size: int | None) -> Trace:
        with listener.step(name, limit_s=settings.timeout) as step:
            step.update("starting the interpreter")
            return profile(
                script,
                request.arguments,
                backend=backend,
                gpu=pretend(request.pretended_gpu) if request.pretended_gpu else None,
                world_size=world_size,
                memory_bytes=None if settings.memory is None else int(settings.memory * 2**30),
                progress=step.follow,
                **_how(request, settings),
            )

    trace = profiled(f"profiling {script.name}", backend, request.world_size)
    return with_second_profile(
        trace,
        script,
        lambda size: profiled(f"profiling {script.name} as one of {size}", "fake", size),
        listener,
        is_world_asked=request.world_size is not None,
        is_scaling_known=settings.scaling is not None,
    )


def steps_on_cpu(request: TraceRequest, settings: ProfileSettings, listener: Listener) -> tuple[float, ...]:
    """Seconds of some steps of a script on this machine's CPU.

    Raises AdvisorError: it does not run there, or not a step of it ends in time.
    """
    from advisor.profile.profiling import time_on_cpu

    assert isinstance(request.source, Path), "a Trace was profiled already"  # noqa: S101
    with listener.step(f"timing {request.source.name} on this CPU", limit_s=settings.timeout):
        return time_on_cpu(request.source, request.arguments, **_how(request, settings))


class _How(TypedDict):
    """What `profile` and `time_on_cpu` take alike."""

    python: Path | None
    timeout_s: float
    fake_data: Sequence[FakeField]
    num_samples: int | None
    sandbox: bool
    sandbox_read: Sequence[Path]
    env: Sequence[str]
    variables: Mapping[str, str]


def _how(request: TraceRequest, settings: ProfileSettings) -> _How:
    from advisor.profile.epoch import parse_fake_data

    return {
        "python": settings.python or request.python,
        "timeout_s": settings.timeout,
        "fake_data": parse_fake_data(settings.fake_data) if settings.fake_data is not None else (),
        "num_samples": settings.samples,
        "sandbox": settings.sandbox,
        "sandbox_read": settings.sandbox_read,
        "env": settings.env,
        "variables": request.variables,
    }


def _backend(request: TraceRequest, backend: str, listener: Listener) -> str:
    pretended = {"pretended_gpu": request.pretended_gpu, "world_size": request.world_size}
    wishes = [f"{listener.name_of(name)} {value}" for name, value in pretended.items() if value]
    if wishes and backend == "auto":
        return "fake"
    if wishes and backend != "fake":
        raise InputError(f"{' '.join(wishes)} needs the backend fake, not {backend}.")
    return backend


def with_input(trace: Trace, settings: InputSettings, listener: Listener) -> Trace:
    """The trace with the workers and loader seconds of the settings.

    Raises InputError: seconds for one sample are given, and how many an iteration has is unknown.
    """
    if settings.num_workers is not None:
        trace = replace(trace, num_workers=settings.num_workers)
    if settings.loader_s_per_sample is not None:
        from advisor.predict.loading import num_copied

        if trace.batch_size is None and num_copied(trace) is None:
            name = listener.name_of("input.loader_s_per_sample")
            raise InputError(
                f"{name} is of one sample, and {trace.script!r} does not tell how many an iteration has:"
                " leave it out."
            )
        return replace(trace, loader_cpu_s_per_sample=settings.loader_s_per_sample, data_loading_s=None)
    each_s, whole_s, count = trace.loader_cpu_s_per_sample, trace.data_loading_s, trace.batch_size
    if each_s is None or count is None:
        return replace(trace, data_loading_s=None if whole_s is None else whole_s / settings.vcpu_speed)
    saved_s = each_s * count * (1 - 1 / settings.vcpu_speed)
    return replace(
        trace,
        loader_cpu_s_per_sample=each_s / settings.vcpu_speed,
        data_loading_s=None if whole_s is None else max(0.0, whole_s - saved_s),
    )
