"""The ledger: what was recommended, and what really ran."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Two more tables."""
    op.create_table(
        "recommendations",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("project", sa.Text, nullable=False),
        sa.Column("script", sa.Text, nullable=False),
        sa.Column("plan_id", sa.Text, nullable=False),
        sa.Column("provider", sa.Text, nullable=False),
        sa.Column("gpu", sa.Text, nullable=False),
        sa.Column("num_gpus", sa.Integer, nullable=False),
        sa.Column("market", sa.Text),
        sa.Column("time_p50_s", sa.Double, nullable=False),
        sa.Column("time_p90_s", sa.Double, nullable=False),
        sa.Column("cost_p50_usd", sa.Double, nullable=False),
        sa.Column("cost_p90_usd", sa.Double, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
    )
    op.create_index("ix_recommendations_at", "recommendations", ["at"])
    op.create_table(
        "runs",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("recommendation_id", sa.Text),
        sa.Column("project", sa.Text, nullable=False),
        sa.Column("script", sa.Text, nullable=False),
        sa.Column("provider", sa.Text, nullable=False),
        sa.Column("gpu", sa.Text, nullable=False),
        sa.Column("num_gpus", sa.Integer, nullable=False),
        sa.Column("market", sa.Text),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("duration_s", sa.Double, nullable=False),
        sa.Column("cost_usd", sa.Double, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
    )
    op.create_index("ix_runs_started_at", "runs", ["started_at"])
