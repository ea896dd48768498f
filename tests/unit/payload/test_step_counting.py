"""Steps are counted in the user's Python, and the command runs as without it."""

import json
import os
import shutil
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest

from advisor.core.processes import STEPS_FOLDER_VARIABLE
from advisor.payload.receipt.steps import StepClock
from advisor.receipt.receipt_files import steps_environment

# As much of torch as counting needs, for Pythons and cases where the real one would only take time.
TORCH = """
hooks = []
def register_optimizer_step_post_hook(hook):
    hooks.append(hook)
class Optimizer:
    def step(self):
        for hook in hooks:
            hook(self, (), {})
"""
TRAINS = """
import torch.optim.optimizer as optim
optimizer = optim.Optimizer()
for _ in range(5):
    optimizer.step()
"""


@pytest.fixture
def folder(tmp_path):
    """A folder with a torch that has nothing but hooks; records go to ``steps`` in it."""
    package = tmp_path / "torch" / "optim"
    package.mkdir(parents=True)
    (tmp_path / "steps").mkdir()
    for name in (package.parent, package):
        (name / "__init__.py").touch()
    (package / "optimizer.py").write_text(TORCH)
    return tmp_path


Done = subprocess.CompletedProcess[str]


def ran(folder: Path, code: str, *, python: str = sys.executable, counted: bool = True) -> Done:
    environment = os.environ | {"PYTHONPATH": str(folder)}
    if counted:
        environment = steps_environment(environment, folder / "steps")
    return subprocess.run([python, "-c", code], env=environment, cwd=folder, capture_output=True, text=True)


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted((folder / "steps").glob("*.json"))]


def test_steps_are_counted_and_nothing_is_said(folder):
    done = ran(folder, TRAINS)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (record,) = records(folder)
    assert (record["num_steps"], record["rank"], record["failure"]) == (5, None, None)


def pythons() -> list[str]:
    """Those that this machine has, the one that runs the tests among them."""
    named = (shutil.which(f"python3.{minor}") for minor in range(7, 15))
    others = [path for path in named if path is not None]
    # A shim may be there for a Python that is not.
    working = [
        path for path in others if not subprocess.run([path, "-c", ""], capture_output=True).returncode
    ]
    return [sys.executable, *working]


def test_every_python_that_is_here_counts(folder):
    for number, python in enumerate(pythons(), start=1):
        done = ran(folder, f"{TRAINS}print('trained')", python=python)
        assert (done.returncode, done.stdout, done.stderr) == (0, "trained\n", ""), python
        assert [record["num_steps"] for record in records(folder)] == [5] * number, python


def test_a_python_without_torch_writes_nothing_and_sees_nothing_of_us(folder):
    code = "import sys; print(len(sys.path), 'typing' in sys.modules, 'json' in sys.modules)"
    assert ran(folder, code).stdout == ran(folder, code, counted=False).stdout
    assert records(folder) == []


def test_the_next_sitecustomize_runs_and_fails_as_if_ours_were_not_there(folder):
    (folder / "sitecustomize.py").write_text("import builtins\nbuiltins.ITS = __file__\n")
    done = ran(folder, TRAINS + "import sitecustomize; print(ITS == sitecustomize.__file__, ITS)")
    assert done.stdout == f"True {folder / 'sitecustomize.py'}\n"
    (folder / "sitecustomize.py").write_text("raise RuntimeError('its own')\n")
    done = ran(folder, TRAINS)
    assert done.returncode == 0
    assert "its own" in done.stderr
    assert [record["num_steps"] for record in records(folder)] == [5, 5]


def test_processes_that_train_have_a_record_each_with_their_rank(folder):
    """As torchrun starts them: the environment is inherited."""
    code = f"""
import os, subprocess, sys
for rank in "01":
    subprocess.run([sys.executable, "-c", {TRAINS!r}], env=os.environ | {{"RANK": rank}}, check=True)
"""
    assert ran(folder, code).returncode == 0
    assert sorted(record["rank"] for record in records(folder)) == [0, 1]


def test_a_fork_counts_its_own_steps(folder):
    code = f"""{TRAINS}
import os
if os.fork() == 0:
    optimizer.step()
    raise SystemExit
os.wait()
"""
    assert ran(folder, code).returncode == 0
    assert sorted(record["num_steps"] for record in records(folder)) == [1, 5]


@pytest.mark.parametrize("broken", ["raise RuntimeError('no hooks')", "register = 1 / 0", "torch = 1"])
def test_an_import_that_fails_fails_as_ever_and_old_torch_has_no_steps(broken, folder):
    (folder / "torch" / "optim" / "optimizer.py").write_text(broken)
    code = "import torch.optim.optimizer"
    done, plain = ran(folder, code), ran(folder, code, counted=False)
    assert done.returncode == plain.returncode
    assert done.stderr.splitlines()[-1:] == plain.stderr.splitlines()[-1:]
    assert records(folder) == []


def test_a_folder_that_is_gone_takes_nothing_from_the_command(folder):
    (folder / "steps").rmdir()
    done = ran(folder, TRAINS)
    assert (done.returncode, done.stderr) == (0, "")


class Optimizer:
    """Stands for one of torch."""


def stepped(clock: StepClock, *optimizers: object) -> int:
    for optimizer in optimizers:
        clock.after_step(optimizer, (), {})
    return clock.num_steps


def test_the_first_optimizer_counts_and_the_next_when_it_is_gone_and_none_is_kept_alive(tmp_path):
    clock, first, second = StepClock(str(tmp_path)), Optimizer(), Optimizer()
    assert stepped(clock, first, second, second, first, second) == 2
    seen = weakref.ref(first)
    del first
    assert seen() is None
    assert stepped(clock, second, second) == 4


def test_a_failure_of_ours_ends_the_count_and_is_written(tmp_path, monkeypatch):
    clock, optimizer = StepClock(str(tmp_path)), Optimizer()
    stepped(clock, optimizer)
    monkeypatch.setattr("advisor.payload.receipt.steps.perf_counter", lambda: 1 / 0)
    assert stepped(clock, optimizer, optimizer) == 1
    clock.end()
    (path,) = tmp_path.iterdir()
    assert json.loads(path.read_text())["failure"] == "ZeroDivisionError"


def test_torch_compile_leaves_the_hook_alone():
    """Traced, it would warn of the clock and could break a graph."""
    assert StepClock.after_step._torchdynamo_disable is True  # type: ignore[attr-defined]


REAL = """
import torch
from torch.utils.data import DataLoader, TensorDataset

model, other = torch.nn.Linear(4, 1), torch.nn.Linear(4, 1)
optimizer = torch.optim.AdamW(model.parameters())
second = torch.optim.SGD(other.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
data = DataLoader(TensorDataset(torch.randn(24, 4)), batch_size=2, num_workers=1)
for number, (batch,) in enumerate(data):
    loss = model(batch).mean() + other(batch).mean()
    if number == 7:
        loss = loss * float("inf")  # the scaler leaves this step out
    scaler.scale(loss).backward()
    if number % 2:  # two micro-batches an iteration
        scaler.step(optimizer)
        scaler.step(second)
        scaler.update()
        optimizer.zero_grad()
        second.zero_grad()
"""


def test_a_real_training_counts_its_iterations(tmp_path):
    """Twelve batches in pairs are six iterations, one of which overflows; workers do not count."""
    pytest.importorskip("torch")
    (tmp_path / "steps").mkdir()
    environment = {name: value for name, value in os.environ.items() if name != STEPS_FOLDER_VARIABLE}
    done = subprocess.run(
        [sys.executable, "-c", REAL], env=steps_environment(environment, tmp_path / "steps"),
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (record,) = records(tmp_path)
    assert (record["num_steps"], record["rank"], record["failure"]) == (5, None, None)
    assert sum(steps for _, steps in record["blocks"]) == 4
