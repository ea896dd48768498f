"""No order of claims, deaths and late ends sends an answer twice, or forgets one without a word."""

import os
import socket
import uuid
from collections.abc import Generator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.store import outbox
from advisor.store.database import open_store
from advisor.store.handle import Store
from advisor.store.outbox import Claim, LostClaimError, State

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
FOR_S = 600.0


def claim(store: Store, *, now: datetime = NOON, drops_repeats: bool = False, key: str = "k") -> Claim:
    return outbox.claim(
        store, key, "team", content_sha256="0", drops_repeats=drops_repeats, for_s=FOR_S, now=now
    )


def settle(store: Store, held: Claim, state: State, now: datetime = NOON) -> None:
    ended = {} if state is State.SENDING else {"error": None, "attempts": 1}
    outbox.settle(store, held, state, now=now, **ended)


LATE = NOON + timedelta(seconds=FOR_S)


def test_what_was_sent_is_not_claimed_again(store):
    held = claim(store)
    settle(store, held, State.SENDING, NOON)
    settle(store, held, State.SENT)
    again = claim(store, now=LATE)
    assert (again.token, again.posted.state, again.posted.begun_at) == (None, State.SENT, NOON)


def test_other_keys_and_channels_are_free(store):
    assert claim(store).token
    assert claim(store, key="other").token
    assert outbox.claim(
        store, "k", "others", content_sha256="0", drops_repeats=False, for_s=1, now=NOON
    ).token


def test_one_at_a_time_until_the_claim_runs_out(store):
    claim(store)
    assert claim(store, now=LATE - timedelta(seconds=1)).token is None
    assert claim(store, now=LATE).token


def test_whoever_lost_a_claim_may_not_begin(store):
    slow = claim(store)
    quick = claim(store, now=LATE)
    with pytest.raises(LostClaimError):
        settle(store, slow, State.SENDING, LATE)
    settle(store, quick, State.SENDING, LATE)


def test_what_had_begun_is_perhaps_sent(store):
    held = claim(store)
    settle(store, held, State.SENDING, NOON)
    later = claim(store, now=LATE)
    assert (later.token, later.posted.state) == (None, State.PERHAPS)
    assert claim(store, now=LATE).posted.state is State.PERHAPS


def test_a_slow_sender_that_lives_after_all_may_say_so(store):
    held = claim(store)
    settle(store, held, State.SENDING, NOON)
    claim(store, now=LATE)
    settle(store, held, State.SENT, LATE)
    assert claim(store, now=LATE).posted.state is State.SENT


def test_where_repeats_are_dropped_it_is_taken_up_again(store):
    held = claim(store, drops_repeats=True)
    settle(store, held, State.SENDING, NOON)
    later = claim(store, now=LATE, drops_repeats=True)
    assert later.token
    assert later.is_resumed
    assert later.posted.begun_at == NOON, "its date, and so its bytes, stay"


def test_what_failed_or_waits_for_a_process_that_died_is_sent_by_the_next(store):
    held = claim(store)
    settle(store, held, State.SENDING, NOON)
    outbox.settle(store, held, State.WAITING, error="busy", attempts=1, now=NOON)
    second = claim(store, now=LATE)
    assert (second.posted.attempts, second.posted.error, second.is_resumed) == (1, "busy", False)
    settle(store, second, State.FAILED, LATE)
    assert claim(store, now=LATE).token


def test_a_dead_process_of_this_machine_is_not_waited_for(store, monkeypatch):
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    monkeypatch.setattr(os, "getpid", lambda: child)
    claim(store)
    monkeypatch.undo()
    assert claim(store).token


@pytest.mark.parametrize(
    ("host", "number"), [("elsewhere", 1), (socket.gethostname(), "x"), (socket.gethostname(), 1)]
)
def test_in_doubt_a_process_lives(store, monkeypatch, host, number):
    monkeypatch.setattr(socket, "gethostname", lambda: host)
    monkeypatch.setattr(os, "getpid", lambda: number)
    claim(store)
    monkeypatch.undo()
    assert claim(store).token is None


def test_the_last_of_a_channel(store):
    assert outbox.last_posted(store, "team") is None
    claim(store, key="a")
    claim(store, key="b", now=LATE)
    last = outbox.last_posted(store, "team")
    assert last.key == "b"


# --- Laws -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def one_store(tmp_path_factory):
    with open_store(f"sqlite:///{tmp_path_factory.mktemp('laws')}/advisor.db") as opened:
        yield opened


class Sender:
    """A process as the outbox sees it; it may stop for good, or for long, after any step."""

    def __init__(self, store: Store, key: str, *, drops_repeats: bool) -> None:
        self.steps = self._steps(store, key, drops_repeats)
        self.sent = 0
        self.said: State | None = None

    def step(self, now: datetime) -> None:
        try:
            next(self.steps)
            self.steps.send(now)
        except StopIteration:
            pass

    def _steps(self, store: Store, key: str, drops_repeats: bool) -> Generator[datetime, datetime, None]:
        held = claim(store, now=(yield), drops_repeats=drops_repeats, key=key)
        yield NOON
        if held.token is None:
            self.said = held.posted.state
            return
        try:
            settle(store, held, State.SENDING, (yield))
            yield NOON
            yield NOON
            self.sent += 1
            yield NOON
            settle(store, held, State.SENT, (yield))
        except LostClaimError:
            return
        self.said = State.SENT


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0, 300, 700])), max_size=24), st.booleans())
def test_whatever_dies_or_is_slow_an_answer_is_sent_once_or_said_to_be_perhaps(
    one_store, schedule, drops_repeats
):
    """Four processes of other machines take steps in any order, and some never take their last."""
    key, now = uuid.uuid4().hex, NOON
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "getpid", lambda: 1)  # one that lives
        senders = [Sender(one_store, key, drops_repeats=drops_repeats) for _ in range(4)]
        for number, passes_s in schedule:
            now += timedelta(seconds=passes_s)
            senders[number].step(now)
        final = claim(one_store, now=now + timedelta(seconds=FOR_S), drops_repeats=drops_repeats, key=key)
    num_sent = sum(sender.sent for sender in senders)
    if not drops_repeats:
        assert num_sent <= 1
        assert num_sent == 0 or final.posted.state in (State.SENT, State.PERHAPS)
    assert num_sent > 0 or final.posted.state is not State.SENT
    assert final.token is not None or final.posted.state in (State.SENT, State.PERHAPS)
