-- The queries of a worker on SQLite. worker_functions.sql has the same for PostgreSQL, under the same
-- names and with the reasons.
--
-- A query is one transaction (BEGIN IMMEDIATE); its statements run in the order of this file. Every
-- process that can open the file is trusted, so there is no login; the secret of a machine tells two
-- machines of the same name apart.

-- name: register_worker.known
SELECT EXISTS (SELECT 1 FROM spsa_worker WHERE name = :name);

-- name: check_registrations
SELECT (SELECT count(*) FROM spsa_machine
         WHERE created_at > strftime('%Y-%m-%d %H:%M:%f', 'now', '-1 day')) AS machines,
       (SELECT count(*) FROM spsa_worker
         WHERE first_seen_at > strftime('%Y-%m-%d %H:%M:%f', 'now', '-1 day')) AS workers;

-- name: register_worker.own_machine
SELECT name FROM spsa_machine WHERE secret_sha256 = :secret_sha256;

-- name: register_worker.new_machine
INSERT INTO spsa_machine (name, secret_sha256) VALUES (:host, :secret_sha256)
    ON CONFLICT DO NOTHING;

-- name: register_worker.worker
INSERT INTO spsa_worker (name, host, platform, cores, concurrency, version, confinement,
                         provides, only_runs, not_runs, first_seen_at, last_seen_at)
    VALUES (:name, :machine, :platform, :cores, :concurrency, :version, :confinement,
            :provides, :only_runs, :not_runs,
            strftime('%Y-%m-%d %H:%M:%f', 'now'), strftime('%Y-%m-%d %H:%M:%f', 'now'))
    ON CONFLICT (name) DO UPDATE
        SET platform = :platform, cores = :cores, concurrency = :concurrency,
            version = :version, confinement = :confinement, provides = :provides,
            only_runs = :only_runs, not_runs = :not_runs,
            last_seen_at = strftime('%Y-%m-%d %H:%M:%f', 'now')
        WHERE host = :machine
    RETURNING id;

-- name: register_worker.owner
SELECT host FROM spsa_worker WHERE name = :name;

-- name: register_worker.namesake
SELECT name FROM spsa_machine WHERE name = :name AND name <> :machine;

-- name: machine_of
SELECT m.name FROM spsa_worker w JOIN spsa_machine m ON m.name = w.host
 WHERE w.id = :worker_id AND m.secret_sha256 = :secret_sha256;

-- name: touch_worker
UPDATE spsa_worker
   SET last_seen_at = strftime('%Y-%m-%d %H:%M:%f', 'now'), nps = coalesce(:nps, nps),
       scale = coalesce(:scale, scale)
 WHERE id = :worker_id AND host = :machine;

-- name: touch_worker.set_aside
SELECT min(reason) FROM spsa_set_aside WHERE machine = :machine AND sha256 IS NULL;

-- name: next_run
WITH waiting AS (
    SELECT DISTINCT s.run_id, s.priority, s.share FROM spsa_suited s
     WHERE s.worker_id = :worker_id AND s.playable
       AND (EXISTS (SELECT 1 FROM spsa_batch b WHERE b.iteration_id = s.iteration_id
                       AND b.status = 'ready' AND b.failures < b.max_attempts)
            OR EXISTS (SELECT 1 FROM spsa_batch b WHERE b.iteration_id = s.iteration_id
                          AND b.status = 'leased'
                          AND b.lease_expires_at < strftime('%Y-%m-%d %H:%M:%f', 'now')
                          AND b.failures < b.max_attempts))
), candidates AS (
    SELECT w.run_id, w.share,
           (SELECT count(*) FROM spsa_iteration i JOIN spsa_batch b ON b.iteration_id = i.id
             WHERE i.run_id = w.run_id AND i.status IN ('pending', 'in_progress')
               AND b.status = 'leased'
               AND b.lease_expires_at >= strftime('%Y-%m-%d %H:%M:%f', 'now')
           ) AS slots
      FROM waiting w WHERE w.priority = (SELECT max(priority) FROM waiting)
), weighted AS (
    SELECT run_id,
           max((1 + sum(slots) OVER ()) * share / sum(share) OVER () - slots, 0) AS deficit
      FROM candidates
), ranges AS (
    SELECT run_id, sum(deficit) OVER (ORDER BY run_id) AS upper, sum(deficit) OVER () AS total
      FROM weighted
)
SELECT run_id FROM ranges ORDER BY upper <= :draw * total, run_id LIMIT 1;

-- name: claim.claimed
SELECT * FROM spsa_claimed WHERE claim_id = :claim_id;

-- name: lease_batch.several_runs
SELECT min(run_id) < max(run_id) FROM spsa_open WHERE playable;

-- name: lease_batch.iterations
SELECT s.iteration_id FROM spsa_suited s WHERE s.worker_id = :worker_id AND s.playable
 ORDER BY s.priority DESC, s.run_id IS NOT :run_id, s.iteration_id;

-- name: lease_batch.free
SELECT b.id, CASE WHEN b.status = 'leased' THEN b.worker_id END AS left_by
  FROM spsa_batch b
 WHERE b.iteration_id = :iteration_id
   AND (b.status = 'ready'
        OR b.status = 'leased' AND b.lease_expires_at < strftime('%Y-%m-%d %H:%M:%f', 'now'))
   AND (b.status = 'ready' AND b.failures = 0
        -- may_retry
        OR (SELECT count(*) FROM (
                SELECT f.machine FROM spsa_failure f WHERE f.batch_id = b.id
                 UNION  -- the one whose lease expired
                SELECT w.host FROM spsa_worker w WHERE w.id = b.worker_id AND b.status = 'leased'
            ) AS tried) < b.max_attempts
           AND (NOT EXISTS (SELECT 1 FROM spsa_failure f
                             WHERE f.batch_id = b.id AND f.machine = :machine)
                OR b.attempt < b.max_attempts AND (
                    NOT EXISTS (SELECT 1 FROM spsa_failure f WHERE f.batch_id = b.id
                                   AND f.machine = :machine AND f.failures > 0)
                    OR NOT EXISTS (
                        SELECT 1 FROM spsa_suited s
                         WHERE s.iteration_id = b.iteration_id AND s.machine <> :machine
                           AND s.last_seen_at
                               > strftime('%Y-%m-%d %H:%M:%f', 'now', '-120 seconds')))))
 ORDER BY b.status = 'ready', b.seq LIMIT 1;

-- name: lease_batch.lease
UPDATE spsa_batch
   SET status = 'leased', attempt = attempt + 1, claim_id = :claim_id, worker_id = :worker_id,
       leased_at = strftime('%Y-%m-%d %H:%M:%f', 'now'),
       lease_expires_at = strftime('%Y-%m-%d %H:%M:%f', 'now', :lease_seconds || ' seconds')
 WHERE id = :batch_id;

-- name: lease_batch.begin
UPDATE spsa_iteration SET status = 'in_progress' WHERE id = :iteration_id AND status = 'pending';

-- name: renew
UPDATE spsa_batch
   SET lease_expires_at = strftime('%Y-%m-%d %H:%M:%f', 'now', :lease_seconds || ' seconds')
 WHERE claim_id = :claim_id AND status = 'leased'
   AND leased_at > strftime('%Y-%m-%d %H:%M:%f', 'now', '-7 days')
   AND EXISTS (SELECT 1 FROM spsa_iteration i
                WHERE i.id = iteration_id AND i.status = 'in_progress')
RETURNING claim_id;

-- name: report
UPDATE spsa_batch
   SET status = 'done', reported_at = strftime('%Y-%m-%d %H:%M:%f', 'now'),
       plus_wins = :plus_wins, minus_wins = :minus_wins, draws = :draws,
       ptnml_0 = :ptnml_0, ptnml_1 = :ptnml_1, ptnml_2 = :ptnml_2,
       ptnml_3 = :ptnml_3, ptnml_4 = :ptnml_4,
       void_games = void_games + min(:void_games, 1000000 - void_games), voids = :voids,
       void_log = coalesce(:void_log, void_log),
       void_worker_id = CASE WHEN :void_log IS NULL THEN void_worker_id ELSE worker_id END,
       plus_nodes = :plus_nodes, minus_nodes = :minus_nodes, moves = :moves,
       plus_time_losses = :plus_time_losses, minus_time_losses = :minus_time_losses,
       seconds = :seconds, think_seconds = :think_seconds, slot = :slot,
       scale = :scale
 WHERE id = :batch_id AND claim_id = :claim_id AND status = 'leased'
   AND EXISTS (SELECT 1 FROM spsa_iteration i
                WHERE i.id = iteration_id AND i.status = 'in_progress')
RETURNING 'accepted';

-- name: report.again
SELECT CASE WHEN (plus_wins, minus_wins, draws, ptnml_0, ptnml_1, ptnml_2, ptnml_3, ptnml_4)
               = (:plus_wins, :minus_wins, :draws,
                  :ptnml_0, :ptnml_1, :ptnml_2, :ptnml_3, :ptnml_4)
            THEN 'already' ELSE 'conflict' END
  FROM spsa_batch WHERE id = :batch_id AND claim_id = :claim_id AND status = 'done';

-- name: release
UPDATE spsa_batch
   SET status = 'ready', attempt = attempt - 1, claim_id = NULL, lease_expires_at = NULL
 WHERE id = :batch_id AND claim_id = :claim_id AND status = 'leased';

-- name: fail
UPDATE spsa_batch
   SET status = 'ready', claim_id = NULL, lease_expires_at = NULL, last_error = :reason,
       void_games = void_games + min(:void_games, 1000000 - void_games),
       void_log = coalesce(:void_log, void_log),
       void_worker_id = CASE WHEN :void_log IS NULL THEN void_worker_id ELSE worker_id END
 WHERE id = :batch_id AND claim_id = :claim_id AND status = 'leased'
RETURNING worker_id;

-- name: fail.voids
UPDATE spsa_worker SET failed_void_games = failed_void_games + :void_games WHERE id = :worker_id;

-- name: note_failure
INSERT INTO spsa_failure AS f (batch_id, machine, failures, lost_leases, sha256, reason)
    SELECT :batch_id, w.host, :reason IS NOT NULL, :reason IS NULL, :sha256, :reason
      FROM spsa_worker w WHERE w.id = :worker_id
    ON CONFLICT (batch_id, machine) DO UPDATE
        SET failures = f.failures + EXCLUDED.failures,
            lost_leases = f.lost_leases + EXCLUDED.lost_leases,
            sha256 = coalesce(EXCLUDED.sha256, f.sha256),
            reason = coalesce(EXCLUDED.reason, f.reason),
            at = strftime('%Y-%m-%d %H:%M:%f', 'now');

-- name: note_failure.machines
UPDATE spsa_batch
   SET failures = (SELECT count(*) FROM spsa_failure WHERE batch_id = :batch_id)
 WHERE id = :batch_id;

-- name: engine_bytes
SELECT bytes FROM spsa_engine WHERE sha256 = :sha256
UNION ALL
SELECT bytes FROM spsa_file WHERE sha256 = :sha256;

-- name: work_left
SELECT DISTINCT r.name AS run, o.requires
  FROM spsa_run r LEFT JOIN spsa_open o ON o.run_id = r.id AND o.playable
 WHERE r.status = 'running' OR o.id IS NOT NULL
    OR (r.status = 'finished' AND r.lease_expires_at > strftime('%Y-%m-%d %H:%M:%f', 'now'))
 UNION  -- binaries for other kinds of machines
SELECT o.run, v.key FROM spsa_open o CROSS JOIN json_each(o.variants) AS v
 WHERE o.playable AND v.key LIKE '% %';

-- name: claim_build
UPDATE spsa_build
   SET status = 'leased', attempt = attempt + 1, claim_id = :claim_id, worker_id = :worker_id,
       leased_at = strftime('%Y-%m-%d %H:%M:%f', 'now'),
       lease_expires_at = strftime('%Y-%m-%d %H:%M:%f', 'now', :lease_seconds || ' seconds')
 WHERE id = (
    SELECT b.id FROM spsa_build b JOIN spsa_worker w ON w.id = :worker_id
     WHERE (b.status = 'ready'
            OR b.status = 'leased' AND b.lease_expires_at < strftime('%Y-%m-%d %H:%M:%f', 'now'))
       AND b.wanted_until > strftime('%Y-%m-%d %H:%M:%f', 'now') AND b.attempt < b.max_attempts
       AND w.provides LIKE b.requires
       AND NOT EXISTS (SELECT 1 FROM spsa_build_failure f
                        WHERE f.build_id = b.id AND f.machine = :machine)
       AND NOT EXISTS (SELECT 1 FROM spsa_set_aside a
                        WHERE a.machine = :machine AND a.sha256 IS NULL)
       AND NOT EXISTS (SELECT 1 FROM spsa_build c WHERE c.claim_id = :claim_id)
     ORDER BY b.id LIMIT 1);

-- name: claim_build.claimed
SELECT id AS build_id, recipe AS order_json, archive_sha256 AS archive FROM spsa_build
 WHERE claim_id = :claim_id AND status = 'leased';

-- name: renew_build
UPDATE spsa_build
   SET lease_expires_at = strftime('%Y-%m-%d %H:%M:%f', 'now', :lease_seconds || ' seconds')
 WHERE claim_id = :claim_id AND status = 'leased'
   AND wanted_until > strftime('%Y-%m-%d %H:%M:%f', 'now')
   AND leased_at > strftime('%Y-%m-%d %H:%M:%f', 'now', '-1 day')
RETURNING id;

-- name: publish_build.status
SELECT status, build_key FROM spsa_build WHERE id = :build_id AND claim_id = :claim_id;

-- name: publish_build.engine
INSERT INTO spsa_engine AS e (sha256, build_key, target, size, bench, path, bytes)
    VALUES (:sha256, :build_key, :target, :size, :bench, :sha256, :bytes)
    ON CONFLICT (sha256) DO UPDATE SET bytes = EXCLUDED.bytes WHERE e.bytes IS NULL;

-- name: publish_build
UPDATE spsa_build
   SET status = 'done', recipe = NULL, plus_sha256 = :plus_sha256, minus_sha256 = :minus_sha256,
       plus_bench = :plus_bench, minus_bench = :minus_bench,
       binary_requires = :binary_requires
 WHERE id = :build_id;

-- name: fail_build
UPDATE spsa_build
   SET status = 'ready', claim_id = NULL, lease_expires_at = NULL,
       attempt = attempt - (:reason IS NULL)
 WHERE id = :build_id AND claim_id = :claim_id AND status = 'leased'
RETURNING worker_id;

-- name: fail_build.reason
INSERT INTO spsa_build_failure (build_id, machine, reason)
    SELECT :build_id, w.host, :reason FROM spsa_worker w WHERE w.id = :worker_id
    ON CONFLICT (build_id, machine) DO UPDATE SET reason = EXCLUDED.reason;
