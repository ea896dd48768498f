"""Calls that hang keep nobody, and what they raise comes out."""

import math
import threading

import pytest

from advisor.core.deadlines import LateError, completed, left_s, within
from advisor.pricing.sources.http_downloads import REPLY_BYTES, Allowance, LongReplyError, read_whole


def test_what_a_call_returns_and_raises_comes_out():
    assert within(60.0, lambda: 7) == 7
    with pytest.raises(KeyError, match="gone"):
        within(60.0, lambda: {}["gone"])
    # TimeoutError of the call's own is no deadline of ours.
    with pytest.raises(TimeoutError, match="own"):
        within(60.0, lambda: (_ for _ in ()).throw(TimeoutError("own")))


def test_a_call_that_hangs_is_left_to_a_daemon():
    released = threading.Event()
    threads: list[threading.Thread] = []

    def hang() -> None:
        threads.append(threading.current_thread())
        released.wait()

    with pytest.raises(LateError, match="no answer within 10 ms"):
        within(0.01, hang)
    released.set()
    assert all(thread.daemon for thread in threads)


def test_a_call_knows_how_long_it_has():
    assert left_s() == math.inf
    assert 0 < within(50.0, left_s) <= 50.0
    assert 0 < within(50.0, lambda: within(100.0, left_s)) <= 50.0


def test_jobs_are_done_by_daemons_and_a_hanging_one_holds_up_no_other():
    released = threading.Event()

    def hang() -> bool:
        released.wait()
        return threading.current_thread().daemon

    def quick() -> bool:
        return threading.current_thread().daemon

    done = completed([hang, quick, quick], num_threads=3, name="test")
    assert [next(done), next(done)] == [True, True]
    released.set()
    assert next(done) is True


class Drip:
    """A body of one byte at a time."""

    closed = False

    def read1(self, _: int, *, decode_content: bool) -> bytes:  # noqa: ARG002 - as of urllib3
        return b"x"

    def close(self) -> None:
        self.closed = True


def test_a_body_has_an_end_in_time_and_size():
    drip = Drip()
    with pytest.raises(LateError):
        read_whole(drip, Allowance(), within_s=0.0)
    assert drip.closed
    with pytest.raises(LongReplyError, match="more than 2 MB"):
        read_whole(Drip(), Allowance(2 * 10**6), within_s=600.0)
    assert REPLY_BYTES == 32 * 10**6
