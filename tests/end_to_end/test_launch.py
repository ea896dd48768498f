"""From the answer to the run: ``recommend --emit``, then ``advisor launch``, as a person types them."""

import os
import sys
from pathlib import Path

import pytest

from advisor.core.errors import InputError
from advisor.formats.trace_files import write_trace
from advisor.service.launching import packages_of
from tests.builders import make_trace
from tests.end_to_end.cli import Shell, assert_plain_error

MARKED = '# advisor launch: {"kind": "%s", "plan": "%s", "recommendation": null}\n'
PLAN = "local/1xL4"
SCRIPT = """
import torch
from torch.utils.data import DataLoader, TensorDataset
model = torch.nn.Linear(8, 8).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for (x,) in DataLoader(TensorDataset(torch.randn(64, 8)), batch_size=8):
    optimizer.zero_grad()
    model(x.cuda()).sum().backward()
    optimizer.step()
"""


@pytest.fixture
def shell(tmp_path):
    """A folder with a `sky` that notes what it was asked for."""
    shell = Shell(folder=tmp_path)
    program = shell.write("bin/sky", '#!/bin/sh\necho "$@" > asked; exit 5\n')
    program.chmod(0o755)
    return shell


def launch(shell: Shell, *words: str, path: str | None = None) -> tuple[int, str, str]:
    found = f"{shell.folder}/bin:{os.environ['PATH']}" if path is None else path
    answer = shell.run("launch", *words, PATH=found)
    return answer.code, answer.out, answer.err


def test_a_script_becomes_a_file_that_starts(shell):
    shell.write("train.py", SCRIPT)
    asked = ("recommend", "train.py", "--epochs", "9", "--offline", "--provider", "aws", "--gpu", "L4:1")
    file = shell.run(*asked, "--emit", "skypilot", "--", "--token", "hunter22")
    assert file.code == 0, file.err
    assert "hunter22" not in file.out
    assert "pip install torch==" in file.out
    shell.write("job.yaml", file.out)
    code, out, _ = launch(shell, "job.yaml", "--dry-run")
    assert (code, "$ sky launch --yes --down job.yaml" in out) == (0, True)
    assert not (shell.folder / "asked").exists()
    code, out, err = launch(shell, "job.yaml", "--yes")
    # The tool's own exit code, and a receipt of where it went.
    assert code == 5
    assert (shell.folder / "asked").read_text() == "launch --yes --down job.yaml\n"
    assert "recorded   as" in err
    (run,) = shell.run("run", "list", "--json").document["runs"]
    assert (run["provider"], run["gpu"], run["status"]) == ("aws", "L4", "failed")


def test_nobody_who_does_not_say_yes_starts_anything(shell):
    shell.write("job.sky.yaml", MARKED % ("skypilot", PLAN) + "run: true\n")
    code, _, err = launch(shell, "job.sky.yaml")
    assert code == 1
    assert "Traceback" not in err
    assert not (shell.folder / "asked").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, ("cannot read", "job")),
        ("run: true\n", ("no file that advisor can start", "--emit KIND")),
        (MARKED % ("skypilto", PLAN), ("no tool is called 'skypilto'", "skypilot")),
        ("# advisor launch: {broken\n", ("was changed", "write the file again")),
        (MARKED % ("kubernetes", PLAN) + "image: IMAGE\n", ("names no image yet",)),
        ("\udcff", ("cannot read",)),
    ],
)
def test_what_cannot_be_started_is_one_clear_line(text, words, shell):
    if text is not None:
        (shell.folder / "job").write_bytes(text.encode(errors="surrogateescape"))
    shell.write("bin/kubectl", "#!/bin/sh\n").chmod(0o755)
    answer = shell.run("launch", "job", "--yes", PATH=f"{shell.folder}/bin:{os.environ['PATH']}")
    assert_plain_error(answer, 2, *words)


def test_a_tool_that_is_not_here_is_named(shell):
    shell.write("job", MARKED % ("skypilot", PLAN))
    assert_plain_error(shell.run("launch", "job", "--yes", PATH="/usr/bin:/bin"), 2, "'sky'", "not installed")


def test_a_command_file_runs_here_and_its_exit_code_is_ours(shell):
    shell.write("job.sh", "#!/bin/sh\n" + MARKED % ("command", PLAN) + "exit 7\n")
    assert launch(shell, "job.sh", "--yes")[0] == 7


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--emit", "sbtach"), ("--emit must be one of", "sbatch")),
        (("--emit", "command", "--patch", "--what-if", "bf16"), ("--emit prints a file alone",)),
        (("--emit", "command", "--plot"), ("--emit prints a file alone",)),
    ],
)
def test_questions_that_contradict_each_other(options, words, shell):
    shell.write("train.py", "")
    assert_plain_error(shell.run("recommend", "train.py", "--epochs", "1", *options), 2, *words)


def test_packages_are_those_that_the_script_imports(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        "import numpy.linalg, os\nfrom yaml import safe_load\nfrom . import mine\nimport nowhere\n"
    )
    found = packages_of(script, Path(sys.executable))
    assert {name.lower() for name in found} == {"numpy", "pyyaml"}
    assert all(version[0].isdigit() for version in found.values())


@pytest.mark.parametrize(
    ("text", "python", "words"),
    [("def", sys.executable, "cannot be read"), ("", "/no/such/python", "does not tell")],
)
def test_versions_that_cannot_be_told(text, python, words, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(text)
    with pytest.raises(InputError, match=words):
        packages_of(script, Path(python))


def test_a_saved_trace_cannot_be_started(shell):
    write_trace(make_trace(), shell.folder / "t.json.gz")
    asked = ("recommend", "t.json.gz", "--epochs", "1", "--offline", "--emit", "command")
    assert_plain_error(shell.run(*asked), 2, "a saved trace cannot be started")
