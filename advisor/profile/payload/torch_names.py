"""The private names of torch that this payload builds on, looked up before anything is changed.

Private names come and go between versions. A patch that sets a name which torch no longer reads would
do nothing, silently; so what is missing ends the run and is told by name.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

# By user: a patch of `patches`, or a module beside this one.
NAMES: Mapping[str, tuple[str, ...]] = {
    "mode": (
        "torch._subclasses.fake_tensor:FakeTensor",
        "torch._subclasses.fake_tensor:FakeTensorMode.dispatch",
        "torch._subclasses.fake_tensor:FakeTensorMode.avoid_device_init",
        "torch.utils._python_dispatch:TorchDispatchMode",
    ),
    "rescue": (
        "torch._subclasses.fake_tensor:DataDependentOutputException",
        "torch._subclasses.fake_tensor:DynamicOutputShapeException",
        "torch._subclasses.fake_tensor:UnsupportedFakeTensorException",
        "torch._subclasses.fake_tensor:UnsupportedOperatorException",
        "torch.utils._pytree:tree_map",
    ),
    "recorder": ("torch._C:_current_graph_task_id",),
    "iteration": (
        "torch.optim.optimizer:register_optimizer_step_pre_hook",
        "torch.optim.optimizer:register_optimizer_step_post_hook",
        "torch.nn.modules.module:register_module_forward_pre_hook",
        "torch.nn.modules.module:register_module_forward_hook",
    ),
    "worker": (
        "torch.utils.data._utils.worker:WorkerInfo",
        "torch.utils.data._utils.worker:_worker_info",
    ),
    "subclass": ("torch:Tensor._make_subclass",),
    "factories": (
        "torch.utils._device:_device_constructors",
        "torch.utils._device:DeviceContext",
        "torch.overrides:_get_current_function_mode_stack",
    ),
    "conversion": ("torch._C:TensorBase.data",),
    "lazy_modules": (
        "torch.nn.parameter:UninitializedTensorMixin.materialize",
        "torch.nn.modules.lazy:LazyModuleMixin",
    ),
    "autocast": (
        "torch._C:DispatchKeySet",
        "torch._C:DispatchKey.AutocastCUDA",
        "torch._C:_ExcludeDispatchKeyGuard",
    ),
    "scaler": ("torch.amp:GradScaler._maybe_opt_step",),
    "optimizers": (
        "torch.optim.optimizer:_foreach_supported_types",
        "torch.utils._foreach_utils:_foreach_supported_types",
        "torch._C:_group_tensors_by_device_and_dtype",
    ),
    "rnn": ("torch.nn.modules.rnn:_VF",),
}

TESTED = (2, 13)
# Older ones have all names from here on, and were read, not run.
EXPECTED_FROM = (2, 11)


class MissingNameError(Exception):
    """This torch lacks a name that we build on."""


def check(names: Mapping[str, tuple[str, ...]] = NAMES) -> None:
    """Look all names up.

    Raises:
        MissingNameError: torch lacks one; the message names it and who needs it.
    """
    for user, paths in names.items():
        for path in paths:
            if not _exists(path):
                raise MissingNameError(f"{path.replace(':', '.')}, which advisor's part {user!r} needs")


def version_warning(version: str) -> str | None:
    """What to say of a version that we have not run on; None where there is nothing to say."""
    major, minor = (int(part) for part in version.split(".")[:2])
    tested = ".".join(str(part) for part in TESTED)
    if (major, minor) > TESTED:
        return f"torch {version} is newer than {tested}, which advisor is tested with: compare with care"
    if (major, minor) < EXPECTED_FROM:
        return f"torch {version} is older than what advisor is tested with ({tested}): compare with care"
    return None


def _exists(path: str) -> bool:
    module, _, attributes = path.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for attribute in attributes.split("."):
            found = getattr(found, attribute)
    except (ImportError, AttributeError):
        return False
    return True
