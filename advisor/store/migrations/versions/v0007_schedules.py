"""Schedules: commands that run at set times, and each time at which one was due."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Two more tables."""
    op.create_table(
        "schedules",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("cron", sa.Text, nullable=False),
        sa.Column("zone", sa.Text, nullable=False),
        sa.Column("command", sa.Text, nullable=False),
        sa.Column("folder", sa.Text, nullable=False),
        sa.Column("channel", sa.Text),
        sa.Column("when", sa.Text, nullable=False),
        sa.Column("added_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("settled_until", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_table(
        "occurrences",
        sa.Column(
            "schedule_id",
            sa.Text,
            sa.ForeignKey("schedules.id", name="fk_occurrences_schedule", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("due_at", sa.DateTime(timezone=True), primary_key=True),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("token", sa.Text, nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True)),
        sa.Column("started_at", sa.DateTime(timezone=True)),
        sa.Column("ended_at", sa.DateTime(timezone=True)),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("exit_code", sa.Integer),
        sa.Column("recommended", sa.Text),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("delivery", sa.Text, nullable=False),
        sa.Column("output_sha256", sa.Text),
        sa.Column("output", sa.Text, nullable=False),
        sqlite_with_rowid=False,
    )
