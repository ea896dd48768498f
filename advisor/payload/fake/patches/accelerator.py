"""``torch.accelerator``, the device-neutral way to ask for a GPU, says that there is a CUDA device.

On a CPU-only build it says that there is none, or raises, and newer scripts would train on the CPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from .streams import Stream

if TYPE_CHECKING:
    from advisor.payload.session import Session


def install(session: Session) -> None:
    """Replace the queries that exist in this version of torch."""
    memory = session.memory
    answers: dict[str, object] = {
        "is_available": lambda: True,
        "device_count": lambda: session.world.gpus_per_node,
        "current_accelerator": lambda check_available=False: torch.device("cuda"),  # noqa: ARG005
        "current_device_index": lambda: 0,
        "current_device_idx": lambda: 0,
        "set_device_index": lambda device: None,  # noqa: ARG005
        "set_device_idx": lambda device: None,  # noqa: ARG005
        "current_stream": lambda device=None: Stream(),  # noqa: ARG005
        "set_stream": lambda stream: None,  # noqa: ARG005
        "synchronize": lambda device=None: None,  # noqa: ARG005
        "empty_cache": lambda: None,
        "memory_allocated": lambda device=None: memory.current_bytes,  # noqa: ARG005
        "memory_reserved": lambda device=None: memory.current_bytes,  # noqa: ARG005
        "max_memory_allocated": lambda device=None: memory.peak_bytes,  # noqa: ARG005
        "max_memory_reserved": lambda device=None: memory.peak_bytes,  # noqa: ARG005
        "reset_peak_memory_stats": lambda device=None: None,  # noqa: ARG005
    }
    for name, answer in answers.items():
        if hasattr(torch.accelerator, name):
            setattr(torch.accelerator, name, answer)
    # FSDP asks C++ itself.
    torch._C._get_accelerator = lambda *_: torch.device("cuda")
