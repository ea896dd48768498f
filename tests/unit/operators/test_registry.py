"""The table of families: complete, without contradictions, and of one mind with the files that ship."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.gpus import catalog_path, load_gpus
from advisor.core.values import Phase, Precision
from advisor.operators.attention import ATTENTION
from advisor.operators.case import Caps
from advisor.operators.convolution import CONVOLUTION
from advisor.operators.elementwise import ELEMENTWISE, TRANSFER
from advisor.operators.embedding import EMBEDDING
from advisor.operators.family import base_name, compute_rate
from advisor.operators.gemm import GEMM
from advisor.operators.norm import NORM
from advisor.operators.optimizer import OPTIMIZER
from advisor.operators.recurrent import RECURRENT
from advisor.operators.reduction import REDUCTION
from advisor.operators.registry import FAMILIES, constants, family_of, is_known, rows
from advisor.predict.constants import constants_for
from advisor.predict.knowledge import CONSTANTS, shipped
from tests.builders import make_op

EACH = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.word)
NAMES = st.sampled_from(sorted(rows().family))
EVERYWHERE = Precision(amp_dtype=None, tf32_matmul=True, tf32_cudnn=True)


@EACH
def test_every_name_of_a_table_is_of_its_family(family):
    for name in (*family.flops, *family.nominal, *family.traffic, *family.others):
        assert family_of(make_op(f"aten::{base_name(name)}")) is family
    # So are those that autocast and networks know.
    learned = {name for network in family.learned for name in network.names}
    for name in family.autocast.full | learned:
        assert family_of(make_op(f"aten::{name}")) in (family, ELEMENTWISE)
    assert not family.flops.keys() & family.nominal.keys(), "no name has two kinds of FLOPs"
    # What it calibrates is what its time rests on.
    assert family.calibrates in (None, family.bandwidth, family.compute.fraction)


@EACH
def test_cases_carry_the_word_they_are_chosen_by(family):
    small = Caps(flops=10**7, num_bytes=2**19)
    for word, generate in family.cases.items():
        cases = list(generate(0, small))
        assert {case.family for case in cases} == {word}
        assert [case.key for case in generate(0, small)] == [case.key for case in cases]
    assert {case.family for case in family.calibration_cases()} <= family.cases.keys()


def test_calibration_has_kernels_for_whatever_is_calibrated():
    measured = {family.calibrates for family in FAMILIES if list(family.calibration_cases())}
    assert measured == {family.calibrates for family in FAMILIES if family.calibrates}


def test_every_constant_has_a_value_that_is_assumed_for_any_gpu():
    assumed = tomllib.loads(catalog_path(CONSTANTS).read_text())["assumed"]["any"]
    assert assumed.keys() == constants().keys() | {"sustained_clock"}  # of every rate
    assert {name for name, value in assumed.items() if isinstance(value, dict)} == {
        name for name, has_rates in constants().items() if has_rates
    }


def test_the_shipped_networks_are_those_of_the_families():
    assert shipped().networks.keys() == rows().network.keys()
    for name, (_, learned) in rows().network.items():
        assert shipped().networks[name].low.shape == (learned.num_features + learned.board.num_features,)


@given(NAMES, st.sampled_from(Phase))
def test_a_family_keeps_its_word_but_for_streams_of_the_optimizer(name, phase):
    usual, families = family_of(make_op(f"aten::{name}")), family_of(make_op(f"aten::{name}", phase=phase))
    is_moved = phase is Phase.OPTIMIZER and usual.word == ELEMENTWISE.word
    assert families is (OPTIMIZER if is_moved else usual)


@given(NAMES, st.sampled_from(sorted(load_gpus())), st.sampled_from(["float32", "float16", "bfloat16"]))
def test_only_families_with_tensor_cores_run_faster_than_fp32(name, gpu, dtype):
    op, spec = make_op(f"aten::{name}", dtype=dtype), load_gpus()[gpu]
    family, known = family_of(op), constants_for(spec)
    rate = compute_rate(op, family, spec, known, EVERYWHERE)
    assert rate.constant.startswith(f"{family.compute.fraction}.")
    assert rate.constant in known.fractions
    if not family.compute.tensor_cores:
        fp32 = max(spec.vector_flops_per_s["fp32"], spec.tensor_flops_per_s.get("fp32", 0.0))
        assert rate.peak_flops_per_s == known.sustained_clock * fp32


BASES = {
    "aten::mm": "mm", "aten::add_.Tensor": "add_", "add.out": "add", "mm": "mm", "a::b::c.d.e": "c",
    "aten::_foreach_add_.ScalarList": "_foreach_add_", "": "",
}  # fmt: skip


def test_the_base_name_has_neither_namespace_nor_overload():
    assert {name: base_name(name) for name in BASES} == BASES


BY_NAME = {
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
    [(Phase.FORWARD, BY_NAME), (Phase.BACKWARD, BY_NAME), (Phase.OPTIMIZER, OF_OPTIMIZERS)],
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
