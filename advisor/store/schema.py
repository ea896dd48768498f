"""The tables, the same on SQLite and PostgreSQL, and their version.

Times are kept in UTC and come back with that time zone. Money is a double: what was put in comes out.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import TypeVar

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.types import TypeDecorator

from advisor.core.values import DeliverWhen, Market, OccurrenceState

VERSION = "0009"
"""The version of the tables below. It grows, so that a newer database is recognised."""
UPGRADES = {"0008": ("DROP TABLE leases", "ALTER TABLE occurrences DROP COLUMN token")}
"""Statements that make this version of another one."""
BEFORE_RELEASES = tuple(f"000{number}" for number in range(1, 8))
"""Versions that no release has had; ``LAST_TO_READ_THEM`` is the last commit that upgrades them."""
LAST_TO_READ_THEM = "74fbb2dc"


class UtcTime(TypeDecorator[datetime]):
    """A moment; without a time zone it is refused, since any guess would be wrong somewhere."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: object) -> datetime | None:  # noqa: ARG002
        """To UTC, which SQLite then keeps as text that sorts."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"the time {value} has no time zone")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: object) -> datetime | None:  # noqa: ARG002
        """PostgreSQL answers in the session's time zone, SQLite in none."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


N = TypeVar("N", bound=StrEnum)


class Name(TypeDecorator[N]):
    """One of a few names."""

    impl = Text
    cache_ok = True

    def __init__(self, names: type[N]) -> None:
        super().__init__()
        self.names = names

    def process_bind_param(self, value: N | None, dialect: object) -> str | None:  # noqa: ARG002
        """To its name."""
        return None if value is None else str(value)

    def process_result_value(self, value: str | None, dialect: object) -> N | None:  # noqa: ARG002
        """A name we do not know was written by a newer version: ``ValueError``."""
        return None if value is None else self.names(value)


MarketName = Name(Market)


class Texts(TypeDecorator[tuple[str, ...]]):
    """Several texts, as a JSON list."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: tuple[str, ...] | None, dialect: object) -> str | None:  # noqa: ARG002
        """To JSON."""
        return None if value is None else json.dumps(value)

    def process_result_value(self, value: str | None, dialect: object) -> tuple[str, ...] | None:  # noqa: ARG002
        """From JSON."""
        return None if value is None else _texts(value)


# Thousands of offers include the same few things.
@lru_cache(maxsize=1024)
def _texts(value: str) -> tuple[str, ...]:
    return tuple(json.loads(value))


metadata = MetaData()

# Its name is older than this file: an older advisor looks for it to refuse a newer database.
alembic_version = Table("alembic_version", metadata, Column("version_num", String(32), primary_key=True))

pulls = Table(
    "pulls",
    metadata,
    Column("source", Text, primary_key=True),
    Column("scope", Text, primary_key=True),
    Column("num_offers", Integer, nullable=False),
    Column("succeeded_at", UtcTime),
    Column("failed_at", UtcTime),
    Column("failure", Text),
    Column("gaps", Texts, nullable=False),
    Column("place", Texts, nullable=False),
    Column("unpriced", Texts, nullable=False),
)

# What is for rent now; the position keeps the order of the part it came with.
offers = Table(
    "offers",
    metadata,
    Column("pull_source", Text, primary_key=True),
    Column("pull_scope", Text, primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("provider", Text, nullable=False),
    Column("instance_type", Text, nullable=False),
    Column("region", Text, nullable=False),
    Column("zone", Text),
    Column("gpu", Text, nullable=False),
    Column("num_gpus", Integer, nullable=False),
    Column("market", MarketName, nullable=False),
    Column("list_usd_per_h", Double, nullable=False),
    Column("contracted_usd_per_h", Double),
    Column("effective_usd_per_h", Double),
    Column("spot_p10_usd_per_h", Double),
    Column("spot_p50_usd_per_h", Double),
    Column("spot_p90_usd_per_h", Double),
    Column("includes", Texts, nullable=False),
    Column("minimum_billed_s", Double, nullable=False),
    Column("billed_step_s", Double, nullable=False),
    Column("num_vcpus", Integer),
    Column("architecture", Text),
    Column("retrieved_at", UtcTime, nullable=False),
    Column("source", Text, nullable=False),
    sqlite_with_rowid=False,
)

# A machine in a place and market as one source sees it. Zone "" is the whole region: NULLs are never equal.
price_series = Table(
    "price_series",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("source", Text, nullable=False),
    Column("provider", Text, nullable=False),
    Column("instance_type", Text, nullable=False),
    Column("region", Text, nullable=False),
    Column("zone", Text, nullable=False),
    Column("market", MarketName, nullable=False),
    Column("gpu", Text),
    UniqueConstraint(
        "source", "provider", "instance_type", "region", "zone", "market", name="uq_price_series"
    ),
    Index("ix_price_series_gpu", "gpu"),
)

price_points = Table(
    "price_points",
    metadata,
    Column(
        "series_id", Integer, ForeignKey("price_series.id", name="fk_price_points_series"), primary_key=True
    ),
    Column("observed_at", UtcTime, primary_key=True),
    Column("usd_per_h", Double, nullable=False),
    sqlite_with_rowid=False,
)

recommendations = Table(
    "recommendations",
    metadata,
    Column("id", Text, primary_key=True),
    Column("at", UtcTime, nullable=False, index=True),
    Column("project", Text, nullable=False),
    Column("script", Text, nullable=False),
    Column("plan_id", Text, nullable=False),
    Column("provider", Text, nullable=False),
    Column("gpu", Text, nullable=False),
    Column("num_gpus", Integer, nullable=False),
    Column("market", MarketName),
    Column("time_p50_s", Double, nullable=False),
    Column("time_p90_s", Double, nullable=False),
    Column("cost_p50_usd", Double, nullable=False),
    Column("cost_p90_usd", Double, nullable=False),
    Column("note", Text, nullable=False),
    Column("instance_type", Text),
    Column("region", Text),
    Column("command", Text),
    Column("budget_usd", Double),
    Column("deadline_s", Double),
    Column("usd_per_h", Double),
    Column("num_iterations", BigInteger),
    Column("iteration_p10_s", Double),
    Column("iteration_p50_s", Double),
    Column("iteration_p90_s", Double),
    Column("uncorrected_p50_s", Double),
    Column("alternatives", Text, nullable=False, server_default="[]"),
    Column("num_nodes", Integer),
)

runs = Table(
    "runs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("recommendation_id", Text),
    Column("project", Text, nullable=False),
    Column("script", Text, nullable=False),
    Column("provider", Text, nullable=False),
    Column("gpu", Text, nullable=False),
    Column("num_gpus", Integer, nullable=False),
    Column("market", MarketName),
    Column("started_at", UtcTime, nullable=False, index=True),
    Column("duration_s", Double),
    Column("cost_usd", Double),
    Column("note", Text, nullable=False),
    Column("instance_type", Text),
    Column("region", Text),
    Column("zone", Text),
    Column("user", Text, nullable=False, server_default=""),
    Column("status", Text, nullable=False, server_default="finished"),
    Column("exit_code", Integer),
    Column("num_steps", BigInteger),
    Column("step_p10_s", Double),
    Column("step_p50_s", Double),
    Column("step_p90_s", Double),
    Column("cost_kind", Text),
    Column("usd_per_h", Double),
    Column("price_retrieved_at", UtcTime),
    Column("num_nodes", Integer),
)

# An answer on its way to a channel. The token is that of the process that sends it, or was the last to do so.
deliveries = Table(
    "deliveries",
    metadata,
    Column("key", Text, primary_key=True),
    Column("channel", Text, primary_key=True),
    Column("content_sha256", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("begun_at", UtcTime, nullable=False),
    Column("changed_at", UtcTime, nullable=False, index=True),
    Column("error", Text),
    Column("token", Text, nullable=False),
    Column("holder", Text, nullable=False),
    Column("expires_at", UtcTime, nullable=False),
)

schedules = Table(
    "schedules",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("cron", Text, nullable=False),
    Column("zone", Text, nullable=False),
    Column("command", Texts, nullable=False),
    Column("folder", Text, nullable=False),
    Column("channel", Text),
    Column("when", Name(DeliverWhen), nullable=False),
    Column("added_at", UtcTime, nullable=False),
    Column("settled_until", UtcTime, nullable=False),
)

occurrences = Table(
    "occurrences",
    metadata,
    Column(
        "schedule_id",
        Text,
        ForeignKey("schedules.id", name="fk_occurrences_schedule", ondelete="CASCADE"),
        primary_key=True,
    ),
    Column("due_at", UtcTime, primary_key=True),
    Column("state", Name(OccurrenceState), nullable=False),
    Column("holder", Text, nullable=False),
    Column("expires_at", UtcTime),
    Column("started_at", UtcTime),
    Column("ended_at", UtcTime),
    Column("attempts", Integer, nullable=False),
    Column("exit_code", Integer),
    Column("recommended", Text),
    Column("outcome", Text, nullable=False),
    Column("delivery", Text, nullable=False),
    Column("output_sha256", Text),
    Column("output", Text, nullable=False),
    sqlite_with_rowid=False,
)
