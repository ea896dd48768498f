"""When the database has trouble: one error of ours that says what to do, and nothing half done."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from advisor.core.errors import StoreError
from advisor.store import transactions
from advisor.store.database import open_store
from advisor.store.handle import Store
from advisor.store.pulls import current_offers, price_points, pulls, save_failure, save_part
from advisor.store.transactions import HINTS, OTHERWISE, explained
from tests.builders import make_offer

AT = datetime(2026, 11, 1, 12, tzinfo=UTC)
MANY = [make_offer(f"G{number}", 1.0 + number) for number in range(2000)]


@pytest.fixture
def file_store(tmp_path):
    """A store on SQLite, with one offer."""
    with open_store(f"sqlite:///{tmp_path}/a.db") as opened:
        save_part(opened, "aws", "all", [make_offer()], (), (), AT)
        yield opened


def set_pragma(store: Store, pragma: str) -> None:
    """On every connection from now on."""
    store.engine.dispose()
    sa.event.listen(
        store.engine, "connect", lambda connection, _record: connection.execute(f"PRAGMA {pragma}")
    )


@contextmanager
def another_writer(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Another process that writes and does not end; ours loses patience at once."""
    if store.engine.dialect.name == "sqlite":
        other = sqlite3.connect(store.place, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        set_pragma(store, "busy_timeout = 0")
        yield
        other.close()
    else:
        monkeypatch.setattr(transactions, "WAIT_S", 0.05)
        with store.engine.begin() as connection:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(transactions._LOCK)))
            yield


def test_a_full_disk_is_told_and_what_was_there_stays(file_store):
    set_pragma(file_store, "max_page_count = 1")  # SQLite's own limit: no page more than there are
    with pytest.raises(StoreError) as caught:
        save_part(file_store, "aws", "all", MANY, (), (), AT)
    assert file_store.place in str(caught.value)
    assert "disk is full" in str(caught.value)
    assert "free some space" in str(caught.value)
    assert current_offers(file_store, "aws") == (make_offer(),)
    with open_store(f"sqlite:///{file_store.place}") as again:
        save_part(again, "aws", "all", MANY, (), (), AT)
        assert current_offers(again, "aws") == tuple(MANY)


def test_a_file_that_may_not_be_written_is_still_read(file_store):
    set_pragma(file_store, "query_only = ON")
    with pytest.raises(StoreError, match="Allow writing to the file"):
        save_failure(file_store, "aws", "all", "why", AT)
    assert current_offers(file_store, "aws") == (make_offer(),)


def test_a_damaged_file_is_told(file_store):
    save_part(file_store, "aws", "all", MANY, (), (), AT)
    file_store.engine.dispose()
    path = Path(file_store.place)
    content = bytearray(path.read_bytes())
    content[8192:] = bytes(len(content) - 8192)
    path.write_bytes(content)
    with pytest.raises(StoreError, match="Restore a backup"):
        current_offers(file_store, "aws")


def test_a_file_that_vanished_is_told_or_made_anew(file_store, tmp_path):
    file_store.engine.dispose()
    for path in tmp_path.iterdir():
        path.unlink()
    with pytest.raises(StoreError, match="no such table"):
        current_offers(file_store, "aws")


def test_a_writer_waits_for_another_only_so_long(store, monkeypatch):
    save_part(store, "aws", "all", [make_offer()], (), (), AT)
    with another_writer(store, monkeypatch):
        with pytest.raises(StoreError, match="Another process writes to it for very long"):
            save_part(store, "aws", "all", [], (), (), AT)
        assert current_offers(store, "aws") == (make_offer(),)  # readers do not wait
    save_part(store, "aws", "all", [], (), (), AT)
    assert current_offers(store, "aws") == ()


def test_a_server_that_was_started_anew_is_reached_again(postgres_url):
    with open_store(postgres_url) as store, store.engine.connect() as other:
        save_part(store, "aws", "all", [make_offer()], (), (), AT)
        others = "FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()"
        killed = other.execute(sa.text(f"SELECT pg_terminate_backend(pid, 5000) {others}")).scalars().all()
        assert killed == [True]
        assert current_offers(store, "aws") == (make_offer(),)


def test_a_save_that_is_interrupted_in_the_middle_changes_nothing(store, monkeypatch):
    save_part(store, "aws", "all", [make_offer()], (), (), AT)
    before = current_offers(store, "aws"), pulls(store), price_points(store)

    def interrupted(*_arguments: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("advisor.store.pulls._append_points", interrupted)
        with pytest.raises(KeyboardInterrupt):
            save_part(store, "aws", "all", MANY, (), ("gap",), AT)
    assert (current_offers(store, "aws"), pulls(store), price_points(store)) == before


class FakeDriverError(Exception):
    """What a driver raises: a code and some words."""

    def __init__(self, words: str, **codes: str) -> None:
        super().__init__(words)
        for name, code in codes.items():
            setattr(self, name, code)


@pytest.mark.parametrize("code", HINTS)
def test_every_code_that_we_know_has_its_hint(file_store, code):
    name = "sqlite_errorname" if code.startswith("SQLITE") else "sqlstate"
    trouble = FakeDriverError("some\n  words.", **{name: code})
    with pytest.raises(StoreError) as caught, explained(file_store):
        raise sa.exc.DBAPIError("SELECT 1", {}, trouble)
    assert str(caught.value) == f"cannot use the database {file_store.place}: some words. {HINTS[code]}"


def test_other_trouble_is_told_in_the_databases_words(file_store):
    trouble = pytest.raises(StoreError, match="no such column: wages")
    with trouble as caught, explained(file_store), file_store.engine.connect() as connection:
        connection.execute(sa.text("SELECT wages"))
    assert str(caught.value).endswith(OTHERWISE)
