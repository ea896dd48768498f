"""From the answer to the run: ``recommend --emit``, then ``advisor launch``, as a person types them."""

import json
import os
import sys
from pathlib import Path

import pytest

from advisor.core.errors import InputError
from advisor.formats.trace_files import write_trace
from advisor.service.launching import packages_of
from tests.builders import make_trace
from tests.end_to_end.cli import Shell, assert_plain_error
from tests.programs import write_program

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
    write_program(tmp_path / "bin/sky", 'echo "$@" > asked; exit 5')
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
    # Without the tool, too; and all of the file, which is what a yes agrees to.
    code, out, _ = launch(shell, "job.yaml", "--dry-run", path="/usr/bin:/bin")
    assert (code, out) == (0, f"{file.out}$ sky launch --yes --down job.yaml\n")
    assert not (shell.folder / "asked").exists()
    code, out, err = launch(shell, "job.yaml", "--yes")
    # The tool's own exit code, and a receipt of where it went.
    assert code == 5
    assert (shell.folder / "asked").read_text() == "launch --yes --down job.yaml\n"
    assert "recorded   as" in err
    (run,) = shell.run("run", "list", "--json").document["runs"]
    assert (run["provider"], run["gpu"], run["status"]) == ("aws", "L4", "failed")


def test_slurm_is_asked_for_the_walltime_of_the_settings_if_it_has_room_for_the_grace(shell):
    shell.write("train.py", SCRIPT)
    lab = "{name: lab, gpu: L4, num_gpus: 1, usd_per_gpu_h: 0, walltime: 5h}"
    # A cluster has several kinds of nodes under one name.
    other = lab.replace("L4", "L40S").replace("5h", "7d")
    shell.write(".config/advisor/config.yaml", f"clusters: [{lab}, {other}]\nrun: {{grace: 6h}}\n")
    asked = ("recommend", "train.py", "--epochs", "9", "--offline", "--gpu", "L4:1", "--emit", "sbatch")
    file = shell.run(*asked, "--explain", "cluster/lab/1xL4")
    assert "#SBATCH --time=6:13:00\n" in file.out, file.err
    assert "instead of 5 h" in file.out


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
        (MARKED % ("skypilto", PLAN), ("no tool is called 'skypilto'", "skypilot, dstack, kubernetes,")),
        ("# advisor launch: {broken\n", ("was changed", "write the file again")),
        (MARKED % ("kubernetes", PLAN) + "image: IMAGE\n", ("names no image yet",)),
        ("\udcff", ("cannot read",)),
    ],
)
def test_what_cannot_be_started_is_one_clear_line(text, words, shell):
    if text is not None:
        (shell.folder / "job").write_bytes(text.encode(errors="surrogateescape"))
    write_program(shell.folder / "bin/kubectl", "")
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
        "import numpy.linalg, os, beside\nfrom yaml import safe_load\nfrom . import mine\nimport nowhere\n"
    )
    (tmp_path / "beside.py").write_text("")
    found, not_packaged = packages_of(script, Path(sys.executable))
    names = dict(one.split("==") for one in found)
    assert {name.lower() for name in names} == {"numpy", "pyyaml"}
    assert all(version[0].isdigit() for version in names.values())
    assert not_packaged == ("nowhere",)


DIRECT = {
    "indexed": None,
    "editable": {"url": "file:///home/me/editable", "dir_info": {"editable": True}},
    "wheel": {"url": "file:///tmp/wheel.whl", "archive_info": {}},
    "archive": {"url": "https://files.test/archive.tar.gz", "archive_info": {}},
    "branch": {
        "url": "https://git.test/me/branch.git",
        "vcs_info": {"vcs": "git", "commit_id": "c0ffee", "requested_revision": "main"},
        "subdirectory": "python",
    },
}


def test_where_a_package_came_from_is_where_it_is_installed_from(tmp_path, monkeypatch):
    """By what pip wrote beside it (PEP 610)."""
    site = tmp_path / "site"
    for name, direct in DIRECT.items():
        info = site / f"{name}-1.5.dist-info"
        info.mkdir(parents=True)
        (site / f"{name}.py").write_text("")
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5+cu12\n")
        (info / "top_level.txt").write_text(f"{name}\n")
        if direct is not None:
            (info / "direct_url.json").write_text(json.dumps(direct))
    monkeypatch.setenv("PYTHONPATH", str(site))
    script = tmp_path / "train.py"
    script.write_text("".join(f"import {name}\n" for name in DIRECT))
    found, not_packaged = packages_of(script, Path(sys.executable))
    assert found == (
        "archive @ https://files.test/archive.tar.gz",
        "branch @ git+https://git.test/me/branch.git@c0ffee#subdirectory=python",
        "indexed==1.5",
    )
    assert not_packaged == ("editable", "wheel")


@pytest.mark.parametrize("path", ["", ":", ".:", "src"])
def test_the_working_folder_is_not_imported_from(path, tmp_path, monkeypatch):
    """An empty entry of PYTHONPATH means it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", path)
    for folder in (tmp_path, tmp_path / "src"):
        folder.mkdir(exist_ok=True)
        (folder / "json.py").write_text("open('ran', 'w')")
    (tmp_path / "train.py").write_text("import yaml")
    packages_of(tmp_path / "train.py", Path(sys.executable))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("text", "python", "words"),
    [("def", sys.executable, "cannot be read"), ("", "/no/such/python", "does not tell")],
)
def test_versions_that_cannot_be_told(text, python, words, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(text)
    with pytest.raises(InputError, match=words):
        packages_of(script, Path(python))


def test_an_answer_that_cannot_be_shown_as_asked_is_refused_and_recorded(shell):
    write_trace(make_trace(), shell.folder / "t.json.gz")
    command = ("recommend", "t.json.gz", "--epochs", "1", "--offline", "--record")
    answer = shell.run(*command, "--explain", "no/such/plan/here")
    assert_plain_error(answer, 2, "no/such")
    assert "Recorded as " in answer.out + answer.err
    assert shell.run("run", "--no-metadata", "--recommendation", "last", "--", "true").code == 0


def test_what_cannot_be_started_is_refused_before_anything_is_asked(shell):
    write_trace(make_trace(), shell.folder / "t.json.gz")
    answer = shell.run("recommend", "t.json.gz", "--epochs", "1", "--record", "--emit", "command")
    assert_plain_error(answer, 2, "a saved trace cannot be started")
    assert "Recorded as " not in answer.out + answer.err
