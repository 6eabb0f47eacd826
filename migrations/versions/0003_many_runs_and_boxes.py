"""what many runs and many boxes need: priority and share, slots, confinement, signatures"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("spsa_run", sa.Column("priority", sa.Integer, nullable=False, server_default="0"))
    # written out: a CHECK of a new column is part of the same statement on both databases
    double = "DOUBLE" if op.get_bind().dialect.name == "sqlite" else "DOUBLE PRECISION"
    op.execute(
        f"ALTER TABLE spsa_run ADD COLUMN share {double} DEFAULT '1' NOT NULL"
        " CONSTRAINT ck_spsa_run_share CHECK (share > 0)"
    )
    op.add_column("spsa_iteration", sa.Column("signature", sa.Text, nullable=True))
    op.add_column("spsa_batch", sa.Column("slot", sa.Integer, nullable=True))
    op.add_column(
        "spsa_batch", sa.Column("think_seconds", sa.Double, nullable=False, server_default="0")
    )
    op.add_column("spsa_worker", sa.Column("confinement", sa.Text, nullable=True))


def downgrade() -> None:
    op.drop_column("spsa_worker", "confinement")
    op.drop_column("spsa_batch", "think_seconds")
    op.drop_column("spsa_batch", "slot")
    op.drop_column("spsa_iteration", "signature")
    op.execute("ALTER TABLE spsa_run DROP COLUMN share")
    op.drop_column("spsa_run", "priority")
