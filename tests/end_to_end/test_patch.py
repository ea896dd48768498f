"""``--what-if`` and ``--patch`` as a person uses them, once right and often wrong."""

from pathlib import Path

import pytest

from advisor.edits.patch import PLACES, edited, read_script
from advisor.formats.trace_files import read_trace, write_trace
from advisor.operators.convolution import is_channels_last
from tests.builders import make_trace
from tests.end_to_end.cli import Answer, Shell, assert_plain_error

SCRIPT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.Flatten(), nn.Linear(512, 10)).to("cuda")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
data = TensorDataset(torch.rand(64, 3, 8, 8), torch.zeros(64, dtype=torch.long))
for images, labels in DataLoader(data, 8):
    optimizer.zero_grad()
    outputs = model(images.to("cuda"))
    loss = nn.functional.cross_entropy(outputs, labels.to("cuda"))
    loss.backward()
    optimizer.step()
"""
PLACED = ("tf32", "channels_last", "fused", "bf16")
QUICK = ("--epochs", "1000", "--gpu", "A100:1", "--market", "on-demand")


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    folder = tmp_path_factory.mktemp("patch")
    write_trace(make_trace(), folder / "t.json.gz")
    (folder / "train.py").write_text(SCRIPT)
    (folder / "broken.py").write_text("for x in:\n")
    return Shell(folder=folder)


def recommend(shell: Shell, *arguments: str, source: str = "t.json.gz") -> Answer:
    return shell.run("recommend", source, *QUICK, *arguments)


# --- What-ifs ---------------------------------------------------------------------------------------


def test_all_changes_are_a_table_and_facts(shell):
    table = recommend(shell, "--what-if", "all")
    assert table.code == 0
    assert "Of a sample's time" in table.out
    gains = recommend(shell, "--what-if", "all", "--json").document["what_ifs"]
    assert len(gains) == len(PLACES)
    helping = [gain for gain in gains if gain["why_not"] is None]
    assert helping[0]["change"] in ("bf16", "tf32")
    assert helping[0]["saved_share"]["p10"] > 0
    assert 0.9 < helping[0]["p_faster"] <= 1
    surely = [gain["saved_share"]["p10"] for gain in helping]
    assert surely == sorted(surely, reverse=True)
    assert all(gain["saved_share"] is None for gain in gains[len(helping) :])


def test_one_change_is_one_row_and_none_is_no_table(shell):
    gains = recommend(shell, "--what-if", "fp16", "--json").document["what_ifs"]
    assert [gain["why_not_finding"]["facts"]["why"] for gain in gains] == ["bf16-instead"]
    assert recommend(shell, "--no-what-if", "--json").document["what_ifs"] == []


# --- Wrong ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "source", "words"),
    [
        (["--what-if", "bf61"], "t.json.gz", "--what-if must be all or some of tf32, bf16"),
        (["--what-if"], "t.json.gz", "requires an argument"),
        (["--what-if", "bf16", "--no-what-if"], "t.json.gz", "contradict each other"),
        (["--patch"], "train.py", "--patch needs --what-if"),
        (["--patch", "--no-what-if"], "train.py", "--patch needs --what-if"),
        (["--patch", "--what-if", "tf32"], "t.json.gz", "a saved trace is none: give the script itself"),
        (["--patch", "--what-if", "tf32", "--explain", "1"], "train.py", "leave --explain"),
        (["--patch", "--what-if", "tf32", "--plot"], "train.py", "leave --explain"),
    ],
)
def test_what_cannot_be_meant_is_refused_at_once(shell, arguments, source, words):
    answer = recommend(shell, *arguments, source=source)
    assert_plain_error(answer, 2, words)


# --- Patches ----------------------------------------------------------------------------------------


@pytest.mark.torch
@pytest.mark.usefixtures("warm_children")
def test_the_diff_alone_is_printed_and_the_rest_is_noted(shell):
    named = ("--what-if", "fused", "--what-if", "fp16", "--patch")
    answer = recommend(shell, *named, source="train.py")
    assert answer.code == 0
    assert answer.out.startswith("--- a/train.py\n+++ b/train.py\n@@ ")
    assert "+optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)\n" in answer.out
    assert "fp16 is not in the patch: " in answer.err
    assert (shell.folder / "train.py").read_text() == SCRIPT


@pytest.mark.torch
@pytest.mark.usefixtures("warm_children")
def test_a_patched_script_does_what_was_asked(shell):
    text = SCRIPT
    for name in PLACED:
        script = read_script(text, "train.py")
        placed = PLACES[name](script)
        assert isinstance(placed, tuple)
        text = edited(script, placed)
    (shell.folder / "patched.py").write_text(text)
    answer = shell.run("profile", "patched.py", "--backend", "fake", "--out", "patched.json.gz")
    assert answer.code == 0, answer
    trace = read_trace(Path(shell.folder) / "patched.json.gz")
    assert (trace.precision.amp_dtype, trace.precision.tf32_matmul) == ("bfloat16", True)
    assert any(op.name == "aten::_fused_adamw_" for op in trace.ops)
    (convolution,) = (op for op in trace.ops if op.name == "aten::convolution")
    assert is_channels_last(convolution.outputs[0])
