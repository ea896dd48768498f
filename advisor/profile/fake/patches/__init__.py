"""Changes to torch that let a script run on a GPU that is not there, one file each.

Every file has ``install(session)``. They are applied in the child process only, and
`tests/unit/profile/test_patches.py` shows for each file what goes wrong without it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from advisor.profile.fake.session import Session

ORDER = (
    "subclass", "device", "streams", "accelerator", "factories", "tensor_device", "tensor_values",
    "conversion", "autocast", "scaler", "dropout", "attention", "rnn", "optimizers", "initialisation",
    "compiling", "data_loader", "data_parallel", "saving", "restoring", "saved_paths",
    "saving_libraries", "safetensors_files", "distributed_checkpoint", "loggers", "downloads",
)  # fmt: skip


def install(session: Session, skip: frozenset[str] = frozenset()) -> None:
    """Apply all patches but those in ``skip`` (which exists for the tests).

    Raises:
        ValueError: ``skip`` names no patch.
    """
    unknown = skip.difference(ORDER)
    if unknown:
        raise ValueError(f"no such patches: {sorted(unknown)}; there are {', '.join(ORDER)}")
    for name in ORDER:
        if name not in skip:
            importlib.import_module("." + name, __name__).install(session)
