"""The script in a command, for each launcher as people type it."""

import json
import os
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.cli.launch_lines import code_cells, is_launch_line, notebook_script, read_launch_line
from advisor.core.errors import InputError


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    """A folder with a package, which one stands in."""
    for name in ("pkg/train.py", "pkg/__main__.py", "src/inner/train.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("N", raising=False)
    return tmp_path


LINES = {
    "python train.py --lr 1": ("train.py", "--lr 1", None),
    "python3.11 -u -X dev train.py": ("train.py", "", None),
    "python -m pkg.train --lr 1": ("pkg/train.py", "--lr 1", None),
    "python -m pkg": ("pkg/__main__.py", "", None),
    "python -m inner.train": ("src/inner/train.py", "", None),
    "torchrun --nproc-per-node 8 train.py --nnodes 3": ("train.py", "--nnodes 3", 8),
    "torchrun --nproc_per_node=4 --nnodes=1:2 -m pkg.train": ("pkg/train.py", "", 8),
    "torchrun --standalone --nproc-per-node=gpu train.py": ("train.py", "", None),
    "python -m torch.distributed.run --nproc_per_node 2 train.py": ("train.py", "", 2),
    "accelerate launch --num_processes 8 --num_machines 2 train.py a": ("train.py", "a", 8),
    "deepspeed --num_gpus 8 --num_nodes 2 train.py --x": ("train.py", "--local_rank=0 --x", 16),
    "deepspeed --no_local_rank train.py": ("train.py", "", None),
    "uv run --with timm python train.py --nproc-per-node 3": ("train.py", "--nproc-per-node 3", None),
    "uv run train.py": ("train.py", "", None),
    "poetry run torchrun --nproc-per-node 2 train.py": ("train.py", "", 2),
    "nohup nice -n 5 python train.py": ("train.py", "", None),
    "mpirun -np 4 python train.py": ("train.py", "", 4),
    "srun --gpus 4 python -u nested/train.py": ("nested/train.py", "", None),
}


@pytest.mark.parametrize("words", LINES)
def test_each_launcher(words):
    line = read_launch_line(shlex.split(words))
    assert (str(line.script), " ".join(line.arguments), line.world_size) == LINES[words]
    assert is_launch_line(words.split()[0])


def test_variables_and_the_interpreter():
    line = read_launch_line(shlex.split("env SEED=3 NAME='a b' .venv/bin/python train.py A=1"))
    assert (line.variables, line.python, line.arguments) == (
        {"SEED": "3", "NAME": "a b"}, ".venv/bin/python", ("A=1",),
    )  # fmt: skip


def test_accelerates_precision_reaches_the_script():
    line = read_launch_line(["accelerate", "launch", "--mixed_precision", "bf16", "train.py"])
    assert line.variables == {"ACCELERATE_MIXED_PRECISION": "bf16"}


@pytest.mark.parametrize("option", ["--use_fsdp", "--config_file=a.yaml", "--use_deepspeed"])
def test_settings_that_only_accelerate_hands_on_are_refused(option):
    with pytest.raises(InputError, match=rf"^{option} of accelerate changes the training"):
        read_launch_line(["accelerate", "launch", option, "train.py"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("torchrun --nproc-per-node 8", "no Python script is in the command 'torchrun"),
        ("python -c 'import this'", "has no script to profile"),
        ("bash -lc 'python train.py'", "`bash -lc` hides its command: give that alone"),
        ("python -m no.such", "there is no module 'no.such' here"),
        ("bash missing.sh", "cannot read 'missing.sh': No such file"),
    ],
)
def test_what_is_no_command_of_a_script(words, message):
    with pytest.raises(InputError, match=message):
        read_launch_line(shlex.split(words))


@given(st.lists(st.text(alphabet="ab-= $.", min_size=1, max_size=5), max_size=6))
def test_arguments_stay_as_they_are(arguments):
    assert read_launch_line(["python", "train.py", *arguments]).arguments == tuple(arguments)


def shell(project: Path, *lines: str) -> Path:
    path = project / "run.sh"
    path.write_text("#!/bin/bash\n" + "\n".join(lines) + "\n")
    return path


def test_a_shell_script(project):
    path = shell(
        project, "# python other.py", "set -euo pipefail", "export LR=0.1 # rate", 'OUT="$LR/x"', "mkdir o",
        "torchrun --nproc_per_node ${N:-4} \\", '  -m pkg.train --lr $LR --out "$OUT" "$@"', "echo done",
    )  # fmt: skip
    line = read_launch_line(["bash", str(path), "--more", "a b"])
    assert (str(line.script), line.world_size) == ("pkg/train.py", 4)
    assert line.arguments == ("--lr", "0.1", "--out", "0.1/x", "--more", "a b")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (("echo hello",), "starts no Python scripts. Give one command after --"),
        (("python a.py", "python b.py"), r"starts 2 Python scripts(.|\n)*\n  python a.py\n  python b.py"),
        (("python train.py --n $(nproc)",), r"'\$\(nproc\)' in .* is not known before it runs"),
        (("python train.py --n $UNSET_HERE",), r"'\$UNSET_HERE' in .* is not known"),
        (("bash run.sh",), "starts no Python scripts"),
    ],
)
def test_a_shell_script_that_only_a_shell_can_tell(project, lines, message):
    path = shell(project, *lines)
    if "$(" in lines[0]:
        message = "is not known before it runs"
    with pytest.raises(InputError, match=message):
        read_launch_line([str(path)])


def notebook(path: Path, *sources: str) -> Path:
    cells = [{"cell_type": "code", "source": source.splitlines(keepends=True)} for source in sources]
    path.write_text(json.dumps({"cells": [{"cell_type": "markdown", "source": ["# x"]}, *cells]}))
    return path


def test_a_notebook_is_its_code(tmp_path):
    path = notebook(
        tmp_path / "train.ipynb", "!pip install x\n%matplotlib inline\nx = 7 % 4", "%%time\ny = 1",
        "%%bash\nrm -r x", "if x:\n    %time\n    z = x", "x?",
    )  # fmt: skip
    with notebook_script(path) as script:
        known: dict[str, object] = {}
        exec(script.read_text(), known)  # noqa: S102 - the test's own code
        assert (known["x"], known["y"], known["z"], script.name) == (3, 1, 3, "train.py")
    assert not script.exists()


@pytest.mark.parametrize("text", ["{}", "[", '{"cells": [{}]}', '{"cells": []}'])
def test_what_is_no_notebook(tmp_path, text):
    path = tmp_path / "a.ipynb"
    path.write_text(text)
    with pytest.raises(InputError, match=r"no Jupyter notebook|no cells with Python code"):
        code_cells(path)


@pytest.mark.parametrize("name", ["run.sh", "train.ipynb"])
def test_a_pipe_is_not_waited_for(project, name):
    os.mkfifo(project / name)
    with pytest.raises(InputError, match="it is a pipe or a device"):
        read_launch_line([name]) if name.endswith(".sh") else code_cells(project / name)
