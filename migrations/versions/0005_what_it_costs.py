"""what one claim, one report and one look cost: functions, indexes, and totals that are kept"""

import sqlalchemy as sa
from alembic import op

from spsa.store import functions

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

COUNTS = ("plus_wins", "minus_wins", "draws", *(f"ptnml_{i}" for i in range(5)), "void_games")
TOTALS = ("batches", "games", "void_games", "time_losses")

# name: table, columns, condition
INDEXES = {
    "ix_spsa_batch_ready": ("spsa_batch", ["iteration_id", "seq"], "status IN ('ready')"),
    "ix_spsa_batch_leased": (
        "spsa_batch",
        ["iteration_id", "lease_expires_at"],
        "status IN ('leased')",
    ),
    "ix_spsa_iteration_abandoned": ("spsa_iteration", ["run_id"], "status IN ('abandoned')"),
    "ix_spsa_iteration_validation": (
        "spsa_iteration",
        ["run_id", "iteration_number"],
        "purpose IN ('validate')",
    ),
    "ix_spsa_iteration_completed": ("spsa_iteration", ["run_id", "completed_at"], None),
}
OPEN = ("spsa_batch", ["iteration_id", "seq"], "status IN ('ready', 'leased')")

# of the games of complete iterations, what was kept of them so far being nothing
RUN_TOTALS = f"""
UPDATE spsa_run SET {", ".join(f"{n} = t.{n}" for n in COUNTS)}
  FROM (SELECT run_id, {", ".join(f"SUM({n}) AS {n}" for n in COUNTS)} FROM spsa_iteration
         WHERE purpose = 'tune' AND status = 'complete' GROUP BY run_id) AS t
 WHERE t.run_id = spsa_run.id
"""
BOUNDED = """
UPDATE spsa_run SET bounded_steps =
       (SELECT COUNT(*) FROM spsa_step s WHERE s.run_id = spsa_run.id AND s.bounded)
"""
WORKER_TOTALS = """
UPDATE spsa_worker
   SET batches = t.batches, games = t.games, void_games = t.void_games, time_losses = t.time_losses
  FROM (SELECT b.worker_id, SUM(CASE WHEN b.status = 'done' THEN 1 ELSE 0 END) AS batches,
               SUM(CASE WHEN b.status = 'done' THEN b.games ELSE 0 END) AS games,
               SUM(b.void_games) AS void_games,
               SUM(b.plus_time_losses + b.minus_time_losses) AS time_losses
          FROM spsa_batch b JOIN spsa_iteration i ON i.id = b.iteration_id
         WHERE i.status = 'complete' AND b.worker_id IS NOT NULL GROUP BY b.worker_id) AS t
 WHERE t.worker_id = spsa_worker.id
"""


def upgrade() -> None:
    op.drop_index("ix_spsa_batch_open", "spsa_batch")
    for name, index in INDEXES.items():
        _create_index(name, *index)
    for name in (*COUNTS, "bounded_steps"):
        op.add_column("spsa_run", sa.Column(name, sa.Integer, nullable=False, server_default="0"))
    for name in TOTALS:
        op.add_column(
            "spsa_worker", sa.Column(name, sa.BigInteger, nullable=False, server_default="0")
        )
    for statement in (RUN_TOTALS, BOUNDED, WORKER_TOTALS):
        op.execute(statement)
    if _on_a_server():
        # what a report changes is small and finds room on its page: no index is touched
        op.execute("ALTER TABLE spsa_iteration SET (fillfactor = 50, toast_tuple_target = 512)")
        for statement in functions.statements(_schema()):
            op.execute(statement)


def downgrade() -> None:
    if _on_a_server():
        op.execute("ALTER TABLE spsa_iteration RESET (fillfactor, toast_tuple_target)")
        for statement in functions.dropping():
            op.execute(statement)
    for name in TOTALS:
        op.drop_column("spsa_worker", name)
    for name in (*COUNTS, "bounded_steps"):
        op.drop_column("spsa_run", name)
    for name, (table, _, _) in INDEXES.items():
        op.drop_index(name, table)
    _create_index("ix_spsa_batch_open", *OPEN)


def _create_index(name: str, table: str, columns: list[str], condition: str | None) -> None:
    where = None if condition is None else sa.text(condition)
    op.create_index(name, table, columns, sqlite_where=where, postgresql_where=where)


def _on_a_server() -> bool:
    return op.get_bind().dialect.name == "postgresql"


def _schema() -> str:
    return str(op.get_bind().scalar(sa.text("SELECT quote_ident(current_schema())")))
