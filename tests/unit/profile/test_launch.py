import os
import sys
import time
from pathlib import Path

import pytest

from advisor.errors import InputError
from advisor.profile.launch import run_child


def run(code, tmp_path, timeout_s=20.0, progress=None, command=None):
    return run_child(
        command or [sys.executable, "-c", code],
        environment=dict(os.environ),
        progress_path=tmp_path / "progress.txt",
        timeout_s=timeout_s,
        progress=progress,
    )


def ends(pid_file, within_s=5.0):
    """Whether the process is gone, or dead and waiting for init to collect it."""
    status = Path("/proc") / pid_file.read_text() / "stat"
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        try:
            if status.read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.02)
    return False


def test_output_and_exit_code(tmp_path):
    ending = run("import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)", tmp_path)
    assert (ending.returncode, sorted(ending.log.split())) == (7, ["err", "out"])


def test_no_input_to_wait_for(tmp_path):
    assert run("import sys; sys.exit(len(sys.stdin.read()))", tmp_path).returncode == 0


def test_timeout_ends_the_whole_group(tmp_path):
    code = f"""
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
open({str(tmp_path / "pid")!r}, "w").write(str(child.pid))
time.sleep(60)
"""
    begin = time.monotonic()
    assert run(code, tmp_path, timeout_s=1.0).returncode is None
    assert time.monotonic() - begin < 10
    assert ends(tmp_path / "pid")


def test_what_a_finished_script_left_behind_is_ended(tmp_path):
    code = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
open({str(tmp_path / "pid")!r}, "w").write(str(child.pid))
"""
    assert run(code, tmp_path).returncode == 0
    assert ends(tmp_path / "pid")


def test_progress_is_passed_on(tmp_path):
    lines = []
    code = f"""
import time
for line in ("one", "two"):
    open({str(tmp_path / "progress.txt")!r}, "a").write(line + "\\n")
    time.sleep(0.3)
"""
    run(code, tmp_path, progress=lines.append)
    assert lines == ["one", "two"]


def test_the_log_keeps_its_end(tmp_path):
    log = run("print('x' * 200_000); print('the end')", tmp_path).log
    assert len(log) <= 64 * 1024
    assert log.endswith("the end\n")


def test_an_interpreter_that_does_not_start(tmp_path):
    broken = tmp_path / "python"
    broken.write_text("no program")
    broken.chmod(0o755)
    with pytest.raises(InputError, match=r"cannot start the Python interpreter .*--python"):
        run("", tmp_path, command=[broken])
