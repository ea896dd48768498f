"""A DeepSpeed script, profiled without a GPU as one of two and of eight: what one tells of the other."""

import importlib.util
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from advisor.core.gpus import resolve_gpu
from advisor.core.values import Phase
from advisor.predict.exchange.collectives import resharded, sharded_over, sharding_group, state_group
from advisor.predict.iteration import predict_counts
from advisor.profile import profile
from tests.findings import named, said

SCRIPT = Path(__file__).parents[1] / "compatibility" / "scripts" / "deepspeed_gpt.py"
# Stage of ZeRO, ranks (None: nobody asked), other arguments.
RUNS = {
    "1 of 8": (1, 8, ()),
    "2 of 2": (2, 2, ("--accumulation", "2")),
    "2 of 8": (2, 8, ("--accumulation", "2")),
    "2 alone": (2, None, ()),
    "3 of 2": (3, 2, ()),
    "3 of 8": (3, 8, ()),
    "offloaded": (2, 2, ("--offload",)),
}
WIDTH, VOCABULARY, LAYERS = 256, 1024, 2
# Two norms, attention's two products, and two linear layers, with their biases.
LAYER = 4 * WIDTH + 4 * WIDTH**2 + 4 * WIDTH + 8 * WIDTH**2 + 5 * WIDTH
PARAMETERS = 2 * VOCABULARY * WIDTH + LAYERS * LAYER
pytestmark = [
    pytest.mark.torch,
    pytest.mark.usefixtures("warm_children"),
    pytest.mark.skipif(
        importlib.util.find_spec("deepspeed") is None,
        reason="needs deepspeed: pip install 'gpu-advisor[frameworks]'",
    ),
]


@pytest.fixture(scope="module")
def traces():
    def run(name):
        stage, world_size, arguments = RUNS[name]
        return name, profile(SCRIPT, ("--stage", str(stage), *arguments), world_size=world_size)

    with ThreadPoolExecutor(2) as pool:
        return dict(pool.map(run, RUNS))


def total_bytes(trace, kind):
    return sum((c.num_bytes or 0) * c.count for c in trace.collectives if c.kind == kind)


def parts(trace):
    memory = trace.memory
    return memory.parameter_bytes, memory.gradient_bytes, memory.optimizer_bytes


def optimizer_bytes(trace):
    return sum(op.bytes * op.count for op in trace.ops if op.phase is Phase.OPTIMIZER)


@pytest.mark.parametrize(("name", "ranks"), [("1 of 8", 8), ("2 of 2", 2), ("2 of 8", 8)])
def test_a_rank_keeps_its_part_of_the_state_and_gathers_weights_once(traces, name, ranks):
    trace = traces[name]
    weights = 2 * PARAMETERS
    assert state_group(trace) == ranks
    # BF16 weights and an equal part in FP32; Adam keeps twice that. Parts are padded.
    expected = (weights + 4 * PARAMETERS / ranks, 4 * PARAMETERS / ranks, 8 * PARAMETERS / ranks)
    assert parts(trace) == pytest.approx(expected, rel=0.01)
    assert total_bytes(trace, "all_gather") == pytest.approx(weights, rel=0.001)
    # ZeRO-2 reduces in each pass of an accumulated step; few bytes are of norms and overflows.
    assert total_bytes(trace, "all_reduce") == pytest.approx(trace.accumulation * weights, rel=0.001)


def test_without_overlap_the_backward_pass_waits_for_gradients(traces):
    assert traces["2 of 8"].awaits_reductions


@pytest.mark.parametrize(("name", "ranks"), [("3 of 2", 2), ("3 of 8", 8)])
def test_a_rank_of_zero_3_keeps_its_part_of_everything(traces, name, ranks):
    trace = traces[name]
    assert (trace.is_sharded, sharding_group(trace), sharded_over(trace)) == (True, ranks, ranks)
    part = PARAMETERS / ranks
    assert parts(trace) == pytest.approx((6 * part, 2 * part, 8 * part), rel=0.01)
    assert total_bytes(trace, "reduce_scatter") == pytest.approx(2 * PARAMETERS, rel=0.001)


# Under ZeRO-2 gradients that earlier passes left are of whole tensors, which do not divide evenly.
@pytest.mark.parametrize(("stage", "off"), [(2, 0.02), (3, 0.001)])
def test_two_ranks_tell_what_eight_do(traces, stage, off):
    recorded, profiled, gpu = traces[f"{stage} of 2"], traces[f"{stage} of 8"], resolve_gpu("A100-SXM-80GB")
    there = resharded(recorded, 8)
    assert parts(there) == pytest.approx(parts(profiled), rel=0.001)
    assert there.memory.pass_peak_bytes == pytest.approx(profiled.memory.pass_peak_bytes, rel=off)
    assert there.collectives == profiled.collectives
    assert optimizer_bytes(recorded) / 4 == pytest.approx(optimizer_bytes(profiled), rel=0.02)
    estimates = [predict_counts(trace, gpu, [8])[0] for trace in (recorded, profiled)]
    assert estimates[0].memory_bytes == pytest.approx(estimates[1].memory_bytes, rel=off)
    assert estimates[0].communication_s == pytest.approx(estimates[1].communication_s, rel=0.03)


def test_it_is_told_that_nothing_of_the_gather_hides(traces):
    estimate = predict_counts(traces["1 of 8"], resolve_gpu("A100-SXM-80GB"), [8])[0]
    assert "updates its part of the weights" in said(estimate.assumptions)


def test_without_a_world_it_is_profiled_alone_and_says_so(traces):
    trace = traces["2 alone"]
    assert (trace.world_size, trace.is_sharded, sharded_over(trace)) == (1, True, 1)
    assert any("`world_size` N" in warning for warning in named(trace.warnings))
    # DeepSpeed's own helpers, which it compiles when it is imported, are not the script's wish.
    assert not any("torch.compile" in warning for warning in named(trace.warnings))


def test_what_is_offloaded_is_not_on_the_gpu_and_warned_of(traces):
    trace = traces["offloaded"]
    assert (trace.memory.optimizer_bytes or 0) < 0.01 * PARAMETERS
    assert "keeps optimizer in main memory (offload)" in said(trace.warnings)
