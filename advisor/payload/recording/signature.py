"""What an operator's schema says, worked out once per operator."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from torch._ops import OpOverload

# No kernel runs: they allocate, or change only how memory is looked at without saying so in the schema.
_NO_KERNEL = {
    "aten::empty", "aten::empty_like", "aten::empty_strided", "aten::new_empty", "aten::detach_",
    "aten::new_empty_strided", "aten::_unsafe_view", "aten::_reshape_alias", "aten::set_",
    "aten::resize_", "aten::t_", "aten::transpose_", "aten::squeeze_", "aten::unsqueeze_",
    "aten::as_strided_", "aten::record_stream", "aten::lift", "aten::lift_fresh", "aten::is_coalesced",
    "aten::_sparse_coo_tensor_with_dims_and_tensors", "aten::_sparse_coo_tensor_unsafe",
    "aten::_coalesced_", "aten::_nnz",
}  # fmt: skip
# torch.sparse.mm takes dense operands, too.
_OF_DENSE = {"aten::_sparse_addmm": "aten::addmm"}
# What runs where an operand is sparse; a sum with a dense tensor adds rows to it.
_OF_SPARSE = {
    "aten::mm": "aten::_sparse_mm", "aten::addmm": "aten::_sparse_addmm", "aten::mv": "aten::_sparse_mm",
    "aten::add_": "aten::index_add_", "aten::sub_": "aten::index_add_",
}  # fmt: skip
_OF_VALUES = {"data_dependent_output", "dynamic_output_shape"}  # of torch.Tag
_SKIPPED_TYPES = ("Device", "Layout", "MemoryFormat", "Generator", "Stream", "Storage")


class Signature:
    """Names, tensors and side effects of one operator.

    Attributes:
        name: ``aten::convolution``, without the overload.
        arguments: for each argument its name, whether it takes tensors, whether it is written to,
            whether it is an attribute worth keeping, and its default.
        written: positions of the arguments that are written to.
        runs_kernel: False for views and allocations.
        of_sparse: the same with the name of what runs on sparse tensors, None where that is the same.
        needs_values: its result's shape, or what Python learns of it, follows from values.
    """

    def __init__(self, func: OpOverload) -> None:
        schema = func._schema
        self.name: str = _OF_DENSE.get(schema.name, schema.name)
        self.arguments = [_argument(argument) for argument in schema.arguments]
        self.positions = {argument[0]: index for index, argument in enumerate(self.arguments)}
        self.written = [index for index, argument in enumerate(self.arguments) if argument[2]]
        self.needs_values = any(tag.name in _OF_VALUES for tag in func.tags)
        self.of_sparse = self._renamed(_OF_SPARSE.get(self.name))
        self.runs_kernel = self.name not in _NO_KERNEL and not _is_view(schema)

    def _renamed(self, name: str | None) -> Signature | None:
        if name is None:
            return None
        other = copy.copy(self)
        other.name, other.of_sparse, other.runs_kernel = name, None, True
        return other


def _argument(argument: torch.Argument) -> tuple[str, bool, bool, bool, object]:
    kind = str(argument.type)
    takes_tensors = "Tensor" in kind
    written = argument.alias_info is not None and argument.alias_info.is_write
    is_attribute = not takes_tensors and not any(word in kind for word in _SKIPPED_TYPES)
    # device, layout, pin_memory and the like arrive as plain int or bool.
    is_attribute = is_attribute and argument.name not in ("device", "layout", "pin_memory",
                                                          "memory_format", "generator",
                                                          "non_blocking")  # fmt: skip
    default = argument.default_value if argument.has_default_value() else None
    return argument.name, takes_tensors, written, is_attribute, default


def _is_view(schema: torch.FunctionSchema) -> bool:
    returned = [result.alias_info for result in schema.returns]
    return bool(returned) and all(info is not None and not info.is_write for info in returned)
