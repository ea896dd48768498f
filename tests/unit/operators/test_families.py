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

BASES = {
    "aten::mm": "mm", "aten::add_.Tensor": "add_", "add.out": "add", "mm": "mm", "a::b::c.d.e": "c",
    "aten::_foreach_add_.ScalarList": "_foreach_add_", "": "",
}  # fmt: skip


def test_the_base_name_has_neither_namespace_nor_overload():
    assert {name: base_name(name) for name in BASES} == BASES


FAMILIES = {
    GEMM: """aten::mm aten::addmm.out aten::bmm aten::baddbmm aten::addbmm aten::linear_backward
        aten::_scaled_mm aten::_grouped_mm""",
    CONVOLUTION: "aten::convolution aten::convolution_backward aten::cudnn_convolution",
    ATTENTION: """aten::_scaled_dot_product_flash_attention aten::_scaled_dot_product_cudnn_attention
        aten::_scaled_dot_product_efficient_attention_backward""",
    RECURRENT: "aten::_cudnn_rnn aten::_cudnn_rnn_backward",
    NORM: """aten::_softmax aten::_log_softmax_backward_data aten::native_layer_norm_backward
        aten::native_batch_norm aten::native_group_norm_backward aten::_fused_rms_norm""",
    EMBEDDING: "aten::embedding aten::embedding_dense_backward aten::index_put_",
    TRANSFER: "advisor::h2d_copy advisor::d2h_copy",
    ELEMENTWISE: "aten::relu mylib::frobnicate",
    REDUCTION: "aten::sum.dim_IntList",
}
# Muon and Shampoo multiply matrices; only streaming operators change their family.
OF_OPTIMIZERS = {
    OPTIMIZER: "aten::_foreach_add_.List aten::mul_.Tensor", GEMM: "aten::mm", NORM: "aten::_softmax",
    TRANSFER: "advisor::d2h_copy",
}  # fmt: skip


@pytest.mark.parametrize(
    ("phase", "families"),
    [(Phase.FORWARD, FAMILIES), (Phase.BACKWARD, FAMILIES), (Phase.OPTIMIZER, OF_OPTIMIZERS)],
)
def test_each_operator_has_its_family(phase, families):
    for family, names in families.items():
        assert [name for name in names.split() if family_of(make_op(name, phase=phase)) is not family] == []


def test_a_custom_operator_is_told_by_its_namespace():
    known = (
        "aten::x prims::mul c10d::allreduce_ _c10d_functional::all_reduce fsdp::chunk_cat advisor::h2d_copy"
    )
    assert [name for name in known.split() if not is_known(make_op(name))] == []
    others = ("mylib::mm", "torchvision::nms", "atenlike::mm", "mm")
    assert [name for name in others if is_known(make_op(name))] == []
