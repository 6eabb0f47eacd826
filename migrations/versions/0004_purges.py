"""results that are struck out: purges, what they struck, and iterations with fewer games"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

Identity = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Json = sa.JSON(none_as_null=True)
Utc = sa.Text().with_variant(sa.TIMESTAMP(timezone=True), "postgresql")

# constraint: table, what it was, what it is; to the letter as the database keeps it
CHECKS = {
    "ck_spsa_batch_status": (
        "spsa_batch",
        "status IN ('ready', 'leased', 'done', 'failed')",
        "status IN ('ready', 'leased', 'done', 'failed', 'struck')",
    ),
    "ck_spsa_iteration_complete": (
        "spsa_iteration",
        "status <> 'complete' OR (games_played = target_games AND completed_at IS NOT NULL)",
        "status <> 'complete' OR (games_played + struck_games = target_games AND completed_at IS NOT NULL)",
    ),
    "ck_spsa_iteration_counts": (
        "spsa_iteration",
        "games_played = (plus_wins + minus_wins + draws) AND games_played = 2 * (ptnml_0 + ptnml_1 + ptnml_2 + ptnml_3 + ptnml_4) AND games_played <= target_games AND plus_wins - minus_wins = 2 * (ptnml_4 - ptnml_0) + (ptnml_3 - ptnml_1)",
        "games_played = (plus_wins + minus_wins + draws) AND games_played = 2 * (ptnml_0 + ptnml_1 + ptnml_2 + ptnml_3 + ptnml_4) AND games_played + struck_games <= target_games AND plus_wins - minus_wins = 2 * (ptnml_4 - ptnml_0) + (ptnml_3 - ptnml_1)",
    ),
}
STRUCK = (
    "struck_games = 0 OR (struck_games > 0 AND struck_games % 2 = 0"
    " AND status IN ('complete', 'abandoned'))"
)

BEFORE = {
    "spsa_progress": """
SELECT r.name AS run, i.iteration_number, i.purpose, i.k, i.status,
       i.games_played, i.target_games,
       CAST(100.0 * i.games_played / i.target_games AS DOUBLE PRECISION) AS percent_done,
       i.plus_wins, i.minus_wins, i.draws,
       i.ptnml_0, i.ptnml_1, i.ptnml_2, i.ptnml_3, i.ptnml_4, i.void_games,
       CASE WHEN i.games_played > 0
            THEN CAST((i.plus_wins + 0.5 * i.draws) / i.games_played AS DOUBLE PRECISION)
            END AS score,
       CASE WHEN i.plus_wins + 0.5 * i.draws > 0 AND i.minus_wins + 0.5 * i.draws > 0
            THEN CAST(400.0 * log10((i.plus_wins + 0.5 * i.draws)
                                    / (i.minus_wins + 0.5 * i.draws)) AS DOUBLE PRECISION)
            END AS elo,
       i.elo_diff AS elo_used, i.a_k, i.c_k, i.opened_on, i.created_at, i.completed_at
  FROM spsa_iteration i JOIN spsa_run r ON r.id = i.run_id
""",
    "spsa_param_history": """
SELECT r.name AS run, 0 AS k, p.key AS name,
       CAST(CAST(p.value AS TEXT) AS DOUBLE PRECISION) AS value, r.created_at AS at
  FROM spsa_run r, json_each(r.start_theta) AS p
 UNION ALL
SELECT r.name, s.k, p.key, CAST(CAST(p.value AS TEXT) AS DOUBLE PRECISION), s.created_at
  FROM spsa_step s JOIN spsa_run r ON r.id = s.run_id, json_each(s.theta_after) AS p
""",
    "spsa_worker_stats": """
SELECT w.name AS worker, w.host, w.platform, w.cores, w.concurrency, w.nps, w.version,
       w.first_seen_at, w.last_seen_at,
       COALESCE(SUM(CASE WHEN b.status = 'done' THEN 1 ELSE 0 END), 0) AS batches,
       COALESCE(SUM(CASE WHEN b.status = 'done' THEN b.games ELSE 0 END), 0) AS games,
       COALESCE(SUM(CASE WHEN b.status = 'leased' THEN b.games ELSE 0 END), 0) AS games_leased,
       COALESCE(SUM(b.void_games), 0) AS void_games,
       COALESCE(SUM(b.plus_time_losses + b.minus_time_losses), 0) AS time_losses,
       COALESCE(SUM(b.seconds), 0) AS seconds_played, MAX(b.reported_at) AS last_report_at
  FROM spsa_worker w LEFT JOIN spsa_batch b ON b.worker_id = w.id
 GROUP BY w.id
""",
}
AFTER = {
    "spsa_progress": BEFORE["spsa_progress"].replace(
        "i.completed_at\n", "i.completed_at,\n       i.struck_games\n"
    ),
    "spsa_param_history": BEFORE["spsa_param_history"]
    + """ WHERE NOT EXISTS (SELECT 1 FROM spsa_purge u WHERE u.run_id = s.run_id AND u.applied = s.k)
 UNION ALL
SELECT r.name, u.applied, p.key, CAST(CAST(p.value AS TEXT) AS DOUBLE PRECISION), u.at
  FROM spsa_purge u JOIN spsa_run r ON r.id = u.run_id, json_each(u.theta_after) AS p
 WHERE u.applied > 0
   AND NOT EXISTS (SELECT 1 FROM spsa_purge v WHERE v.run_id = u.run_id
                      AND v.applied = u.applied AND v.number > u.number)
""",
    "spsa_worker_stats": BEFORE["spsa_worker_stats"].replace(
        "last_report_at\n",
        "last_report_at,\n"
        "       COALESCE((SELECT SUM(s.games) FROM spsa_struck s WHERE s.worker_id = w.id), 0)\n"
        "           AS games_struck\n",
    ),
}


def upgrade() -> None:
    _drop_views()
    op.add_column("spsa_run", sa.Column("purges", sa.Integer, nullable=False, server_default="0"))
    # written out: a CHECK of a new column is part of the same statement on both databases
    op.execute(
        "ALTER TABLE spsa_iteration ADD COLUMN struck_games INTEGER DEFAULT '0' NOT NULL"
        f" CONSTRAINT ck_spsa_iteration_struck CHECK ({STRUCK})"
    )
    op.add_column(
        "spsa_iteration", sa.Column("opened_purges", sa.Integer, nullable=False, server_default="0")
    )
    for name, (table, old, new) in CHECKS.items():
        _change_check(table, name, old, new)
    _create_tables()
    _create_views(AFTER)


def downgrade() -> None:
    """Refused where something was struck: the older tables have no words for it."""
    if op.get_bind().scalar(sa.text("SELECT count(*) FROM spsa_purge")):
        raise sa.exc.InvalidRequestError("results were struck out: there is no way back to 0003")
    _drop_views()
    op.drop_table("spsa_struck")
    op.drop_table("spsa_purge")
    for name, (table, old, new) in CHECKS.items():
        _change_check(table, name, new, old)
    op.drop_column("spsa_iteration", "opened_purges")
    op.execute("ALTER TABLE spsa_iteration DROP COLUMN struck_games")  # and its CHECK
    op.drop_column("spsa_run", "purges")
    _create_views(BEFORE)


def _drop_views() -> None:
    for name in BEFORE:
        op.execute(f"DROP VIEW {name}")


def _create_views(views: dict[str, str]) -> None:
    for name, query in views.items():
        op.execute(f"CREATE VIEW {name} AS {query}")


def _change_check(table: str, name: str, old: str, new: str) -> None:
    if op.get_bind().dialect.name == "sqlite":
        _rewrite_check(
            table, f"CONSTRAINT {name} CHECK ({old})", f"CONSTRAINT {name} CHECK ({new})"
        )
    else:
        op.drop_constraint(op.f(name), table)
        op.create_check_constraint(op.f(name), table, new)


def _rewrite_check(table: str, old: str, new: str) -> None:
    """Another CHECK in place, by the way that SQLite's manual has for it.

    https://sqlite.org/lang_altertable.html, "Making Other Kinds Of Table Schema Changes": nothing
    on the disk depends on a CHECK. The other way copies the table, which the foreign keys of its
    children forbid inside a transaction.
    """
    connection = op.get_bind()
    fits = f"type = 'table' AND name = '{table}' AND instr(sql, :old) > 0"
    wanted = {"old": old, "new": new}
    if connection.scalar(sa.text(f"SELECT count(*) FROM sqlite_master WHERE {fits}"), wanted) != 1:
        raise sa.exc.InvalidRequestError(f"{table} has no {old}")
    version = connection.exec_driver_sql("PRAGMA schema_version").scalar_one()
    connection.exec_driver_sql("PRAGMA writable_schema = ON")
    connection.execute(
        sa.text(f"UPDATE sqlite_master SET sql = replace(sql, :old, :new) WHERE {fits}"), wanted
    )
    connection.exec_driver_sql(f"PRAGMA schema_version = {version + 1}")  # others read it again
    connection.exec_driver_sql("PRAGMA writable_schema = RESET")  # and so does this connection


def _counts() -> list[sa.Column[int]]:
    names = ("plus_wins", "minus_wins", "draws", *(f"ptnml_{i}" for i in range(5)), "void_games")
    return [sa.Column(name, sa.Integer, server_default="0", nullable=False) for name in names]


def _create_tables() -> None:
    op.create_table(
        "spsa_purge",
        sa.Column("id", Identity, nullable=False),
        sa.Column("run_id", Identity, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("applied", sa.Integer, nullable=False),
        sa.Column("theta_before", Json, nullable=False),
        sa.Column("theta_after", Json, nullable=False),
        sa.Column("games", sa.Integer, nullable=False),
        sa.Column("selection", Json, nullable=False),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("at", Utc, server_default=sa.text("CURRENT_TIMESTAMP"), nullable=False),
        sa.CheckConstraint(
            "number > 0 AND applied >= 0 AND games >= 0", name=op.f("ck_spsa_purge_numbers")
        ),
        sa.ForeignKeyConstraint(["run_id"], ["spsa_run.id"], name=op.f("fk_spsa_purge_run_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_spsa_purge")),
        sa.UniqueConstraint("run_id", "number", name=op.f("uq_spsa_purge_run_id_number")),
    )
    op.create_table(
        "spsa_struck",
        sa.Column("id", Identity, nullable=False),
        sa.Column("purge_id", Identity, nullable=False),
        sa.Column("iteration_id", Identity, nullable=False),
        sa.Column("seq", sa.Integer, nullable=False),
        sa.Column("games", sa.Integer, nullable=False),
        sa.Column("played_again", sa.Boolean, nullable=False),
        sa.Column("worker_id", Identity, nullable=False),
        sa.Column("claim_id", sa.Text, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("slot", sa.Integer, nullable=True),
        *_counts(),
        sa.Column("voids", Json, nullable=True),
        sa.Column("plus_nodes", sa.BigInteger, nullable=False),
        sa.Column("minus_nodes", sa.BigInteger, nullable=False),
        sa.Column("moves", sa.BigInteger, nullable=False),
        sa.Column("plus_time_losses", sa.Integer, nullable=False),
        sa.Column("minus_time_losses", sa.Integer, nullable=False),
        sa.Column("seconds", sa.Double, nullable=False),
        sa.Column("reported_at", Utc, nullable=False),
        sa.CheckConstraint(
            "(plus_wins + minus_wins + draws) = games AND 2 * (ptnml_0 + ptnml_1 + ptnml_2 + ptnml_3 + ptnml_4) = games",
            name=op.f("ck_spsa_struck_counts"),
        ),
        sa.ForeignKeyConstraint(
            ["purge_id"], ["spsa_purge.id"], name=op.f("fk_spsa_struck_purge_id")
        ),
        sa.ForeignKeyConstraint(
            ["iteration_id"], ["spsa_iteration.id"], name=op.f("fk_spsa_struck_iteration_id")
        ),
        sa.ForeignKeyConstraint(
            ["worker_id"], ["spsa_worker.id"], name=op.f("fk_spsa_struck_worker_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_spsa_struck")),
        sa.UniqueConstraint(
            "purge_id",
            "iteration_id",
            "seq",
            name=op.f("uq_spsa_struck_purge_id_iteration_id_seq"),
        ),
    )
    op.create_index("ix_spsa_struck_iteration_id", "spsa_struck", ["iteration_id"])
    op.create_index("ix_spsa_struck_worker_id", "spsa_struck", ["worker_id"])
