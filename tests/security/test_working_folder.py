"""A folder that one stands in may be anybody's: no module and no program of it runs.

It has a module of every name of the standard library and of what advisor imports, and programs of the names
that it starts. Each leaves a marker.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from advisor.core import processes
from advisor.core.devices import detect_devices
from advisor.profile.environment import candidates
from advisor.profile.sandbox import can_read, change_of_user, check_sandbox
from advisor.service import health
from advisor.service.schedule.child_commands import Command, run_command
from tests.machine import needs
from tests.programs import write_program
from tests.schedules import make_schedule

NAMES = (
    "advisor", "recommender", "numpy", "pydantic", "rich", "sqlalchemy", "torch", "typer",
    "typing_extensions", "yaml", "sitecustomize", "usercustomize", "triton", "sympy", "entry", "launcher",
)  # fmt: skip
PROGRAMS = ("bwrap", "git", "nvidia-smi", "python", "python3", "setpriv", "sh", "true")
CONSOLE_SCRIPT = Path(sys.executable).with_name("advisor")


@pytest.fixture
def marker(tmp_path):
    return tmp_path / "marker"


@pytest.fixture
def folder(tmp_path, marker, monkeypatch):
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in {*sys.stdlib_module_names, *NAMES}:
        (folder / f"{name}.py").write_text(f"open({str(marker)!r}, 'a').write({name!r})\nraise SystemExit")
    for name in PROGRAMS:
        write_program(folder / name, f"#!/bin/bash\necho {name} >> {marker}\n")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PATH", f".::{os.environ['PATH']}:")
    return folder


@pytest.fixture(autouse=True)
def nothing_of_it_ran(marker):
    yield
    assert not marker.exists(), marker.read_text()


def test_the_folder_is_hostile(folder, marker):
    subprocess.run([sys.executable, "-c", "import csv"], check=True)
    subprocess.run(["true"], check=True)
    assert marker.read_text() == "csvtrue\n"
    marker.unlink()


@pytest.mark.skipif(not CONSOLE_SCRIPT.is_file(), reason="needs advisor to be installed")
@pytest.mark.parametrize("words", ["doctor", "gpus", "prices"])
def test_commands(folder, words):
    done = subprocess.run([CONSOLE_SCRIPT, *words.split()], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


def test_doctor_asks_an_interpreter_for_its_torch(folder):
    """Was ``python -c``, which imports from the working folder first."""
    version = health._torch_version(Path(sys.executable))
    assert (version is None) == (importlib.util.find_spec("torch") is None)


def test_doctor_finds_a_torch_that_a_script_finds(folder, tmp_path, monkeypatch):
    (tmp_path / "packages" / "torch-9.9.dist-info").mkdir(parents=True)
    (tmp_path / "packages" / "torch-9.9.dist-info" / "METADATA").write_text("Name: torch\nVersion: 9.9\n")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'packages'}::.")
    assert health._torch_version(Path(sys.executable)) == "9.9"


def test_an_interpreter_that_is_named(folder):
    assert candidates(Path(sys.executable), {}) == [Path(sys.executable)]


def test_a_scheduled_command(folder):
    """Was ``python -m advisor``, which imports from the command's folder first."""
    done = run_command(Command(words=["--version"], folder=str(folder), key="k", timeout_s=60), lambda: True)
    assert done.exit_code == 0
    assert done.output.count(".") == 2


def test_a_scheduled_command_reads_pythonpath_as_its_service_does(folder, tmp_path, monkeypatch):
    """Relative entries meant the command's folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "::lib")
    done = run_command(Command(words=["--version"], folder=str(folder), key="k", timeout_s=60), lambda: True)
    assert done.exit_code == 0
    assert processes.search_path(os.environ) == {"PYTHONPATH": f"{tmp_path}:{tmp_path}:{tmp_path}/lib"}


def test_exported_schedules(folder):
    from advisor.schedule.exports import crontab

    (file,) = crontab([make_schedule(command=("--version",), folder=str(folder))], processes.ADVISOR)
    (line,) = [line for line in file.text.splitlines() if " -m advisor" in line]
    assert f"{sys.executable} -P -m advisor" in line


def test_programs_of_the_machine(folder, monkeypatch):
    """Was taken from the folder where PATH has an empty or relative entry."""
    detect_devices()
    change_of_user()
    found = processes.program("true")
    assert found is not None
    assert Path(found).is_absolute()
    assert not Path(found).is_relative_to(folder)
    monkeypatch.setenv("PATH", ".::bin:")
    assert processes.program("true") is None
    with pytest.raises(FileNotFoundError):
        processes.run(["true"], timeout_s=60)
    with pytest.raises(FileNotFoundError):
        processes.start(["true"])


@needs("bubblewrap")
def test_the_sandbox(folder):
    check_sandbox()


def test_the_trial_whether_nobody_can_read(folder, tmp_path):
    """Was ``python -c``."""
    assert can_read([sys.executable], [tmp_path], {"TMPDIR": str(tmp_path)})


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
def test_a_script_of_elsewhere(folder, tmp_path):
    """Nothing of the working folder is imported, nor of the script's own before the script does."""
    home = tmp_path / "home"
    home.mkdir()
    for name in ("csv", "sitecustomize", "json", "typing_extensions", "sympy"):
        (home / f"{name}.py").write_text((folder / f"{name}.py").read_text())
    (home / "own.py").write_text("WIDTH = 8")
    script = home / "train.py"
    script.write_text("import own, os\nprint('width', own.WIDTH)\nos._exit(3)\n")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "advisor", "profile", script], capture_output=True, text=True
    )
    assert "width 8" in done.stderr
