"""``advisor profile`` on scripts that cannot be profiled and on scripts with odd habits."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.bad_scripts import HOPELESS, ODD
from tests.end_to_end.cli import Answer, Shell, assert_plain_error
from tests.end_to_end.profile_scripts import LOOP, TRAIN

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm_children")]

# Exit code 2: the input is at fault; 1: it could not be profiled. Then words of the message.
SAID = {
    "exits with a number": (1, "sys.exit(3)", "optimizer.step()"),
    "crashes in the second step": (1, "RuntimeError: the second batch is rotten", "line 19"),
    "crashes before torch": (1, "ZeroDivisionError: division by zero"),
    "binary": (2, "is not a Python script", ".py file"),
    "utf-16": (2, "is not a Python script", ".py file"),
    "latin-1 unsaid": (2, "is not a Python script", "utf-8"),
    "never trains": (1, "made no step", "nothing here"),
    "empty": (1, "made no step", "came to its end"),
    "trains in another process": (1, "multiprocessing.Process", "main process"),
    "swallows everything, never steps": (1, "within 3 s", "--timeout"),
    "asks": (1, "EOFError", "standard input is empty"),
    "imports what is missing": (1, "imports 'surely_not_installed', which the interpreter", "--python PATH"),
    "imports a missing name": (1, "cannot import name 'NoSuchLayer'"),
    "allocates too much": (1, "tried to allocate 281474976710656 bytes", "CPU tensors are real"),
    "allocates too much in Python": (1, "raised MemoryError.", "load less"),
    "is killed": (1, "was killed", "CPU tensors are real"),
    "aborts": (1, "SIGABRT"),
    "wants two GPUs": (1, "AssertionError: needs two GPUs", "one GPU"),
    "shell": (2, "is not a Python script", "line 3"),
    "has a syntax error": (2, "has a syntax error in line 2, 'for i in range(3)'", "expected ':'"),
    "imports a syntax error": (
        1,
        "imports ",
        "broken_module.py', which has a syntax error in line 2, 'def f(:'",
    ),
    "reads a file that ends too early": (1, "raised EOFError: Ran out of input", "fix it"),
    "has no network": (1, "from the network", "--fake-data"),
    "relative import": (1, "attempted relative import", "__init__.py"),
    "captures a graph": (1, "CUDA graphs cannot be captured", "switch them off"),
    "graphs callables": (1, "CUDA graphs cannot be captured", "switch them off"),
    "builds an extension": (1, "CUDA extension", "switch it off"),
    "imports flash_attn": (1, "imports 'flash_attn'", "scaled_dot_product_attention"),
    "imports triton": (1, "imports 'triton'", "GPU kernels"),
    "trains on the CPU": (1, "none of its tensors were on a CUDA device", "--device cuda"),
    "recurses": (1, "RecursionError"),
    "shapes differ": (1, "[3, 5] X [16, 4]", "may be the script's or advisor's", "--backend cpu"),
    "checks a made-up value": (1, "raised AssertionError: diverged", "made up"),
}
# All others end by themselves, long before the test gives them up: a script that waits after it was told to
# stop is left alone for five seconds.
TIMEOUT = {"swallows everything, never steps": "3s"}


class World:
    """A folder with all scripts, and what the command answers for each, asked once."""

    def __init__(self, folder: Path) -> None:
        self.shell = Shell(folder=folder)
        self._answers: dict[str, Answer] = {}
        code: Any
        for name, code in (HOPELESS | ODD).items():
            path = folder / self._file(name)
            path.write_bytes(code if isinstance(code, bytes) else code.encode())

    def answer(self, name: str) -> Answer:
        if name not in self._answers:
            within = TIMEOUT.get(name, "10m")
            self._answers[name] = self.shell.run("profile", self._file(name), "--timeout", within)
        return self._answers[name]

    @staticmethod
    def _file(name: str) -> str:
        return f"{name.replace(' ', '_')}.py"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    pytest.importorskip("torch")
    return World(tmp_path_factory.mktemp("bad"))


def test_every_hopeless_script_has_its_words():
    assert set(SAID) == set(HOPELESS)


@pytest.mark.parametrize("name", HOPELESS)
def test_a_hopeless_script_ends_with_a_plain_error(world, name):
    answer, (code, *words) = world.answer(name), SAID[name]
    assert answer.code == code, answer.err
    for word in words:
        assert word in answer.err
    # Of what only torch raised nobody knows whose fault it is.
    assert ("report" in answer.err) is (name == "shapes differ")
    # The script's own frames may be shown, ours never.
    assert "advisor/profile" not in answer.err
    assert "runpy" not in answer.err
    assert answer.out == ""


@pytest.mark.parametrize("name", ODD)
def test_an_odd_script_is_profiled(world, name):
    answer = world.answer(name)
    assert answer.code == 0, answer.err
    assert "Traceback" not in answer.err


def test_no_process_outlives_the_command(world):
    # A process of its own, whose end leaves nobody to be waited for.
    assert world.shell.run_process("profile", "leaves_a_process.py").code == 0
    pid = int((world.shell.folder / "outliving.txt").read_text())
    assert not is_running(pid)


def is_running(pid):
    """Whether a process does anything; one that ended and waits for init to notice does not."""
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return shown.stdout.strip()[:1] not in ("", "Z")


# --- Where the script is ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["my script.py", "тренировка ü.py", "no_suffix", "dots.in.name.py"])
def test_any_name_will_do(shell, name):
    shell.write(name, LOOP + TRAIN)
    answer = shell.run("profile", name, "--out", "trace.json.gz")
    assert answer.code == 0, answer.err


def test_a_link_is_followed_and_modules_are_found_beside_its_target(shell):
    shell.write("real/helper.py", "WHO = 1")
    shell.write("real/train.py", "import helper\n" + LOOP + TRAIN)
    (shell.folder / "link.py").symlink_to(shell.folder / "real" / "train.py")
    assert shell.run("profile", "link.py").code == 0


@pytest.mark.parametrize("with_init", [True, False])
def test_a_module_of_a_package_is_started_as_one(shell, with_init):
    if with_init:
        shell.write("pkg/__init__.py", "")
        shell.write("pkg/sub/__init__.py", "")
    shell.write("pkg/models.py", "from torch import nn\ndef net(): return nn.Linear(16, 4)")
    shell.write(
        "pkg/sub/train.py",
        "import sys\nfrom ..models import net\nfrom pkg.models import net as same\n"
        "assert net is same and __name__ == '__main__' and sys.argv[1:] == ['--lr', '1'], sys.argv\n"
        + LOOP
        + "model = net().to(device)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        + TRAIN,
    )
    answer = shell.run("profile", "pkg/sub/train.py", "--", "--lr", "1")
    assert answer.code == 0, answer.err


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("missing.py", ["no script at 'missing.py'", ".py file"]),
        ("folder", ["'folder' is a folder", ".py file"]),
        ("notes.ipynb", ["'notes.ipynb' is no Jupyter notebook"]),
        ("broken_link.py", ["no script at 'broken_link.py'"]),
        ("pipe.py", ["'pipe.py' is a pipe or a device"]),
        ("huge.py", ["'huge.py' is larger than 16 MiB"]),
    ],
)
def test_what_is_no_script_is_told_at_once(shell, name, words):
    (shell.folder / "folder").mkdir()
    shell.write("notes.ipynb", "{}")
    (shell.folder / "broken_link.py").symlink_to("nowhere.py")
    os.mkfifo(shell.folder / "pipe.py")
    with (shell.folder / "huge.py").open("wb") as file:
        file.truncate(2**40)
    assert_plain_error(shell.run("profile", name), 2, *words)


def test_a_torch_that_lacks_a_name_is_refused_by_name(shell, cold_children):
    # A module of the user's own site, as a stand-in for another version of torch.
    shell.write(
        "site/sitecustomize.py",
        "import sys\n"
        "if any('child.py' in argument for argument in sys.orig_argv):\n"
        "    import torch\n"
        "    del torch.amp.GradScaler._maybe_opt_step\n",
    )
    shell.write("train.py", LOOP + TRAIN)
    answer = shell.run_process("profile", "train.py", PYTHONPATH=str(shell.folder / "site"))
    assert_plain_error(
        answer, 2, "lacks torch.amp.GradScaler._maybe_opt_step", "'scaler'", "2.13", "docs/torch-versions.md"
    )
