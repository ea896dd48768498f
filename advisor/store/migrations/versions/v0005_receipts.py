"""The ledger: what was asked and what else fits, how a run ended, its steps, and costs that are not known."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """More columns; what was recorded before knows little of them, and its costs were stated by people."""
    _recommendations()
    _runs()


def _recommendations() -> None:
    for name in ("instance_type", "region", "command"):
        op.add_column("recommendations", sa.Column(name, sa.Text))
    op.add_column("recommendations", sa.Column("num_iterations", sa.BigInteger))
    for name in (
        "budget_usd",
        "deadline_s",
        "usd_per_h",
        "iteration_p10_s",
        "iteration_p50_s",
        "iteration_p90_s",
        "uncorrected_p50_s",
    ):
        op.add_column("recommendations", sa.Column(name, sa.Double))
    op.add_column("recommendations", sa.Column("alternatives", sa.Text, nullable=False, server_default="[]"))


def _runs() -> None:
    # In a batch: SQLite cannot make a column nullable but by a new table.
    with op.batch_alter_table("runs") as runs:
        for name in ("cost_usd", "duration_s"):
            runs.alter_column(name, existing_type=sa.Double, existing_nullable=False, nullable=True)
        for name in ("instance_type", "region", "zone"):
            runs.add_column(sa.Column(name, sa.Text))
        runs.add_column(sa.Column("user", sa.Text, nullable=False, server_default=""))
        runs.add_column(sa.Column("status", sa.Text, nullable=False, server_default="finished"))
        runs.add_column(sa.Column("exit_code", sa.Integer))
        runs.add_column(sa.Column("num_steps", sa.BigInteger))
        for name in ("step_p10_s", "step_p50_s", "step_p90_s", "usd_per_h"):
            runs.add_column(sa.Column(name, sa.Double))
        runs.add_column(sa.Column("cost_kind", sa.Text))
        runs.add_column(sa.Column("price_retrieved_at", sa.DateTime(timezone=True)))
    op.execute("UPDATE runs SET cost_kind = 'stated'")
