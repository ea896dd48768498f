"""The outbox: which answer went to which channel, and how far a sending came."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """One table; what was sent before is not known to it."""
    at = sa.DateTime(timezone=True)
    op.create_table(
        "deliveries",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("channel", sa.Text, primary_key=True),
        sa.Column("content_sha256", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("begun_at", at, nullable=False),
        sa.Column("changed_at", at, nullable=False, index=True),
        sa.Column("error", sa.Text),
        sa.Column("token", sa.Text, nullable=False),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("expires_at", at, nullable=False),
    )
