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


@pytest.mark.parametrize(
    ("holder", "said"), [("ann@laptop (4711)", r"ann@laptop \(4711\)"), ("x" * 200, "x{63,200}")]
)
def test_a_held_lock_names_its_holder_who_does_not_get_it_twice_either(store, holder, said):
    with lock(store, "refresh", holder) as held:
        for other in ("bob", holder):
            told = rf"^the refresh is locked by {said}: wait until that has ended\.$"
            with pytest.raises(LockedError, match=told):
                lock(store, "refresh", other)
        assert held.is_held()


def test_locks_of_other_names_and_tables_are_free(store):
    with (
        lock(store, "refresh", "ann"),
        lock(store, "../../report", "bob"),
        store.engine.begin() as connection,
    ):
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
