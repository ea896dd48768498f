"""The script's pseudo-terminal: it has a size, nobody to ask, and no end that can stop advisor."""

import os
import signal
import sys
from pathlib import Path

import pytest

from advisor.profile.attempt import ChildEnding, PseudoTerminal, plain, run_child


def run(code: str, tmp_path, timeout_s: float = 20.0) -> ChildEnding:
    return run_child(
        [sys.executable, "-c", code],
        environment=dict(os.environ),
        progress_path=tmp_path / "progress.txt",
        timeout_s=timeout_s,
        progress=None,
    )


def test_a_script_may_ask_for_the_terminals_size(tmp_path):
    code = "import os; print(*os.get_terminal_size()); print(os.popen('stty size').read())"
    assert run(code, tmp_path).log.split() == ["80", "24", "24", "80"]


@pytest.mark.parametrize(
    "code",
    [
        "input('name? ')",
        "import readline; input('name? ')",
        "import getpass; getpass.getpass()",
        "import os; os.system('stty sane'); input()",
    ],
)
def test_a_question_is_answered_by_the_end_of_input(code, tmp_path):
    """A terminal that nobody types at would have waited until the timeout."""
    ending = run(code, tmp_path)
    assert ending.returncode == 1
    assert "EOFError" in ending.log


def test_a_wait_for_a_key_ends(tmp_path):
    ending = run("import os, tty; tty.setcbreak(0); print(os.read(0, 1), os.read(0, 1))", tmp_path)
    assert ending.log.split() == [r"b'\x04'", "b''"]


def test_output_without_end_takes_neither_disk_nor_memory_nor_longer(tmp_path):
    ending = run("while True: print('x' * 100_000)", tmp_path, timeout_s=1.0)
    assert ending.returncode is None
    assert len(ending.log) <= 64 * 1024
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_keeps_the_terminal_does_not_keep_advisor(tmp_path):
    code = """
import os, subprocess, sys
clean = {"PATH": os.environ["PATH"]}
loop = "for i in $(seq 600); do echo still here; sleep 1; done"
keeper = subprocess.Popen(["sh", "-c", loop], env=clean, start_new_session=True)
print("kept by", keeper.pid)
"""
    ending = run(code, tmp_path)
    assert ending.returncode == 0
    # Nobody waited for its end, and it did not outlive the run.
    with pytest.raises(ProcessLookupError):
        os.killpg(int(ending.log.split("kept by ")[1].split()[0]), signal.SIGKILL)


def test_a_script_that_closes_its_terminal_runs_on(tmp_path):
    code = "import os, time; os.closerange(0, 3); time.sleep(0.3); os._exit(5)"
    assert run(code, tmp_path).returncode == 5


def test_where_a_system_has_no_terminals_a_pipe_will_do(tmp_path, monkeypatch):
    def refuse() -> tuple[int, int]:
        raise OSError(2, "out of pty devices")

    monkeypatch.setattr(os, "openpty", refuse)
    ending = run("print('here'); input()", tmp_path)
    assert "here" in ending.log
    assert "EOFError" in ending.log


def test_no_descriptor_is_left(tmp_path):
    before = len(list(Path("/proc/self/fd").iterdir()))
    run("print(1)", tmp_path)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_colours_and_lines_that_were_written_over_are_left_out():
    bar = "\r 10%|#   |\r100%|####|\x1b[0m\n\x1b]0;owned\x07\x1b[31merror\x1b[0m\r\n"
    assert plain(bar) == "100%|####|\nerror\n"


def test_the_terminal_is_not_the_scripts_to_control(tmp_path):
    """``/dev/tty`` stays closed to questions."""
    assert "OSError" in run("open('/dev/tty')", tmp_path).log


def test_input_is_at_its_end_again_and_again():
    with PseudoTerminal() as terminal:
        assert [os.read(terminal.stdin, 10) for _ in range(3)] == [b"", b"", b""]
