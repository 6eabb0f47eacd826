-- The statements of the protocol: every one that a worker causes, and every one that sets a batch's
-- status; builds.sql has those of builds. One text for PostgreSQL and SQLite. On SQLite, FOR UPDATE
-- is left out: who writes has the file alone. spsa_time(s) is the database's clock plus s seconds,
-- `{name}` a fragment or one of `PLACES`. Rows are locked in the order run, batch, iteration, worker.

-- fragment: playable
-- whether batches of iteration i of run r may be claimed; of a validation also after its run ended
i.status IN ('pending', 'in_progress')
    AND (r.status = 'running' OR i.purpose = 'validate' AND r.status IN ('finished', 'stopped'))

-- fragment: suited
-- whether worker w may play iteration i of run r: it provides the words that the iteration or a
-- variant requires (a pattern for them in order), takes the run, is neither revoked nor set aside
(i.requires IS NULL OR w.provides LIKE i.requires
     OR EXISTS (SELECT 1 FROM json_each(i.variants) AS v WHERE w.provides LIKE v.key))
    AND (w.only_runs IS NULL
         OR EXISTS (SELECT 1 FROM json_each(w.only_runs) AS n WHERE n.key = r.name))
    AND (w.not_runs IS NULL
         OR NOT EXISTS (SELECT 1 FROM json_each(w.not_runs) AS n WHERE n.key = r.name))
    AND NOT EXISTS (SELECT 1 FROM spsa_set_aside a WHERE a.machine = w.host
                       AND (a.sha256 IS NULL OR a.sha256 IN (i.plus_sha256, i.minus_sha256)))
    AND NOT EXISTS (SELECT 1 FROM spsa_machine m
                     WHERE m.name = w.host AND m.revoked_at IS NOT NULL)

-- fragment: gave_up
-- whether the machine of worker w is done with batch b: it failed max_attempts times (an expired
-- lease counts), or it failed once and another machine is there. h holds the lease of b, if any.
coalesce((SELECT f.failures + f.lost_leases FROM spsa_failure f
           WHERE f.batch_id = b.id AND f.machine = w.host), 0)
    + CASE WHEN b.status = 'leased' AND h.host = w.host THEN 1 ELSE 0 END >= b.max_attempts
    OR EXISTS (SELECT 1 FROM spsa_failure f
                WHERE f.batch_id = b.id AND f.machine = w.host AND f.failures > 0)
       AND EXISTS (SELECT 1 FROM spsa_worker w2
                    WHERE w2.host <> w.host AND w2.last_seen_at > spsa_time(-{ACTIVE_SECONDS})
                      AND {suited of w2})

-- fragment: tried
-- the number of machines that failed batch b or lost its lease
(SELECT count(*) FROM (
    SELECT f.machine FROM spsa_failure f WHERE f.batch_id = b.id
     UNION SELECT h.host WHERE b.status = 'leased') AS tried)

-- fragment: free
-- whether the machine of worker w may claim batch b, which was tried before; two may in any case
(b.status = 'ready' OR b.status = 'leased' AND b.lease_expires_at < spsa_time(0))
    AND ({tried} < 2 OR {tried} < b.max_attempts) AND NOT ({gave_up})

-- fragment: expired
-- whether the lease of a batch of iteration i has expired
EXISTS (SELECT 1 FROM spsa_batch b WHERE b.iteration_id = i.id AND b.status = 'leased'
                                       AND b.lease_expires_at < spsa_time(0))

-- name: register.machine
SELECT name, revoked_at IS NOT NULL AS is_revoked FROM spsa_machine
 WHERE secret_sha256 = :secret_sha256;

-- name: register.new_machine
INSERT INTO spsa_machine (name, secret_sha256) VALUES (:host, :secret_sha256)
    ON CONFLICT DO NOTHING;

-- name: register.lock
-- one registration of a machine at a time, because the others are counted
SELECT name FROM spsa_machine WHERE name = :machine FOR NO KEY UPDATE;

-- name: register.forget
DELETE FROM spsa_worker
 WHERE host = :machine AND last_seen_at < spsa_time(-{ACTIVE_SECONDS}) AND name <> :name
   AND NOT EXISTS (SELECT 1 FROM spsa_batch b WHERE b.worker_id = spsa_worker.id
                       OR b.expired_worker_id = spsa_worker.id OR b.void_worker_id = spsa_worker.id)
   AND NOT EXISTS (SELECT 1 FROM spsa_build d WHERE d.worker_id = spsa_worker.id);

-- name: register.active
SELECT count(*) AS workers, coalesce(sum(concurrency), 0) AS slots,
       (SELECT count(*) FROM spsa_machine m WHERE m.name = :name AND m.name <> :machine) AS namesakes
  FROM spsa_worker
 WHERE host = :machine AND name <> :name AND last_seen_at > spsa_time(-{ACTIVE_SECONDS});

-- name: register.worker
INSERT INTO spsa_worker (name, host, platform, cores, concurrency, version, sandbox, provides,
                         only_runs, not_runs, first_seen_at, last_seen_at)
    VALUES (:name, :machine, :platform, :cores, :concurrency, :version, :sandbox, :provides,
            :only_runs, :not_runs, spsa_time(0), spsa_time(0))
    ON CONFLICT (name) DO UPDATE
        SET (platform, cores, concurrency, version, sandbox, provides, only_runs, not_runs) =
            (EXCLUDED.platform, EXCLUDED.cores, EXCLUDED.concurrency, EXCLUDED.version,
             EXCLUDED.sandbox, EXCLUDED.provides, EXCLUDED.only_runs, EXCLUDED.not_runs),
            last_seen_at = EXCLUDED.last_seen_at
        WHERE spsa_worker.host = EXCLUDED.host
    RETURNING id;

-- name: touch
UPDATE spsa_worker SET last_seen_at = spsa_time(0), {measured} WHERE id = :worker_id
RETURNING (SELECT min(a.reason) FROM spsa_set_aside a
            WHERE a.machine = host AND a.sha256 IS NULL) AS set_aside;

-- name: work_left
-- while its master lease is live, a finished run may open a validation, and a paused one go on
SELECT r.name AS run, i.requires,
       r.status <> 'paused' AND r.lease_expires_at > spsa_time(0) AS has_master
  FROM spsa_run r LEFT JOIN spsa_iteration i ON i.run_id = r.id AND {playable}
 WHERE r.status = 'running' OR i.id IS NOT NULL
    OR r.status <> 'stopped' AND r.lease_expires_at > spsa_time(0)
 UNION  -- binaries for other kinds of machines
SELECT r.name, v.key, r.lease_expires_at > spsa_time(0)
  FROM spsa_run r JOIN spsa_iteration i ON i.run_id = r.id AND {playable},
       json_each(i.variants) AS v
 WHERE v.key LIKE '% %' ORDER BY run, requires;

-- name: file
SELECT bytes FROM spsa_engine WHERE sha256 = :sha256
 UNION ALL SELECT bytes FROM spsa_file WHERE sha256 = :sha256;

-- name: claim.iterations
-- The worker, what it holds, and the iterations with batches for it: the highest priority first,
-- then the oldest. No iteration: one row without it. No row: no such worker.
SELECT w.concurrency, i.id, i.run_id, i.status, r.priority, r.share,
       (SELECT count(*) FROM spsa_batch l JOIN spsa_iteration o ON o.id = l.iteration_id
         WHERE l.worker_id = w.id AND l.status = 'leased'
           AND o.status IN ('pending', 'in_progress')) AS held,
       EXISTS (SELECT 1 FROM spsa_batch b
                WHERE b.iteration_id = i.id AND b.status = 'ready' AND b.attempt > 0)
           OR {expired} AS has_tried
  FROM spsa_worker w LEFT JOIN (spsa_iteration i JOIN spsa_run r ON r.id = i.run_id)
       ON {playable} AND {suited}
          AND (EXISTS (SELECT 1 FROM spsa_batch b
                        WHERE b.iteration_id = i.id AND b.status = 'ready') OR {expired})
 WHERE w.id = :worker_id
 ORDER BY r.priority DESC, i.id;

-- name: claim.slots
SELECT i.run_id, count(*) AS slots
  FROM spsa_iteration i JOIN spsa_batch b ON b.iteration_id = i.id
 WHERE i.status IN ('pending', 'in_progress') AND b.status = 'leased'
   AND b.lease_expires_at >= spsa_time(0)
 GROUP BY i.run_id;

-- name: claim
-- The first batch that no worker has tried; a locked row is being claimed. A claim gets one batch.
UPDATE spsa_batch
   SET expired_worker_id = NULL,
       status = 'leased', attempt = attempt + 1, claim_id = :claim_id, worker_id = :worker_id,
       leased_at = spsa_time(0), lease_expires_at = spsa_time(:lease_seconds)
 WHERE id = (
    SELECT b.id FROM spsa_batch b
     WHERE b.iteration_id = :iteration_id AND b.status = 'ready' AND b.attempt = 0
     ORDER BY b.seq LIMIT 1 FOR UPDATE OF b SKIP LOCKED)
   AND NOT EXISTS (SELECT 1 FROM spsa_batch c WHERE c.claim_id = :claim_id)
RETURNING id, iteration_id, seq, attempt, first_pair, games, seed, time_control, expired_worker_id;

-- name: claim.tried
-- the same of those that were tried, expired leases first; one statement would take twice the time
UPDATE spsa_batch
   SET expired_worker_id = CASE WHEN status = 'leased' THEN worker_id END,
       status = 'leased', attempt = attempt + 1, claim_id = :claim_id, worker_id = :worker_id,
       leased_at = spsa_time(0), lease_expires_at = spsa_time(:lease_seconds)
 WHERE id = (
    SELECT b.id FROM spsa_batch b JOIN spsa_iteration i ON i.id = b.iteration_id
           JOIN spsa_run r ON r.id = i.run_id JOIN spsa_worker w ON w.id = :worker_id
           LEFT JOIN spsa_worker h ON h.id = b.worker_id
     WHERE b.iteration_id = :iteration_id AND b.attempt > 0 AND {free}
     ORDER BY b.status, b.seq LIMIT 1 FOR UPDATE OF b SKIP LOCKED)
   AND NOT EXISTS (SELECT 1 FROM spsa_batch c WHERE c.claim_id = :claim_id)
RETURNING id, iteration_id, seq, attempt, first_pair, games, seed, time_control, expired_worker_id;

-- name: claim.begin
UPDATE spsa_iteration SET status = 'in_progress' WHERE id = :iteration_id AND status = 'pending';

-- name: claim.again
SELECT * FROM spsa_batch WHERE claim_id = :claim_id;

-- name: renew
UPDATE spsa_batch SET lease_expires_at = spsa_time(:lease_seconds)
 WHERE claim_id IN :claim_ids AND worker_id = :worker_id AND status = 'leased'
   AND leased_at > spsa_time(-{LONGEST_BATCH})
   AND EXISTS (SELECT 1 FROM spsa_iteration i
                WHERE i.id = spsa_batch.iteration_id AND i.status = 'in_progress')
RETURNING claim_id;

-- name: report
-- A report after the lease has expired still counts, unless another claim has the batch.
UPDATE spsa_batch
   SET status = 'done', reported_at = spsa_time(0),
       plus_wins = :plus_wins, minus_wins = :minus_wins, draws = :draws, ptnml_0 = :ptnml_0,
       ptnml_1 = :ptnml_1, ptnml_2 = :ptnml_2, ptnml_3 = :ptnml_3, ptnml_4 = :ptnml_4,
       void_games = void_games + :void_games, own_void_games = :void_games, voids = :voids,
       void_log = coalesce(:void_log, void_log),
       void_worker_id = CASE WHEN :void_log IS NOT NULL THEN worker_id ELSE void_worker_id END,
       plus_nodes = :plus_nodes, minus_nodes = :minus_nodes, moves = :moves,
       plus_time_losses = :plus_time_losses, minus_time_losses = :minus_time_losses,
       seconds = :seconds, think_seconds = :think_seconds, slot = :slot, scale = :scale
 WHERE id = :batch_id AND claim_id = :claim_id AND worker_id = :worker_id AND status = 'leased'
   AND games = :games
RETURNING iteration_id;

-- name: report.count
-- in the same transaction; only while the iteration is in progress, and never past its target
UPDATE spsa_iteration
   SET games_played = games_played + :games,
       plus_wins = plus_wins + :plus_wins, minus_wins = minus_wins + :minus_wins,
       draws = draws + :draws, ptnml_0 = ptnml_0 + :ptnml_0, ptnml_1 = ptnml_1 + :ptnml_1,
       ptnml_2 = ptnml_2 + :ptnml_2, ptnml_3 = ptnml_3 + :ptnml_3, ptnml_4 = ptnml_4 + :ptnml_4,
       void_games = void_games + :void_games
 WHERE id = :iteration_id AND status = 'in_progress' AND games_played + :games <= target_games
RETURNING id;

-- name: report.again
SELECT games, CASE WHEN status = 'leased' THEN 'leased'
            WHEN (plus_wins, minus_wins, draws, ptnml_0, ptnml_1, ptnml_2, ptnml_3, ptnml_4)
               = (:plus_wins, :minus_wins, :draws, :ptnml_0, :ptnml_1, :ptnml_2, :ptnml_3, :ptnml_4)
            THEN 'already' ELSE 'conflict' END AS outcome
  FROM spsa_batch
 WHERE id = :batch_id AND claim_id = :claim_id AND worker_id = :worker_id
   AND status IN ('leased', 'done');

-- name: give_back
-- A claim ends without a result: handed back (the attempt does not count), or it cannot be played.
UPDATE spsa_batch
   SET status = 'ready', attempt = attempt - :attempts, claim_id = NULL, lease_expires_at = NULL,
       last_error = coalesce(:reason, last_error), void_games = void_games + :void_games,
       void_log = coalesce(:void_log, void_log),
       void_worker_id = CASE WHEN :void_log IS NOT NULL THEN worker_id ELSE void_worker_id END
 WHERE id = :batch_id AND claim_id = :claim_id AND worker_id = :worker_id AND status = 'leased'
RETURNING iteration_id;

-- name: fail.voids
UPDATE spsa_iteration SET void_games = void_games + :void_games WHERE id = :iteration_id;

-- name: fail.worker
UPDATE spsa_worker SET failed_void_games = failed_void_games + :void_games WHERE id = :worker_id;

-- name: fail.machine
-- a failure has a reason, an expired lease has none
INSERT INTO spsa_failure (batch_id, machine, failures, lost_leases, sha256, reason, at)
    SELECT :batch_id, w.host, :failures, 1 - :failures, :sha256, :reason, spsa_time(0)
      FROM spsa_worker w WHERE w.id = :worker_id
    ON CONFLICT (batch_id, machine) DO UPDATE
        SET failures = spsa_failure.failures + EXCLUDED.failures,
            lost_leases = spsa_failure.lost_leases + EXCLUDED.lost_leases,
            sha256 = coalesce(EXCLUDED.sha256, spsa_failure.sha256),
            reason = coalesce(EXCLUDED.reason, spsa_failure.reason), at = EXCLUDED.at;

-- name: withdraw
UPDATE spsa_batch
   SET status = 'ready', attempt = attempt - 1, claim_id = NULL, lease_expires_at = NULL
 WHERE id IN :batch_ids AND status = 'leased';

-- name: tried
-- batches that wait for another attempt, and whether a worker that is active may make it; a locked
-- row is being reported or renewed, and is looked at again later
SELECT b.id, i.iteration_number, b.seq, coalesce(b.last_error, :reason) AS reason,
       {tried} AS machines, b.max_attempts,
       EXISTS (SELECT 1 FROM spsa_worker w
                WHERE w.last_seen_at > spsa_time(-{ACTIVE_SECONDS}) AND {suited}) AS is_suited,
       EXISTS (SELECT 1 FROM spsa_worker w
                WHERE w.last_seen_at > spsa_time(-{ACTIVE_SECONDS}) AND {suited}
                  AND NOT ({gave_up})) AS is_wanted
  FROM spsa_batch b JOIN spsa_iteration i ON i.id = b.iteration_id
       JOIN spsa_run r ON r.id = i.run_id LEFT JOIN spsa_worker h ON h.id = b.worker_id
 WHERE i.run_id = :run_id AND i.status IN ('pending', 'in_progress') AND b.attempt > 0
   AND (b.status = 'ready' OR b.status = 'leased' AND b.lease_expires_at < spsa_time(0))
 ORDER BY b.id FOR UPDATE OF b SKIP LOCKED;

-- name: exhaust
UPDATE spsa_batch
   SET status = 'failed', claim_id = NULL, lease_expires_at = NULL,
       last_error = coalesce(last_error, :reason)
 WHERE id IN :batch_ids AND status IN ('ready', 'leased');

-- name: resume
UPDATE spsa_batch SET status = 'ready', attempt = 0
 WHERE status = 'failed' AND iteration_id IN (SELECT id FROM spsa_iteration WHERE run_id = :run_id)
RETURNING id;

-- name: purge
UPDATE spsa_batch SET status = 'purged', lease_expires_at = NULL,
       played_again = EXISTS (SELECT 1 FROM spsa_iteration i WHERE i.id = iteration_id
                                 AND i.status IN ('pending', 'in_progress'))
 WHERE purge > 0 AND purge = :purge AND status = 'done';

-- name: purge.again
-- the games of an open iteration are played again, from the same seed
INSERT INTO spsa_batch (iteration_id, seq, games, first_pair, seed, time_control, max_attempts)
    SELECT b.iteration_id, b.seq, b.games, b.first_pair, b.seed, b.time_control, b.max_attempts
      FROM spsa_batch b JOIN spsa_iteration i ON i.id = b.iteration_id
     WHERE b.purge > 0 AND b.purge = :purge AND i.run_id = :run_id AND b.played_again;
