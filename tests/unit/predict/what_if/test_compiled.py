"""What a compiled model moves through memory."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from advisor.core.findings import Code, finding
from advisor.core.gpus import resolve_gpu
from advisor.core.values import Op, Phase
from advisor.predict.iteration import predict
from advisor.predict.what_if.compiled import LEFT_SHARE, compiled
from tests.builders import make_op, make_trace

PRODUCT = make_op(flops=10**12)
GELU = make_op("aten::gelu", flops=10**6, num_bytes=10**9)
NORM = make_op("aten::native_layer_norm_backward", num_bytes=10**9, phase=Phase.BACKWARD)
STEP = make_op("aten::_foreach_add_", num_bytes=10**9, phase=Phase.OPTIMIZER)


def test_streams_of_the_passes_are_fused_and_nothing_else() -> None:
    trace = compiled(make_trace(ops=(PRODUCT, GELU, NORM, STEP), iteration_s=1.0))
    assert trace is not None
    assert (trace.ops[0], trace.ops[3]) == (PRODUCT, STEP)
    assert [op.bytes for op in trace.ops[1:3]] == [LEFT_SHARE * 10**9] * 2
    assert trace.iteration_s is None


def test_what_compiles_already_or_has_nothing_to_fuse_stays() -> None:
    assert compiled(make_trace(ops=(PRODUCT, STEP))) is None
    warned = make_trace(ops=(PRODUCT, GELU), warnings=(finding(Code.COMPILE_IGNORED),))
    assert compiled(warned) is None
    assert compiled(replace(warned, warnings=())) is not None


@given(st.lists(st.sampled_from([PRODUCT, GELU, NORM, STEP]), min_size=1, max_size=6))
def test_less_left_is_never_slower_and_work_stays(ops: list[Op]) -> None:
    trace, gpu = make_trace(ops=(GELU, *ops)), resolve_gpu("A100-SXM-80GB")
    times = []
    for share in (0.4, 0.7, 1.0):
        fused = compiled(trace, share)
        assert fused is not None
        assert fused.flops == trace.flops
        times.append(predict(fused, gpu).device_s.p50)
    assert times == sorted(times)
