"""Operator families: which roof binds an operator, and under which name its time is reported."""

from __future__ import annotations

from enum import StrEnum
from functools import cache

from advisor.core.values import Op, Phase


class Family(StrEnum):
    """Families as they appear in ``IterationEstimate.by_family``."""

    GEMM = "gemm"
    CONV = "convolution"
    ATTENTION = "attention"
    RECURRENT = "recurrent"
    NORM = "norm and softmax"
    ELEMENTWISE = "element-wise"
    EMBEDDING = "embedding"
    OPTIMIZER = "optimizer"
    TRANSFER = "host transfer"


_BY_NAME = {
    Family.GEMM: ("mm", "addmm", "bmm", "baddbmm", "addbmm", "mv", "addmv", "dot", "linear", "_int_mm",
                  "linear_backward", "_scaled_mm", "_grouped_mm"),
    Family.CONV: ("convolution", "convolution_backward", "cudnn_convolution", "cudnn_convolution_backward",
                  "cudnn_convolution_backward_input", "cudnn_convolution_backward_weight",
                  "cudnn_convolution_transpose", "_convolution", "convolution_overrideable"),
    Family.ATTENTION: ("_scaled_dot_product_flash_attention", "_scaled_dot_product_flash_attention_backward",
                       "_scaled_dot_product_efficient_attention",
                       "_scaled_dot_product_efficient_attention_backward",
                       "_scaled_dot_product_cudnn_attention", "_scaled_dot_product_cudnn_attention_backward",
                       "_flash_attention_forward", "_flash_attention_backward",
                       "_efficient_attention_forward", "_efficient_attention_backward"),
    Family.RECURRENT: ("_cudnn_rnn", "_cudnn_rnn_backward", "_thnn_fused_lstm_cell",
                       "_thnn_fused_lstm_cell_backward_impl", "_thnn_fused_gru_cell",
                       "_thnn_fused_gru_cell_backward"),
    Family.NORM: ("_softmax", "_softmax_backward_data", "_log_softmax", "_log_softmax_backward_data",
                  "native_layer_norm", "native_layer_norm_backward", "native_batch_norm",
                  "native_batch_norm_backward", "cudnn_batch_norm", "cudnn_batch_norm_backward",
                  "_native_batch_norm_legit", "_batch_norm_with_update", "batch_norm_backward",
                  "native_group_norm", "native_group_norm_backward", "_fused_rms_norm",
                  "_fused_rms_norm_backward", "batch_norm_stats", "batch_norm_gather_stats_with_counts",
                  "batch_norm_elemt", "batch_norm_backward_reduce", "batch_norm_backward_elemt"),
    Family.EMBEDDING: ("embedding", "embedding_dense_backward", "_embedding_bag", "gather", "scatter",
                       "scatter_add", "scatter_add_", "index_select", "index", "index_put", "index_put_",
                       "index_add", "index_add_", "_embedding_bag_dense_backward", "index_select_backward"),
}  # fmt: skip
_FAMILY = {name: family for family, names in _BY_NAME.items() for name in names}


@cache
def base_name(op_name: str) -> str:
    """``"aten::add_.Tensor"`` -> ``"add_"``: neither namespace nor overload."""
    return op_name.rpartition("::")[2].partition(".")[0]


def family_of(op: Op) -> Family:
    """The family of an operator; whatever is in no list streams through memory, as most operators do."""
    return _family(op.name, op.phase)


@cache
def _family(op_name: str, phase: Phase) -> Family:
    name = base_name(op_name)
    if name in ("h2d_copy", "d2h_copy"):
        return Family.TRANSFER
    family = _FAMILY.get(name, Family.ELEMENTWISE)
    if phase is Phase.OPTIMIZER and family is Family.ELEMENTWISE:
        return Family.OPTIMIZER
    return family


def is_known(op: Op) -> bool:
    """False for an operator that no PyTorch release defines: a custom one, whose work nobody told us."""
    return op.name.startswith(("aten::", "advisor::", "prims::", "c10d::", "_c10d_functional::", "fsdp::"))
