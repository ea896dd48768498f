"""The table of families: complete, without contradictions, and of one mind with the files that ship."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.gpus import catalog_path, load_gpus
from advisor.core.values import Phase, Precision
from advisor.operators.case import Caps
from advisor.operators.elementwise import ELEMENTWISE
from advisor.operators.family import base_name, compute_rate
from advisor.operators.optimizer import OPTIMIZER
from advisor.operators.registry import FAMILIES, constants, family_of, rows
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
