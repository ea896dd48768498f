"""``torch.load`` gives tensors on the pretended GPU, without reading their values.

A checkpoint that was saved on a GPU says so, and torch would ask a CUDA driver for memory. What goes to
the CPU is real. Files of this run are read from where `saving` put them.
"""

from __future__ import annotations

import functools
import os
import zipfile
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from advisor.payload.session import Session


def install(session: Session) -> None:
    """Wrap ``torch.load`` and the function below it that makes a tensor of a storage."""
    load: Callable[..., object] = torch.load
    rebuild: Callable[..., object] = torch._utils._rebuild_tensor

    if session.backend != "fake":
        # Values are real: only files of this run lie elsewhere.
        def load_real(f: object, *args: object, **kwargs: object) -> object:
            return load(session.saved.find(f) or f, *args, **kwargs)

        torch.load = torch.serialization.load = functools.wraps(load)(load_real)
        return

    @functools.wraps(load)
    def load_shapes(f: Any, map_location: Any = None, *args: object, **kwargs: object) -> object:
        f = session.saved.find(f) or f
        is_path = isinstance(f, (str, os.PathLike))
        if str(map_location) == "meta" or (is_path and os.fspath(f).endswith(".safetensors")):
            return load(f, map_location, *args, **kwargs)
        # Mapped, so that values nobody looks at are never read: 28 GB of a model of 7 billion.
        if is_path and kwargs.get("mmap") is None and zipfile.is_zipfile(f):
            kwargs["mmap"] = True
        session.restores_to_gpu = _is_on_gpu(map_location, "cuda:0")
        try:
            return load(f, functools.partial(_restore, map_location), *args, **kwargs)
        finally:
            session.restores_to_gpu = True

    @functools.wraps(rebuild)
    def rebuild_shape(storage: Any, offset: int, size: Any, stride: Any) -> object:
        if storage._untyped_storage.device.type == "meta":
            return session.pretending.empty(tuple(size), storage.dtype, tuple(stride))
        return rebuild(storage, offset, size, stride)

    torch.load = torch.serialization.load = load_shapes
    torch._utils._rebuild_tensor = rebuild_shape


def _restore(map_location: Any, storage: Any, location: str) -> object:
    """What ``torch.load`` shall make of a storage: of one on the GPU only the size is kept."""
    if _is_on_gpu(map_location, location):
        return torch.UntypedStorage(storage.nbytes(), device="meta")
    return storage


def _is_on_gpu(map_location: Any, location: str) -> bool:
    """Whether ``torch.load`` puts on a GPU what was saved at ``location``."""
    if isinstance(map_location, dict):
        target = map_location.get(location)
    elif callable(map_location):
        target = map_location(_Storage(), location)
    else:
        target = map_location
    return str(target or location).startswith("cuda")


class _Storage:
    """What a function given as ``map_location`` may move: ``lambda storage, _: storage.cuda(0)``."""

    def __init__(self, device: str = "cpu") -> None:
        self.device = device

    def __str__(self) -> str:
        return self.device

    def cuda(self, *_: object, **__: object) -> _Storage:
        """The storage on the GPU."""
        return _Storage("cuda")

    def cpu(self) -> _Storage:
        """The storage where it is."""
        return self
