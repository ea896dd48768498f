"""Answers ``torch.cuda``'s questions about the device as the pretended GPU would.

Scripts choose ``"cuda" if torch.cuda.is_available() else "cpu"``, print memory figures, and look at the
compute capability to choose a dtype; a CPU-only build says no or raises.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING

import torch

from ...replacing import replace

if TYPE_CHECKING:
    from advisor.payload.fake.gpu import PretendedGpu
    from advisor.payload.session import Session

_NOTHING = (
    "init", "_lazy_init", "synchronize", "empty_cache", "set_device", "ipc_collect", "manual_seed",
    "manual_seed_all", "seed", "seed_all", "set_rng_state", "set_rng_state_all",
    "reset_peak_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached",
    "reset_accumulated_memory_stats", "set_per_process_memory_fraction",
)  # fmt: skip


class _DeviceContext:
    """Stands in for ``torch.cuda.device(index)``."""

    def __init__(self, device: object = None) -> None:
        self.idx = 0 if device is None else device

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


def install(session: Session) -> None:
    """Replace the queries in ``torch.cuda`` and in the submodules that define them."""
    answers: dict[str, object] = {name: _do_nothing() for name in _NOTHING}
    answers.update(_identity_answers(session.gpu, session.world.gpus_per_node))
    answers.update(_memory_answers(session))
    answers.update(_random_answers())
    for module in (torch.cuda, torch.cuda.memory, torch.cuda.random):
        for name, answer in answers.items():
            if module is torch.cuda or hasattr(module, name):
                setattr(module, name, answer)
    replace(torch.cuda, device=_DeviceContext, device_of=_DeviceContext)
    for name in ("range_push", "range_pop", "range_start", "range_end", "mark"):
        setattr(torch.cuda.nvtx, name, _do_nothing())
    replace(torch.cuda.nvtx, range=lambda *_, **__: contextlib.nullcontext())
    _claim_build()


def _do_nothing() -> Callable[..., None]:
    # A function for each name: torch._dynamo refuses to load if two of torch's are the same.
    return lambda *_, **__: None


def _identity_answers(gpu: PretendedGpu, num_devices: int) -> dict[str, object]:
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
        "device_count": lambda: num_devices,
        "current_device": lambda: 0,
        "get_device_name": lambda device=None: gpu.name,  # noqa: ARG005
        "get_device_properties": lambda device=None: properties,  # noqa: ARG005
        "get_device_capability": lambda device=None: (gpu.major, gpu.minor),  # noqa: ARG005
        "get_arch_list": lambda: [f"sm_{gpu.major}{gpu.minor}"],
        "can_device_access_peer": lambda *_: True,
        "is_current_stream_capturing": lambda: False,
        "utilization": lambda device=None: 0,  # noqa: ARG005
        "cudart": lambda: SimpleNamespace(cudaProfilerStart=_do_nothing(), cudaProfilerStop=_do_nothing()),
    }


def _memory_answers(session: Session) -> dict[str, object]:
    memory, total = session.memory, session.gpu.memory_bytes

    return {
        "memory_allocated": lambda device=None: memory.current_bytes,  # noqa: ARG005
        "memory_reserved": lambda device=None: memory.current_bytes,  # noqa: ARG005
        "memory_cached": lambda device=None: memory.current_bytes,  # noqa: ARG005
        "max_memory_allocated": lambda device=None: memory.peak_bytes,  # noqa: ARG005
        "max_memory_reserved": lambda device=None: memory.peak_bytes,  # noqa: ARG005
        "max_memory_cached": lambda device=None: memory.peak_bytes,  # noqa: ARG005
        "memory_stats": lambda device=None: {},  # noqa: ARG005
        "memory_summary": lambda *_, **__: "",
        "mem_get_info": lambda device=None: (total - memory.current_bytes, total),  # noqa: ARG005
    }


def _random_answers() -> dict[str, object]:
    return {
        "initial_seed": lambda: 0,
        "get_rng_state": lambda device=None: torch.zeros(16, dtype=torch.uint8),  # noqa: ARG005
        "get_rng_state_all": lambda: [torch.zeros(16, dtype=torch.uint8)],
    }


def _claim_build() -> None:
    torch.version.cuda = torch.version.cuda or "13.0"
    torch.backends.cuda.is_built = lambda: True
    torch.backends.cudnn.is_available = lambda: True
    torch.backends.cudnn.version = lambda: 91300
    # torch._dynamo imports it wherever CUDA is compiled in.
    if not hasattr(torch._C, "_cuda_getCurrentRawStream"):
        torch._C._cuda_getCurrentRawStream = lambda device: 0  # noqa: ARG005
