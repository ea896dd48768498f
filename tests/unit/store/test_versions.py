"""The schema: migrations end at the tables, and an old database keeps its rows on the way there."""

from __future__ import annotations

import dataclasses
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from advisor.core.errors import StoreError
from advisor.core.values import Market, Offer, Quantiles
from advisor.store import ledger, opening, pulls, schema
from advisor.store.database import open_store
from advisor.store.handle import Store
from advisor.store.transactions import make_engine, writing
from advisor.store.versions import KNOWN, MIGRATIONS, upgrade
from tests.builders import make_offer

ROOT = Path(__file__).resolve().parents[3]
AT = datetime(2026, 11, 1, 12, tzinfo=UTC)
# Rows as version 1 wrote them; they stay as they are here, whatever later versions do.
VERSION_1 = """
INSERT INTO pulls VALUES
  ('aws', 'us-east-1 spot', 1, '2026-11-01 12:00:00', NULL, NULL, '["no zones"]');
INSERT INTO offers VALUES
  ('aws', 'us-east-1 spot', 0, 'aws', 'x.xlarge', 'us-east-1', 'use1-az4', 'X', 1, 'spot', 1.5, NULL, NULL,
   1.0, 1.5, 2.0, '["local disk"]', 60.0, 1.0, 4, '2026-11-01 12:00:00', 'a test');
INSERT INTO price_series VALUES
  (7, 'aws', 'aws', 'x.xlarge', 'us-east-1', 'use1-az4', 'spot', 'X');
INSERT INTO price_points VALUES (7, '2026-10-31 12:00:00', 1.25), (7, '2026-11-01 12:00:00', 1.5)
"""
# And the ledger as versions 2 to 4 wrote it.
VERSION_4 = """
INSERT INTO recommendations VALUES
  ('r1', '2026-11-01 12:00:00.000000', 'vision', 'train.py', 'aws/x', 'aws', 'L4', 8, 'spot', 60.5,
   70.0, 1.5, 2.5, 'a note');
INSERT INTO runs VALUES
  ('run1', 'r1', 'vision', 'train.py', 'aws', 'L4', 8, 'spot', '2026-11-01 12:00:00.000000', 65.25, 1.75, ''),
  ('run2', NULL, '', '', 'local', 'L4', 1, NULL, '2026-11-01 13:00:00.000000', 7.0, 0.0, '')
"""


def old_store(url: str, revision: str) -> Store:
    """A store of an older version."""
    if url.startswith("sqlite"):
        store = Store(engine=make_engine(sa.make_url(url)), place=url)
    else:
        store = Store(engine=make_engine(opening._server_url(url)), place="a server")
    with writing(store) as connection:
        upgrade(connection, revision)
    return store


def test_the_migrations_end_at_the_tables(store: Store) -> None:
    with store.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, schema.metadata) == []


def test_the_version_is_the_newest_migration_and_versions_sort() -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    scripts = ScriptDirectory.from_config(config)
    assert scripts.get_heads() == [schema.VERSION]
    downwards = [script.revision for script in scripts.walk_revisions()]
    assert downwards == sorted(downwards, reverse=True)
    assert all(len(revision) == 4 and revision.isdigit() for revision in downwards)
    assert downwards == [*reversed(KNOWN)]


def test_a_database_of_version_1_is_upgraded_with_its_rows(store_url: str) -> None:
    old = old_store(store_url, "0001")
    with old, writing(old) as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(sa.text("SET LOCAL TIME ZONE 'UTC'"))
        for statement in VERSION_1.split(";"):
            connection.exec_driver_sql(statement)
    with open_store(store_url) as store:
        (pull,) = pulls.pulls(store)
        assert (pull.succeeded_at, pull.num_offers, pull.gaps) == (AT, 1, ("no zones",))
        assert (pull.place, pull.unpriced) == (None, ())
        (offer,) = pulls.current_offers(store, "aws")
        assert (offer.zone, offer.list_usd_per_h, offer.includes) == ("use1-az4", 1.5, ("local disk",))
        assert offer.spot_usd_per_h is not None
        assert offer.retrieved_at == AT
        assert [point.usd_per_h for point in pulls.price_points(store, gpus=("X",))] == [1.25, 1.5]
        assert ledger.spending(store, since=AT) == ledger.Spending(usd=0.0, num_unknown=0)


def test_a_ledger_of_version_4_keeps_its_rows_and_what_it_lacks_is_unknown(store_url: str) -> None:
    old = old_store(store_url, "0004")
    with old, writing(old) as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(sa.text("SET LOCAL TIME ZONE 'UTC'"))
        for statement in VERSION_4.split(";"):
            connection.exec_driver_sql(statement)
    with open_store(store_url) as store:
        (entry,) = ledger.recommendations(store, since=AT)
        assert (entry.id, entry.at, entry.market, entry.note) == ("r1", AT, Market.SPOT, "a note")
        assert entry.cost_usd == Quantiles(p50=1.5, p90=2.5)
        assert (entry.iteration_s, entry.budget_usd, entry.command, entry.alternatives) == (None,) * 3 + ((),)
        assert (entry.num_nodes, *(run.num_nodes for run in ledger.runs(store, since=AT))) == (None,) * 3
        first, second = ledger.runs(store, since=AT)
        assert (first.duration_s, first.cost_usd, first.recommendation_id) == (65.25, 1.75, "r1")
        assert (first.status, first.cost_kind, first.user) == ("finished", "stated", "")
        assert (first.step_s, first.num_steps, first.usd_per_h, first.zone) == (None,) * 4
        assert (second.market, second.cost_usd, second.cost_kind) == (None, 0.0, "stated")
        indexes = {index["name"] for index in sa.inspect(store.engine).get_indexes("runs")}
        assert indexes == {"ix_runs_started_at"}


def test_a_new_series_goes_on_after_an_upgrade(store_url: str) -> None:
    with old_store(store_url, "0001"):
        pass
    with open_store(store_url) as store:
        pulls.save_part(store, "aws", "us-east-1", [make_offer()], (), (), AT)
        assert len(pulls.price_points(store)) == 1


def test_a_failed_upgrade_changes_nothing(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are made and versions raised in one transaction, on SQLite too."""

    def fail(connection: sa.Connection, revision: str) -> None:
        upgrade(connection, revision)
        raise KeyboardInterrupt

    with old_store(store_url, "0001") as old:
        monkeypatch.setattr("advisor.store.versions.upgrade", fail)
        with pytest.raises(KeyboardInterrupt):
            open_store(store_url)
        with old.engine.connect() as connection:
            version = connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()
            assert version == "0001"
            assert not sa.inspect(connection).has_table("runs")


def test_every_field_of_an_offer_has_a_column() -> None:
    fields = {field.name for field in dataclasses.fields(Offer)} - {"spot_usd_per_h"}
    assert fields < set(schema.offers.c.keys())


def test_a_market_of_a_newer_version_is_an_error_not_a_guess(store: Store) -> None:
    pulls.save_part(store, "aws", "all", [make_offer(market=Market.CALENDAR)], (), (), AT)
    with store.engine.begin() as connection:
        connection.execute(sa.text("UPDATE offers SET market = 'lunar'"))
    with pytest.raises(StoreError, match="'lunar' is not a valid Market"):
        pulls.current_offers(store, "aws")


def test_migrations_are_python_files_of_a_package_that_the_wheel_takes() -> None:
    scikit_build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["scikit-build"]["wheel"]
    assert "advisor" in scikit_build["packages"]
    assert MIGRATIONS.is_relative_to(ROOT / "advisor")
    names = {path.suffix for path in MIGRATIONS.rglob("*") if path.is_file()} - {".pyc"}
    assert names == {".py"}


def test_the_architecture_of_a_host_is_kept_and_unknown_in_old_rows(store: Store) -> None:
    offers = [make_offer("A", architecture="arm64"), make_offer("B")]
    pulls.save_part(store, "aws", "all", offers, (), (), AT)
    assert [offer.architecture for offer in pulls.current_offers(store, "aws")] == ["arm64", None]
