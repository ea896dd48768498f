"""The ledger: how many machines a plan has, and how many a run had."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """A column more in each table; of what was recorded before nobody knows."""
    for table in ("recommendations", "runs"):
        op.add_column(table, sa.Column("num_nodes", sa.Integer))
