"""the first tables"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

Identity = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Json = sa.JSON(none_as_null=True)
Utc = sa.Text().with_variant(sa.TIMESTAMP(timezone=True), "postgresql")

VIEWS = {
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


def upgrade() -> None:
    op.create_table(
        "spsa_engine",
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("build_key", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("bench", sa.BigInteger(), nullable=True),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("bytes", sa.LargeBinary(), nullable=True),
        sa.Column("created_at", Utc, server_default=sa.text("CURRENT_TIMESTAMP"), nullable=False),
        sa.CheckConstraint("length(sha256) = 64", name=op.f("ck_spsa_engine_sha256")),
        sa.PrimaryKeyConstraint("sha256", name=op.f("pk_spsa_engine")),
    )
    op.create_table(
        "spsa_run",
        sa.Column("id", Identity, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), server_default="running", nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("algorithm", sa.Text(), nullable=False),
        sa.Column("settings", Json, nullable=False),
        sa.Column("space", Json, nullable=False),
        sa.Column("terms", Json, nullable=False),
        sa.Column("source_sha256", sa.Text(), nullable=True),
        sa.Column("max_iterations", sa.Integer(), nullable=False),
        sa.Column("start_theta", Json, nullable=False),
        sa.Column("theta", Json, nullable=False),
        sa.Column("state", Json, nullable=False),
        sa.Column("applied", sa.Integer(), server_default="0", nullable=False),
        sa.Column("master_id", sa.Text(), nullable=True),
        sa.Column("epoch", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("lease_expires_at", Utc, nullable=True),
        sa.Column("created_at", Utc, server_default=sa.text("CURRENT_TIMESTAMP"), nullable=False),
        sa.Column("finished_at", Utc, nullable=True),
        sa.CheckConstraint(
            "(status IN ('finished', 'stopped')) = (finished_at IS NOT NULL)",
            name=op.f("ck_spsa_run_finished"),
        ),
        sa.CheckConstraint(
            "status IN ('running', 'paused', 'finished', 'stopped')",
            name=op.f("ck_spsa_run_status"),
        ),
        sa.CheckConstraint(
            "applied >= 0 AND applied <= max_iterations", name=op.f("ck_spsa_run_applied")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_spsa_run")),
        sa.UniqueConstraint("name", name=op.f("uq_spsa_run_name")),
    )
    op.create_table(
        "spsa_worker",
        sa.Column("id", Identity, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("platform", sa.Text(), nullable=False),
        sa.Column("cores", sa.Integer(), nullable=False),
        sa.Column("concurrency", sa.Integer(), nullable=False),
        sa.Column("nps", sa.Double(), nullable=True),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column(
            "first_seen_at", Utc, server_default=sa.text("CURRENT_TIMESTAMP"), nullable=False
        ),
        sa.Column("last_seen_at", Utc, server_default=sa.text("CURRENT_TIMESTAMP"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_spsa_worker")),
        sa.UniqueConstraint("name", name=op.f("uq_spsa_worker_name")),
    )
    op.create_table(
        "spsa_event",
        sa.Column("id", Identity, nullable=False),
        sa.Column("at", Utc, server_default=sa.text("CURRENT_TIMESTAMP"), nullable=False),
        sa.Column("run_id", Identity, nullable=True),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("detail", Json, nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["spsa_run.id"], name=op.f("fk_spsa_event_run_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_spsa_event")),
    )
    op.create_table(
        "spsa_iteration",
        sa.Column("id", Identity, nullable=False),
        sa.Column("run_id", Identity, nullable=False),
        sa.Column("iteration_number", sa.Integer(), nullable=False),
        sa.Column("purpose", sa.Text(), server_default="tune", nullable=False),
        sa.Column("k", sa.Integer(), nullable=True),
        sa.Column("opened_on", sa.Integer(), nullable=False),
        sa.Column("in_flight", sa.Integer(), nullable=False),
        sa.Column("a_k", sa.Double(), nullable=True),
        sa.Column("c_k", sa.Double(), nullable=True),
        sa.Column("plus_engine_path", sa.Text(), nullable=False),
        sa.Column("minus_engine_path", sa.Text(), nullable=False),
        sa.Column("plus_sha256", sa.Text(), nullable=False),
        sa.Column("minus_sha256", sa.Text(), nullable=False),
        sa.Column("plus_options", Json, nullable=False),
        sa.Column("minus_options", Json, nullable=False),
        sa.Column("terms", Json, nullable=False),
        sa.Column("timelow_ms", sa.Integer(), nullable=False),
        sa.Column("timehigh_ms", sa.Integer(), nullable=False),
        sa.Column("first_pair", sa.BigInteger(), nullable=False),
        sa.Column("rng_seed", sa.BigInteger(), nullable=False),
        sa.Column("target_games", sa.Integer(), nullable=False),
        sa.Column("games_played", sa.Integer(), server_default="0", nullable=False),
        sa.Column("plus_wins", sa.Integer(), server_default="0", nullable=False),
        sa.Column("minus_wins", sa.Integer(), server_default="0", nullable=False),
        sa.Column("draws", sa.Integer(), server_default="0", nullable=False),
        sa.Column("ptnml_0", sa.Integer(), server_default="0", nullable=False),
        sa.Column("ptnml_1", sa.Integer(), server_default="0", nullable=False),
        sa.Column("ptnml_2", sa.Integer(), server_default="0", nullable=False),
        sa.Column("ptnml_3", sa.Integer(), server_default="0", nullable=False),
        sa.Column("ptnml_4", sa.Integer(), server_default="0", nullable=False),
        sa.Column("void_games", sa.Integer(), server_default="0", nullable=False),
        sa.Column("status", sa.Text(), server_default="pending", nullable=False),
        sa.Column("base_parameters", Json, nullable=False),
        sa.Column("plus_parameters", Json, nullable=False),
        sa.Column("minus_parameters", Json, nullable=False),
        sa.Column("perturbation_signs", Json, nullable=False),
        sa.Column("gradient_estimate", Json, nullable=True),
        sa.Column("elo_diff", sa.Double(), nullable=True),
        sa.Column("opened_by_epoch", sa.BigInteger(), nullable=False),
        sa.Column("completed_by_epoch", sa.BigInteger(), nullable=True),
        sa.Column("created_at", Utc, server_default=sa.text("CURRENT_TIMESTAMP"), nullable=False),
        sa.Column("completed_at", Utc, nullable=True),
        sa.CheckConstraint(
            "(purpose = 'tune') = (k IS NOT NULL)", name=op.f("ck_spsa_iteration_k")
        ),
        sa.CheckConstraint(
            "purpose IN ('tune', 'validate')", name=op.f("ck_spsa_iteration_purpose")
        ),
        sa.CheckConstraint(
            "status <> 'complete' OR (games_played = target_games AND completed_at IS NOT NULL)",
            name=op.f("ck_spsa_iteration_complete"),
        ),
        sa.CheckConstraint(
            "status IN ('pending', 'in_progress', 'complete', 'abandoned')",
            name=op.f("ck_spsa_iteration_status"),
        ),
        sa.CheckConstraint(
            "games_played = (plus_wins + minus_wins + draws) AND games_played = 2 * (ptnml_0 + ptnml_1 + ptnml_2 + ptnml_3 + ptnml_4) AND games_played <= target_games AND plus_wins - minus_wins = 2 * (ptnml_4 - ptnml_0) + (ptnml_3 - ptnml_1)",
            name=op.f("ck_spsa_iteration_counts"),
        ),
        sa.CheckConstraint(
            "target_games > 0 AND target_games % 2 = 0", name=op.f("ck_spsa_iteration_whole_pairs")
        ),
        sa.ForeignKeyConstraint(
            ["minus_sha256"], ["spsa_engine.sha256"], name=op.f("fk_spsa_iteration_minus_sha256")
        ),
        sa.ForeignKeyConstraint(
            ["plus_sha256"], ["spsa_engine.sha256"], name=op.f("fk_spsa_iteration_plus_sha256")
        ),
        sa.ForeignKeyConstraint(["run_id"], ["spsa_run.id"], name=op.f("fk_spsa_iteration_run_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_spsa_iteration")),
        sa.UniqueConstraint(
            "run_id", "iteration_number", name=op.f("uq_spsa_iteration_run_id_iteration_number")
        ),
        sa.UniqueConstraint("run_id", "k", name=op.f("uq_spsa_iteration_run_id_k")),
    )
    op.create_index(
        "ix_spsa_iteration_open",
        "spsa_iteration",
        ["run_id", "id"],
        unique=False,
        sqlite_where=sa.text("status IN ('pending', 'in_progress')"),
        postgresql_where=sa.text("status IN ('pending', 'in_progress')"),
    )
    op.create_table(
        "spsa_batch",
        sa.Column("id", Identity, nullable=False),
        sa.Column("iteration_id", Identity, nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("games", sa.Integer(), nullable=False),
        sa.Column("first_pair", sa.BigInteger(), nullable=False),
        sa.Column("seed", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.Text(), server_default="ready", nullable=False),
        sa.Column("attempt", sa.Integer(), server_default="0", nullable=False),
        sa.Column("max_attempts", sa.Integer(), nullable=False),
        sa.Column("claim_id", sa.Text(), nullable=True),
        sa.Column("worker_id", Identity, nullable=True),
        sa.Column("leased_at", Utc, nullable=True),
        sa.Column("lease_expires_at", Utc, nullable=True),
        sa.Column("plus_wins", sa.Integer(), server_default="0", nullable=False),
        sa.Column("minus_wins", sa.Integer(), server_default="0", nullable=False),
        sa.Column("draws", sa.Integer(), server_default="0", nullable=False),
        sa.Column("ptnml_0", sa.Integer(), server_default="0", nullable=False),
        sa.Column("ptnml_1", sa.Integer(), server_default="0", nullable=False),
        sa.Column("ptnml_2", sa.Integer(), server_default="0", nullable=False),
        sa.Column("ptnml_3", sa.Integer(), server_default="0", nullable=False),
        sa.Column("ptnml_4", sa.Integer(), server_default="0", nullable=False),
        sa.Column("void_games", sa.Integer(), server_default="0", nullable=False),
        sa.Column("voids", Json, nullable=True),
        sa.Column("plus_nodes", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("minus_nodes", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("moves", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("plus_time_losses", sa.Integer(), server_default="0", nullable=False),
        sa.Column("minus_time_losses", sa.Integer(), server_default="0", nullable=False),
        sa.Column("seconds", sa.Double(), server_default="0", nullable=False),
        sa.Column("reported_at", Utc, nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "CASE WHEN status = 'done' THEN claim_id IS NOT NULL AND (plus_wins + minus_wins + draws) = games AND 2 * (ptnml_0 + ptnml_1 + ptnml_2 + ptnml_3 + ptnml_4) = games AND plus_wins - minus_wins = 2 * (ptnml_4 - ptnml_0) + (ptnml_3 - ptnml_1) ELSE (plus_wins + minus_wins + draws) + (ptnml_0 + ptnml_1 + ptnml_2 + ptnml_3 + ptnml_4) = 0 END",
            name=op.f("ck_spsa_batch_counts"),
        ),
        sa.CheckConstraint(
            "status <> 'leased' OR (claim_id IS NOT NULL AND lease_expires_at IS NOT NULL AND worker_id IS NOT NULL)",
            name=op.f("ck_spsa_batch_leased"),
        ),
        sa.CheckConstraint(
            "status IN ('ready', 'leased', 'done', 'failed')", name=op.f("ck_spsa_batch_status")
        ),
        sa.CheckConstraint(
            "attempt >= 0 AND attempt <= max_attempts", name=op.f("ck_spsa_batch_attempt")
        ),
        sa.CheckConstraint("games > 0 AND games % 2 = 0", name=op.f("ck_spsa_batch_whole_pairs")),
        sa.CheckConstraint(
            "plus_wins >= 0 AND minus_wins >= 0 AND draws >= 0 AND void_games >= 0 AND ptnml_0 >= 0 AND ptnml_1 >= 0 AND ptnml_2 >= 0 AND ptnml_3 >= 0 AND ptnml_4 >= 0",
            name=op.f("ck_spsa_batch_not_negative"),
        ),
        sa.ForeignKeyConstraint(
            ["iteration_id"], ["spsa_iteration.id"], name=op.f("fk_spsa_batch_iteration_id")
        ),
        sa.ForeignKeyConstraint(
            ["worker_id"], ["spsa_worker.id"], name=op.f("fk_spsa_batch_worker_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_spsa_batch")),
        sa.UniqueConstraint("iteration_id", "seq", name=op.f("uq_spsa_batch_iteration_id_seq")),
    )
    op.create_index("ix_spsa_batch_claim_id", "spsa_batch", ["claim_id"], unique=True)
    op.create_index(
        "ix_spsa_batch_open",
        "spsa_batch",
        ["iteration_id", "seq"],
        unique=False,
        sqlite_where=sa.text("status IN ('ready', 'leased')"),
        postgresql_where=sa.text("status IN ('ready', 'leased')"),
    )
    op.create_index("ix_spsa_batch_worker_id", "spsa_batch", ["worker_id"], unique=False)
    op.create_table(
        "spsa_step",
        sa.Column("id", Identity, nullable=False),
        sa.Column("run_id", Identity, nullable=False),
        sa.Column("iteration_id", Identity, nullable=False),
        sa.Column("k", sa.Integer(), nullable=False),
        sa.Column("theta_before", Json, nullable=False),
        sa.Column("delta", Json, nullable=False),
        sa.Column("theta_after", Json, nullable=False),
        sa.Column("bounded", sa.Boolean(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("created_at", Utc, server_default=sa.text("CURRENT_TIMESTAMP"), nullable=False),
        sa.ForeignKeyConstraint(
            ["iteration_id"], ["spsa_iteration.id"], name=op.f("fk_spsa_step_iteration_id")
        ),
        sa.ForeignKeyConstraint(["run_id"], ["spsa_run.id"], name=op.f("fk_spsa_step_run_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_spsa_step")),
        sa.UniqueConstraint("iteration_id", name=op.f("uq_spsa_step_iteration_id")),
        sa.UniqueConstraint("run_id", "k", name=op.f("uq_spsa_step_run_id_k")),
    )
    for name, query in VIEWS.items():
        op.execute(f"CREATE VIEW {name} AS {query}")


def downgrade() -> None:
    for name in VIEWS:
        op.execute(f"DROP VIEW {name}")
    op.drop_table("spsa_step")
    op.drop_index("ix_spsa_batch_worker_id", table_name="spsa_batch")
    op.drop_index(
        "ix_spsa_batch_open",
        table_name="spsa_batch",
        sqlite_where=sa.text("status IN ('ready', 'leased')"),
        postgresql_where=sa.text("status IN ('ready', 'leased')"),
    )
    op.drop_index("ix_spsa_batch_claim_id", table_name="spsa_batch")
    op.drop_table("spsa_batch")
    op.drop_index(
        "ix_spsa_iteration_open",
        table_name="spsa_iteration",
        sqlite_where=sa.text("status IN ('pending', 'in_progress')"),
        postgresql_where=sa.text("status IN ('pending', 'in_progress')"),
    )
    op.drop_table("spsa_iteration")
    op.drop_table("spsa_event")
    op.drop_table("spsa_worker")
    op.drop_table("spsa_run")
    op.drop_table("spsa_engine")
