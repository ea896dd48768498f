"""safetensors files are written as header and holes, and read back from where they went.

The library would copy every tensor to the host and write its bytes. A file with holes reads as zeros and
takes no room on the disk, so a model of 7 billion parameters costs nothing. CPU tensors keep their values.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch

from ...importing import when_imported
from ...protocol import Warned
from ...replacing import replace

if TYPE_CHECKING:
    from advisor.payload.session import Session

_NAMES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64",
    "int32": "I32", "int16": "I16", "int8": "I8", "uint8": "U8", "bool": "BOOL", "uint64": "U64",
    "uint32": "U32", "uint16": "U16", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
    "complex64": "C64",
}  # fmt: skip


def install(session: Session) -> None:
    """Watch for safetensors."""
    when_imported("safetensors", functools.partial(_patch_reader, session))
    patch = _patch_torch if session.backend == "fake" else _redirect
    when_imported("safetensors.torch", functools.partial(patch, session))


def _patch_reader(session: Session, module: ModuleType) -> None:
    original = module.safe_open

    @functools.wraps(original, updated=())
    def safe_open(filename: Any, *args: object, **kwargs: object) -> object:
        return original(session.saved.find(filename) or filename, *args, **kwargs)

    replace(module, safe_open=safe_open)


def _redirect(session: Session, module: ModuleType) -> None:
    """Where tensors have values, the library itself writes, elsewhere."""
    for name in ("save_file", "save_model"):
        setattr(module, name, _elsewhere(session, getattr(module, name)))


def _elsewhere(session: Session, original: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(original)
    def save(tensors: Any, filename: Any, *args: object, **kwargs: object) -> None:
        session.warn(Warned.FILES_THROWN_AWAY, library="safetensors")
        original(tensors, session.saved.place(filename), *args, **kwargs)

    return save


def _patch_torch(session: Session, module: ModuleType) -> None:
    def save_file(tensors: Any, filename: Any, metadata: Any = None) -> None:
        session.warn(Warned.FILES_THROWN_AWAY, library="safetensors")
        _write(tensors, session.saved.place(filename), metadata)

    def save_model(
        model: torch.nn.Module,
        filename: str,
        metadata: Any = None,
        force_contiguous: bool = True,  # noqa: ARG001
    ) -> None:
        # Tied weights are stored once; their names go to the metadata, as the library has it.
        kept, names = {}, dict(metadata or {})
        owners: dict[int, str] = {}
        for name, tensor in model.state_dict(keep_vars=True).items():
            first = owners.setdefault(id(tensor), name)
            if first == name:
                kept[name] = tensor
            else:
                names[name] = first
        save_file(kept, filename, names)

    replace(module, save_file=save_file, save_model=save_model)
    # Tied weights are told by their address, which is 0 for all tensors of the pretended GPU.
    _answer_for_fakes(session, module, "storage_ptr", lambda tensor: tensor.untyped_storage()._cdata)
    _answer_for_fakes(session, module, "_is_complete", _fills_its_storage)


def _answer_for_fakes(session: Session, module: Any, name: str, answer: Callable[[Any], Any]) -> None:
    original = getattr(module, name, None)
    if original is not None:
        setattr(module, name, lambda tensor: (answer if session.is_fake(tensor) else original)(tensor))


def _fills_its_storage(tensor: torch.Tensor) -> bool:
    return bool(tensor.numel() * tensor.element_size() == tensor.untyped_storage().nbytes())


def _write(tensors: Any, path: str, metadata: Any) -> None:
    header: dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    end_bytes = 0
    for name, tensor in tensors.items():
        begin_bytes, end_bytes = end_bytes, end_bytes + tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": _NAMES[str(tensor.dtype).removeprefix("torch.")],
            "shape": list(tensor.shape),
            "data_offsets": [begin_bytes, end_bytes],
        }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name, tensor in tensors.items():
            if tensor.device.type == "cpu" and tensor.numel():
                file.seek(8 + len(text) + header[name]["data_offsets"][0])
                values = tensor.detach().contiguous().view(-1).view(torch.uint8)
                file.write(values.numpy().data)
        file.truncate(8 + len(text) + end_bytes)
