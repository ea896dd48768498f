"""A lock has one holder, who is named to the others, and ends with it."""

import stat

import pytest
import sqlalchemy as sa

from advisor.core.errors import LockedError, StoreError
from advisor.store.database import open_store
from advisor.store.locks import lock


def test_a_lock_is_released_at_the_end_and_after_a_failure(store):
    for holder in ("ann", "bob"):
        with lock(store, "refresh", holder) as held:
            assert held.is_held()
    with pytest.raises(KeyboardInterrupt), lock(store, "refresh", "ann"):
        raise KeyboardInterrupt
    lock(store, "refresh", "cleo").release()


def test_a_held_lock_names_its_holder(store):
    with lock(store, "refresh", "ann@laptop (4711)"), pytest.raises(LockedError) as caught:
        lock(store, "refresh", "bob")
    assert str(caught.value) == "the refresh is locked by ann@laptop (4711): wait until that has ended."


def test_a_long_name_of_a_holder_is_cut(store):
    with lock(store, "refresh", "x" * 200), pytest.raises(LockedError, match=r"locked by x{63,200}: wait"):
        lock(store, "refresh", "bob")


def test_not_even_its_holder_gets_it_twice(store):
    with lock(store, "refresh", "ann") as held:
        with pytest.raises(LockedError):
            lock(store, "refresh", "ann")
        assert held.is_held()


def test_locks_of_other_names_are_free(store):
    with lock(store, "refresh", "ann"), lock(store, "../../report", "bob"):
        pass


def test_a_lock_does_not_keep_anybody_from_writing(store):
    with lock(store, "refresh", "ann"), store.engine.begin() as connection:
        connection.execute(sa.text("DELETE FROM runs"))


def test_a_lock_whose_connection_has_ended_is_no_longer_held(postgres_url):
    ended = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'"
    with open_store(postgres_url) as store, lock(store, "refresh", "ann") as held:
        with store.engine.begin() as connection:
            connection.execute(sa.text(ended))
        assert not held.is_held()
        with lock(store, "refresh", "bob"):
            pass


def test_files_of_locks_lie_beside_the_database_for_its_owner_alone(tmp_path):
    with open_store(f"sqlite:///{tmp_path}/a.db") as store, lock(store, "../x", "ann"):
        (path,) = (tmp_path / "a.db-locks").iterdir()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_folder_that_cannot_be_written_is_an_error_with_its_name(tmp_path):
    with open_store(f"sqlite:///{tmp_path}/a.db") as store:
        (tmp_path / "a.db-locks").write_text("a file")
        with pytest.raises(StoreError, match=r"cannot lock the refresh: .*a\.db-locks.*: "):
            lock(store, "refresh", "ann")
