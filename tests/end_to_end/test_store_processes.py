"""Many processes and one database: nothing is lost, doubled or half there, also when one is killed."""

import multiprocessing
import os
import signal
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from multiprocessing.connection import Connection
from typing import Any

import pytest
import sqlalchemy as sa

from advisor.core.errors import LockedError
from advisor.core.values import Market, Offer, PricePoint
from advisor.store.database import open_store
from advisor.store.locks import lock
from advisor.store.pulls import current_offers, forget_points, price_points, pulls, save_part
from tests.builders import make_offer
from tests.machine import needs

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
NUM_PROCESSES = 8
NUM_ROUNDS = 4
NUM_OFFERS = 25
# Not forked from us: a process that anybody starts has no connections of another's. All are forked from one
# that has imported what they need and opened nothing.
SERVED = multiprocessing.get_context("forkserver")
SERVED.set_forkserver_preload([__name__])


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=needs("postgresql"))])
def store_url(request, tmp_path):
    if request.param == "postgresql":
        url: str = request.getfixturevalue("postgres_url")
        return url
    return f"sqlite:///{tmp_path}/new/advisor.db"


def price_of(round_: int) -> float:
    """None of the history's."""
    return 100.0 + round_


def offers_of(round_: int) -> list[Offer]:
    """Machines that all cost the same in one round."""
    at = NOON + timedelta(hours=round_)
    return [
        make_offer(
            usd_per_h=price_of(round_), instance_type=f"t{number}", market=Market.SPOT, retrieved_at=at
        )
        for number in range(NUM_OFFERS)
    ]


HISTORY = [
    PricePoint(
        provider="aws",
        instance_type=f"t{number}",
        region="us-east-1",
        zone=None,
        market=Market.SPOT,
        usd_per_h=1.0 + hours,
        observed_at=NOON - timedelta(hours=hours + 1),
    )
    for hours in range(8)
    for number in range(NUM_OFFERS)
]


def start(
    work: Callable[..., None], *arguments: Any
) -> tuple[multiprocessing.process.BaseProcess, Connection]:
    """A process, and the end of a pipe that hears what it says."""
    here, there = SERVED.Pipe()
    process = SERVED.Process(target=work, args=(there, *arguments))
    process.start()
    there.close()
    return process, here


def run_all(work: Callable[..., None], url: str) -> list[Any]:
    """What each of the processes says that do this work at once."""
    barrier = SERVED.Barrier(NUM_PROCESSES, timeout=120)
    started = [start(work, url, barrier, number) for number in range(NUM_PROCESSES)]
    answers = []
    for process, pipe in started:
        with pipe:
            answers.append(pipe.recv() if pipe.poll(120) else "silent")
        process.join(120)
        assert process.exitcode == 0, answers
    return answers


def append_and_read(pipe: Connection, url: str, barrier: Any, number: int) -> None:
    """Each opens the missing database at once, saves a scope of its own and one of all, and reads both."""
    barrier.wait()
    seen = []
    with open_store(url) as store:
        for round_ in range(NUM_ROUNDS):
            save_part(store, f"own {number}", "all", offers_of(round_), HISTORY, (), NOON)
            save_part(store, "common", f"scope {round_ % 2}", offers_of(round_), HISTORY, (), NOON)
            if number == 0:
                forget_points(store, NOON - timedelta(days=400))
            seen.append([offer.usd_per_h for offer in current_offers(store, "common")])
            price_points(store, sources=("common",), instance_types=("t0",))
    pipe.send(seen)


def test_eight_processes_lose_and_double_nothing(store_url):
    answers = run_all(append_and_read, store_url)
    allowed = {price_of(round_) for round_ in range(NUM_ROUNDS)}
    for prices in (prices for seen in answers for prices in seen):
        # Whole scopes, each of one round.
        assert len(prices) in (NUM_OFFERS, 2 * NUM_OFFERS)
        scopes = [set(prices[:NUM_OFFERS]), set(prices[NUM_OFFERS:])]
        assert all(len(scope) <= 1 and scope <= allowed for scope in scopes)
    with open_store(store_url) as store:
        assert len(pulls(store)) == NUM_PROCESSES + 2
        own = [
            point
            for number in range(NUM_PROCESSES)
            for point in price_points(store, sources=(f"own {number}",))
        ]
        assert len(own) == NUM_PROCESSES * (len(HISTORY) + NUM_OFFERS * NUM_ROUNDS)
        common = price_points(store, sources=("common",))
        moments = {(point.instance_type, point.observed_at) for point in common}
        assert len(common) == len(moments) == len(HISTORY) + NUM_OFFERS * NUM_ROUNDS
        for number in range(NUM_PROCESSES):
            assert current_offers(store, f"own {number}") == tuple(offers_of(NUM_ROUNDS - 1))


def take_lock(pipe: Connection, url: str, barrier: Any, number: int) -> None:
    """Whoever gets it keeps it until all have tried."""
    with open_store(url) as store:
        barrier.wait()
        try:
            with lock(store, "refresh", f"process {number}"):
                barrier.wait()
        except LockedError as error:
            barrier.wait()
            pipe.send(str(error))
        else:
            pipe.send(None)


def test_one_of_eight_processes_gets_the_lock(store_url):
    answers = run_all(take_lock, store_url)
    winners = [number for number, answer in enumerate(answers) if answer is None]
    assert len(winners) == 1
    others = [answer for answer in answers if answer is not None]
    # Whoever looks between the lock and its holder's name does not see the name yet.
    assert all("is locked" in answer for answer in others)
    named = {
        number for number in range(NUM_PROCESSES) for answer in others if f"by process {number}:" in answer
    }
    assert named <= {*winners}


def stop_before(pipe: Connection, url: str, beginning: str) -> None:
    """Saves, and stops for ever where a statement begins so."""
    with open_store(url) as store:

        def stop(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
            if statement.startswith(beginning):
                pipe.send("in the middle")
                signal.pause()

        sa.event.listen(store.engine, "before_cursor_execute", stop)
        save_part(store, "aws", "all", offers_of(1), HISTORY, ("gap",), NOON + timedelta(hours=1))


@pytest.mark.parametrize("beginning", ["INSERT INTO offers", "INSERT INTO price_points"])
def test_a_save_that_is_killed_in_the_middle_changes_nothing(store_url, beginning):
    with open_store(store_url) as store:
        save_part(store, "aws", "all", offers_of(0), (), (), NOON)
        before = current_offers(store, "aws"), pulls(store), price_points(store)
    process, pipe = start(stop_before, store_url, beginning)
    with pipe:
        assert pipe.poll(120)
        assert pipe.recv() == "in the middle"
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join(120)
    assert process.exitcode == -signal.SIGKILL
    with open_store(store_url) as store:
        assert (current_offers(store, "aws"), pulls(store), price_points(store)) == before
        save_part(store, "aws", "all", offers_of(1), HISTORY, (), NOON + timedelta(hours=1))
        assert current_offers(store, "aws") == tuple(offers_of(1))


def hold_lock(pipe: Connection, url: str) -> None:
    """Takes the lock and never releases it."""
    with open_store(url) as store, lock(store, "refresh", "the killed"):
        pipe.send("held")
        signal.pause()


def test_a_killed_holder_blocks_nobody(store_url):
    process, pipe = start(hold_lock, store_url)
    with pipe:
        assert pipe.poll(120)
        assert pipe.recv() == "held"
    with open_store(store_url) as store:
        with pytest.raises(LockedError, match="the refresh is locked by the killed: wait"):
            lock(store, "refresh", "next")
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join(120)
        while True:  # until a server has seen that the connection ended
            try:
                lock(store, "refresh", "next").release()
                break
            except LockedError:
                pass


def make_and_die(pipe: Connection, url: str) -> None:
    """Stops while the tables are being made."""

    def stop(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        if "CREATE TABLE runs" in statement:
            pipe.send("in the middle")
            signal.pause()

    sa.event.listen(sa.Engine, "before_cursor_execute", stop)
    open_store(url)


def test_a_database_that_was_being_made_is_made_anew(store_url):
    process, pipe = start(make_and_die, store_url)
    with pipe:
        assert pipe.poll(120)
        assert pipe.recv() == "in the middle"
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join(120)
    with open_store(store_url) as store:
        save_part(store, "aws", "all", offers_of(0), HISTORY, (), NOON)
        assert current_offers(store, "aws") == tuple(offers_of(0))
