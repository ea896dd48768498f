"""BERT-large as the published tables ran it, in small."""

import csv
import importlib.util

import pytest

pytest.importorskip("torch")
if importlib.util.find_spec("transformers") is None:
    pytest.skip("needs transformers: pip install 'gpu-advisor[frameworks]'", allow_module_level=True)
from advisor.core.gpus import resolve_gpu
from advisor.core.values import Phase
from advisor.operators.attention import ATTENTION
from advisor.operators.gemm import GEMM
from advisor.operators.registry import family_of
from research import bert
from research.published import CASES
from research.speedups import FILE
from tests.published import recorded_trace
from tests.shared import SHARED, needs_shared

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm_process")]
# Weights of a layer that every token meets: attention 4, feed-forward 8, in units of 1024 x 1024.
LAYERS = 24 * 12 * 1024**2


def product_flops(trace):
    return sum(op.flops * op.count for op in trace.ops if family_of(op) is GEMM)


def recorded(name):
    """The trace of a published row, which the tests of accuracy hold to what profiling gives."""
    return recorded_trace(next(case for case in CASES if case.name == name))


@pytest.fixture(scope="module")
def pass_of_two():
    return bert.pre_training(128, amp=False, batch_size=2)


def test_a_pass_is_three_times_its_weights_and_scores(pass_of_two):
    tokens = 2 * 128
    scores = tokens * 128 * 2 * 1024 * 24
    words = 2 * 20 * (1024**2 + 1024 * bert.VOCABULARY)
    assert product_flops(pass_of_two) == pytest.approx(6 * (tokens * LAYERS + scores + words), rel=0.01)


def test_gradients_accumulate_without_an_optimizer(pass_of_two):
    assert not [op for op in pass_of_two.ops if op.phase is Phase.OPTIMIZER]
    assert pass_of_two.memory.optimizer_bytes == 0
    # 335 million parameters: those of BERT-large with its heads.
    assert pass_of_two.memory.gradient_bytes == pytest.approx(4 * 336e6, rel=0.01)


def test_attention_is_eager(pass_of_two):
    assert not [op for op in pass_of_two.ops if family_of(op) is ATTENTION]
    assert sum(op.count for op in pass_of_two.ops if op.name == "aten::_softmax") == 24


def test_autocast_halves_the_operands_of_products():
    trace = recorded("BERT-large 128 tokens AMP-FP16")
    products = [op for op in trace.ops if family_of(op) is GEMM]
    assert {op.inputs[-1].dtype for op in products} == {"float16"}


def test_fine_tuning_steps_after_each_pass():
    trace, num_samples = recorded("BERT-large fine-tuning FP32"), 8
    assert [op for op in trace.ops if op.phase is Phase.OPTIMIZER]
    tokens = bert.FINE_TUNING_LENGTH
    expected = 6 * num_samples * (tokens * LAYERS + tokens * tokens * 2 * 1024 * 24)
    assert product_flops(trace) == pytest.approx(expected, rel=0.01)


def test_unknown_lengths():
    with pytest.raises(KeyError):
        bert.pre_training(256, amp=False, batch_size=1)


@pytest.mark.shared
@needs_shared
def test_published_rows_of_512_tokens_are_faster_than_the_gpu():
    """Why no benchmark scores them: in FP32 a V100 has no tensor cores to take."""
    with (SHARED / "measurements" / "third_party" / FILE).open(newline="") as file:
        (row,) = (
            row
            for row in csv.DictReader(file)
            if (row["variant"], row["gpu"], row["n_gpus"], row["precision"])
            == ("pretrain/seq512", "V100 SXM2/3 32GB", "1", "FP32")
        )
    trace = bert.pre_training(512, amp=False, batch_size=4)
    asked = float(row["throughput"]) * product_flops(trace) / 4
    assert asked > 1.2 * resolve_gpu("V100-SXM-32GB").vector_flops_per_s["fp32"]
