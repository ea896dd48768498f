"""The largest batch, confirmed by a second profile: with which arguments, and what is refused before."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from advisor.config.layers import Config
from advisor.config.settings import Settings
from advisor.core.errors import InputError
from advisor.core.units import GIB
from advisor.core.values import Confirmation, Layout, MemoryUse, Trace
from advisor.report.memory_parts import confirmed_fact
from advisor.service import confirming, predicting
from advisor.service.predicting import PredictAnswer, PredictRequest, predict
from advisor.service.traces import TraceRequest
from tests.builders import make_estimate, make_memory, make_trace
from tests.listening import Heard

CONFIG = Config(settings=Settings(), origins={}, warnings=())
BATCH = 4


def trace_at(batch_size: int) -> Trace:
    """Of a script that holds 1 GiB, and 1 GiB for each sample."""
    memory = MemoryUse(
        parameter_bytes=GIB, gradient_bytes=0, optimizer_bytes=0, activation_bytes=batch_size * GIB,
        peak_bytes=(1 + batch_size) * GIB,
    )  # fmt: skip
    arguments = ("--lr", "0.1", "--batch-size", str(batch_size))
    return make_trace(memory=memory, batch_size=batch_size, arguments=arguments)


def answered(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *gpus: str, trace: Trace | None = None
) -> tuple[PredictAnswer, list[TraceRequest]]:
    """The answer, and what was profiled for it."""
    asked: list[TraceRequest] = []

    def profiled(request: TraceRequest, _config: Config, _listener: object) -> Trace:
        asked.append(request)
        if len(asked) == 1:
            return trace or trace_at(BATCH)
        return trace_at(int(request.arguments[-1]))

    monkeypatch.setattr(predicting, "trace_of", profiled)
    monkeypatch.setattr(confirming, "trace_of", profiled)
    script = tmp_path / "train.py"
    script.touch()
    source = TraceRequest(source=script, arguments=("--lr", "0.1", "--batch-size", str(BATCH)))
    request = PredictRequest(trace=source, gpus=gpus, confirm=True)
    return predict(request, CONFIG, Heard()), asked


def test_the_script_is_profiled_again_with_its_largest_batch(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answer, asked = answered(monkeypatch, tmp_path, "L4")
    largest = answer.estimates[0].largest_batch
    assert largest is not None
    assert largest.likely is not None
    assert largest.likely > BATCH
    assert asked[1] == replace(asked[0], arguments=("--lr", "0.1", "--batch-size", str(largest.likely)))
    confirmed = answer.confirmed
    assert confirmed is not None
    assert confirmed.batch_size == largest.likely
    # The need grows in proportion, so the second profile says what the first predicted.
    assert confirmed.estimate.fits_memory
    assert (confirmed.estimate.gpu, confirmed.estimate.layout) == ("L4", Layout(gpus_per_node=1))


def test_a_batch_that_is_no_argument_cannot_be_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the batch of .* cannot be set"):
        answered(monkeypatch, tmp_path, "L4", trace=replace(trace_at(BATCH), arguments=()))


@pytest.mark.parametrize("gpus", [("L4", "T4"), ("L4:1..2",), ()])
def test_one_gpu_is_confirmed_at_a_time_and_nothing_is_profiled_before(
    gpus: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="is for one GPU"):
        answered(monkeypatch, tmp_path, *gpus)


def test_a_saved_trace_cannot_be_profiled_again() -> None:
    request = PredictRequest(trace=TraceRequest(source=trace_at(BATCH)), gpus=("L4",), confirm=True)
    with pytest.raises(InputError, match="is a saved trace"):
        predict(request, CONFIG, Heard())


@pytest.mark.parametrize(
    ("need_gib", "words"),
    [
        (10, "32 was profiled: 10 GiB of 16 GiB, which fits"),
        (17, "32 was profiled: 17 GiB of 16 GiB, which does not fit"),
        (None, "32 was profiled, and its need is unknown"),
    ],
)
def test_what_the_second_profile_says(need_gib: int | None, words: str) -> None:
    memory = make_memory(None if need_gib is None else need_gib * GIB)
    estimate = make_estimate(memory=memory, memory_limit_bytes=16 * GIB)
    assert confirmed_fact(Confirmation(arguments=(), batch_size=32, estimate=estimate)).value == words
