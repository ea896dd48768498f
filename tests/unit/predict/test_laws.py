"""What no better board, and no rate that replaces another, may make slower; and what a broken file says."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.core.errors import CatalogError
from advisor.core.fabrics import linked
from advisor.core.gpus import load_gpus, resolve_gpu
from advisor.core.values import Layout, Link, Op, Precision, TensorSpec
from advisor.operators.family import rate_for
from advisor.operators.gemm import GEMM
from advisor.predict.constants import constants_for, slowed, supply_of
from advisor.predict.exchange.collective_time import collective_time
from advisor.predict.knowledge import read_excess, shipped
from advisor.predict.methods import in_a_step, op_times
from tests.builders import make_op, make_trace

FULL = [
    gpu
    for gpu in load_gpus().values()
    if gpu.tensor_flops_per_s.get("fp16") and not gpu.has_half_rate_tensor_cores and gpu.tdp_w > 75
]
WITH_TF32 = [gpu for gpu in load_gpus().values() if "tf32" in gpu.tensor_flops_per_s]
MORE = st.floats(1, 3)


def product(batch: int, rows: int, columns: int, inner: int) -> Op:
    shapes = [(rows, inner), (inner, columns)]
    inputs = tuple(
        TensorSpec(shape=shape if batch == 1 else (batch, *shape), dtype="float32") for shape in shapes
    )
    num_bytes = 4 * batch * (rows * inner + inner * columns + rows * columns)
    name = "aten::mm" if batch == 1 else "aten::bmm"
    return replace(
        make_op(name, flops=2 * batch * rows * columns * inner, num_bytes=num_bytes), inputs=inputs
    )


# Bound by launches, by memory and by cores; scores of attention in BERT.
PRODUCTS = tuple(
    product(*sizes)
    for sizes in [
        (1, 32, 32, 32), (1, 32, 32, 4096), (1, 32, 4096, 4096), (1, 4096, 4096, 32), (1, 4096, 4096, 4096),
        (96, 384, 384, 64), (96, 384, 64, 384),
    ]
)  # fmt: skip


@pytest.mark.parametrize("gpu", WITH_TF32, ids=lambda gpu: gpu.name)
def test_tf32_that_is_allowed_is_never_slower(gpu):
    def times_s(allowed: bool) -> np.ndarray:
        precision = Precision(amp_dtype=None, tf32_matmul=allowed, tf32_cudnn=allowed)
        trace = make_trace(ops=PRODUCTS, precision=precision)
        alone = op_times(trace, gpu, constants_for(gpu), shipped())
        return in_a_step(alone, shipped().excess).time_s

    assert np.all(times_s(True) <= times_s(False) * (1 + 1e-9))


@given(st.sampled_from(FULL), MORE, st.sampled_from(["tdp_w", "tensor_flops_per_s"]))
def test_more_power_or_rate_is_never_slower(gpu, more, what):
    own = getattr(gpu, what)
    better = {rate: more * own[rate] for rate in own} if what == "tensor_flops_per_s" else more * own
    improved = replace(gpu, **{what: better})
    reached = [
        rate_for("fp16", GEMM, each, replace(constants_for(gpu), supply=supply_of(each))).flops_per_s
        for each in (gpu, improved)
    ]
    assert reached[1] >= reached[0] * (1 - 1e-3)


def test_a_board_with_less_power_than_others_of_its_chip_is_as_if_limited():
    slot, module = resolve_gpu("A100-PCIE-40GB"), resolve_gpu("A100-SXM-40GB")
    assert supply_of(module) == 1.0
    assert 1 / supply_of(slot) == pytest.approx(slowed(400 / 250 - 1))
    assert constants_for(slot).supply == supply_of(slot)


@pytest.mark.parametrize("name", ["GH200-96GB", "H100-SXM-80GB", "RTX-3090", "RTX-3080-MaxQ", "T4", "L40S"])
def test_others_keep_their_rate(name):
    assert constants_for(resolve_gpu(name)).supply == 1.0


def test_host_memory_is_no_faster_over_a_faster_bus():
    gpu = resolve_gpu("RTX-3090")
    times = [
        collective_time(
            "all_reduce", 1e8, Layout(gpus_per_node=4, fabric=linked(gpu, Link.HOST, bytes_per_s)), gpu
        ).seconds
        for bytes_per_s in (8e9, 12e9, 32e9)
    ]
    assert times[0] > times[1] == times[2]


def test_peer_access_that_a_board_allows_may_be_refused():
    gpu = resolve_gpu("RTX-A6000")
    allowed, granted, through_host = (
        collective_time("all_reduce", 1e8, Layout(gpus_per_node=4, fabric=fabric), gpu)
        for fabric in (None, linked(gpu, Link.PCIE), linked(gpu, Link.HOST))
    )
    assert allowed.seconds == granted.seconds < through_host.seconds
    assert granted.sigma < allowed.sigma == pytest.approx(through_host.sigma, rel=0.02)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("excess = 3", "no table"),
        ("[excess]\nconvolutions = 0.1", "'convolutions' is none of attention, "),
        ("[excess]\ngemm = -0.1", "not from 0 to 1"),
        ("[excess]\ngemm = nan", "not from 0 to 1"),
        ("[excess]\ngemm = inf", "not from 0 to 1"),
        ('[excess]\ngemm = "0.1"', "not from 0 to 1"),
        ("[other]", "excess"),
    ],
)
def test_factors_that_are_none_are_refused(tmp_path, text, message):
    path = tmp_path / "steps.toml"
    path.write_text(text)
    with pytest.raises(CatalogError, match=message):
        read_excess(path)
