"""Pulls: which place a scope is, and what is for rent there without a known price."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Two more columns; what was pulled before tells neither."""
    for name in ("place", "unpriced"):
        op.add_column("pulls", sa.Column(name, sa.Text, nullable=False, server_default="[]"))
