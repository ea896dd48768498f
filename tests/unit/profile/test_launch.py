"""A child process, from its start to the end of all that it left running."""

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from advisor.core.errors import InputError
from advisor.profile.attempt import MARK, end_leftovers, new_mark, run_child
from tests.waiting import wait_for, wait_for_end


def run(code, tmp_path, timeout_s=60.0, progress=None, command=None):
    return run_child(
        command or [sys.executable, "-c", code],
        environment=dict(os.environ),
        progress_path=tmp_path / "progress.txt",
        timeout_s=timeout_s,
        progress=progress,
    )


def test_output_and_exit_code(tmp_path):
    ending = run("import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)", tmp_path)
    assert (ending.returncode, sorted(ending.log.split())) == (7, ["err", "out"])


def test_no_input_to_wait_for(tmp_path):
    assert run("import sys; sys.exit(len(sys.stdin.read()))", tmp_path).returncode == 0


def test_timeout_ends_the_whole_group(tmp_path):
    # A shell is there at once, where an interpreter may take longer to start than the time it has.
    script = f"sleep 600 & echo $! > {tmp_path / 'pid'}; wait"
    assert run("", tmp_path, command=["sh", "-c", script], timeout_s=5.0).returncode is None
    wait_for_end((tmp_path / "pid").read_text().strip())


def test_what_a_finished_script_left_behind_is_ended(tmp_path):
    code = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
open({str(tmp_path / "pid")!r}, "w").write(str(child.pid))
"""
    assert run(code, tmp_path).returncode == 0
    wait_for_end((tmp_path / "pid").read_text().strip())


def test_progress_is_passed_on(tmp_path):
    """While the script runs: it writes the second line only when the first has arrived."""
    lines = []
    code = f"""
import os, time
for line in ("one", "two"):
    open({str(tmp_path / "progress.txt")!r}, "a").write(line + "\\n")
    while line == "one" and not os.path.exists({str(tmp_path / "one")!r}):
        time.sleep(0.01)
"""

    def arrive(line):
        lines.append(line)
        (tmp_path / line).touch()

    run(code, tmp_path, progress=arrive)
    assert lines == ["one", "two"]


def test_the_log_keeps_its_end(tmp_path):
    log = run("print('x' * 200_000); print('the end')", tmp_path).log
    assert len(log) <= 64 * 1024
    assert log.endswith("the end\n")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_the_script_dies_with_advisor_although_another_process_is_between(tmp_path):
    script = f"import os, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    child = Path(run_child.__code__.co_filename).parents[1] / "payload" / "child.py"
    tied = f"exec(open({str(child)!r}).read().partition('def main')[0]); die_with_the_parent()\n{script}"
    advisor = f"""
import os, sys
from pathlib import Path
from advisor.profile.attempt import run_child
run_child([sys.executable, "-c", {tied!r}], environment=dict(os.environ), progress_path=Path("p"),
          timeout_s=60, progress=None)
"""
    with subprocess.Popen([sys.executable, "-c", advisor], cwd=tmp_path) as process:
        wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
        process.kill()
    wait_for_end((tmp_path / "pid").read_text().strip())


# All of a script's processes share a lock of the file; it is free when none is left.
LEAVES = """
import ctypes, fcntl, os, time
lock = open({lock!r}, "w")
fcntl.flock(lock, fcntl.LOCK_EX)
if os.fork() == 0:
    os.setsid()
    {then}
time.sleep({wait})
"""
LEFT = {
    # Nobody but root reads its environment, then.
    "undumpable": "ctypes.CDLL(None).prctl(4, 0); time.sleep(600)",
    "without a mark": "os.execve('/bin/sleep', ['sleep', '600'], {})",
    "child of a child": "os.fork() or time.sleep(600)",
    # Each lives for a moment; a search for all of them finds none.
    "relay": "while True: os.fork() and os._exit(0); os.setsid()",
}
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


def leaves(then, tmp_path, wait):
    code = LEAVES.format(lock=str(tmp_path / "lock"), then=then, wait=wait)
    return code.replace('"w")', '"w"); os.set_inheritable(lock.fileno(), True)')


def is_free(lock, within_s=30.0):
    deadline = time.monotonic() + within_s
    with lock.open() as file:
        while time.monotonic() < deadline:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            time.sleep(0.02)
    return False


@on_linux
@pytest.mark.parametrize("wait", [0.3, 600.0], ids=["ended well", "at the timeout"])
def test_no_process_is_left_whatever_it_does_to_hide(wait, tmp_path):
    """Was: an undumpable process, a relay, and one that had cleared its environment lived on."""
    folders = [tmp_path / name for name in LEFT]
    for folder in folders:
        folder.mkdir()

    def ended(then, folder):
        return run(leaves(then, folder, wait), folder, timeout_s=8.0 if wait > 1 else 30.0).returncode

    # All at once: they wait for nothing but time.
    with ThreadPoolExecutor() as pool:
        codes = [*pool.map(ended, LEFT.values(), folders)]
    assert codes == [None if wait > 1 else 0] * len(LEFT)
    assert [folder for folder in folders if not is_free(folder / "lock")] == []


@on_linux
@pytest.mark.parametrize("then", LEFT.values(), ids=LEFT)
def test_nor_if_advisor_is_killed(then, tmp_path):
    """Was: nothing was left to end what the script had started."""
    advisor = f"""
import os, sys
from pathlib import Path
from advisor.profile.attempt import run_child
run_child([sys.executable, "-c", {leaves(then, tmp_path, 600.0)!r}], environment=dict(os.environ),
          progress_path=Path("progress"), timeout_s=60, progress=None)
"""
    (tmp_path / "lock").touch()
    with subprocess.Popen([sys.executable, "-c", advisor], cwd=tmp_path) as process:
        wait_for(lambda: not is_free(tmp_path / "lock", within_s=0.1))
        process.kill()
    assert is_free(tmp_path / "lock")


@on_linux
def test_a_crash_leaves_no_core_file(tmp_path):
    """Was: in the working folder, where the limit of the user allows it."""
    code = "import resource; print(resource.getrlimit(resource.RLIMIT_CORE)[1] in (0, 1))"
    assert run(code, tmp_path).log.strip() == "True"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGPIPE])
def test_the_signal_that_ended_it_is_known(number, tmp_path):
    # Python ignores SIGPIPE.
    code = f"""
import contextlib, os, signal
with contextlib.suppress(OSError):
    signal.signal({int(number)}, signal.SIG_DFL)
os.kill(os.getpid(), {int(number)})
"""
    assert run(code, tmp_path).returncode == -number


def test_an_interpreter_that_does_not_start(tmp_path):
    broken = tmp_path / "python"
    broken.write_text("no program")
    broken.chmod(0o755)
    with pytest.raises(InputError, match=r"cannot start the Python interpreter .*`profile\.python`"):
        run("", tmp_path, command=[broken])


def sleeper(environment):
    return subprocess.Popen(
        [sys.executable, "-c", "print(flush=True); import time; time.sleep(60)"],
        env=environment,
        start_new_session=True,
        stdout=subprocess.PIPE,
    )


@on_linux
def test_a_marked_process_in_a_session_of_its_own_is_ended_and_no_other():
    mark = new_mark()
    marked, other = sleeper(mark), sleeper(new_mark())
    try:
        for process in (marked, other):
            process.stdout.readline()
        assert end_leftovers(mark) == [marked.pid]
        assert marked.wait(timeout=60) == -signal.SIGKILL
        assert other.poll() is None
    finally:
        other.kill()
        for process in (marked, other):
            process.communicate()


@on_linux
def test_nobody_has_a_new_mark():
    assert new_mark() != new_mark()
    assert end_leftovers(new_mark()) == []
    assert MARK not in os.environ
