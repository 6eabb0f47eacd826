"""how fast engines think in each slot of each worker"""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

VIEW = """
SELECT w.name AS worker, b.slot, COUNT(*) AS batches, SUM(b.games) AS games,
       CASE WHEN SUM(b.think_seconds) > 0
            THEN SUM(b.plus_nodes + b.minus_nodes) / SUM(b.think_seconds) END AS nps
  FROM spsa_batch b JOIN spsa_worker w ON w.id = b.worker_id
 WHERE b.status = 'done' AND b.slot IS NOT NULL
 GROUP BY w.id, b.slot
"""


def upgrade() -> None:
    op.execute(f"CREATE VIEW spsa_slot_stats AS {VIEW}")


def downgrade() -> None:
    op.execute("DROP VIEW spsa_slot_stats")
