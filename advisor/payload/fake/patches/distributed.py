"""Process groups, and the wrappers that need one, with one process."""

from __future__ import annotations

import inspect
import multiprocessing.process
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

from ... import torch_names
from ...protocol import Warned
from ...replacing import Original, replace, when_imported, wrap
from ...session import Session


def install_data_parallel(session: Session) -> None:
    """``nn.DataParallel`` on one GPU calls its module.

    It would do so anyway after passing the inputs through CUDA's scatter kernel, which a CPU build lacks.

    Replace ``DataParallel.forward``.
    """

    def forward(wrapper: Any, *args: object, **kwargs: object) -> object:
        session.warn(Warned.WORLD, of="data-parallel")
        return wrapper.module(*args, **kwargs)

    replace(torch.nn.DataParallel, forward=forward)


_NCCL = (2, 27, 5)


def install_process_group(session: Session) -> None:
    """``init_process_group`` makes a group of which this process is the only one that exists.

    Any backend becomes torch's ``fake`` one: NCCL is not in a CPU build, and Gloo would wait for the others.
    The group's size is the script's own, torchrun's environment or ``--world``; its rank is the script's or
    0.

    Replace what makes groups, and torchrun's environment.
    """
    session.world.set_environment()
    if not torch.distributed.is_available():
        return
    import torch.distributed as dist
    from torch.distributed import device_mesh, distributed_c10d

    init, backend_of = dist.init_process_group, dist.get_backend
    new: Callable[..., Any] = distributed_c10d._new_process_group_helper
    signature = inspect.signature(init)
    names: list[str] = []
    backends: dict[object, str] = {}

    def init_process_group(*args: object, **kwargs: object) -> None:
        from torch.testing._internal.distributed.fake_pg import FakeStore

        given = signature.bind(*args, **kwargs).arguments
        rank = given.get("rank", -1)
        size = session.world.size_of_group(given.get("world_size", -1))
        names[:] = [str(given.get("backend") or "nccl").lower()]
        rank = rank if rank >= 0 else int(os.environ.get("RANK", 0))
        init("fake", rank=rank, world_size=size, store=FakeStore())

    # Of the positional arguments the fourth is the backend; options and device are NCCL's.
    def new_process_group(*args: object, **kwargs: object) -> object:
        kwargs.update(backend_options=None, device_id=None)
        made = new(*args[:3], "fake", *args[4:6], **kwargs)
        if args[3] not in ("fake", None):
            backends[made[0]] = str(args[3]).lower()
        return made

    for module in (dist, distributed_c10d, device_mesh):
        replace(module, init_process_group=init_process_group)
    replace(distributed_c10d, _new_process_group_helper=new_process_group)

    # Scripts choose by it; that ours is fake is not theirs to know.
    def get_backend(group: Any = None) -> object:
        return backend_of(group) and backends.get(group, names[0])

    for module in (dist, distributed_c10d):
        replace(module, get_backend=get_backend, is_nccl_available=lambda: True)
    # Asked by hooks that exchange BF16, and by scripts before they train in it.
    replace(torch.cuda.nccl, version=lambda: _NCCL)


def install_object_collectives(session: Session) -> None:  # noqa: ARG001
    """Objects that ranks exchange: every rank holds what this one holds.

    Torch sends them as bytes in tensors. What another rank would send never arrives, and rank 0 would
    unpickle an empty buffer.

    Replace the four functions.
    """
    if not torch.distributed.is_available():
        return
    import torch.distributed as dist
    from torch.distributed import distributed_c10d

    def all_gather_object(object_list: list[object], obj: object, group: object = None) -> None:  # noqa: ARG001
        object_list[:] = [obj] * len(object_list)

    def gather_object(obj: object, object_gather_list: Any = None, *_: object, **__: object) -> None:
        if object_gather_list is not None:
            object_gather_list[:] = [obj] * len(object_gather_list)

    def broadcast_object_list(object_list: list[object], *_: object, **__: object) -> None:
        pass

    def scatter_object_list(
        outputs: list[object], inputs: list[object] | None = None, *_: object, **__: object
    ) -> None:
        if inputs:
            outputs[0] = inputs[0]

    for function in (all_gather_object, gather_object, broadcast_object_list, scatter_object_list):
        for module in (dist, distributed_c10d):
            setattr(module, function.__name__, function)


class _Finished:
    """The processes that ``join=False`` would give back."""

    processes: tuple[object, ...] = ()

    def join(self, *_: object, **__: object) -> bool:
        return True


def install_spawning(session: Session) -> None:
    """``torch.multiprocessing.spawn`` runs rank 0 in this process and starts no other.

    A fresh process would know nothing of the pretended GPU, and what rank 0 does says what all of them do.
    The script's function makes the process group and says there how many ranks it has. Other processes of the
    script are started as they are, and counted: where they train, its own one does nothing.

    Replace ``spawn`` and ``start_processes``; count what ``Process.start`` starts.
    """

    def start(original: Original, self: Any) -> None:
        session.num_processes += 1
        original(self)

    wrap(multiprocessing.process.BaseProcess, "start", start)

    def spawn(
        fn: Any, args: Any = (), nprocs: int = 1, join: bool = True, *_: object, **__: object
    ) -> object:
        if nprocs < 1:
            raise ValueError(f"nprocs must be 1 or more, not {nprocs}")
        fn(0, *args)
        return None if join else _Finished()

    replace(torch.multiprocessing, spawn=spawn, start_processes=spawn)
    # The function hides the module of the same name.
    module: Any = sys.modules["torch.multiprocessing.spawn"]
    module.spawn = module.start_processes = spawn


def install_distributed_data_parallel(session: Session) -> None:  # noqa: ARG001
    """``DistributedDataParallel`` does not compare its parameters with those of other ranks.

    The comparison gathers shapes through a tensor on the GPU, whose values are made up here, and so finds
    that the ranks differ. All else works as it is: its buckets are collectives like any other.

    Leave out the comparison.
    """
    replace(torch.nn.parallel.distributed, _verify_param_shape_across_processes=lambda *_, **__: True)


def install_dtensor(session: Session) -> None:
    """A DTensor is where its shard is, and finds the shapes of results without our dispatch mode.

    It asks C++ for the shard's device, which says meta where Python says CUDA (see ``subclass``): FSDP2 then
    believes that its parameters were never materialised. For the shape of a result it runs the operator on
    fake tensors of its own, which our mode would take for the script's.

    Change the class once there is a mesh: it takes long to import.
    """
    if not torch.distributed.is_available():
        return
    from torch.distributed import device_mesh

    mesh = device_mesh.DeviceMesh

    def init(create: Original, self: Any, *args: object, **kwargs: object) -> None:
        create(self, *args, **kwargs)
        replace(mesh, __init__=create)
        torch_names.check(torch_names.MESH_NAMES)
        from torch.distributed.tensor import DTensor, _sharding_prop

        replace(
            DTensor,
            device=property(lambda tensor: tensor._local_tensor.device),
            is_cuda=property(lambda tensor: tensor._local_tensor.is_cuda),
            is_cpu=property(lambda tensor: tensor._local_tensor.is_cpu),
            is_meta=property(lambda tensor: False),  # noqa: ARG005
        )
        replace(_sharding_prop, detect_fake_mode=lambda *_: session.pretending.fake_mode)
        name = "_propagate_tensor_meta_non_cached"
        propagator = _sharding_prop.ShardingPropagator
        if hasattr(propagator, name):
            wrap(propagator, name, _without_modes)

    wrap(mesh, "__init__", init)


def _without_modes(original: Original, *args: object, **kwargs: object) -> object:
    with torch.utils._python_dispatch._disable_current_modes():
        return original(*args, **kwargs)


def install_pipelining(session: Session) -> None:  # noqa: ARG001 - all patches have one signature
    """Stages of a pipeline are refused: each process trains another part, and one of them is profiled.

    Wrap the making of a stage once ``torch.distributed.pipelining`` is imported.
    """

    def refuse(_original: Original, *_args: object, **_kwargs: object) -> None:
        raise RuntimeError("PipelineStage: a process of a pipeline trains a part of the model")

    def watch(module: ModuleType) -> None:
        wrap(module._PipelineStageBase, "__init__", refuse)

    when_imported("torch.distributed.pipelining.stage", watch)
