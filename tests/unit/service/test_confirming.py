"""The largest batch, confirmed by a second profile: with which arguments, and what is refused before."""

from dataclasses import replace
from pathlib import Path

import pytest

import advisor
from advisor.config.layers import Config, TracingSettings
from advisor.config.settings import Settings
from advisor.core.errors import InputError
from advisor.core.units import GIB
from advisor.core.values import Confirmation, Layout, MemoryUse, Trace
from advisor.report.estimates import confirmed_fact
from advisor.service import predicting
from advisor.service.predicting import PredictAnswer, PredictRequest, predict
from advisor.service.traces import TraceRequest
from tests.builders import make_estimate, make_memory, make_trace
from tests.listening import Heard

CONFIG = Config(settings=Settings(), origins={}, warnings=())
BATCH = 4
ARGUMENTS = ("--lr", "0.1", "--batch-size", str(BATCH))


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
    asked = profiling(monkeypatch, trace)
    source = TraceRequest(source=script_in(tmp_path), arguments=ARGUMENTS)
    request = PredictRequest(trace=source, gpus=gpus, confirm=True)
    return predict(request, CONFIG, Heard()), asked


def profiling(monkeypatch: pytest.MonkeyPatch, trace: Trace | None = None) -> list[TraceRequest]:
    """No script is run; this fills with what would have been."""
    asked: list[TraceRequest] = []

    def profiled(request: TraceRequest, _tracing: TracingSettings, _listener: object) -> Trace:
        asked.append(request)
        if len(asked) == 1:
            return trace or trace_at(BATCH)
        return trace_at(int(request.arguments[-1]))

    monkeypatch.setattr(predicting, "trace_of", profiled)
    return asked


def script_in(folder: Path) -> Path:
    script = folder / "train.py"
    script.touch()
    return script


@pytest.mark.parametrize(
    ("text", "is_set"),
    [
        (f'parser.add_argument("-b", "--batch-size", type=int, default={BATCH})', True),
        (f'@click.option("--train-batch", default={BATCH})\ndef main(): pass', True),
        (f'parser.add_argument("--batch-size", default={BATCH + 1})', False),
        (
            f'p.add_argument("--batch-a", default={BATCH})\np.add_argument("--batch-b", default={BATCH})',
            False,
        ),
        ("x = [", False),
    ],
)
def test_a_batch_that_is_a_default_is_set_by_its_option(text, is_set, monkeypatch, tmp_path):
    asked = profiling(monkeypatch, replace(trace_at(BATCH), arguments=("--lr", "0.1")))
    script_in(tmp_path).write_text(text)
    source = TraceRequest(source=tmp_path / "train.py", arguments=("--lr", "0.1"))
    request = PredictRequest(trace=source, gpus=("L4",), confirm=True)
    if not is_set:
        with pytest.raises(InputError, match="cannot be set: no argument or option"):
            predict(request, CONFIG, Heard())
        return
    largest = predict(request, CONFIG, Heard()).estimates[0].largest_batch
    assert largest is not None
    assert asked[1].arguments[:2] == ("--lr", "0.1")
    assert asked[1].arguments[2] in text
    assert asked[1].arguments[3] == str(largest.likely)


def test_the_script_is_profiled_again_with_its_largest_batch(monkeypatch, tmp_path):
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


def test_python_and_the_command_confirm_the_same(monkeypatch, tmp_path):
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    answer, asked = answered(monkeypatch, tmp_path, "L4")
    asked_from_python = profiling(monkeypatch)
    confirmed = advisor.confirm(tmp_path / "train.py", ARGUMENTS, gpu="L4")
    assert confirmed == answer.confirmed
    assert asked_from_python == asked


def test_python_names_its_arguments_and_no_flags(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"^confirm is for one GPU"):
        advisor.confirm(script_in(tmp_path), gpu="L4:1..2")
    with pytest.raises(InputError, match="there is no file"):
        advisor.confirm("gone.py", gpu="L4")
    for gpu in (4, ["L4"]):
        with pytest.raises(InputError, match=r"^gpu must .*: the name of one, such as 'L4'"):
            advisor.confirm(tmp_path / "train.py", gpu=gpu)  # type: ignore[arg-type]


def test_a_batch_that_is_no_argument_and_a_saved_trace_cannot_be_set(monkeypatch, tmp_path):
    request = PredictRequest(trace=TraceRequest(source=trace_at(BATCH)), gpus=("L4",), confirm=True)
    with pytest.raises(InputError, match="is a saved trace"):
        predict(request, CONFIG, Heard())
    with pytest.raises(InputError, match=r"the batch of .* cannot be set"):
        answered(monkeypatch, tmp_path, "L4", trace=replace(trace_at(BATCH), arguments=()))


@pytest.mark.parametrize("gpus", [("L4", "T4"), ("L4:1..2",), ()])
def test_one_gpu_is_confirmed_at_a_time_and_nothing_is_profiled_before(gpus, monkeypatch, tmp_path):
    with pytest.raises(InputError, match="is for one GPU"):
        answered(monkeypatch, tmp_path, *gpus)


@pytest.mark.parametrize(
    ("need_gib", "words"),
    [
        (10, "32 was profiled: 10 GiB of 16 GiB, which fits"),
        (17, "32 was profiled: 17 GiB of 16 GiB, which does not fit"),
        (None, "32 was profiled, and its need is unknown"),
    ],
)
def test_what_the_second_profile_says(need_gib, words):
    memory = make_memory(None if need_gib is None else need_gib * GIB)
    estimate = make_estimate(memory=memory, memory_limit_bytes=16 * GIB)
    assert confirmed_fact(Confirmation(arguments=(), batch_size=32, estimate=estimate)).value == words
