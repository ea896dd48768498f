"""The backends that need no GPU, as a person types them: what is chosen, refused and told."""

import pytest

from tests.end_to_end.cli import Shell, assert_plain_error
from tests.programs import write_program

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm_children")]
TRAINING = """
import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 8)).to(device)
optimizer = torch.optim.AdamW(model.parameters())
while True:
    with torch.autocast(device, dtype=torch.bfloat16):
        loss = model(torch.zeros(32, 64, device=device)).float().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
# A driver's program that tells of one card, on which somebody else computes.
BUSY = "echo 'NVIDIA L4, 23034, 18000, 97, 72.00'"


@pytest.fixture
def shell(tmp_path):
    shell = Shell(folder=tmp_path)
    shell.write("train.py", TRAINING)
    return shell


def trace_of(answer):
    assert answer.code == 0, answer
    return answer.document["trace"]


def test_on_the_cpu(shell):
    trace = trace_of(shell.run("profile", "train.py", "--backend", "cpu", "--json"))
    fake = trace_of(shell.run("profile", "train.py", "--backend", "fake", "--json"))
    assert (trace["backend"], fake["backend"]) == ("cpu", "fake")
    assert trace["amp_dtype"] == fake["amp_dtype"] == "bfloat16"
    assert trace["flops"] == pytest.approx(fake["flops"], rel=0.01)
    assert trace["parameter_bytes"] == fake["parameter_bytes"]


def test_auto_is_without_a_gpu_where_there_is_none(shell):
    trace = trace_of(shell.run("profile", "train.py", "--json", CUDA_VISIBLE_DEVICES=""))
    assert trace["backend"] == "fake"
    assert trace["origin_gpu"] is None


def test_cuda_that_is_not_there_is_an_error(shell):
    answer = shell.run("profile", "train.py", "--backend", "cuda", CUDA_VISIBLE_DEVICES="")
    assert_plain_error(answer, 1, "--backend fake")
    assert "CUDA" in answer.err


def test_a_busy_gpu_is_told_and_left_alone(shell):
    write_program(shell.folder / "bin/nvidia-smi", BUSY)
    path = f"{shell.folder}/bin:/usr/bin:/bin"
    answer = shell.run("profile", "train.py", "--json", PATH=path)
    assert trace_of(answer)["backend"] == "fake"
    assert "profiled without the GPU: the NVIDIA L4 is busy (97% utilized)" in answer.err
    assert_plain_error(shell.run("profile", "train.py", "--backend", "cuda", PATH=path), 1, "busy (97%")


def test_the_setting_counts_and_the_flag_wins(shell):
    shell.write(".advisor.yaml", "profile:\n  backend: cpu\n")
    assert trace_of(shell.run("profile", "train.py", "--json"))["backend"] == "cpu"
    assert trace_of(shell.run("profile", "train.py", "--backend", "fake", "--json"))["backend"] == "fake"


WHOLE_LOOP_IN_AUTOCAST = (
    TRAINING.replace(
        """while True:
    with torch.autocast(device, dtype=torch.bfloat16):
        loss""",
        """torch.autocast(device, dtype=torch.bfloat16).__enter__()
while True:
        loss""",
    )
    .replace("    optimizer", "        optimizer")
    .replace("    loss.b", "        loss.b")
)


@pytest.mark.parametrize("backend", ["cpu", "fake"])
def test_autocast_around_the_whole_loop(shell, backend):
    shell.write("loop.py", WHOLE_LOOP_IN_AUTOCAST)
    assert (
        trace_of(shell.run("profile", "loop.py", "--backend", backend, "--json"))["amp_dtype"] == "bfloat16"
    )


CHECKPOINTS = """
torch.save(model.state_dict(), "w.pt")
model.load_state_dict(torch.load("w.pt", map_location=device))
"""


def test_checkpoints_on_a_real_device(shell):
    shell.write("resume.py", TRAINING.replace("while True", CHECKPOINTS + "while True"))
    assert trace_of(shell.run("profile", "resume.py", "--backend", "cpu", "--json"))["backend"] == "cpu"
    assert not (shell.folder / "w.pt").exists()


def test_only_the_fake_backend_pretends(shell):
    answer = shell.run("profile", "train.py", "--backend", "cpu", "--as", "T4")
    assert_plain_error(answer, 2, "--as T4 needs the backend fake, not cpu")
