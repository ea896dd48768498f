"""Which patches a backend has, and in what order they are applied."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..session import Session

# Patch -> its file in `patches`, in the order of application; its function is `install_PATCH`.
PATCHES = {
    "subclass": "cuda_device", "device_type": "cuda_device", "device": "cuda_device",
    "streams": "cuda_device", "accelerator": "cuda_device", "factories": "tensors",
    "tensor_device": "tensors", "tensor_values": "tensors", "conversion": "tensors",
    "lazy_modules": "tensors", "autocast": "autocast", "scaler": "autocast", "dropout": "kernels",
    "single_kernels": "kernels", "attention": "kernels", "flex_attention": "kernels", "ctc_loss": "kernels",
    "batch_norm": "kernels", "memory_format": "kernels", "rnn": "kernels", "rnn_cells": "kernels",
    "optimizers": "kernels", "initialisation": "kernels", "compiling": "compiling", "exporting": "compiling",
    "fake_data": "loaders", "data_loader": "loaders", "data_parallel": "distributed",
    "process_group": "distributed", "object_collectives": "distributed", "spawning": "distributed",
    "distributed_data_parallel": "distributed", "dtensor": "distributed", "pipelining": "distributed",
    "storage": "tensors", "saving": "saving", "restoring": "saving", "saved_paths": "file_system",
    "removed_paths": "file_system", "saving_libraries": "saving", "safetensors_files": "saving",
    "distributed_checkpoint": "saving", "loggers": "downloads", "downloads": "downloads",
    "threads": "cuda_device", "legacy_types": "tensors", "torchvision_ops": "libraries",
    "transformers_tracing": "libraries", "bitsandbytes": "libraries", "extensions": "libraries",
    "deepspeed": "libraries",
}  # fmt: skip

# On a device that is really there: what keeps the script from leaving a trace, and what watches its data.
_ON_REAL_DEVICE = (
    "compiling", "fake_data", "data_loader", "saving", "restoring", "saved_paths", "removed_paths",
    "saving_libraries", "safetensors_files", "loggers", "downloads",
)  # fmt: skip


def install(session: Session, skip: frozenset[str] = frozenset()) -> None:
    """Apply the backend's patches but those in ``skip`` (which exists for the tests).

    Raises ValueError: ``skip`` names no patch.
    """
    unknown = skip.difference(PATCHES)
    if unknown:
        raise ValueError(f"no such patches: {sorted(unknown)}; there are {', '.join(PATCHES)}")
    wanted = PATCHES if session.backend == "fake" else _ON_REAL_DEVICE
    for name, file in PATCHES.items():
        if name in wanted and name not in skip:
            module = importlib.import_module(f".patches.{file}", __package__)
            getattr(module, f"install_{name}")(session)
