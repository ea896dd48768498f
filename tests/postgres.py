"""A PostgreSQL for tests: the one that ADVISOR_TEST_POSTGRES_URL names, or a private one while they run.

The variable's user must be allowed to create databases and roles; each test gets a database of its own.
"""

import os
import pwd
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests import machine

VARIABLE = "ADVISOR_TEST_POSTGRES_URL"


@pytest.fixture(scope="session")
def postgres_server():
    """A database on a running server from which others can be created."""
    if given := os.environ.get(VARIABLE):
        yield sa.make_url(given).set(drivername="postgresql+psycopg")
        return
    initdb = machine.find("postgresql")
    if initdb is None:
        pytest.skip(machine.why_not("postgresql") or "")
    binaries = initdb.resolve().parent
    # Not pytest's folder: only root may enter that, and the path of a socket must be short.
    with tempfile.TemporaryDirectory(
        prefix="postgres-", dir=machine.folder(), ignore_cleanup_errors=True
    ) as name:
        folder = Path(name)
        user = _owner(folder)
        data = folder / "data"
        settings = ("-U", "advisor", "-A", "trust", "--no-locale", "-E", "UTF8", "--no-sync")
        _run(binaries / "initdb", "-D", data, *settings, **user)
        options = f"-k {folder} -c listen_addresses='' -c fsync=off"
        _run(binaries / "pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", options, "start", **user)
        try:
            yield sa.make_url(f"postgresql+psycopg://advisor@/postgres?host={folder}")
        finally:
            _run(binaries / "pg_ctl", "-D", data, "-w", "-m", "immediate", "stop", **user)


@pytest.fixture
def postgres_url(postgres_server):
    """A new, empty database."""
    with new_database(postgres_server) as url:
        yield url


@contextmanager
def new_database(postgres_server: sa.URL) -> Iterator[str]:
    """Its URL, until it is dropped."""
    name = f"advisor_{uuid.uuid4().hex}"
    engine = sa.create_engine(postgres_server, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with engine.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
        url = postgres_server.set(drivername="postgresql", database=name)
        yield url.render_as_string(hide_password=False)
        connection.execute(sa.text(f"DROP DATABASE {name} WITH (FORCE)"))


def _owner(folder: Path) -> dict[str, Any]:
    """Whom to run the server as: ourselves, but for root, whom PostgreSQL refuses."""
    if os.geteuid() != 0:
        return {}
    names = {entry.pw_name for entry in pwd.getpwall()}
    entry = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
    os.chown(folder, entry.pw_uid, entry.pw_gid)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def _run(*command: str | Path, **options: Any) -> None:
    # Files, since the server would keep a pipe open.
    with tempfile.TemporaryFile() as output:
        answer = subprocess.run(command, stdout=output, stderr=output, cwd="/", check=False, **options)
        output.seek(0)
        assert answer.returncode == 0, output.read().decode()
