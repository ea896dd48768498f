"""Only processes with the mark are ended, wherever they hide."""

import os
import signal
import subprocess
import sys

import pytest

from advisor.profile.attempt import MARK, end_leftovers, new_mark

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


def sleeper(environment):
    return subprocess.Popen(
        [sys.executable, "-c", "print(flush=True); import time; time.sleep(60)"],
        env=environment,
        start_new_session=True,
        stdout=subprocess.PIPE,
    )


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


def test_marks_differ():
    assert new_mark() != new_mark()


def test_nobody_has_a_new_mark():
    assert end_leftovers(new_mark()) == []
    assert MARK not in os.environ
