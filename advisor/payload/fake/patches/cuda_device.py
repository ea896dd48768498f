"""What ``torch.cuda`` answers, and how C++, streams and threads see the fake GPU."""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from ...replacing import Original, replace, wrap
from ..gpu import plain_device
from ..untouched import become_weight

if TYPE_CHECKING:
    from ...recording.memory import MemoryTracker
    from ...session import Session
    from ..gpu import PretendedGpu, PretendedWorld


def become(tensor: torch.Tensor, kind: Any) -> torch.Tensor:
    """Give the tensor the methods of a parameter's or tensor's own class, as a quantised weight has one."""
    if kind not in _PLAIN and not issubclass(kind, FakeTensor):
        tensor.__class__ = _both(kind)
    if issubclass(kind, torch.nn.Parameter):
        replace(tensor, _is_param=True)
    return tensor


_PLAIN = (torch.Tensor, torch.nn.Parameter)


@functools.cache
def _both(kind: Any) -> Any:
    return type(kind.__name__, (kind, FakeTensor), {"__module__": kind.__module__, "detach": _detach})


def _detach(tensor: torch.Tensor) -> torch.Tensor:
    """As ``torch.nn.Parameter`` asks of a class of its own: of the same class, with what is noted on it."""
    detached = torch.Tensor.detach(tensor)
    detached.__class__ = type(tensor)
    vars(detached).update({name: value for name, value in vars(tensor).items() if name not in vars(detached)})
    return detached


def install_subclass(session: Session) -> None:  # noqa: ARG001 - all patches have one signature
    """Makes C++ see a meta tensor where Python sees a CUDA tensor.

    FakeTensor asks ``Tensor._make_subclass`` for a tensor whose C++ device is CUDA. On a build without CUDA
    the autograd engine then looks for a device guard that does not exist and aborts the process in
    ``backward``. With ``dispatch_device=False`` the C++ device stays meta, while the dispatch keys are CUDA's
    and ``tensor.device`` says ``cuda:0``.

    Wrap ``Tensor._make_subclass`` and give FakeTensor the answers of a CUDA tensor.
    """
    original: Callable[..., object] = torch.Tensor._make_subclass

    # torch._dynamo wants this very signature.
    def make_subclass(cls: type, data: object, requires_grad: bool = False, **kwargs: object) -> object:
        device: Any = kwargs.get("device_for_backend_keys")
        if device is not None and torch.device(device).type == "cuda":
            kwargs["dispatch_device"] = False
        if isinstance(data, FakeTensor) and cls is not FakeTensor:
            return become(data.detach().requires_grad_(requires_grad), cls)
        if isinstance(data, torch.Tensor) and issubclass(cls, torch.nn.Parameter):
            become_weight(data)
        return original(cls, data, requires_grad, **kwargs)

    replace(torch.Tensor, _make_subclass=staticmethod(make_subclass))
    replace(
        FakeTensor,
        is_cuda=property(lambda tensor: tensor.fake_device.type == "cuda"),
        is_cpu=property(lambda tensor: tensor.fake_device.type == "cpu"),
        is_meta=property(lambda tensor: False),  # noqa: ARG005
        get_device=lambda tensor: tensor.fake_device.index or 0,
    )


_device = torch.device


class _DeviceType(type):
    """``torch.device``, to which an integer is a CUDA device; what it makes is an ordinary device."""

    def __call__(cls, *given: object, **named: object) -> torch.device:
        if len(given) == 1 and isinstance(given[0], int):
            return _device("cuda", given[0])
        make: Callable[..., torch.device] = _device
        return make(*given, **named)

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, _device)

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, _device)

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is _device

    def __hash__(cls) -> int:
        return hash(_device)

    def __getattr__(cls, name: str) -> object:
        return getattr(_device, name)


def install_device_type(session: Session) -> None:  # noqa: ARG001
    """``torch.device(0)``, as device maps and distributed scripts write it.

    C++ asks which accelerator the number belongs to; a build without one raises.

    Replace ``torch.device``, which no subclass can be made of, by a type that counts as the same.
    """
    kind = _DeviceType("device", (), {"__module__": "torch", "__doc__": _device.__doc__})
    # TorchScript is to see the operator that it knows.
    torch.jit._builtins._register_builtin(kind, torch.jit._builtins._find_builtin(_device))
    replace(torch, device=kind)


_NOTHING = (
    "init", "_lazy_init", "synchronize", "empty_cache", "ipc_collect", "manual_seed",
    "manual_seed_all", "seed", "seed_all", "set_rng_state", "set_rng_state_all",
    "reset_peak_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached",
    "reset_accumulated_memory_stats", "set_per_process_memory_fraction",
)  # fmt: skip


class _DeviceContext:
    """Stands in for ``torch.cuda.device(index)``."""

    def __init__(self, device: object = None) -> None:
        self.idx = 0 if device is None else device
        plain_device(device)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


def install_device(session: Session) -> None:
    """Answers ``torch.cuda``'s questions about the device as the pretended GPU would.

    Scripts choose ``"cuda" if torch.cuda.is_available() else "cpu"``, print memory figures, and look at the
    compute capability to choose a dtype; a CPU-only build says no or raises.

    Replace the queries in ``torch.cuda`` and in the submodules that define them.
    """
    answers: dict[str, object] = {name: _do_nothing() for name in _NOTHING}
    answers.update(_identity_answers(session.gpu, session.world))
    answers.update(_memory_answers(session))
    for module in (torch.cuda, torch.cuda.memory, torch.cuda.random):
        for name, answer in answers.items():
            if module is torch.cuda or hasattr(module, name):
                setattr(module, name, answer)
    replace(torch.cuda, device=_DeviceContext, device_of=_DeviceContext)
    for name in ("range_push", "range_pop", "range_start", "range_end", "mark"):
        setattr(torch.cuda.nvtx, name, _do_nothing())
    replace(torch.cuda.nvtx, range=lambda *_, **__: contextlib.nullcontext())
    wrap(torch.autograd.profiler.profile, "__init__", _profile_the_host)
    torch.version.cuda = torch.version.cuda or "13.0"
    torch.backends.cuda.is_built = lambda: True
    torch.backends.cudnn.is_available = lambda: True
    torch.backends.cudnn.version = lambda: 91300
    # torch._dynamo imports it wherever CUDA is compiled in.
    if not hasattr(torch._C, "_cuda_getCurrentRawStream"):
        torch._C._cuda_getCurrentRawStream = lambda device: 0  # noqa: ARG005


def _profile_the_host(original: Original, *args: object, **kwargs: object) -> None:
    """Each operator would warn that no event of CUDA can be recorded, with 50 ms of stack trace."""
    removed = [name for name in ("use_device", "use_cuda") if kwargs.get(name)]
    # Of a profile of the GPU alone nothing would be left.
    host = {"use_cpu": True} if removed else {}
    original(*args, **kwargs | dict.fromkeys(removed) | host)


def _do_nothing() -> Callable[..., None]:
    # A function for each name: torch._dynamo refuses to load if two of torch's are the same.
    return lambda *_, **__: None


def _identity_answers(gpu: PretendedGpu, world: PretendedWorld) -> dict[str, object]:
    properties = SimpleNamespace(
        name=gpu.name, major=gpu.major, minor=gpu.minor, total_memory=gpu.memory_bytes,
        multi_processor_count=gpu.num_sms, is_integrated=0, is_multi_gpu_board=0, warp_size=32,
        gcnArchName="", max_threads_per_multi_processor=2048, regs_per_multiprocessor=65536,
        shared_memory_per_block=49152, shared_memory_per_block_optin=166912,
        shared_memory_per_multiprocessor=167936, L2_cache_size=40 * 2**20, uuid="0",
        pci_bus_id=0, pci_device_id=0, pci_domain_id=0,
    )  # fmt: skip
    return {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "_is_compiled": lambda: True,
        "is_bf16_supported": lambda including_emulation=True: gpu.major >= 8 or including_emulation,
        "is_tf32_supported": lambda: gpu.major >= 8,
        "device_count": world.count_gpus,
        "current_device": lambda: 0,
        "set_device": plain_device,
        "get_device_name": lambda device=None: gpu.name,  # noqa: ARG005
        "get_device_properties": lambda device=None: properties,  # noqa: ARG005
        "get_device_capability": lambda device=None: (gpu.major, gpu.minor),  # noqa: ARG005
        "get_arch_list": lambda: [f"sm_{gpu.major}{gpu.minor}"],
        "can_device_access_peer": lambda *_: True,
        "is_current_stream_capturing": lambda: False,
        "utilization": lambda device=None: 0,  # noqa: ARG005
        "cudart": lambda: SimpleNamespace(cudaProfilerStart=_do_nothing(), cudaProfilerStop=_do_nothing()),
        "initial_seed": lambda: 0,
        "get_rng_state": lambda device=None: torch.zeros(16, dtype=torch.uint8),  # noqa: ARG005
        "get_rng_state_all": lambda: [torch.zeros(16, dtype=torch.uint8)],
    }


def _memory_answers(session: Session) -> dict[str, object]:
    memory, total = session.memory, session.gpu.memory_bytes

    in_use = ("memory_allocated", "memory_reserved", "memory_cached")
    return {
        **{name: lambda device=None: memory.current_bytes for name in in_use},  # noqa: ARG005
        **{f"max_{name}": lambda device=None: memory.peak_bytes for name in in_use},  # noqa: ARG005
        "memory_stats": lambda device=None: _statistics(memory),  # noqa: ARG005
        "memory_summary": lambda *_, **__: "",
        "mem_get_info": lambda device=None: (total - memory.current_bytes, total),  # noqa: ARG005
    }


def _statistics(memory: MemoryTracker) -> Counter[str]:
    """What is in use and was at most; of the many others each is 0."""
    in_use = {"current": memory.current_bytes, "peak": memory.peak_bytes}
    kinds = ("allocated", "active", "reserved")
    return Counter({f"{kind}_bytes.all.{when}": size for kind in kinds for when, size in in_use.items()})


class Event:
    """An event that has happened; elapsed time is that of the CPU."""

    def __init__(self, *_: object, **__: object) -> None:
        self._recorded_s = 0.0

    def record(self, stream: object = None) -> None:  # noqa: ARG002
        self._recorded_s = time.perf_counter()

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds to ``end``, never zero since scripts divide by it."""
        return max(1e-3, (end._recorded_s - self._recorded_s) * 1e3)

    def query(self) -> bool:
        return True

    def wait(self, stream: object = None) -> None:
        pass

    synchronize = wait


class Stream:
    """A stream without work."""

    cuda_stream = 0
    device_index = 0
    stream_id = 0
    device_type = 1

    def __init__(self, *_: object, **__: object) -> None:
        self.device = torch.device("cuda", 0)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def synchronize(self, *_: object, **__: object) -> None:
        pass

    wait_stream = wait_event = synchronize

    def record_event(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.record()
        return event

    def query(self) -> bool:
        return True

    def is_capturing(self) -> bool:
        return False


_MAIN = Stream()
_entered: list[Stream] = []


def is_on_main_stream() -> bool:
    """Whether work goes where that of the model goes, which waits for what is not asynchronous."""
    return not _entered or _entered[-1] is _MAIN


def _current_stream(device: object = None) -> Stream:  # noqa: ARG001
    return _entered[-1] if _entered else _MAIN


@contextlib.contextmanager
def _on(stream: Stream | None) -> Iterator[Stream | None]:
    _entered.append(_current_stream() if stream is None else stream)
    try:
        yield stream
    finally:
        _entered.pop()


def install_streams(session: Session) -> None:  # noqa: ARG001
    """CUDA streams and events: nothing runs, so all of them are always done.

    The classes of a CPU-only build raise when constructed.

    Replace the classes and the functions that hand out streams.
    """
    replace(torch.cuda.streams, Event=Event, Stream=Stream)
    replace(
        torch.cuda,
        Event=Event,
        Stream=Stream,
        current_stream=_current_stream,
        default_stream=lambda device=None: _MAIN,  # noqa: ARG005
        set_stream=lambda stream: None,  # noqa: ARG005
        stream=_on,
    )
    replace(torch.Tensor, record_stream=lambda tensor, stream: None)  # noqa: ARG005


def install_accelerator(session: Session) -> None:
    """``torch.accelerator``, the device-neutral way to ask for a GPU, says that there is a CUDA device.

    On a CPU-only build it says that there is none, or raises, and newer scripts would train on the CPU.

    Replace the queries that exist in this version of torch.
    """
    memory = _memory_answers(session)
    answers: dict[str, object] = {
        "is_available": lambda: True,
        "device_count": session.world.count_gpus,
        "current_accelerator": lambda check_available=False: torch.device("cuda"),  # noqa: ARG005
        "current_device_index": lambda: 0,
        "current_device_idx": lambda: 0,
        "set_device_index": plain_device,
        "set_device_idx": plain_device,
        "current_stream": lambda device=None: Stream(),  # noqa: ARG005
        "set_stream": lambda stream: None,  # noqa: ARG005
        "synchronize": lambda device=None: None,  # noqa: ARG005
        "empty_cache": lambda: None,
        "reset_peak_memory_stats": lambda device=None: None,  # noqa: ARG005
        **{name: answer for name, answer in memory.items() if name.endswith(("_allocated", "_reserved"))},
    }
    for name, answer in answers.items():
        if hasattr(torch.accelerator, name):
            setattr(torch.accelerator, name, answer)
    # FSDP asks C++ itself.
    torch._C._get_accelerator = lambda *_: torch.device("cuda")


def install_threads(session: Session) -> None:
    """Threads of the script see the pretended GPU as well.

    A dispatch mode holds for one thread; a loop, a prefetcher or a metric computed in another one would meet
    a torch without CUDA. Each thread enters a mode of its own that reports to the same session.

    Wrap what a thread runs when it is started.
    """

    def start_with_mode(start: Original, thread: Any) -> None:
        run = thread.run

        def run_with_mode() -> None:
            with session.pretending.for_thread():
                run()

        thread.run = run_with_mode
        start(thread)

    wrap(threading.Thread, "start", start_with_mode)
