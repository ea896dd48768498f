"""The tables, the same on SQLite and PostgreSQL, and their version.

Times are kept in UTC and come back with that time zone. Money is a double: what was put in comes out.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.types import TypeDecorator, TypeEngine

from advisor.core.values import DeliverWhen, Market, OccurrenceState

VERSION = "0012"
"""The version of the tables below. It grows, so that a newer database is recognised."""
_GPU_USE = (
    "ALTER TABLE runs ADD COLUMN gpu_busy_share DOUBLE PRECISION",
    "ALTER TABLE runs ADD COLUMN gpu_mean_w DOUBLE PRECISION",
    "ALTER TABLE runs ADD COLUMN gpu_peak_bytes BIGINT",
)
_OPTIONS = ("ALTER TABLE recommendations ADD COLUMN options TEXT NOT NULL DEFAULT '[]'",)
_CLOCK = ("ALTER TABLE runs ADD COLUMN gpu_mean_clock_hz DOUBLE PRECISION",)
UPGRADES = {
    "0008": ("DROP TABLE leases", "ALTER TABLE occurrences DROP COLUMN token", *_GPU_USE, *_OPTIONS, *_CLOCK),
    "0009": (*_GPU_USE, *_OPTIONS, *_CLOCK),
    "0010": (*_OPTIONS, *_CLOCK),
    "0011": _CLOCK,
}
"""Statements that make this version of another one."""
BEFORE_RELEASES = tuple(f"000{number}" for number in range(1, 8))
"""Versions that no release has had; ``LAST_TO_READ_THEM`` is the last commit that upgrades them."""
LAST_TO_READ_THEM = "74fbb2dc"


class UtcTime(TypeDecorator[datetime]):
    """A moment; without a time zone it is refused, since any guess would be wrong somewhere."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: object) -> datetime | None:  # noqa: ARG002
        """To UTC, which SQLite then keeps as text that sorts."""
        if value is not None and value.tzinfo is None:
            raise ValueError(f"the time {value} has no time zone")
        return value and value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: object) -> datetime | None:  # noqa: ARG002
        """PostgreSQL answers in the session's time zone, SQLite in none."""
        return value and (value.astimezone(UTC) if value.tzinfo else value.replace(tzinfo=UTC))


N = TypeVar("N", bound=StrEnum)


class Name(TypeDecorator[N]):
    """One of a few names."""

    impl = sa.Text
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

    impl = sa.Text
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


def _required(kind: TypeEngine[Any] | type[TypeEngine[Any]], *names: str) -> Iterator[sa.Column[Any]]:
    return (sa.Column(name, kind, nullable=False) for name in names)


def _optional(kind: TypeEngine[Any] | type[TypeEngine[Any]], *names: str) -> Iterator[sa.Column[Any]]:
    return (sa.Column(name, kind) for name in names)


metadata = sa.MetaData()

# Its name is older than this file: an older advisor looks for it to refuse a newer database.
alembic_version = sa.Table(
    "alembic_version", metadata, sa.Column("version_num", sa.String(32), primary_key=True)
)

pulls = sa.Table(
    "pulls",
    metadata,
    sa.Column("source", sa.Text, primary_key=True),
    sa.Column("scope", sa.Text, primary_key=True),
    sa.Column("num_offers", sa.Integer, nullable=False),
    *_optional(UtcTime, "succeeded_at", "failed_at"),
    sa.Column("failure", sa.Text),
    *_required(Texts, "gaps", "place", "unpriced"),
)

# What is for rent now; the position keeps the order of the part it came with.
offers = sa.Table(
    "offers",
    metadata,
    sa.Column("pull_source", sa.Text, primary_key=True),
    sa.Column("pull_scope", sa.Text, primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
    *_required(sa.Text, "provider", "instance_type", "region", "gpu", "source"),
    *_optional(sa.Text, "zone", "architecture"),
    sa.Column("num_gpus", sa.Integer, nullable=False),
    sa.Column("market", MarketName, nullable=False),
    *_required(sa.Double, "list_usd_per_h", "minimum_billed_s", "billed_step_s"),
    *_optional(
        sa.Double,
        "contracted_usd_per_h",
        "effective_usd_per_h",
        "spot_p10_usd_per_h",
        "spot_p50_usd_per_h",
        "spot_p90_usd_per_h",
    ),
    sa.Column("includes", Texts, nullable=False),
    sa.Column("num_vcpus", sa.Integer),
    sa.Column("retrieved_at", UtcTime, nullable=False),
    sqlite_with_rowid=False,
)

# A machine in a place and market as one source sees it. Zone "" is the whole region: NULLs are never equal.
price_series = sa.Table(
    "price_series",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    *_required(sa.Text, "source", "provider", "instance_type", "region", "zone"),
    sa.Column("market", MarketName, nullable=False),
    sa.Column("gpu", sa.Text),
    sa.UniqueConstraint(
        "source", "provider", "instance_type", "region", "zone", "market", name="uq_price_series"
    ),
    sa.Index("ix_price_series_gpu", "gpu"),
)

price_points = sa.Table(
    "price_points",
    metadata,
    sa.Column(
        "series_id",
        sa.Integer,
        sa.ForeignKey("price_series.id", name="fk_price_points_series"),
        primary_key=True,
    ),
    sa.Column("observed_at", UtcTime, primary_key=True),
    sa.Column("usd_per_h", sa.Double, nullable=False),
    sqlite_with_rowid=False,
)

recommendations = sa.Table(
    "recommendations",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("at", UtcTime, nullable=False, index=True),
    sa.Column("alternatives", sa.Text, nullable=False, server_default="[]"),
    sa.Column("options", sa.Text, nullable=False, server_default="[]"),
    *_required(sa.Text, "project", "script", "plan_id", "provider", "gpu", "note"),
    sa.Column("num_gpus", sa.Integer, nullable=False),
    sa.Column("market", MarketName),
    *_required(sa.Double, "time_p50_s", "time_p90_s", "cost_p50_usd", "cost_p90_usd"),
    *_optional(sa.Text, "instance_type", "region", "command"),
    *_optional(
        sa.Double,
        "budget_usd",
        "deadline_s",
        "usd_per_h",
        "iteration_p10_s",
        "iteration_p50_s",
        "iteration_p90_s",
        "uncorrected_p50_s",
    ),
    sa.Column("num_iterations", sa.BigInteger),
    sa.Column("num_nodes", sa.Integer),
)

runs = sa.Table(
    "runs",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("started_at", UtcTime, nullable=False, index=True),
    sa.Column("user", sa.Text, nullable=False, server_default=""),
    sa.Column("status", sa.Text, nullable=False, server_default="finished"),
    *_optional(sa.Text, "recommendation_id", "instance_type", "region", "zone", "cost_kind"),
    *_required(sa.Text, "project", "script", "provider", "gpu", "note"),
    sa.Column("num_gpus", sa.Integer, nullable=False),
    sa.Column("market", MarketName),
    *_optional(sa.Double, "duration_s", "cost_usd", "step_p10_s", "step_p50_s", "step_p90_s", "usd_per_h"),
    *_optional(sa.Integer, "exit_code", "num_nodes"),
    sa.Column("num_steps", sa.BigInteger),
    sa.Column("price_retrieved_at", UtcTime),
    *_optional(sa.Double, "gpu_busy_share", "gpu_mean_w", "gpu_mean_clock_hz"),
    sa.Column("gpu_peak_bytes", sa.BigInteger),
)

# An answer on its way to a channel. The token is that of the process that sends it, or was the last to do so.
deliveries = sa.Table(
    "deliveries",
    metadata,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("channel", sa.Text, primary_key=True),
    sa.Column("changed_at", UtcTime, nullable=False, index=True),
    *_required(sa.Text, "content_sha256", "state", "token", "holder"),
    sa.Column("attempts", sa.Integer, nullable=False),
    *_required(UtcTime, "begun_at", "expires_at"),
    sa.Column("error", sa.Text),
)

schedules = sa.Table(
    "schedules",
    metadata,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    *_required(sa.Text, "cron", "zone", "folder"),
    sa.Column("command", Texts, nullable=False),
    sa.Column("channel", sa.Text),
    sa.Column("when", Name(DeliverWhen), nullable=False),
    *_required(UtcTime, "added_at", "settled_until"),
)

occurrences = sa.Table(
    "occurrences",
    metadata,
    sa.Column(
        "schedule_id",
        sa.Text,
        sa.ForeignKey("schedules.id", name="fk_occurrences_schedule", ondelete="CASCADE"),
        primary_key=True,
    ),
    sa.Column("due_at", UtcTime, primary_key=True),
    sa.Column("state", Name(OccurrenceState), nullable=False),
    *_required(sa.Text, "holder", "outcome", "delivery", "output"),
    *_optional(UtcTime, "expires_at", "started_at", "ended_at"),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("exit_code", sa.Integer),
    *_optional(sa.Text, "recommended", "output_sha256"),
    sqlite_with_rowid=False,
)
