"""What-ifs as a person sees them, and against scripts that really have autocast written in."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from advisor.core.gpus import load_gpus
from advisor.core.values import Trace
from advisor.formats.trace_files import read_trace, write_trace
from advisor.predict.iteration import predict
from advisor.predict.what_if.channels_last import in_channels_last
from advisor.predict.what_if.precision import under_autocast
from research.published import CASES
from tests.builders import make_trace
from tests.end_to_end.cli import Answer, Shell, assert_plain_error
from tests.published import recorded_trace

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
OFF_AT_MOST = 0.15
LOWER = ("--what-if", "tf32", "--what-if", "bf16", "--what-if", "fp16")


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """A folder with a trace in FP32."""
    folder = tmp_path_factory.mktemp("what_if")
    write_trace(make_trace(), folder / "t.json.gz")
    return Shell(folder=folder)


@cache
def recommend(shell: Shell, *arguments: str, **environ: str) -> Answer:
    return shell.run("recommend", "t.json.gz", "--epochs", "1", "--budget", "200", *arguments, **environ)


# --- The command ------------------------------------------------------------------------------------


def test_by_default_one_line_and_no_rows(shell):
    answer = recommend(shell)
    (line,) = [line for line in answer.out.splitlines() if line.startswith("What if ")]
    assert " less " in line
    assert line.endswith("(--what-if all).")
    assert not any(line.startswith("what if") for line in answer.out.splitlines())


def test_without_what_ifs_no_word_of_them(shell):
    assert "what if" not in recommend(shell, "--no-what-if").out.lower()


def test_rows_below_and_the_recommendation_as_before(shell):
    answer = recommend(shell, *LOWER, "--all")
    states = [line.split("  ")[0].strip() for line in answer.out.splitlines()]
    rows = [i for i, state in enumerate(states) if state.startswith("what if")]
    others = [i for i, state in enumerate(states) if state in ("recommended", "frontier", "unsupported")]
    assert min(rows) > max(others)
    assert {"what if tf32", "what if bf16", "what if fp16"} <= set(states)

    def recommended(text: str) -> str:
        return next(line for line in text.splitlines() if line.startswith("Rent "))

    assert recommended(answer.out) == recommended(recommend(shell).out)


def by_id(answer: Answer) -> dict[str, Any]:
    return {option["id"]: option for option in answer.document["options"]}


def test_json_only_adds_what_ifs(shell):
    plain, full = (recommend(shell, "--json"), recommend(shell, "--json", *LOWER))
    before, after = by_id(plain), by_id(full)
    assert {name: after[name] for name in before} == before
    for name in ("job", "frontier", "recommended", "rule", "warnings"):
        assert full.document[name] == plain.document[name]
    added = [after[name] for name in after if name not in before]
    assert added
    for option in added:
        plan_id, _, change = option["id"].rpartition("+")
        assert option["what_if"] == change
        assert option["time_s"]["p50"] < before[plan_id]["time_s"]["p50"]
        assert not option["on_frontier"]
        assert not option["recommended"]
        words = "set_float32_matmul_precision" if change == "tf32" else "torch.autocast"
        assert words in option["script_changes"][0]


def test_nothing_feasible_still_ends_with_4_and_says_what_would_be(shell):
    # The machine is there and stays: the deadline alone decides.
    sure = {
        "ADVISOR_CLOUD__WAIT_P50": "0s",
        "ADVISOR_CLOUD__WAIT_P90": "0s",
        "ADVISOR_SPOT__PREEMPTIONS_PER_H": "0",
    }
    full = recommend(shell, "--gpu", "T4:1", "--market", "spot", "--json", **sure)
    least_s = min(option["time_s"]["p50"] for option in by_id(full).values())
    deadline = ("--gpu", "T4:1", "--market", "spot", "--deadline", f"{round(least_s / 2)}s")
    answer = recommend(shell, *deadline, **sure)
    assert_plain_error(answer, 4, "nothing is feasible")
    (line,) = [line for line in answer.out.splitlines() if line.startswith("What if fp16: ")]
    assert "instead of" not in line


# --- Against the real thing -------------------------------------------------------------------------


def profiled(shell: Shell, script: str, name: str, *arguments: str) -> Trace:
    shell.write(f"{name}.py", script)
    extra = ("--", *arguments) if arguments else ()
    answer = shell.run("profile", f"{name}.py", "--backend", "fake", "--out", f"{name}.json.gz", *extra)
    assert answer.code == 0, answer
    trace = read_trace(shell.folder / f"{name}.json.gz")
    # The part of the CPU is the same, and noisy.
    return replace(trace, data_loading_s=0.0, loader_cpu_s_per_sample=None)


def edited(name: str, *edits: tuple[str, str]) -> str:
    text = (EXAMPLES / name).read_text()
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return text


def recorded(name: str, gpu: str) -> tuple[Trace, Trace]:
    """Of a published row, recorded with autocast and without, at one batch size."""
    cases = {case.name: case for case in CASES if case.gpu == gpu}
    full, real = (recorded_trace(cases[f"{name} {precision}"]) for precision in ("TF32", "AMP-FP16"))
    return full, real


@pytest.mark.torch
@pytest.mark.usefixtures("warm_children")
def test_autocast_supposed_is_near_autocast_written_in(shell):
    """A GPT; a ResNet-50 is recorded below."""
    full = edited("train_gpt.py", ("with torch.autocast(device, dtype=torch.bfloat16):", "if True:"))
    real = (EXAMPLES / "train_gpt.py").read_text()
    check_supposed(profiled(shell, full, "gpt"), profiled(shell, real, "gpt_amp"), "bfloat16")


def test_autocast_supposed_is_near_the_recorded_one():
    """Of ResNet-50: BERT's published rows differ by their optimizers, too, of which one waits for norms."""
    full, real = recorded("ResNet-50", "A100-SXM-80GB")
    check_supposed(full, real, "float16", as_published=True)


def check_supposed(full: Trace, real: Trace, dtype: str, *, as_published: bool = False) -> None:
    supposed = under_autocast(full, dtype)
    assert supposed is not None
    if as_published:
        # NVIDIA's scripts train convolutions in channels last where they train under autocast.
        supposed = in_channels_last(supposed) or supposed
    assert supposed.precision.amp_dtype == real.precision.amp_dtype == dtype
    rate = {"bfloat16": "bf16", "float16": "fp16"}[dtype]
    suited = [gpu for gpu in load_gpus().values() if rate in gpu.tensor_flops_per_s]
    assert len(suited) > 10
    for gpu in suited:
        expected_s = predict(real, gpu).iteration_s.p50
        assert predict(supposed, gpu).iteration_s.p50 == pytest.approx(expected_s, rel=OFF_AT_MOST), gpu.name
    assert supposed.memory.peak_bytes == pytest.approx(real.memory.peak_bytes, rel=OFF_AT_MOST)
