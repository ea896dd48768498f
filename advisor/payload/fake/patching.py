"""Which patches a backend has, and in what order they are applied."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from advisor.payload.session import Session

ORDER = (
    "subclass", "device", "streams", "accelerator", "factories", "tensor_device", "tensor_values",
    "conversion", "lazy_modules", "autocast", "scaler", "dropout", "single_kernels", "attention",
    "ctc_loss", "batch_norm", "memory_format", "rnn", "rnn_cells", "optimizers", "initialisation",
    "compiling", "exporting", "fake_data", "data_loader", "data_parallel", "process_group",
    "object_collectives", "spawning", "distributed_data_parallel", "fully_sharded", "dtensor", "storage",
    "saving", "restoring", "saved_paths", "removed_paths", "saving_libraries", "safetensors_files",
    "distributed_checkpoint", "loggers", "downloads", "threads", "legacy_types", "torchvision_ops",
    "transformers_tracing", "deepspeed",
)  # fmt: skip

# On a device that is really there: what keeps the script from leaving a trace, and what watches its data.
_NO_TRACE = (
    "saving", "restoring", "saved_paths", "removed_paths", "saving_libraries", "safetensors_files",
    "loggers", "downloads",
)  # fmt: skip
ON_REAL_DEVICE = {
    "cpu": ("compiling", "fake_data", "data_loader", *_NO_TRACE),
    "cuda": ("compiling", "fake_data", "data_loader", *_NO_TRACE),
}


def install(session: Session, skip: frozenset[str] = frozenset()) -> None:
    """Apply the backend's patches but those in ``skip`` (which exists for the tests).

    Raises:
        ValueError: ``skip`` names no patch.
    """
    unknown = skip.difference(ORDER)
    if unknown:
        raise ValueError(f"no such patches: {sorted(unknown)}; there are {', '.join(ORDER)}")
    wanted = ON_REAL_DEVICE.get(session.backend, ORDER)
    for name in ORDER:
        if name in wanted and name not in skip:
            importlib.import_module(f".patches.{name}", __package__).install(session)
