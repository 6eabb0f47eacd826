-- The views for people; the same text for PostgreSQL and SQLite.

-- name: spsa_progress
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
       i.purged_games
  FROM spsa_iteration i JOIN spsa_run r ON r.id = i.run_id;

-- name: spsa_param_history
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
                      AND v.applied = u.applied AND v.number > u.number);

-- name: spsa_worker_stats
-- plus 0: SQLite would read all batches in the order of the index of workers otherwise
SELECT w.name AS worker, w.host, w.platform, w.cores, w.concurrency, {measured of w}, w.version,
       w.sandbox, w.provides, w.first_seen_at, w.last_seen_at,
       COALESCE(b.batches, 0) AS batches, COALESCE(b.games, 0) AS games,
       COALESCE(b.games_leased, 0) AS games_leased,
       COALESCE(b.void_games, 0) + w.failed_void_games AS void_games,
       COALESCE(b.time_losses, 0) AS time_losses, COALESCE(b.seconds, 0) AS seconds_played,
       b.last_report_at, COALESCE(b.games_purged, 0) AS games_purged,
       (SELECT MIN(a.reason) FROM spsa_set_aside a
         WHERE a.machine = w.host AND a.sha256 IS NULL) AS set_aside
  FROM spsa_worker w LEFT JOIN (
    SELECT worker_id + 0 AS id, MAX(reported_at) AS last_report_at,
           SUM(CASE WHEN status = 'done' THEN 1 ELSE 0 END) AS batches,
           SUM(CASE WHEN status = 'done' THEN games ELSE 0 END) AS games,
           SUM(CASE WHEN status = 'leased' AND lease_expires_at >= CURRENT_TIMESTAMP
                    THEN games ELSE 0 END) AS games_leased,
           SUM(CASE WHEN purge > 0 THEN games ELSE 0 END) AS games_purged,
           SUM(CASE WHEN purge = 0 THEN own_void_games ELSE 0 END) AS void_games,
           SUM(CASE WHEN purge = 0 THEN plus_time_losses + minus_time_losses ELSE 0 END)
               AS time_losses,
           SUM(CASE WHEN purge = 0 THEN seconds ELSE 0 END) AS seconds
      FROM spsa_batch WHERE worker_id IS NOT NULL GROUP BY worker_id + 0) b ON b.id = w.id;
