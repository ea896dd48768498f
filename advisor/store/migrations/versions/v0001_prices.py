"""Prices: the last pull of each scope, current offers, history, and the lease of a refresh."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """From an empty database."""
    op.create_table(
        "pulls",
        sa.Column("source", sa.Text, primary_key=True),
        sa.Column("scope", sa.Text, primary_key=True),
        sa.Column("num_offers", sa.Integer, nullable=False),
        sa.Column("succeeded_at", sa.DateTime(timezone=True)),
        sa.Column("failed_at", sa.DateTime(timezone=True)),
        sa.Column("failure", sa.Text),
        sa.Column("gaps", sa.Text, nullable=False),
    )
    _create_offers()
    _create_history()
    op.create_table(
        "leases",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("token", sa.Text, nullable=False),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("taken_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
    )


def _create_offers() -> None:
    op.create_table(
        "offers",
        sa.Column("pull_source", sa.Text, primary_key=True),
        sa.Column("pull_scope", sa.Text, primary_key=True),
        sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("provider", sa.Text, nullable=False),
        sa.Column("instance_type", sa.Text, nullable=False),
        sa.Column("region", sa.Text, nullable=False),
        sa.Column("zone", sa.Text),
        sa.Column("gpu", sa.Text, nullable=False),
        sa.Column("num_gpus", sa.Integer, nullable=False),
        sa.Column("market", sa.Text, nullable=False),
        sa.Column("list_usd_per_h", sa.Double, nullable=False),
        sa.Column("contracted_usd_per_h", sa.Double),
        sa.Column("effective_usd_per_h", sa.Double),
        sa.Column("spot_p10_usd_per_h", sa.Double),
        sa.Column("spot_p50_usd_per_h", sa.Double),
        sa.Column("spot_p90_usd_per_h", sa.Double),
        sa.Column("includes", sa.Text, nullable=False),
        sa.Column("minimum_billed_s", sa.Double, nullable=False),
        sa.Column("billed_step_s", sa.Double, nullable=False),
        sa.Column("num_vcpus", sa.Integer),
        sa.Column("retrieved_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sqlite_with_rowid=False,
    )


def _create_history() -> None:
    op.create_table(
        "price_series",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("provider", sa.Text, nullable=False),
        sa.Column("instance_type", sa.Text, nullable=False),
        sa.Column("region", sa.Text, nullable=False),
        sa.Column("zone", sa.Text, nullable=False),
        sa.Column("market", sa.Text, nullable=False),
        sa.Column("gpu", sa.Text),
        sa.UniqueConstraint(
            "source", "provider", "instance_type", "region", "zone", "market", name="uq_price_series"
        ),
    )
    op.create_index("ix_price_series_gpu", "price_series", ["gpu"])
    op.create_table(
        "price_points",
        sa.Column(
            "series_id",
            sa.Integer,
            sa.ForeignKey("price_series.id", name="fk_price_points_series"),
            primary_key=True,
        ),
        sa.Column("observed_at", sa.DateTime(timezone=True), primary_key=True),
        sa.Column("usd_per_h", sa.Double, nullable=False),
        sqlite_with_rowid=False,
    )
