"""the tables, the indexes and the views"""

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
    "spsa_open": """
SELECT i.id, i.status, i.run_id, i.requires, i.variants, i.plus_sha256, i.minus_sha256,
       r.name AS run, r.priority, r.share,
       (r.status = 'running'
        OR (i.purpose = 'validate' AND r.status IN ('finished', 'stopped'))) AS playable
  FROM spsa_iteration i JOIN spsa_run r ON r.id = i.run_id
 WHERE i.status IN ('pending', 'in_progress')
""",
    "spsa_suited": """
SELECT o.id AS iteration_id, o.run_id, o.priority, o.share, o.playable,
       w.id AS worker_id, w.host AS machine, w.last_seen_at
  FROM spsa_open o CROSS JOIN spsa_worker w
 WHERE (o.requires IS NULL OR w.provides LIKE o.requires
        OR EXISTS (SELECT 1 FROM json_each(o.variants) AS v WHERE w.provides LIKE v.key))
   AND (w.only_runs IS NULL
        OR EXISTS (SELECT 1 FROM json_each(w.only_runs) AS n WHERE n.key = o.run))
   AND (w.not_runs IS NULL
        OR NOT EXISTS (SELECT 1 FROM json_each(w.not_runs) AS n WHERE n.key = o.run))
   AND NOT EXISTS (SELECT 1 FROM spsa_set_aside a WHERE a.machine = w.host
                      AND (a.sha256 IS NULL OR a.sha256 IN (o.plus_sha256, o.minus_sha256)))
""",
    "spsa_miscounted": """
SELECT i.id AS iteration_id
  FROM spsa_iteration i LEFT JOIN spsa_batch b ON b.iteration_id = i.id
 GROUP BY i.id
HAVING i.games_played <> COALESCE(SUM(b.plus_wins + b.minus_wins + b.draws), 0)
    OR i.plus_wins <> COALESCE(SUM(b.plus_wins), 0)
    OR i.minus_wins <> COALESCE(SUM(b.minus_wins), 0)
    OR i.draws <> COALESCE(SUM(b.draws), 0)
    OR i.ptnml_0 <> COALESCE(SUM(b.ptnml_0), 0)
    OR i.ptnml_1 <> COALESCE(SUM(b.ptnml_1), 0)
    OR i.ptnml_2 <> COALESCE(SUM(b.ptnml_2), 0)
    OR i.ptnml_3 <> COALESCE(SUM(b.ptnml_3), 0)
    OR i.ptnml_4 <> COALESCE(SUM(b.ptnml_4), 0)
    OR i.void_games <> COALESCE(SUM(b.void_games), 0)
    OR i.struck_games <> COALESCE(SUM(CASE WHEN b.status = 'purged' THEN b.games ELSE 0 END), 0)
""",
    "spsa_claimed": """
SELECT b.claim_id, b.status, b.id, b.seq, b.attempt, b.first_pair, b.games, b.seed,
       i.id AS iteration_id, i.iteration_number, i.purpose, i.signature, i.terms,
       i.plus_sha256, i.plus_engine_path, i.plus_options,
       i.minus_sha256, i.minus_engine_path, i.minus_options, i.variants,
       r.id AS run_id, r.name AS run_name, r.seed AS run_seed
  FROM spsa_batch b
  JOIN spsa_iteration i ON i.id = b.iteration_id
  JOIN spsa_run r ON r.id = i.run_id
""",
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
       i.elo_diff AS elo_used, i.a_k, i.c_k, i.opened_on, i.created_at, i.completed_at,
       i.struck_games
  FROM spsa_iteration i JOIN spsa_run r ON r.id = i.run_id
""",
    "spsa_param_history": """
SELECT r.name AS run, 0 AS k, p.key AS name,
       CAST(CAST(p.value AS TEXT) AS DOUBLE PRECISION) AS value, r.created_at AS at
  FROM spsa_run r, json_each(r.start_theta) AS p
 UNION ALL
SELECT r.name, s.k, p.key, CAST(CAST(p.value AS TEXT) AS DOUBLE PRECISION), s.created_at
  FROM spsa_step s JOIN spsa_run r ON r.id = s.run_id, json_each(s.theta_after) AS p
 WHERE NOT EXISTS (SELECT 1 FROM spsa_purge u WHERE u.run_id = s.run_id AND u.applied = s.k)
 UNION ALL
SELECT r.name, u.applied, p.key, CAST(CAST(p.value AS TEXT) AS DOUBLE PRECISION), u.at
  FROM spsa_purge u JOIN spsa_run r ON r.id = u.run_id, json_each(u.theta_after) AS p
 WHERE u.applied > 0
   AND NOT EXISTS (SELECT 1 FROM spsa_purge v WHERE v.run_id = u.run_id
                      AND v.applied = u.applied AND v.number > u.number)
""",
    "spsa_worker_stats": """
SELECT w.name AS worker, w.host, w.platform, w.cores, w.concurrency, w.nps, w.version,
       w.first_seen_at, w.last_seen_at,
       COALESCE(SUM(CASE WHEN b.status = 'done' THEN 1 ELSE 0 END), 0) AS batches,
       COALESCE(SUM(CASE WHEN b.status = 'done' THEN b.games ELSE 0 END), 0) AS games,
       COALESCE(SUM(CASE WHEN b.status = 'leased' THEN b.games ELSE 0 END), 0) AS games_leased,
       COALESCE(SUM(CASE WHEN length(CAST(b.voids AS TEXT)) > 4 THEN
           (SELECT SUM(CAST(CAST(v.value AS TEXT) AS BIGINT)) FROM json_each(b.voids) AS v)
           END), 0) + w.failed_void_games AS void_games,
       COALESCE(SUM(b.plus_time_losses + b.minus_time_losses), 0) AS time_losses,
       COALESCE(SUM(b.seconds), 0) AS seconds_played, MAX(b.reported_at) AS last_report_at,
       COALESCE((SELECT SUM(s.games) FROM spsa_struck s WHERE s.worker_id = w.id), 0)
           AS games_struck,
       (SELECT MIN(a.reason) FROM spsa_set_aside a
         WHERE a.machine = w.host AND a.sha256 IS NULL) AS set_aside
  FROM spsa_worker w LEFT JOIN spsa_batch b ON b.worker_id = w.id
 GROUP BY w.id
""",
    "spsa_theta": """
SELECT v.run, v.parameter,
       MAX(CASE WHEN v.what = 'start' THEN v.value END) AS start,
       MAX(CASE WHEN v.what = 'final' THEN v.value END) AS final,
       MAX(CASE WHEN v.what = 'averaged' THEN v.value END) AS averaged,
       MAX(CASE WHEN v.what = 'averaged_sd' THEN v.value END) AS averaged_sd,
       MAX(CASE WHEN v.what = 'supported' THEN v.value END) AS supported,
       MAX(CASE WHEN v.what = 'supported_sd' THEN v.value END) AS supported_sd
  FROM (SELECT t.id, t.run, t.what, t.key AS parameter,
               CAST(CAST(t.value AS TEXT) AS DOUBLE PRECISION) AS value
          FROM (
                SELECT r.id, r.name AS run, 'start' AS what, p.key, p.value
                  FROM spsa_run r, json_each(r.start_theta) AS p
                 UNION ALL
                SELECT r.id, r.name AS run, 'final' AS what, p.key, p.value
                  FROM spsa_run r, json_each(r.theta) AS p
                 UNION ALL
                SELECT r.id, r.name AS run, 'averaged' AS what, p.key, p.value
                  FROM spsa_run r, json_each(r.theta_averaged) AS p
                 UNION ALL
                SELECT r.id, r.name AS run, 'averaged_sd' AS what, p.key, p.value
                  FROM spsa_run r, json_each(r.theta_averaged_sd) AS p
                 UNION ALL
                SELECT r.id, r.name AS run, 'supported' AS what, p.key, p.value
                  FROM spsa_run r, json_each(r.theta_supported) AS p
                 UNION ALL
                SELECT r.id, r.name AS run, 'supported_sd' AS what, p.key, p.value
                  FROM spsa_run r, json_each(r.theta_supported_sd) AS p
          ) AS t) AS v
 GROUP BY v.id, v.run, v.parameter
""",
    "spsa_slot_stats": """
SELECT w.name AS worker, b.slot, COUNT(*) AS batches, SUM(b.games) AS games,
       CASE WHEN SUM(b.think_seconds) > 0
            THEN SUM(b.plus_nodes + b.minus_nodes) / SUM(b.think_seconds) END AS nps
  FROM spsa_batch b JOIN spsa_worker w ON w.id = b.worker_id
 WHERE b.status = 'done' AND b.slot IS NOT NULL
 GROUP BY w.id, b.slot
""",
}


def upgrade() -> None:
    # ### commands auto generated by Alembic - please adjust! ###
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
        "spsa_file",
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("bytes", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", Utc, server_default=sa.text("CURRENT_TIMESTAMP"), nullable=False),
        sa.CheckConstraint("length(sha256) = 64", name=op.f("ck_spsa_file_sha256")),
        sa.PrimaryKeyConstraint("sha256", name=op.f("pk_spsa_file")),
    )
    op.create_table(
        "spsa_machine",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("login", sa.Text(), server_default="", nullable=False),
        sa.Column("secret_sha256", sa.Text(), nullable=True),
        sa.Column("created_at", Utc, server_default=sa.text("CURRENT_TIMESTAMP"), nullable=False),
        sa.CheckConstraint(
            "length(CAST(name AS TEXT)) BETWEEN 1 AND 220", name=op.f("ck_spsa_machine_name")
        ),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_spsa_machine")),
        sa.UniqueConstraint(
            "login", "secret_sha256", name=op.f("uq_spsa_machine_login_secret_sha256")
        ),
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
        sa.Column("start_space", Json, nullable=True),
        sa.Column("terms", Json, nullable=False),
        sa.Column("source_sha256", sa.Text(), nullable=True),
        sa.Column("max_iterations", sa.Integer(), nullable=False),
        sa.Column("start_theta", Json, nullable=False),
        sa.Column("theta", Json, nullable=False),
        sa.Column("theta_averaged", Json, nullable=True),
        sa.Column("theta_averaged_sd", Json, nullable=True),
        sa.Column("theta_supported", Json, nullable=True),
        sa.Column("theta_supported_sd", Json, nullable=True),
        sa.Column("state", Json, nullable=False),
        sa.Column("start_state", Json, nullable=True),
        sa.Column("applied", sa.Integer(), server_default="0", nullable=False),
        sa.Column("master_id", sa.Text(), nullable=True),
        sa.Column("epoch", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("lease_expires_at", Utc, nullable=True),
        sa.Column("builds", Json, nullable=True),
        sa.Column("created_at", Utc, server_default=sa.text("CURRENT_TIMESTAMP"), nullable=False),
        sa.Column("finished_at", Utc, nullable=True),
        sa.Column("priority", sa.Integer(), server_default="0", nullable=False),
        sa.Column("share", sa.Double(), server_default="1", nullable=False),
        sa.Column("purges", sa.Integer(), server_default="0", nullable=False),
        sa.Column("changes", sa.Integer(), server_default="0", nullable=False),
        sa.Column("plus_wins", sa.Integer(), server_default="0", nullable=False),
        sa.Column("minus_wins", sa.Integer(), server_default="0", nullable=False),
        sa.Column("draws", sa.Integer(), server_default="0", nullable=False),
        sa.Column("ptnml_0", sa.Integer(), server_default="0", nullable=False),
        sa.Column("ptnml_1", sa.Integer(), server_default="0", nullable=False),
        sa.Column("ptnml_2", sa.Integer(), server_default="0", nullable=False),
        sa.Column("ptnml_3", sa.Integer(), server_default="0", nullable=False),
        sa.Column("ptnml_4", sa.Integer(), server_default="0", nullable=False),
        sa.Column("void_games", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("bounded_steps", sa.Integer(), server_default="0", nullable=False),
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
        sa.CheckConstraint("share > 0", name=op.f("ck_spsa_run_share")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_spsa_run")),
        sa.UniqueConstraint("name", name=op.f("uq_spsa_run_name")),
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
        sa.Column("void_games", sa.BigInteger(), server_default="0", nullable=False),
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
        sa.Column("signature", sa.Text(), nullable=True),
        sa.Column("struck_games", sa.Integer(), server_default="0", nullable=False),
        sa.Column("opened_purges", sa.Integer(), server_default="0", nullable=False),
        sa.Column("opened_changes", sa.Integer(), server_default="0", nullable=False),
        sa.Column("requires", sa.Text(), nullable=True),
        sa.Column("variants", Json, nullable=True),
        sa.Column("match_number", sa.Integer(), nullable=True),
        sa.Column("compared", Json, nullable=True),
        sa.CheckConstraint(
            "(purpose = 'tune') = (k IS NOT NULL)", name=op.f("ck_spsa_iteration_k")
        ),
        sa.CheckConstraint(
            "purpose IN ('tune', 'validate')", name=op.f("ck_spsa_iteration_purpose")
        ),
        sa.CheckConstraint(
            "status <> 'complete' OR (games_played + struck_games = target_games AND completed_at IS NOT NULL)",
            name=op.f("ck_spsa_iteration_complete"),
        ),
        sa.CheckConstraint(
            "status IN ('pending', 'in_progress', 'complete', 'abandoned')",
            name=op.f("ck_spsa_iteration_status"),
        ),
        sa.CheckConstraint(
            "struck_games = 0 OR (struck_games > 0 AND struck_games % 2 = 0 AND status IN ('complete', 'abandoned'))",
            name=op.f("ck_spsa_iteration_struck"),
        ),
        sa.CheckConstraint(
            "games_played = (plus_wins + minus_wins + draws) AND games_played = 2 * (ptnml_0 + ptnml_1 + ptnml_2 + ptnml_3 + ptnml_4) AND games_played + struck_games <= target_games AND plus_wins - minus_wins = 2 * (ptnml_4 - ptnml_0) + (ptnml_3 - ptnml_1)",
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
        "ix_spsa_iteration_abandoned",
        "spsa_iteration",
        ["run_id"],
        unique=False,
        sqlite_where=sa.text("status IN ('abandoned')"),
        postgresql_where=sa.text("status IN ('abandoned')"),
    )
    op.create_index(
        "ix_spsa_iteration_completed", "spsa_iteration", ["run_id", "completed_at"], unique=False
    )
    op.create_index(
        "ix_spsa_iteration_open",
        "spsa_iteration",
        ["run_id", "id"],
        unique=False,
        sqlite_where=sa.text("status IN ('pending', 'in_progress')"),
        postgresql_where=sa.text("status IN ('pending', 'in_progress')"),
    )
    op.create_index(
        "ix_spsa_iteration_validation",
        "spsa_iteration",
        ["run_id", "iteration_number"],
        unique=False,
        sqlite_where=sa.text("purpose IN ('validate')"),
        postgresql_where=sa.text("purpose IN ('validate')"),
    )
    op.create_table(
        "spsa_purge",
        sa.Column("id", Identity, nullable=False),
        sa.Column("run_id", Identity, nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("applied", sa.Integer(), nullable=False),
        sa.Column("theta_before", Json, nullable=False),
        sa.Column("theta_after", Json, nullable=False),
        sa.Column("games", sa.Integer(), nullable=False),
        sa.Column("selection", Json, nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("at", Utc, server_default=sa.text("CURRENT_TIMESTAMP"), nullable=False),
        sa.CheckConstraint(
            "number > 0 AND applied >= 0 AND games >= 0", name=op.f("ck_spsa_purge_numbers")
        ),
        sa.ForeignKeyConstraint(["run_id"], ["spsa_run.id"], name=op.f("fk_spsa_purge_run_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_spsa_purge")),
        sa.UniqueConstraint("run_id", "number", name=op.f("uq_spsa_purge_run_id_number")),
    )
    op.create_table(
        "spsa_change",
        sa.Column("id", Identity, nullable=False),
        sa.Column("run_id", Identity, nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("applied", sa.Integer(), nullable=False),
        sa.Column("purges", sa.Integer(), nullable=False),
        sa.Column("space", Json, nullable=False),
        sa.Column("theta_before", Json, nullable=False),
        sa.Column("theta_after", Json, nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("at", Utc, server_default=sa.text("CURRENT_TIMESTAMP"), nullable=False),
        sa.CheckConstraint(
            "number > 0 AND applied >= 0 AND purges >= 0", name=op.f("ck_spsa_change_numbers")
        ),
        sa.ForeignKeyConstraint(["run_id"], ["spsa_run.id"], name=op.f("fk_spsa_change_run_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_spsa_change")),
        sa.UniqueConstraint("run_id", "number", name=op.f("uq_spsa_change_run_id_number")),
    )
    op.create_table(
        "spsa_set_aside",
        sa.Column("id", Identity, nullable=False),
        sa.Column("machine", sa.Text(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("at", Utc, server_default=sa.text("CURRENT_TIMESTAMP"), nullable=False),
        sa.CheckConstraint(
            "length(CAST(reason AS TEXT)) BETWEEN 1 AND 2000", name=op.f("ck_spsa_set_aside_reason")
        ),
        sa.CheckConstraint(
            "length(CAST(sha256 AS TEXT)) BETWEEN 64 AND 64 AND ltrim(sha256, '0123456789abcdef') = ''",
            name=op.f("ck_spsa_set_aside_sha256"),
        ),
        sa.ForeignKeyConstraint(
            ["machine"], ["spsa_machine.name"], name=op.f("fk_spsa_set_aside_machine")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_spsa_set_aside")),
        sa.UniqueConstraint("machine", "sha256", name=op.f("uq_spsa_set_aside_machine_sha256")),
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
        sa.Column("scale", sa.Double(), nullable=True),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column(
            "first_seen_at", Utc, server_default=sa.text("CURRENT_TIMESTAMP"), nullable=False
        ),
        sa.Column("last_seen_at", Utc, server_default=sa.text("CURRENT_TIMESTAMP"), nullable=False),
        sa.Column("confinement", sa.Text(), nullable=True),
        sa.Column("provides", sa.Text(), nullable=True),
        sa.Column("only_runs", Json, nullable=True),
        sa.Column("not_runs", Json, nullable=True),
        sa.Column("batches", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("games", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("void_games", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("time_losses", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("failed_void_games", sa.BigInteger(), server_default="0", nullable=False),
        sa.CheckConstraint(
            "concurrency BETWEEN 1 AND 1024", name=op.f("ck_spsa_worker_concurrency")
        ),
        sa.CheckConstraint("cores BETWEEN 1 AND 100000", name=op.f("ck_spsa_worker_cores")),
        sa.CheckConstraint(
            "length(CAST(confinement AS TEXT)) <= 200",
            name=op.f("ck_spsa_worker_confinement"),
        ),
        sa.CheckConstraint(
            "length(CAST(provides AS TEXT)) <= 5000", name=op.f("ck_spsa_worker_provides")
        ),
        sa.CheckConstraint(
            "length(CAST(only_runs AS TEXT)) <= 5000", name=op.f("ck_spsa_worker_only_runs")
        ),
        sa.CheckConstraint(
            "length(CAST(not_runs AS TEXT)) <= 5000", name=op.f("ck_spsa_worker_not_runs")
        ),
        sa.CheckConstraint(
            "length(CAST(name AS TEXT)) BETWEEN 1 AND 200", name=op.f("ck_spsa_worker_name")
        ),
        sa.CheckConstraint(
            "length(CAST(platform AS TEXT)) <= 200", name=op.f("ck_spsa_worker_platform")
        ),
        sa.CheckConstraint(
            "length(CAST(version AS TEXT)) <= 200", name=op.f("ck_spsa_worker_version")
        ),
        sa.CheckConstraint(
            "nps BETWEEN 0 AND 1000000000000 AND (nps = 0 OR nps >= 0.000001)",
            name=op.f("ck_spsa_worker_nps"),
        ),
        sa.CheckConstraint(
            "scale BETWEEN 0 AND 1000 AND (scale = 0 OR scale >= 0.000001)",
            name=op.f("ck_spsa_worker_scale"),
        ),
        sa.ForeignKeyConstraint(["host"], ["spsa_machine.name"], name=op.f("fk_spsa_worker_host")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_spsa_worker")),
        sa.UniqueConstraint("name", name=op.f("uq_spsa_worker_name")),
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
        sa.Column("void_games", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("voids", Json, nullable=True),
        sa.Column("void_log", Json, nullable=True),
        sa.Column("void_worker_id", Identity, nullable=True),
        sa.Column("plus_nodes", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("minus_nodes", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("moves", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("plus_time_losses", sa.Integer(), server_default="0", nullable=False),
        sa.Column("minus_time_losses", sa.Integer(), server_default="0", nullable=False),
        sa.Column("seconds", sa.Double(), server_default="0", nullable=False),
        sa.Column("reported_at", Utc, nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("slot", sa.Integer(), nullable=True),
        sa.Column("think_seconds", sa.Double(), server_default="0", nullable=False),
        sa.Column("scale", sa.Double(), server_default="1", nullable=False),
        sa.Column("failures", sa.Integer(), server_default="0", nullable=False),
        sa.CheckConstraint(
            "CASE WHEN status = 'done' THEN claim_id IS NOT NULL AND (plus_wins + minus_wins + draws) = games AND 2 * (ptnml_0 + ptnml_1 + ptnml_2 + ptnml_3 + ptnml_4) = games AND plus_wins - minus_wins = 2 * (ptnml_4 - ptnml_0) + (ptnml_3 - ptnml_1) ELSE (plus_wins + minus_wins + draws) + (ptnml_0 + ptnml_1 + ptnml_2 + ptnml_3 + ptnml_4) = 0 END AND (plus_wins | minus_wins | draws | ptnml_0 | ptnml_1 | ptnml_2 | ptnml_3 | ptnml_4) >= 0",
            name=op.f("ck_spsa_batch_counts"),
        ),
        sa.CheckConstraint(
            "status <> 'leased' OR (claim_id IS NOT NULL AND lease_expires_at IS NOT NULL AND worker_id IS NOT NULL)",
            name=op.f("ck_spsa_batch_leased"),
        ),
        sa.CheckConstraint(
            "status IN ('ready', 'leased', 'done', 'failed', 'purged')",
            name=op.f("ck_spsa_batch_status"),
        ),
        sa.CheckConstraint("attempt >= 0 AND failures >= 0", name=op.f("ck_spsa_batch_attempt")),
        sa.CheckConstraint("games > 0 AND games % 2 = 0", name=op.f("ck_spsa_batch_whole_pairs")),
        sa.CheckConstraint(
            "length(CAST(claim_id AS TEXT)) BETWEEN 1 AND 64", name=op.f("ck_spsa_batch_claim_id")
        ),
        sa.CheckConstraint(
            "length(CAST(last_error AS TEXT)) <= 2000",
            name=op.f("ck_spsa_batch_last_error"),
        ),
        sa.CheckConstraint(
            "length(CAST(voids AS TEXT)) <= 50000", name=op.f("ck_spsa_batch_voids")
        ),
        sa.CheckConstraint(
            "length(CAST(void_log AS TEXT)) <= 30000", name=op.f("ck_spsa_batch_void_log")
        ),
        sa.CheckConstraint(
            "minus_nodes BETWEEN 0 AND 1000000000000000000", name=op.f("ck_spsa_batch_minus_nodes")
        ),
        sa.CheckConstraint(
            "minus_time_losses BETWEEN 0 AND 1000000", name=op.f("ck_spsa_batch_minus_time_losses")
        ),
        sa.CheckConstraint("moves BETWEEN 0 AND 1000000000", name=op.f("ck_spsa_batch_moves")),
        sa.CheckConstraint(
            "plus_nodes BETWEEN 0 AND 1000000000000000000", name=op.f("ck_spsa_batch_plus_nodes")
        ),
        sa.CheckConstraint(
            "plus_time_losses BETWEEN 0 AND 1000000", name=op.f("ck_spsa_batch_plus_time_losses")
        ),
        sa.CheckConstraint(
            "seconds BETWEEN 0 AND 1000000000 AND (seconds = 0 OR seconds >= 0.000001)",
            name=op.f("ck_spsa_batch_seconds"),
        ),
        sa.CheckConstraint("slot BETWEEN 0 AND 100000", name=op.f("ck_spsa_batch_slot")),
        sa.CheckConstraint(
            "scale BETWEEN 0 AND 1000 AND (scale = 0 OR scale >= 0.000001)",
            name=op.f("ck_spsa_batch_scale"),
        ),
        sa.CheckConstraint(
            "think_seconds BETWEEN 0 AND 1000000000 AND (think_seconds = 0 OR think_seconds >= 0.000001)",
            name=op.f("ck_spsa_batch_think_seconds"),
        ),
        sa.CheckConstraint(
            "void_games BETWEEN 0 AND 1000000", name=op.f("ck_spsa_batch_void_games")
        ),
        sa.ForeignKeyConstraint(
            ["iteration_id"], ["spsa_iteration.id"], name=op.f("fk_spsa_batch_iteration_id")
        ),
        sa.ForeignKeyConstraint(
            ["void_worker_id"], ["spsa_worker.id"], name=op.f("fk_spsa_batch_void_worker_id")
        ),
        sa.ForeignKeyConstraint(
            ["worker_id"], ["spsa_worker.id"], name=op.f("fk_spsa_batch_worker_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_spsa_batch")),
        sa.UniqueConstraint("iteration_id", "seq", name=op.f("uq_spsa_batch_iteration_id_seq")),
    )
    op.create_index("ix_spsa_batch_claim_id", "spsa_batch", ["claim_id"], unique=True)
    op.create_index(
        "ix_spsa_batch_leased",
        "spsa_batch",
        ["iteration_id", "lease_expires_at"],
        unique=False,
        sqlite_where=sa.text("status IN ('leased')"),
        postgresql_where=sa.text("status IN ('leased')"),
    )
    op.create_index(
        "ix_spsa_batch_ready",
        "spsa_batch",
        ["iteration_id", "seq"],
        unique=False,
        sqlite_where=sa.text("status IN ('ready')"),
        postgresql_where=sa.text("status IN ('ready')"),
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
    op.create_table(
        "spsa_struck",
        sa.Column("id", Identity, nullable=False),
        sa.Column("purge_id", Identity, nullable=False),
        sa.Column("iteration_id", Identity, nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("games", sa.Integer(), nullable=False),
        sa.Column("played_again", sa.Boolean(), nullable=False),
        sa.Column("worker_id", Identity, nullable=False),
        sa.Column("claim_id", sa.Text(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("slot", sa.Integer(), nullable=True),
        sa.Column("plus_wins", sa.Integer(), server_default="0", nullable=False),
        sa.Column("minus_wins", sa.Integer(), server_default="0", nullable=False),
        sa.Column("draws", sa.Integer(), server_default="0", nullable=False),
        sa.Column("ptnml_0", sa.Integer(), server_default="0", nullable=False),
        sa.Column("ptnml_1", sa.Integer(), server_default="0", nullable=False),
        sa.Column("ptnml_2", sa.Integer(), server_default="0", nullable=False),
        sa.Column("ptnml_3", sa.Integer(), server_default="0", nullable=False),
        sa.Column("ptnml_4", sa.Integer(), server_default="0", nullable=False),
        sa.Column("void_games", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("voids", Json, nullable=True),
        sa.Column("plus_nodes", sa.BigInteger(), nullable=False),
        sa.Column("minus_nodes", sa.BigInteger(), nullable=False),
        sa.Column("moves", sa.BigInteger(), nullable=False),
        sa.Column("plus_time_losses", sa.Integer(), nullable=False),
        sa.Column("minus_time_losses", sa.Integer(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("reported_at", Utc, nullable=False),
        sa.CheckConstraint(
            "(plus_wins + minus_wins + draws) = games AND 2 * (ptnml_0 + ptnml_1 + ptnml_2 + ptnml_3 + ptnml_4) = games",
            name=op.f("ck_spsa_struck_counts"),
        ),
        sa.ForeignKeyConstraint(
            ["iteration_id"], ["spsa_iteration.id"], name=op.f("fk_spsa_struck_iteration_id")
        ),
        sa.ForeignKeyConstraint(
            ["purge_id"], ["spsa_purge.id"], name=op.f("fk_spsa_struck_purge_id")
        ),
        sa.ForeignKeyConstraint(
            ["worker_id"], ["spsa_worker.id"], name=op.f("fk_spsa_struck_worker_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_spsa_struck")),
        sa.UniqueConstraint(
            "purge_id", "iteration_id", "seq", name=op.f("uq_spsa_struck_purge_id_iteration_id_seq")
        ),
    )
    op.create_index("ix_spsa_struck_iteration_id", "spsa_struck", ["iteration_id"], unique=False)
    op.create_index("ix_spsa_struck_worker_id", "spsa_struck", ["worker_id"], unique=False)
    op.create_table(
        "spsa_failure",
        sa.Column("batch_id", Identity, nullable=False),
        sa.Column("machine", sa.Text(), nullable=False),
        sa.Column("failures", sa.Integer(), server_default="0", nullable=False),
        sa.Column("lost_leases", sa.Integer(), server_default="0", nullable=False),
        sa.Column("sha256", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("at", Utc, server_default=sa.text("CURRENT_TIMESTAMP"), nullable=False),
        sa.CheckConstraint(
            "failures >= 0 AND lost_leases >= 0", name=op.f("ck_spsa_failure_numbers")
        ),
        sa.CheckConstraint(
            "length(CAST(reason AS TEXT)) <= 2000", name=op.f("ck_spsa_failure_reason")
        ),
        sa.CheckConstraint(
            "length(CAST(sha256 AS TEXT)) BETWEEN 64 AND 64 AND ltrim(sha256, '0123456789abcdef') = ''",
            name=op.f("ck_spsa_failure_sha256"),
        ),
        sa.ForeignKeyConstraint(
            ["batch_id"], ["spsa_batch.id"], name=op.f("fk_spsa_failure_batch_id")
        ),
        sa.ForeignKeyConstraint(
            ["machine"], ["spsa_machine.name"], name=op.f("fk_spsa_failure_machine")
        ),
        sa.PrimaryKeyConstraint("batch_id", "machine", name=op.f("pk_spsa_failure")),
    )
    op.create_index("ix_spsa_failure_at", "spsa_failure", ["at"], unique=False)
    op.create_table(
        "spsa_build",
        sa.Column("id", Identity, nullable=False),
        sa.Column("build_key", sa.Text(), nullable=False),
        sa.Column("requires", sa.Text(), nullable=False),
        sa.Column("archive_sha256", sa.Text(), nullable=False),
        sa.Column("recipe", Json, nullable=True),
        sa.Column("wanted_until", Utc, nullable=False),
        sa.Column("status", sa.Text(), server_default="ready", nullable=False),
        sa.Column("attempt", sa.Integer(), server_default="0", nullable=False),
        sa.Column("max_attempts", sa.Integer(), nullable=False),
        sa.Column("claim_id", sa.Text(), nullable=True),
        sa.Column("worker_id", Identity, nullable=True),
        sa.Column("leased_at", Utc, nullable=True),
        sa.Column("lease_expires_at", Utc, nullable=True),
        sa.Column("plus_sha256", sa.Text(), nullable=True),
        sa.Column("minus_sha256", sa.Text(), nullable=True),
        sa.Column("plus_bench", sa.BigInteger(), nullable=True),
        sa.Column("minus_bench", sa.BigInteger(), nullable=True),
        sa.Column("binary_requires", sa.Text(), nullable=True),
        sa.Column("created_at", Utc, server_default=sa.text("CURRENT_TIMESTAMP"), nullable=False),
        sa.CheckConstraint("attempt >= 0", name=op.f("ck_spsa_build_attempt")),
        sa.CheckConstraint(
            "length(CAST(binary_requires AS TEXT)) <= 5000",
            name=op.f("ck_spsa_build_binary_requires"),
        ),
        sa.CheckConstraint(
            "length(CAST(claim_id AS TEXT)) BETWEEN 1 AND 64", name=op.f("ck_spsa_build_claim_id")
        ),
        sa.CheckConstraint(
            "(status = 'done') = (plus_sha256 IS NOT NULL AND minus_sha256 IS NOT NULL)",
            name=op.f("ck_spsa_build_done"),
        ),
        sa.CheckConstraint(
            "status <> 'leased' OR (claim_id IS NOT NULL AND lease_expires_at IS NOT NULL"
            " AND worker_id IS NOT NULL AND recipe IS NOT NULL)",
            name=op.f("ck_spsa_build_leased"),
        ),
        sa.CheckConstraint(
            "minus_bench BETWEEN 0 AND 1000000000000000000",
            name=op.f("ck_spsa_build_minus_bench"),
        ),
        sa.CheckConstraint(
            "plus_bench BETWEEN 0 AND 1000000000000000000", name=op.f("ck_spsa_build_plus_bench")
        ),
        sa.CheckConstraint(
            "status IN ('ready', 'leased', 'done')", name=op.f("ck_spsa_build_status")
        ),
        sa.ForeignKeyConstraint(
            ["archive_sha256"], ["spsa_file.sha256"], name=op.f("fk_spsa_build_archive_sha256")
        ),
        sa.ForeignKeyConstraint(
            ["minus_sha256"], ["spsa_engine.sha256"], name=op.f("fk_spsa_build_minus_sha256")
        ),
        sa.ForeignKeyConstraint(
            ["plus_sha256"], ["spsa_engine.sha256"], name=op.f("fk_spsa_build_plus_sha256")
        ),
        sa.ForeignKeyConstraint(
            ["worker_id"], ["spsa_worker.id"], name=op.f("fk_spsa_build_worker_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_spsa_build")),
        sa.UniqueConstraint("build_key", name=op.f("uq_spsa_build_build_key")),
        sa.UniqueConstraint("claim_id", name=op.f("uq_spsa_build_claim_id")),
    )
    op.create_table(
        "spsa_build_failure",
        sa.Column("build_id", Identity, nullable=False),
        sa.Column("machine", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("at", Utc, server_default=sa.text("CURRENT_TIMESTAMP"), nullable=False),
        sa.CheckConstraint(
            "length(CAST(reason AS TEXT)) BETWEEN 1 AND 2000",
            name=op.f("ck_spsa_build_failure_reason"),
        ),
        sa.ForeignKeyConstraint(
            ["build_id"], ["spsa_build.id"], name=op.f("fk_spsa_build_failure_build_id")
        ),
        sa.ForeignKeyConstraint(
            ["machine"], ["spsa_machine.name"], name=op.f("fk_spsa_build_failure_machine")
        ),
        sa.PrimaryKeyConstraint("build_id", "machine", name=op.f("pk_spsa_build_failure")),
    )

    for name, query in VIEWS.items():
        op.execute(f"CREATE VIEW {name} AS {query}")
