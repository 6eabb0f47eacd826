-- What a master reads of its run, again and again.

-- name: active_slots
-- those of the workers that may play an iteration, or without one of all
SELECT coalesce(sum(w.concurrency), 0)
  FROM spsa_worker w LEFT JOIN (spsa_iteration i JOIN spsa_run r ON r.id = i.run_id)
       ON i.id = :iteration_id
 WHERE w.last_seen_at > spsa_time(-{ACTIVE_SECONDS}) AND (i.id IS NULL OR {suited});

-- name: work
SELECT iteration_id, status, count(*) AS batches, sum(games) AS games, sum(seconds) AS seconds
  FROM spsa_batch WHERE iteration_id IN :iteration_ids GROUP BY iteration_id, status;

-- name: failures.recent
-- the batches of a run that machines failed within the last hour; both databases have to start with
-- these few failures, so the run is no join
SELECT f.machine, f.batch_id, f.sha256, f.reason,
       (SELECT b.iteration_id FROM spsa_batch b WHERE b.id = f.batch_id) AS iteration_id
  FROM spsa_failure f
 WHERE f.failures > 0 AND f.at > spsa_time(-3600)
   AND (SELECT i.run_id FROM spsa_batch b JOIN spsa_iteration i ON i.id = b.iteration_id
         WHERE b.id = f.batch_id) = :run_id
 ORDER BY f.machine, f.at;

-- name: failures.played
SELECT w.host, count(*) AS batches FROM spsa_batch b JOIN spsa_worker w ON w.id = b.worker_id
 WHERE b.iteration_id IN :iteration_ids AND b.status = 'done' GROUP BY w.host;

-- name: keep_file
INSERT INTO spsa_file (sha256, bytes) VALUES (:sha256, :content) ON CONFLICT DO NOTHING;
