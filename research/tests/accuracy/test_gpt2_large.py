"""The table of GPT-2 large on four GPUs: what is measured, predicted and no kernel."""

from __future__ import annotations

from advisor.core.values import Split
from advisor.predict.exchange.data_parallel import COMMUNICATION
from advisor.predict.iteration import predict
from advisor.predict.step_time import OTHERS, waits_s
from research.accuracy.gpt2_large import table
from tests.builders import make_gpu
from tests.unit.predict.split.transformers import transformer


def test_each_option_is_beside_what_was_measured() -> None:
    gpu = make_gpu(nvlink_bytes_per_s=300e9)
    splits = {"pp4_1": Split(pipeline=4, micro_batches=1), "tp4": Split(tensor=4)}
    estimates = {
        option: predict(transformer(layers=8, batch=64), gpu, 4, split=split)
        for option, split in splits.items()
    }
    measured_s = {option: 2 * estimate.iteration_s.p50 for option, estimate in estimates.items()}
    rows = [line.strip("| ").split(" | ") for line in table(estimates, measured_s).splitlines()[2:]]
    assert [row[0] for row in rows] == list(splits)
    assert [row[3] for row in rows] == ["-50.0%", "-50.0%"]
    # Stages of one micro-batch wait for no slowest one.
    assert rows[0][4] == "0"
    waits = waits_s(estimates["tp4"])
    assert waits[OTHERS] > 0
    assert rows[1][4:] == [f"{1000 * waits[wait]:,.0f}" for wait in (OTHERS, COMMUNICATION)]
