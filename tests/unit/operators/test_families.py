"""Names of operators and the families they belong to."""

import pytest

from advisor.core.values import Phase
from advisor.operators.attention import ATTENTION
from advisor.operators.convolution import CONVOLUTION
from advisor.operators.elementwise import ELEMENTWISE, TRANSFER
from advisor.operators.embedding import EMBEDDING
from advisor.operators.family import base_name
from advisor.operators.gemm import GEMM
from advisor.operators.norm import NORM
from advisor.operators.optimizer import OPTIMIZER
from advisor.operators.recurrent import RECURRENT
from advisor.operators.reduction import REDUCTION
from advisor.operators.registry import family_of, is_known
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
def test_the_base_name_has_neither_namespace_nor_overload(name, base):
    assert base_name(name) == base


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("aten::mm", GEMM),
        ("aten::addmm.out", GEMM),
        ("aten::bmm", GEMM),
        ("aten::baddbmm", GEMM),
        ("aten::addbmm", GEMM),
        ("aten::linear_backward", GEMM),
        ("aten::_scaled_mm", GEMM),
        ("aten::_grouped_mm", GEMM),
        ("aten::convolution", CONVOLUTION),
        ("aten::convolution_backward", CONVOLUTION),
        ("aten::cudnn_convolution", CONVOLUTION),
        ("aten::_scaled_dot_product_flash_attention", ATTENTION),
        ("aten::_scaled_dot_product_efficient_attention_backward", ATTENTION),
        ("aten::_scaled_dot_product_cudnn_attention", ATTENTION),
        ("aten::_cudnn_rnn", RECURRENT),
        ("aten::_cudnn_rnn_backward", RECURRENT),
        ("aten::_softmax", NORM),
        ("aten::_log_softmax_backward_data", NORM),
        ("aten::native_layer_norm_backward", NORM),
        ("aten::native_batch_norm", NORM),
        ("aten::native_group_norm_backward", NORM),
        ("aten::_fused_rms_norm", NORM),
        ("aten::embedding", EMBEDDING),
        ("aten::embedding_dense_backward", EMBEDDING),
        ("aten::index_put_", EMBEDDING),
        ("advisor::h2d_copy", TRANSFER),
        ("advisor::d2h_copy", TRANSFER),
        ("aten::relu", ELEMENTWISE),
        ("aten::sum.dim_IntList", REDUCTION),
        ("mylib::frobnicate", ELEMENTWISE),
    ],
)
def test_each_operator_has_its_family(name, family):
    assert family_of(make_op(name)) is family
    assert family_of(make_op(name, phase=Phase.BACKWARD)) is family


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("aten::_foreach_add_.List", OPTIMIZER),
        ("aten::mul_.Tensor", OPTIMIZER),
        ("aten::mm", GEMM),  # Muon and Shampoo multiply matrices
        ("aten::_softmax", NORM),
        ("advisor::d2h_copy", TRANSFER),
    ],
)
def test_in_the_optimizer_only_streaming_operators_change_family(name, family):
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
def test_a_custom_operator_is_told_by_its_namespace(name, known):
    assert is_known(make_op(name)) == known
