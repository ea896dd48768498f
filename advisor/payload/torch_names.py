"""The private names of torch that this payload builds on, looked up before anything is changed.

Private names come and go between versions. A patch that sets a name which torch no longer reads would
do nothing, silently; so what is missing ends the run and is named.
"""

from __future__ import annotations

import importlib
import operator
from collections.abc import Mapping

from .protocol import Fact

Names = Mapping[str, tuple[str, ...]]


def _paths(by_user: Mapping[str, str]) -> Names:
    """``module:name``, by user, of lines that each begin with a module."""
    lines = {user: [line.split() for line in text.splitlines()] for user, text in by_user.items()}
    return {
        user: tuple(module + name for module, *names in own for name in names) for user, own in lines.items()
    }


# By user: a patch of `patching.PATCHES`, or the module or part of this package that needs them.
NAMES = _paths({
    "mode": """torch._subclasses.fake_tensor: FakeTensor FakeTensorMode.dispatch
        torch._subclasses.fake_tensor: FakeTensorMode.avoid_device_init
        torch.utils._python_dispatch: TorchDispatchMode
        torch: ops.aten._local_scalar_dense ops.aten._pin_memory ops.aten._to_copy""",
    "composite": """torch._ops: OpOverload
        torch._C: DispatchKey.CompositeImplicitAutograd _dispatch_has_kernel_for_dispatch_key
        torch: ops.aten.linear.default._op_dk""",
    "known_forms": """torch._subclasses.fake_tensor: FakeTensor.fake_device
        torch._C: TensorBase._make_subclass _DisableTorchDispatch _VariableFunctions.empty_strided
        torch._C: _dispatch_key_set _set_throw_on_mutable_data_ptr
        torch._C: _set_warn_deprecated_on_mutable_data_ptr
        torch._functorch.config: fake_tensor_allow_unsafe_data_ptr_access""",
    "rescue": """torch: ops.aten._fused_rms_norm.default ops.aten._cudnn_rnn ops.aten._cudnn_rnn_backward
        torch: ops.aten._pack_padded_sequence ops.aten._pack_padded_sequence_backward
        torch: ops.aten._thnn_fused_gru_cell ops.aten._thnn_fused_gru_cell_backward
        torch._subclasses.fake_tensor: DataDependentOutputException DynamicOutputShapeException
        torch._subclasses.fake_tensor: UnsupportedFakeTensorException UnsupportedOperatorException
        torch.utils._pytree: tree_map""",
    "sparse": """torch: ops.aten._coalesce ops.aten._embedding_bag_backward ops.aten._sparse_addmm
        torch: ops.aten._sparse_coo_tensor_with_dims_and_tensors ops.aten._to_dense
        torch: ops.aten._to_sparse_bsc ops.aten._to_sparse_bsr ops.aten._to_sparse_csc
        torch: ops.aten._to_sparse_csr ops.aten.copy_sparse_to_sparse_""",
    "values": "torch._C: FunctionSchema.is_mutable Argument.alias_info _AliasInfo.is_write",
    "memory": "torch: UntypedStorage._cdata",
    "loading": """torch.utils._python_dispatch: _disable_current_modes
        torch.utils.data.dataloader: _BaseDataLoaderIter._next_index""",
    "data_loader": "torch.utils.data: DataLoader._get_iterator",
    "repeated_passes": """torch: nn.Module._call_impl
        torch.utils._pytree: tree_flatten tree_unflatten TreeSpec""",
    "operator_timing": "torch.cuda: _sleep",
    "recorder": """torch._C: _current_autograd_node _current_graph_task_id _get_sdp_priority_order
        torch._C: FunctionSchema.arguments FunctionSchema.returns
        torch.autograd: _get_sequence_nr""",
    "iteration": """torch.optim.optimizer: register_optimizer_step_pre_hook register_optimizer_step_post_hook
        torch.nn.modules.module: register_module_forward_pre_hook register_module_forward_hook""",
    "stopwatch": "torch.utils.data._utils.worker: WorkerInfo _worker_info",
    "subclass": "torch: Tensor._make_subclass",
    "factories": """torch.utils._device: _device_constructors DeviceContext
        torch.overrides: _get_current_function_mode_stack
        torch.jit._builtins: _find_builtin _register_builtin""",
    "conversion": "torch._C: TensorBase.data _nn._parse_to",
    "device": "torch.cuda: _is_compiled _lazy_init",
    "accelerator": "torch._C: _get_accelerator",
    "attention": """torch: ops.aten._scaled_dot_product_efficient_attention
        torch: ops.aten._scaled_dot_product_flash_attention""",
    "lazy_modules": """torch.nn.parameter: UninitializedTensorMixin.materialize
        torch.nn.modules.lazy: LazyModuleMixin""",
    "autocast": "torch._C: DispatchKeySet DispatchKey.AutocastCUDA _ExcludeDispatchKeyGuard",
    "scaler": "torch.amp: GradScaler._maybe_opt_step",
    "optimizers": """torch.optim.optimizer: _foreach_supported_types
        torch.utils._foreach_utils: _foreach_supported_types
        torch._C: _group_tensors_by_device_and_dtype""",
    "bitsandbytes": "torch: _int_mm",
    "deepspeed": "torch: _fused_adam_ _fused_adamw_",
    "memory_format": """torch._C: _conv_determine_backend_memory_format
        torch._prims_common: suggest_memory_format""",
    "rnn": """torch.nn.modules.rnn: _VF
        torch: _cudnn_rnn""",
    "rnn_cells": "torch: ops.aten._thnn_fused_gru_cell ops.aten._thnn_fused_lstm_cell",
    "restoring": "torch._utils: _rebuild_tensor",
    "downloads": "torch.nn.modules.module: _IncompatibleKeys",
})  # fmt: skip
# Where torch was built with process groups.
GROUP_NAMES = _paths({
    "collectives": """torch.utils._pytree: tree_leaves
        torch._C: _distributed_c10d._create_work_from_future _distributed_c10d._resolve_process_group
        torch._C: _distributed_c10d.ProcessGroup.unbox""",
    "process_group": """torch.distributed.distributed_c10d: _new_process_group_helper
        torch.testing._internal.distributed.fake_pg: FakeStore""",
    "distributed_data_parallel": "torch.nn.parallel.distributed: _verify_param_shape_across_processes",
})  # fmt: skip
# Looked up when the script makes a mesh, since torch.distributed.tensor takes long to import.
MESH_NAMES = _paths({
    "dtensor": """torch.distributed.tensor: _sharding_prop.ShardingPropagator _sharding_prop.detect_fake_mode
        torch.distributed.tensor: DTensor._local_tensor""",
})  # fmt: skip

TESTED = (2, 13)
# Older ones have all names from here on, and were read, not run.
EXPECTED_FROM = (2, 11)


class MissingNameError(Exception):
    """This torch lacks a name that we build on."""


def check_all() -> None:
    """Look up what this torch must have, but names of meshes. Raises MissingNameError: it lacks one."""
    import torch

    check(NAMES)
    if torch.distributed.is_available():
        check(GROUP_NAMES)


def check(names: Names) -> None:
    """Look these names up.

    Raises MissingNameError: torch lacks one; the message names it and who needs it.
    """
    for user, path in ((user, path) for user, paths in names.items() for path in paths):
        module, _, attributes = path.partition(":")
        try:
            operator.attrgetter(attributes)(importlib.import_module(module))
        except (ImportError, AttributeError):
            missing = f"{module}.{attributes}, which advisor's part {user!r} needs"
            raise MissingNameError(missing) from None


def version_warning(version: str) -> dict[str, Fact] | None:
    """Facts of a version that we have not run on; None where there is nothing to say."""
    major, minor = (int(part) for part in version.split(".")[:2])
    tested = ".".join(str(part) for part in TESTED)
    is_newer = (major, minor) > TESTED
    if (major, minor) >= EXPECTED_FROM and not is_newer:
        return None
    return {"version": version, "tested": tested, "is_newer": is_newer}
