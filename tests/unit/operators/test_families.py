"""Names of operators and the families they belong to."""

from __future__ import annotations

import pytest

from advisor.core.values import Phase
from advisor.operators.families import Family, base_name, family_of, is_known
from tests.builders import make_op


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("aten::mm", "mm"),
        ("aten::add_.Tensor", "add_"),
        ("add.out", "add"),
        ("mm", "mm"),
        ("a::b::c.d.e", "c"),
        ("aten::_foreach_add_.ScalarList", "_foreach_add_"),
        ("", ""),
    ],
)
def test_the_base_name_has_neither_namespace_nor_overload(name: str, base: str) -> None:
    assert base_name(name) == base


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("aten::mm", Family.GEMM),
        ("aten::addmm.out", Family.GEMM),
        ("aten::bmm", Family.GEMM),
        ("aten::baddbmm", Family.GEMM),
        ("aten::addbmm", Family.GEMM),
        ("aten::linear_backward", Family.GEMM),
        ("aten::_scaled_mm", Family.GEMM),
        ("aten::convolution", Family.CONV),
        ("aten::convolution_backward", Family.CONV),
        ("aten::cudnn_convolution", Family.CONV),
        ("aten::_scaled_dot_product_flash_attention", Family.ATTENTION),
        ("aten::_scaled_dot_product_efficient_attention_backward", Family.ATTENTION),
        ("aten::_scaled_dot_product_cudnn_attention", Family.ATTENTION),
        ("aten::_cudnn_rnn", Family.RECURRENT),
        ("aten::_cudnn_rnn_backward", Family.RECURRENT),
        ("aten::_softmax", Family.NORM),
        ("aten::_log_softmax_backward_data", Family.NORM),
        ("aten::native_layer_norm_backward", Family.NORM),
        ("aten::native_batch_norm", Family.NORM),
        ("aten::native_group_norm_backward", Family.NORM),
        ("aten::_fused_rms_norm", Family.NORM),
        ("aten::embedding", Family.EMBEDDING),
        ("aten::embedding_dense_backward", Family.EMBEDDING),
        ("aten::index_put_", Family.EMBEDDING),
        ("advisor::h2d_copy", Family.TRANSFER),
        ("advisor::d2h_copy", Family.TRANSFER),
        ("aten::relu", Family.ELEMENTWISE),
        ("aten::sum.dim_IntList", Family.ELEMENTWISE),
        ("mylib::frobnicate", Family.ELEMENTWISE),
    ],
)
def test_each_operator_has_its_family(name: str, family: Family) -> None:
    assert family_of(make_op(name)) is family
    assert family_of(make_op(name, phase=Phase.BACKWARD)) is family


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("aten::_foreach_add_.List", Family.OPTIMIZER),
        ("aten::mul_.Tensor", Family.OPTIMIZER),
        ("aten::mm", Family.GEMM),  # Muon and Shampoo multiply matrices
        ("aten::_softmax", Family.NORM),
        ("advisor::d2h_copy", Family.TRANSFER),
    ],
)
def test_in_the_optimizer_only_streaming_operators_change_family(name: str, family: Family) -> None:
    assert family_of(make_op(name, phase=Phase.OPTIMIZER)) is family


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("aten::anything", True),
        ("prims::mul", True),
        ("c10d::allreduce_", True),
        ("_c10d_functional::all_reduce", True),
        ("fsdp::chunk_cat", True),
        ("advisor::h2d_copy", True),
        ("mylib::mm", False),
        ("torchvision::nms", False),
        ("atenlike::mm", False),
        ("mm", False),
    ],
)
def test_a_custom_operator_is_told_by_its_namespace(name: str, known: bool) -> None:
    assert is_known(make_op(name)) == known
