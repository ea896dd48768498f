"""Commands as processes of their own: advisor itself, or a small program in its place."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from advisor.service.schedule import child_commands
from advisor.service.schedule.child_commands import MOST_KEPT_BYTES, Command, Ending, run_command
from tests.waiting import wait_for_end


@pytest.fixture
def in_its_place(monkeypatch):
    """Python code that runs where advisor would."""

    real = subprocess.Popen

    def put(code: str) -> None:
        def start(words: list[str], **more: Any) -> Any:
            assert words[:4] == [sys.executable, "-P", "-m", "advisor"]
            return real([sys.executable, "-c", code, *words[4:]], **more)

        monkeypatch.setattr("advisor.core.processes.subprocess.Popen", start)

    return put


def command(folder: Path, *words: str, timeout_s: float = 60) -> Command:
    return Command(words=words, folder=str(folder), key="5f@2026", timeout_s=timeout_s)


def always() -> bool:
    return True


def test_advisor_runs_in_its_folder(tmp_path):
    done = run_command(command(tmp_path, "--version"), always)
    assert (done.ending, done.exit_code) == (Ending.BY_ITSELF, 0)
    assert done.output_sha256 == hashlib.sha256(f"{done.output}\n".encode()).hexdigest()


def test_words_folder_key_and_streams(tmp_path, in_its_place):
    in_its_place(
        "import json, os, sys; key = os.environ['ADVISOR_DELIVERY_KEY'];"
        " print(json.dumps([sys.argv[1:], os.getcwd(), key, sys.stdin.read()]));"
        " print('warning: w', file=sys.stderr); sys.exit(4)"
    )
    done = run_command(command(tmp_path, "recommend", "a b", "--", "$x"), always)
    first, second = done.output.splitlines()
    assert json.loads(first) == [["recommend", "a b", "--", "$x"], str(tmp_path), "5f@2026", ""]
    assert (second, done.exit_code, done.recommended) == ("warning: w", 4, None)


def test_what_it_recommends_is_read_from_its_answer(tmp_path, in_its_place):
    write = "import os; open(os.environ['ADVISOR_ANSWER_FILE'], 'w').write({!r})"
    in_its_place(write.format('{"recommended": "aws/x"}'))
    assert run_command(command(tmp_path), always).recommended == "aws/x"
    for answer in ('{"recommended": null}', '{"recommended": 7}', "[]", "{", "\x00"):
        in_its_place(write.format(answer))
        assert run_command(command(tmp_path), always).recommended is None


def test_what_it_could_not_send_is_read_from_its_answer(tmp_path, in_its_place):
    outcomes = {"a": "sent", "b": "busy", "c": "failed", "d": "perhaps", "e": "sent-before"}
    deliveries = [
        {"channel": name, "outcome": outcome, "error": "says 550" if name == "c" else None}
        for name, outcome in outcomes.items()
    ]
    answer = json.dumps({"deliveries": deliveries})
    in_its_place(f"import os; open(os.environ['ADVISOR_ANSWER_FILE'], 'w').write({answer!r})")
    assert run_command(command(tmp_path), always).undelivered == "b: busy; c: says 550"


def test_secrets_are_not_kept_and_a_long_output_loses_its_middle(tmp_path, in_its_place):
    in_its_place("print('begin password=hunter22'); [print(f'line {n}') for n in range(30000)]; print('end')")
    done = run_command(command(tmp_path), always)
    lines = done.output.splitlines()
    assert (lines[0], lines[-1]) == ("begin password=***", "end")
    assert len(done.output) < MOST_KEPT_BYTES + 200
    assert sum("bytes are left out" in line for line in lines) == 1
    whole = "begin password=hunter22\n" + "".join(f"line {n}\n" for n in range(30000)) + "end\n"
    assert done.output_sha256 == hashlib.sha256(whole.encode()).hexdigest()


def test_a_command_that_must_end_ends_with_its_children(tmp_path, in_its_place, monkeypatch):
    monkeypatch.setattr(child_commands, "_POLL_S", 0.05)
    in_its_place(
        "import os, subprocess, sys, time; print('begun', flush=True);"
        " inner = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']);"
        " open('new', 'w').write(str(inner.pid)); os.replace('new', 'pid'); inner.wait()"
    )
    done = run_command(command(tmp_path), lambda: not (tmp_path / "pid").exists())
    assert (done.ending, done.exit_code, done.output) == (Ending.STOPPED, None, "begun")
    wait_for_end((tmp_path / "pid").read_text())


def test_the_time_limit_ends_it(tmp_path, in_its_place, monkeypatch):
    monkeypatch.setattr(child_commands, "_POLL_S", 0.05)
    in_its_place("import time; time.sleep(600)")
    done = run_command(command(tmp_path, timeout_s=0.1), always)
    assert (done.ending, done.exit_code) == (Ending.TIMED_OUT, None)


def test_one_that_will_not_end_is_killed(tmp_path, in_its_place, monkeypatch):
    monkeypatch.setattr(child_commands, "_POLL_S", 0.05)
    monkeypatch.setattr(child_commands, "_LAST_WORDS_S", 0.1)
    in_its_place(
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); open('up', 'w'); time.sleep(600)"
    )
    done = run_command(command(tmp_path), lambda: not (tmp_path / "up").exists())
    assert done.ending is Ending.STOPPED


def test_a_folder_that_is_gone_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        run_command(command(tmp_path / "gone", "--version"), always)
