"""Checkpoints are written to a folder that is thrown away, CUDA tensors as shapes, and read back."""

from __future__ import annotations

import functools
import inspect
import json
import os
import zipfile
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from types import ModuleType
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from ...protocol import Warned
from ...replacing import Original, attribute, replace, when_imported, wrap
from ...session import Session
from ..untouched import zeros


def install_saving(session: Session) -> None:
    """``torch.save`` writes to a folder that is thrown away, and a CUDA tensor as its shape alone.

    A profiled script must not overwrite its owner's checkpoints with made-up weights, but may want to read
    its own ones back. Tensors of the pretended GPU have no values, so saving them takes neither memory nor
    disk; CPU tensors are real and so are saved with their values.

    Wrap ``torch.save`` and teach pickle what a tensor of the pretended GPU is.
    """
    original: Callable[..., None] = torch.save

    @functools.wraps(original)
    def save(obj: object, f: object, *args: object, **kwargs: object) -> None:
        # Without the folder the original says so.
        if isinstance(f, (str, os.PathLike)) and os.path.isdir(os.path.dirname(os.path.abspath(f))):
            session.warn(Warned.NOT_DONE, what="writing", name="torch.save")
            f = session.saved.place(f)
        original(obj, f, *args, **kwargs)

    def rebuild_tensor(
        shape: Sequence[int], stride: Sequence[int], dtype: torch.dtype, requires_grad: bool,
        is_parameter: bool,
    ) -> object:  # fmt: skip
        if session.restores_to_gpu:
            tensor = session.pretending.empty(shape, dtype, stride)
        else:
            tensor = zeros(shape, stride, dtype)
        if is_parameter:
            return torch.nn.Parameter(tensor, requires_grad)
        return tensor.requires_grad_(requires_grad)

    def reduce(tensor: torch.Tensor, _: object) -> object:
        is_parameter = isinstance(tensor, torch.nn.Parameter)
        described = (tuple(tensor.shape), tensor.stride(), tensor.dtype, tensor.requires_grad, is_parameter)
        return rebuild_tensor, described

    # Pickle finds functions by their names.
    rebuild_tensor.__qualname__ = rebuild_tensor.__name__
    globals()[rebuild_tensor.__name__] = rebuild_tensor
    torch.serialization.add_safe_globals([rebuild_tensor])
    torch.save = torch.serialization.save = save
    if session.backend == "fake":
        replace(FakeTensor, __reduce_ex__=reduce)


def install_restoring(session: Session) -> None:
    """``torch.load`` gives tensors on the pretended GPU, without reading their values.

    A checkpoint that was saved on a GPU says so, and torch would ask a CUDA driver for memory. What goes to
    the CPU is real. Files of this run are read from where `saving` put them.

    Wrap ``torch.load`` and the function below it that makes a tensor of a storage.
    """
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
        # Mapped, so that unused values are never read: 28 GB of a model of 7 billion.
        if is_path and kwargs.get("mmap") is None and zipfile.is_zipfile(f):
            kwargs["mmap"] = True
        session.restores_to_gpu = _is_on_gpu(map_location, "cuda:0")
        try:
            return load(f, functools.partial(_restore_storage, map_location), *args, **kwargs)
        finally:
            session.restores_to_gpu = True

    @functools.wraps(rebuild)
    def rebuild_shape(storage: Any, offset: int, size: Any, stride: Any) -> object:
        if storage._untyped_storage.device.type == "meta":
            return session.pretending.empty(tuple(size), storage.dtype, tuple(stride))
        return rebuild(storage, offset, size, stride)

    torch.load = torch.serialization.load = load_shapes
    torch._utils._rebuild_tensor = rebuild_shape


def _restore_storage(map_location: Any, storage: Any, location: str) -> object:
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
        return _Storage("cuda")

    def cpu(self) -> _Storage:
        return self


_FOLDER = "save_directory"
# Module -> function -> the parameter that names a file or folder to write.
_WRITES = {
    "transformers.modeling_utils": {"PreTrainedModel.save_pretrained": _FOLDER},
    "transformers.configuration_utils": {
        "PretrainedConfig.save_pretrained": _FOLDER,
        "PreTrainedConfig.save_pretrained": _FOLDER,
    },
    "transformers.generation.configuration_utils": {"GenerationConfig.save_pretrained": _FOLDER},
    "transformers.tokenization_utils_base": {"PreTrainedTokenizerBase.save_pretrained": _FOLDER},
    "transformers.processing_utils": {"ProcessorMixin.save_pretrained": _FOLDER},
    "transformers.feature_extraction_utils": {"FeatureExtractionMixin.save_pretrained": _FOLDER},
    "transformers.image_processing_base": {"ImageProcessingMixin.save_pretrained": _FOLDER},
    "transformers.trainer": {"Trainer._save": "output_dir"},
    "transformers.trainer_callback": {"TrainerState.save_to_json": "json_path"},
    "peft.peft_model": {"PeftModel.save_pretrained": _FOLDER},
    "diffusers.models.modeling_utils": {"ModelMixin.save_pretrained": _FOLDER},
    "diffusers.pipelines.pipeline_utils": {"DiffusionPipeline.save_pretrained": _FOLDER},
    "accelerate.accelerator": {"Accelerator.save_state": "output_dir", "Accelerator.save_model": _FOLDER},
    "lightning.fabric.plugins.io.torch_io": {"TorchCheckpointIO.save_checkpoint": "path"},
    "lightning_fabric.plugins.io.torch_io": {"TorchCheckpointIO.save_checkpoint": "path"},
    "lightning.fabric.loggers.csv_logs": {"_ExperimentWriter.__init__": "log_dir"},
    "lightning_fabric.loggers.csv_logs": {"_ExperimentWriter.__init__": "log_dir"},
    "lightning.pytorch.core.saving": {"save_hparams_to_yaml": "config_yaml"},
    "pytorch_lightning.core.saving": {"save_hparams_to_yaml": "config_yaml"},
}


def install_saving_libraries(session: Session) -> None:
    """Libraries that save checkpoints in folders save them where `saving` puts files.

    They write more than tensors (configurations, tokenizers, indices) and some delete older checkpoints, so
    each gets another folder to work in. All are looked for when the script imports them; none is needed.

    Watch for the libraries.
    """
    for module, functions in _WRITES.items():
        for name, parameter in functions.items():
            when_imported(module, functools.partial(_redirect, session, name, parameter))
    when_imported("transformers.trainer", functools.partial(_redirect_trainer, session))


def _redirect(session: Session, name: str, parameter: str, module: ModuleType) -> None:
    owner, last, original = attribute(module, name)
    if original is None:
        return
    signature = inspect.signature(original)

    @functools.wraps(original)
    def write(*args: object, **kwargs: object) -> object:
        bound = signature.bind(*args, **kwargs)
        if bound.arguments.get(parameter) is None:
            return original(*args, **kwargs)
        session.warn(Warned.NOT_DONE, what="writing", name=module.__name__.partition(".")[0])
        bound.arguments[parameter] = session.saved.place(bound.arguments[parameter])
        return original(*bound.args, **bound.kwargs)

    setattr(owner, last, write)


def _redirect_trainer(session: Session, module: ModuleType) -> None:
    """Hugging Face's Trainer works out its folder itself, and deletes old checkpoints in it."""

    def elsewhere(original: Original, *args: object, **kwargs: object) -> str:
        return session.saved.place(original(*args, **kwargs))

    def save_model(
        original: Original, trainer: Any, output_dir: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        folder = session.saved.place(output_dir or trainer.args.output_dir)
        return original(trainer, folder, *args, **kwargs)

    for name, ours in (("_get_output_dir", elsewhere), ("save_model", save_model)):
        owner, last, original = attribute(module, "Trainer." + name)
        if original is not None:
            wrap(owner, last, ours)


_NAMES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64",
    "int32": "I32", "int16": "I16", "int8": "I8", "uint8": "U8", "bool": "BOOL", "uint64": "U64",
    "uint32": "U32", "uint16": "U16", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
    "complex64": "C64",
}  # fmt: skip


def install_safetensors_files(session: Session) -> None:
    """Safetensors files are written as header and holes, and read back from where they went.

    The library would copy every tensor to the host and write its bytes. A file with holes reads as zeros and
    takes no room on the disk, so a model of 7 billion parameters costs nothing. CPU tensors keep their
    values.

    Watch for safetensors.
    """

    def safe_open(original: Original, filename: Any, *args: object, **kwargs: object) -> object:
        return original(session.saved.find(filename) or filename, *args, **kwargs)

    when_imported("safetensors", lambda module: wrap(module, "safe_open", safe_open))
    if session.backend == "fake":
        when_imported("safetensors.torch", functools.partial(_patch_torch, session))
        return
    # Where tensors have values, the library itself writes, elsewhere.
    for name in ("save_file", "save_model"):
        when_imported("safetensors.torch", functools.partial(_redirect, session, name, "filename"))


def _patch_torch(session: Session, module: ModuleType) -> None:
    def save_file(tensors: Any, filename: Any, metadata: Any = None) -> None:
        session.warn(Warned.NOT_DONE, what="writing", name="safetensors")
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
        with open(session.saved.place(filename), "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for name, tensor in tensors.items():
                if tensor.device.type == "cpu" and tensor.numel():
                    file.seek(8 + len(text) + header[name]["data_offsets"][0])
                    values = tensor.detach().contiguous().view(-1).view(torch.uint8)
                    file.write(values.numpy().data)
            file.truncate(8 + len(text) + end_bytes)

    def save_model(model: torch.nn.Module, filename: str, metadata: Any = None, *_: Any, **__: Any) -> None:
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
    # Tied weights are identified by their address, which is 0 for all tensors of the pretended GPU.
    _answer_for_fakes(session, module, "storage_ptr", lambda tensor: tensor.untyped_storage()._cdata)
    _answer_for_fakes(
        session, module, "_is_complete", lambda tensor: tensor.nbytes == tensor.untyped_storage().nbytes()
    )


def _answer_for_fakes(session: Session, module: Any, name: str, answer: Callable[[Any], Any]) -> None:
    original = getattr(module, name, None)
    if original is not None:
        setattr(module, name, lambda tensor: (answer if session.is_fake(tensor) else original)(tensor))


_PACKAGE = "torch.distributed.checkpoint"
_FILE = "state.pt"


def install_distributed_checkpoint(session: Session) -> None:
    """``torch.distributed.checkpoint`` saves shapes, as `saving` does, in place of files with every byte.

    Its writer would copy the whole state to the host and write it. A load of what this run saved gives back
    what is no tensor; tensors are left alone, since theirs are made-up values anyway.

    Watch for the package.
    """
    when_imported(_PACKAGE, functools.partial(_patch, session))


def _patch(session: Session, package: ModuleType) -> None:

    @functools.wraps(package.save)
    def save(
        state_dict: dict[str, Any], *, checkpoint_id: Any = None, storage_writer: object = None, **_: object
    ) -> None:
        session.warn(Warned.NOT_DONE, what="writing", name="torch.distributed.checkpoint")
        folder = session.saved.place(_path(checkpoint_id, storage_writer))
        os.makedirs(folder, exist_ok=True)
        torch.save(_plain(state_dict), os.path.join(folder, _FILE))

    @functools.wraps(package.async_save)
    def async_save(*args: Any, **kwargs: Any) -> Future[None]:
        save(*args, **kwargs)
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def load(
        original_load: Original, state_dict: dict[str, Any], *, checkpoint_id: Any = None,
        storage_reader: object = None, **kwargs: object,
    ) -> object:  # fmt: skip
        path = _path(checkpoint_id, storage_reader)
        folder = None if path is None else session.saved.folder(path)
        if folder is None or not os.path.exists(os.path.join(folder, _FILE)):
            return original_load(
                state_dict, checkpoint_id=checkpoint_id, storage_reader=storage_reader, **kwargs
            )
        _restore(state_dict, torch.load(os.path.join(folder, _FILE), weights_only=False))
        return None

    replace(package, save=save, async_save=async_save)
    wrap(package, "load", load)


def _path(checkpoint_id: Any, storage: object) -> Any:
    return checkpoint_id if checkpoint_id is not None else getattr(storage, "path", None)


def _plain(state: object) -> object:
    if hasattr(state, "state_dict"):
        return _plain(state.state_dict())
    return {key: _plain(value) for key, value in state.items()} if isinstance(state, dict) else state


def _restore(state: dict[str, Any], saved: dict[str, Any]) -> None:
    for key, value in state.items():
        if hasattr(value, "load_state_dict"):
            value.load_state_dict(saved[key])
        elif isinstance(value, dict):
            _restore(value, saved[key])
        elif not isinstance(value, torch.Tensor):
            state[key] = saved[key]
