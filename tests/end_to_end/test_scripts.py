"""From a script as a person types it: right once, wrong in the usual ways, and without a network."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.end_to_end.cli import Shell, assert_plain_error

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm_children")]

TRAINING = """
import sys
import torch
from torch.utils.data import DataLoader, TensorDataset

device = "cuda" if torch.cuda.is_available() else "cpu"
width = int(sys.argv[1]) if len(sys.argv) > 1 else 64
model = torch.nn.Sequential(torch.nn.Linear(width, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)).to(device)
optimizer = torch.optim.Adam(model.parameters())
data = DataLoader(TensorDataset(torch.randn(1000, width), torch.randint(10, (1000,))), batch_size=50)
for epoch in range(100):
    for x, y in data:
        loss = torch.nn.functional.cross_entropy(model(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.save(model.state_dict(), "checkpoint.pt")
"""
# Refuses every connection and every look-up of a name, in all Python processes below.
NO_NETWORK = """
import socket
def refuse(*args, **kwargs):
    raise OSError("no network in this test")
socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse
"""


@pytest.fixture
def shell(tmp_path):
    """A folder with train.py."""
    shell = Shell(folder=tmp_path)
    shell.write("train.py", TRAINING)
    return shell


def test_recommend_a_script(shell):
    answer = shell.run("recommend", "train.py", "--epochs", "90", "--budget", "200", "--json")
    assert answer.code == 0, answer
    document = answer.document
    assert document["job"]["batch_size"] == 50
    one_gpu = next(option for option in document["options"] if option["num_gpus"] == 1)
    assert one_gpu["iterations"] == 20 * 90
    assert sorted(path.name for path in shell.folder.iterdir()) == ["train.py"]


def test_profile_then_predict_and_recommend_the_trace(shell):
    answer = shell.run("profile", "train.py", "--out", "t.trace.json.gz", "--json", "--", "128")
    assert answer.code == 0, answer
    assert answer.document["trace"]["parameter_bytes"] >= 4 * (128 * 256 + 256 * 10)
    assert shell.run("predict", "t.trace.json.gz", "--gpu", "L4").code == 0
    direct = shell.run("recommend", "train.py", "--epochs", "1", "--json", "--", "128").document
    saved = shell.run("recommend", "t.trace.json.gz", "--epochs", "1", "--json").document
    assert direct == saved


def test_nothing_needs_a_network(shell):
    shell.write("quiet/sitecustomize.py", NO_NETWORK)
    quiet = str(shell.folder / "quiet")
    answer = shell.run_process("recommend", "train.py", "--epochs", "1", PYTHONPATH=quiet)
    assert answer.code == 0, answer
    assert "recommended" in answer.out


def test_secrets_do_not_reach_the_trace_or_the_messages(shell):
    shell.write("leaky.py", "import os\nraise RuntimeError(str(dict(os.environ)))\n")
    answer = shell.run("profile", "leaky.py", AWS_SECRET_ACCESS_KEY="hunter2-aws", MY_API_KEY="hunter2-key")
    assert answer.code == 1
    assert "hunter2" not in answer.err + answer.out


def test_secret_arguments_stay_out_of_the_trace(shell):
    shell.write("keyed.py", TRAINING.replace("int(sys.argv[1]) if len(sys.argv) > 1 else 64", "64"))
    answer = shell.run("profile", "keyed.py", "--json", "--", "--api-key", "hunter2", "--token=hunter2")
    assert answer.code == 0, answer
    assert "hunter2" not in answer.out
    assert answer.document["trace"]["arguments"] == ["--api-key", "***", "--token=***"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_one_line(shell):
    command = [sys.executable, "-m", "advisor", "gpus"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, cwd=shell.folder)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "error: cannot read or write: [Errno 28] No space left on device"
    assert "Traceback" not in done.stderr


def test_a_polite_kill_leaves_nothing_running_and_no_file(shell):
    """What a batch system and timeout(1) send."""
    shell.write("endless.py", "open('started', 'w').close()\nwhile True:\n    pass\n")
    temporary = shell.folder / "tmp"
    temporary.mkdir()
    environ = os.environ | {"TMPDIR": str(temporary)}
    command = [sys.executable, "-m", "advisor", "profile", "endless.py"]
    with subprocess.Popen(command, cwd=shell.folder, env=environ, stderr=subprocess.PIPE) as process:
        while not (shell.folder / "started").exists():
            assert process.poll() is None
            time.sleep(0.02)
        process.terminate()
        try:
            process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 143
    assert list(temporary.iterdir()) == []
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(temporary) not in running


def test_an_epochs_short_last_iteration_is_not_taken_for_a_steady_one(shell):
    """Ten batches of 50, four to a step: the third step of an epoch takes two."""
    accumulating = (
        TRAINING.replace("torch.randn(1000, width)", "torch.randn(500, width)")
        .replace("(1000,)", "(500,)")
        .replace("for x, y in data:", "for i, (x, y) in enumerate(data, 1):")
        .replace("        optimizer.zero_grad()\n", "")
        .replace(
            "        optimizer.step()\n",
            "        if i % 4 == 0 or i == len(data):\n"
            "            optimizer.step()\n            optimizer.zero_grad()\n",
        )
    )
    shell.write("accumulate.py", accumulating)
    facts = shell.run("profile", "accumulate.py", "--json").document["trace"]
    assert (facts["accumulation"], facts["batch_size"], facts["iterations_per_epoch"]) == (4, 200, 3)


def test_the_script_believes_it_has_the_gpu_it_is_told(shell):
    facts = "torch.cuda.get_device_capability(), torch.cuda.get_device_properties(0).multi_processor_count"
    shell.write("asks.py", f"import torch\nassert ({facts}) == ((7, 5), 40), ({facts})\n" + TRAINING)
    answer = shell.run("profile", "asks.py", "--as", "T4")
    assert answer.code == 0, answer
    assert shell.run("profile", "asks.py").code == 1
    assert_plain_error(shell.run("profile", "asks.py", "--as", "A100"), 2, "several GPUs")
    assert_plain_error(shell.run("profile", "asks.py", "--as", "MI300X"), 2, "no CUDA GPU")


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("torch.distributed.get_rank()", "--world N"),
        ("input('name? ')", "standard input"),
        ("open('checkpoint.pt')", "torch.save"),
    ],
)
def test_what_only_happens_under_the_profiler_is_hinted_at(shell, line, word):
    shell.write("odd.py", f"import torch\n{line}\n")
    answer = shell.run("profile", "odd.py")
    assert answer.code == 1
    assert word in answer.err
