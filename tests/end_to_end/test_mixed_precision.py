"""What mixed precision adds to a step stands in the trace: casts, scaling, clipping, updates."""

import pytest

from advisor.core.gpus import resolve_gpu
from advisor.core.values import Phase, Trace
from advisor.predict.constants import constants_for
from advisor.predict.knowledge import shipped
from advisor.predict.methods import op_times
from advisor.profile import profile

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm_children")]
WIDTH, TOKENS = 256, 64
# The optimizer's states are there from the second step on.
SCRIPT = f"""
import sys
import torch
from torch import nn
model = nn.Linear({WIDTH}, {WIDTH}, bias=False).cuda()
fused = {{"fused": True}} if sys.argv[1] == "fused" else {{"foreach": sys.argv[1] == "foreach"}}
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, **fused)
scaler = torch.amp.GradScaler("cuda")
for _ in range(5):
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=torch.float16):
        loss = model(torch.randn({TOKENS}, {WIDTH}, device="cuda")).float().sum()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
"""
WEIGHTS = 4 * WIDTH**2  # bytes in FP32, as are gradients and each of the two moments


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    script = tmp_path_factory.mktemp("amp") / "train.py"
    script.write_text(SCRIPT)
    return {kind: profile(script, [kind]) for kind in ("foreach", "fused")}


def large(trace: Trace, name: str, phase: Phase | None = None) -> list[int]:
    """Bytes of all calls on as many elements as the weights have."""
    return [
        op.bytes
        for op in trace.ops
        if op.name == f"aten::{name}" and op.bytes > WEIGHTS / 2 and phase in (None, op.phase)
        for _ in range(op.count)
    ]


def test_weights_are_cast_each_step_and_their_gradients_back(traces):
    for trace in traces.values():
        assert large(trace, "_to_copy", Phase.FORWARD) == [WEIGHTS * 3 // 2]
        assert large(trace, "_to_copy", Phase.BACKWARD) == [WEIGHTS * 3 // 2]


def test_unscaling_and_clipping_read_and_write_gradients(traces):
    unscaled = large(traces["foreach"], "_amp_foreach_non_finite_check_and_unscale_")
    assert unscaled == [pytest.approx(2 * WEIGHTS, rel=1e-3)]
    assert large(traces["foreach"], "_foreach_norm") == [pytest.approx(WEIGHTS, rel=1e-3)]
    clipped, *_ = large(traces["foreach"], "_foreach_mul_")
    assert clipped == pytest.approx(2 * WEIGHTS, rel=1e-3)


def test_a_fused_step_moves_everything_once(traces):
    """Reads weights, gradients and two moments, and writes all but the gradients."""
    assert large(traces["fused"], "_fused_adamw_") == [pytest.approx(7 * WEIGHTS, rel=1e-3)]


def test_a_step_over_lists_moves_three_times_as_much(traces):
    """Eight passes: weight decay, two averages (three kernels), and the update by four more."""
    names = ["mul_", "lerp_", "addcmul_", "sqrt", "div_", "add_", "addcdiv_"]
    passes = [num_bytes for name in names for num_bytes in large(traces["foreach"], f"_foreach_{name}")]
    clipped = 2 * WEIGHTS
    assert sum(passes) - clipped == pytest.approx(21 * WEIGHTS, rel=1e-3)


def test_none_of_it_costs_nothing(traces):
    gpu, knowledge = resolve_gpu("A100-SXM-80GB"), shipped()
    for trace in traces.values():
        for time in op_times(trace, gpu, constants_for(gpu), knowledge):
            least_s = time.op.count * time.op.bytes / gpu.memory_bytes_per_s
            assert time.time_s > least_s
            assert time.sigma > 0
