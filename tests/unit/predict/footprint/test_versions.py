"""What single changes leave of tensors, by hand."""

from dataclasses import replace

import pytest

from advisor.core.values import Layout
from advisor.predict.footprint import footprint, overheads
from advisor.predict.largest_batch import FittedScript, StepSeconds, with_8_bit_optimizer, with_lora
from tests.builders import make_gpu
from tests.unit.predict.footprint.scripts import make_transformer

# Adapters of rank 16 beside a matrix of 512 x 512.
TRAINED = 16 * (512 + 512) / 512**2


def version() -> FittedScript:
    trace, gpu, layout = make_transformer(), make_gpu(), Layout(gpus_per_node=1)
    tensors = footprint(trace, layout)
    assert tensors is not None
    return FittedScript(
        trace=trace,
        gpu=gpu,
        layout=layout,
        tensors=replace(tensors, step_temporary=1000.0, buckets=500.0),
        beside=overheads(trace, gpu, layout),
        seconds=StepSeconds(forward=1.0, backward=2.0, optimizer=0.5, exchange=0.0, rest=0.0),
        timed=lambda _: {},
        slowdown=0.0,
    )


def test_adapters_train_their_share_of_the_weights():
    before, after = version(), with_lora(version())
    assert after.alters
    assert after.tensors.weights == pytest.approx(before.tensors.weights * (1 + TRAINED))
    for name in ("gradients", "gradients_at_peak", "optimizer", "step_temporary", "buckets"):
        assert getattr(after.tensors, name) == pytest.approx(getattr(before.tensors, name) * TRAINED), name
    assert after.seconds.optimizer == pytest.approx(0.5 * TRAINED)
    assert after.seconds.forward == 1.0
    assert 1.0 < after.seconds.backward < 2.0


def test_eight_bits_are_a_quarter_and_a_constant_for_256_values():
    before, after = version(), with_8_bit_optimizer(version())
    assert after.tensors.optimizer == pytest.approx(before.tensors.optimizer * (1 / 4 + 1 / 256))
    assert after.tensors.weights == before.tensors.weights
