"""Offers: what the host's CPU is, which says whose packages run there."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """One more column; what was pulled before does not tell."""
    op.add_column("offers", sa.Column("architecture", sa.Text))
