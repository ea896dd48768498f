"""Opening: what is made, what is refused and in which words; no password is ever told."""

import errno
import os
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
import sqlalchemy as sa

from advisor.core.errors import ConfigError, StoreError
from advisor.store import transactions
from advisor.store.database import default_path, existing_store, open_store
from advisor.store.handle import Store
from advisor.store.schema import VERSION
from advisor.store.transactions import reading

SECRET = "hunter2%2F"


def refusal(url: str) -> str:
    with pytest.raises((StoreError, ConfigError)) as caught:
        open_store(url)
    return str(caught.value)


def set_version(url: str, version: str) -> None:
    with open_store(url) as store, store.engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = :version"), {"version": version})


def loaded_after(statement: str) -> set[str]:
    code = f"import sys\nfrom advisor.store.database import existing_store\n{statement}\nprint(*sys.modules)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(answer.stdout.split())


def test_without_a_url_it_is_this_users_file(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "new"))
    assert default_path() == tmp_path / "new" / "advisor" / "advisor.db"
    with open_store(None) as store:
        assert store.place == str(default_path())
    assert default_path().is_file()


def test_a_missing_file_is_made_only_on_demand(tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"
    with existing_store(url) as missing:
        assert missing is None
    assert list(tmp_path.iterdir()) == []
    with open_store(url):
        pass
    with existing_store(url) as again:
        assert again.place == str(tmp_path / "a.db")
    assert [path.name for path in tmp_path.iterdir()] == ["a.db"]


def test_asking_for_a_missing_file_costs_no_import(tmp_path):
    loaded = loaded_after(f"with existing_store('sqlite:///{tmp_path}/a.db') as store: assert store is None")

    assert not loaded & {"sqlalchemy", "pydantic"}


@pytest.mark.parametrize(
    ("name", "path"),
    [
        *((name, name) for name in ("100%.db", "ü#?&.db", "a b/c.db")),
        ("~/a.db", "home/a.db"),
        ("~nobody-here/a.db", "~nobody-here/a.db"),
    ],
)
def test_any_file_name_will_do_and_a_tilde_is_the_home_of_who_is_there(tmp_path, monkeypatch, name, path):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    with open_store(f"sqlite:///{name}"):
        pass
    assert (tmp_path / path).is_file()


def test_readers_do_not_wait_for_writers(tmp_path):
    with open_store(f"sqlite:///{tmp_path}/a.db") as store, store.engine.connect() as connection:
        assert connection.execute(sa.text("PRAGMA journal_mode")).scalar() == "wal"


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("mysql://host/advisor", "begins with 'mysql'"),
        ("advisor.db", "is no URL"),
        ("", "is no URL"),
        ("sqlite://", "begins with 'sqlite'"),
        ("sqlite:///", "begins with 'sqlite'"),
        (f"postgres:{SECRET}@host/advisor", "is no URL"),
        (f"postgresql://me:{SECRET}@host:port/advisor", "cannot be read"),
        (f"postgresql://me:a@{SECRET}@host/advisor", "second '@'"),
    ],
)
def test_other_urls_are_refused_with_what_is_allowed(url, allowed):
    with pytest.raises(ConfigError) as caught:
        open_store(url)
    message = str(caught.value)
    assert allowed in message
    assert SECRET not in message
    assert caught.value.__cause__ is None
    assert "postgresql://user@host/database" in message or "%40" in message


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_a_server_out_of_reach_is_named_without_its_password(scheme):
    # Port 1 of this machine: nobody listens there.
    message = refusal(f"{scheme}://me:{SECRET}@127.0.0.1:1/advisor?application_name={SECRET}")
    assert "postgresql://me@127.0.0.1:1/advisor" in message
    assert "Check store.url" in message
    for secret in (SECRET, "hunter2/", "hunter2"):
        assert secret not in message


def test_what_is_shown_of_a_store_has_no_password(tmp_path, postgres_url):
    url = sa.make_url(postgres_url).set(username="advisor", password="hunter2")
    with open_store(url.render_as_string(hide_password=False)) as store:
        assert "hunter2" not in repr(store) + store.place
        assert store.place.startswith("postgresql://advisor@")
        with pytest.raises(StoreError, match="not_there") as caught, reading(store) as connection:
            connection.execute(sa.text("SELECT 'hunter2' FROM not_there"))
        assert "hunter2" not in str(caught.value)


def test_a_missing_database_is_told(postgres_url):
    message = refusal(sa.make_url(postgres_url).set(database="not_there").render_as_string())
    assert "createdb" in message


def test_a_missing_driver_is_told_with_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    assert "gpu-advisor[postgresql]" in refusal("postgresql://me@127.0.0.1:1/advisor")


def test_a_file_that_is_no_database_is_left_alone(tmp_path):
    path = tmp_path / "a.db"
    path.write_text("my diary " * 1000)
    message = refusal(f"sqlite:///{path}")
    assert str(path) in message
    assert "file is not a database" in message
    assert "store.url" in message
    assert path.read_text() == "my diary " * 1000


def test_another_programs_database_is_left_alone(store_url):
    engine = sa.create_engine(store_url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE bookmarks (url TEXT)"))
    assert "another program's tables" in refusal(store_url)
    assert sa.inspect(engine).get_table_names() == ["bookmarks"]
    engine.dispose()


@pytest.mark.parametrize("version", ["9999", "ae1027a6acf1"])
def test_a_newer_or_foreign_version_is_refused(store_url, version):
    set_version(store_url, version)
    message = refusal(store_url)
    assert f"version {version!r}" in message
    assert f"{VERSION!r} and older" in message
    assert "update gpu-advisor" in message


def test_an_empty_file_becomes_a_database(tmp_path):
    path = tmp_path / "a.db"
    path.touch()
    with open_store(f"sqlite:///{path}"):
        pass
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [(VERSION,)]
    connection.close()


@pytest.mark.parametrize("path", ["/dev/null/advisor.db", "/proc/advisor.db", "/proc"])
def test_a_place_that_cannot_be_written_is_told(path):
    message = refusal(f"sqlite:///{path}")
    assert path in message
    assert "store.url" in message


def test_a_new_file_is_whole_before_it_gets_its_name(tmp_path, monkeypatch):
    """While another connection is open, closing leaves the tables in the journal, as on a full disk."""
    others: list[sqlite3.Connection] = []
    opened = transactions._opened

    def opened_beside_another(url: sa.URL, place: str) -> Store:
        store = opened(url, place)
        other = sqlite3.connect(str(url.database))
        other.execute("SELECT count(*) FROM sqlite_master").fetchall()
        others.append(other)
        return store

    monkeypatch.setattr(transactions, "_opened", opened_beside_another)
    path = tmp_path / "a.db"
    transactions._make_file(path)
    assert len(others) == 1
    others[0].close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [(VERSION,)]


def test_a_disk_that_fills_up_while_a_file_is_made_leaves_none(tmp_path, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "link", full)
    assert "No space left on device" in refusal(f"sqlite:///{tmp_path}/a.db")
    assert list(tmp_path.iterdir()) == []
