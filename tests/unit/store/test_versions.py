"""The schema and its version: what is upgraded with its rows, and what is refused."""

import dataclasses
from datetime import UTC, datetime

import pytest
import sqlalchemy as sa

from advisor.core.errors import StoreError
from advisor.core.values import Market, Offer, Quantiles
from advisor.store import ledger, pulls, schema
from advisor.store.database import open_store
from advisor.store.handle import Store
from advisor.store.schedules import occurrences, schedules
from advisor.store.transactions import writing
from tests.builders import make_offer

AT = datetime(2026, 11, 1, 12, tzinfo=UTC)
# What version 8 had and this one has not.
# What this version has more than those, undone.
VERSION_11 = ("ALTER TABLE runs DROP COLUMN gpu_mean_clock_hz",)
VERSION_10 = (*VERSION_11, "ALTER TABLE recommendations DROP COLUMN options")
VERSION_9 = (
    *VERSION_10,
    *(f"ALTER TABLE runs DROP COLUMN {name}" for name in ("gpu_busy_share", "gpu_mean_w", "gpu_peak_bytes")),
)
VERSION_8 = (
    *VERSION_9,
    "CREATE TABLE leases (name TEXT PRIMARY KEY, token TEXT NOT NULL)",
    "INSERT INTO leases VALUES ('prices refresh', 'ab')",
    "ALTER TABLE occurrences ADD COLUMN token TEXT NOT NULL DEFAULT ''",
)
# Its rows as it wrote them; they stay as they are here, whatever later versions do.
ROWS = """
INSERT INTO recommendations (id, at, project, script, plan_id, provider, gpu, num_gpus, market, time_p50_s,
  time_p90_s, cost_p50_usd, cost_p90_usd, note) VALUES
  ('r1', '2026-11-01 12:00:00.000000', 'vision', 'train.py', 'aws/x', 'aws', 'L4', 8, 'spot', 60.5,
   70.0, 1.5, 2.5, 'a note');
INSERT INTO runs (id, recommendation_id, project, script, provider, gpu, num_gpus, market, started_at,
  duration_s, cost_usd, note, cost_kind) VALUES
  ('run1', 'r1', 'vision', 'train.py', 'aws', 'L4', 8, 'spot', '2026-11-01 12:00:00.000000', 65.25, 1.75, '',
   'stated');
INSERT INTO schedules (id, name, cron, zone, command, folder, channel, "when", added_at, settled_until) VALUES
  ('s1', 'weekly', '0 8 * * MON', 'UTC', '["prices", "refresh"]', '/home/ann', NULL, 'always',
   '2026-11-01 12:00:00.000000', '2026-11-01 12:00:00.000000');
INSERT INTO occurrences (schedule_id, due_at, state, holder, expires_at, attempts, outcome, delivery,
  output) VALUES
  ('s1', '2026-11-01 12:00:00.000000', 'running', 'ann', '2026-11-01 12:02:00.000000', 1, '', '', '')
"""


def set_version(store: Store, version: str) -> None:
    with writing(store) as connection:
        connection.execute(sa.update(schema.alembic_version).values(version_num=version))


def tables(store: Store) -> dict[str, set[str]]:
    """The columns of each table."""
    inspector = sa.inspect(store.engine)
    names = inspector.get_table_names()
    return {name: {column["name"] for column in inspector.get_columns(name)} for name in names}


OLDER = {"0008": VERSION_8, "0009": VERSION_9, "0010": VERSION_10, "0011": VERSION_11}


def make_older(url: str, version: str) -> None:
    with open_store(url) as store:
        with writing(store) as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(sa.text("SET LOCAL TIME ZONE 'UTC'"))
            for statement in (*OLDER[version], *ROWS.split(";")):
                connection.exec_driver_sql(statement)
        set_version(store, version)


@pytest.mark.parametrize("version", OLDER)
def test_a_database_of_an_older_version_is_upgraded_with_its_rows(store_url, version):
    assert {*OLDER} == {*schema.UPGRADES}
    make_older(store_url, version)
    with open_store(store_url) as store:
        assert tables(store) == {table.name: set(table.c.keys()) for table in schema.metadata.sorted_tables}
        (entry,) = ledger.recommendations(store, since=AT)
        assert (entry.id, entry.at, entry.market, entry.note) == ("r1", AT, Market.SPOT, "a note")
        assert entry.cost_usd == Quantiles(p50=1.5, p90=2.5)
        assert (entry.iteration_s, entry.budget_usd, entry.command, entry.alternatives) == (None,) * 3 + ((),)
        (run,) = ledger.runs(store, since=AT)
        assert (run.duration_s, run.cost_usd, run.recommendation_id) == (65.25, 1.75, "r1")
        assert (run.status, run.cost_kind, run.user, run.num_nodes) == ("finished", "stated", "", None)
        (schedule,) = schedules(store)
        (occurrence,) = occurrences(store, schedule.id, most=9)
        assert (occurrence.state, occurrence.attempts, occurrence.due_at) == ("running", 1, AT)
    with open_store(store_url):
        pass


def test_a_failed_upgrade_changes_nothing(store_url, monkeypatch):
    """On SQLite, too."""
    make_older(store_url, "0008")
    upgrade = (*schema.UPGRADES["0008"], "SELECT * FROM not_there")
    monkeypatch.setattr(schema, "UPGRADES", {"0008": upgrade})
    with pytest.raises(StoreError, match="not_there"):
        open_store(store_url)
    monkeypatch.undo()
    with open_store(store_url) as store:
        assert len(ledger.runs(store, since=AT)) == 1


@pytest.mark.parametrize("version", schema.BEFORE_RELEASES)
def test_what_was_made_before_the_first_release_says_how_to_upgrade(store_url, version):
    with open_store(store_url) as store:
        set_version(store, version)
    with pytest.raises(StoreError, match=rf"has version '{version}', made before the first release: open it"):
        open_store(store_url)
    with pytest.raises(StoreError, match=f"commit {schema.LAST_TO_READ_THEM}, which .* keeps its receipts"):
        open_store(store_url)


def test_versions_sort():
    known = [*schema.BEFORE_RELEASES, *schema.UPGRADES, schema.VERSION]
    assert known == sorted(set(known))


def test_every_field_of_an_offer_has_a_column():
    fields = {field.name for field in dataclasses.fields(Offer)} - {"spot_usd_per_h"}
    assert fields < set(schema.offers.c.keys())


def test_a_market_of_a_newer_version_is_an_error_not_a_guess(store):
    pulls.save_part(store, "aws", "all", [make_offer(market=Market.CALENDAR)], (), (), AT)
    with store.engine.begin() as connection:
        connection.execute(sa.text("UPDATE offers SET market = 'lunar'"))
    with pytest.raises(StoreError, match="'lunar' is not a valid Market"):
        pulls.current_offers(store, "aws")


def test_the_architecture_of_a_host_is_kept_and_unknown_in_old_rows(store):
    offers = [make_offer("A", architecture="arm64"), make_offer("B")]
    pulls.save_part(store, "aws", "all", offers, (), (), AT)
    assert [offer.architecture for offer in pulls.current_offers(store, "aws")] == ["arm64", None]
