"""What the script runs on, what is patched and which shortcuts it takes there, and when enough was seen."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import torch

from . import torch_names
from .fake.gpu import PretendedGpu
from .fake.mode import HybridMode
from .progress import Tell
from .protocol import Flags, Iteration, RunPhase, ScriptJob, Warned
from .replacing import Original, wrap

if TYPE_CHECKING:
    from .real_device import CpuStepClock, SpanMeasurement
    from .recording.iteration import Iterations
    from .session import Session


class NoCudaError(Exception):
    """The job wants a real GPU and torch finds none."""


def start_session(job: ScriptJob) -> Session:
    """A session with all patches of its backend in place.

    Raises:
        NoCudaError: a real GPU is wanted and not there.
        MissingNameError: this torch lacks a name that a patch builds on.
    """
    backend = _chosen(job["backend"])
    if backend == "fake":
        from . import lazy_dynamo

        lazy_dynamo.install()
    torch_names.check_all()
    from .fake.gpu import PretendedWorld
    from .session import Session

    session = Session(PretendedGpu.from_job(job["gpu"]), backend, PretendedWorld(job["world_size"]))
    session.variables.watch(job["withheld"])
    if job["fake_data"] is not None:
        session.use_fake_data(**job["fake_data"])
    install(session, skip=frozenset(job["skip_patches"]))
    if isinstance(session.mode, HybridMode):
        session.mode.fake_mode.known_forms.is_used = job["shortcuts"]
    else:
        watch_autocast(session)
    unusual = torch_names.version_warning(session.torch_version)
    if unusual is not None:
        session.warn(Warned.TORCH_UNTESTED, **unusual)
    return session


# Which patches a backend has: patch -> its file in `fake/patches`, in the order of application. The function
# is `install_PATCH`.
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
            module = importlib.import_module(f".fake.patches.{file}", __package__)
            getattr(module, f"install_{name}")(session)


def _chosen(wanted: str) -> str:
    if wanted == "auto":
        return "cuda" if torch.cuda.is_available() else "fake"
    if wanted == "cuda":
        check_cuda()
    return wanted


def check_cuda() -> None:
    """Find out whether there is a GPU. Raises NoCudaError: says why torch cannot use one."""
    if not torch.cuda.is_available():
        why = "is a build without CUDA" if torch.version.cuda is None else "finds no CUDA device"
        raise NoCudaError(f"torch {torch.__version__} {why}")


def watch_autocast(session: Session) -> None:
    """Wrap entry and exit of ``torch.autocast``: on a real device torch's own kernels do the casting."""
    autocast = torch.amp.autocast_mode.autocast
    in_force: list[str | None] = [None]

    def enter_watched(enter: Original, context: torch.autocast) -> object:
        if context.device == session.device_type:
            dtype = str(context.fast_dtype).rpartition(".")[2] if context._enabled else None
            in_force.append(dtype)
            session.autocast_dtype = dtype
            session.amp_dtype = session.amp_dtype or dtype
        return enter(context)

    def leave_watched(leave: Original, context: torch.autocast, *error: object) -> object:
        if context.device == session.device_type and len(in_force) > 1:
            in_force.pop()
            session.autocast_dtype = in_force[-1]
        return leave(context, *error)

    wrap(autocast, "__enter__", enter_watched)
    wrap(autocast, "__exit__", leave_watched)


def tf32_flags() -> Flags:
    """Where the script lets TF32 replace FP32."""
    return {
        "tf32_matmul": torch.get_float32_matmul_precision() != "highest",
        "tf32_cudnn": bool(torch.backends.cudnn.allow_tf32),
    }


def finished(
    measurement: SpanMeasurement | CpuStepClock | None, iterations: Iterations, tell: Tell
) -> Iteration | None:
    """The iteration that stands for all, at the end of a span; None if another one is needed."""
    if measurement is None:
        return iterations.typical() if iterations.is_steady else None
    num_spans, span = iterations.num_spans, iterations.last or {}
    tell({"phase": RunPhase.MEASURING, "step": num_spans, "num_steps": measurement.num_spans})
    measurement.end_span(num_spans, span, is_steady=iterations.is_steady)
    return None if measurement.result is None else {**span, **measurement.result}
